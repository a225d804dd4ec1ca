"""The MCP conformance suite, with and without the proxy: every check must end the same way."""

import concurrent.futures
import json
import os
import re
import subprocess
import sys

from places import FIXTURE, HERE, MCP, MODES, PYTHON, SHORT, environment, module, proxied, scratch, started

COMPARED = ["enforce"] if SHORT else list(MODES)
REVISIONS = os.environ.get("COUNTERSIGN_REVISIONS", "2025-11-25 2026-07-28").split()


def suite(arguments, folder):
    """Runs the suite and gives each check with its end."""
    results = folder / "results"
    command = [*module("@modelcontextprotocol/conformance"), *arguments, "-o", str(results)]
    ours = {name: value for name, value in os.environ.items() if name.startswith(("COUNTERSIGN_", "PYTHON"))}
    env = environment(folder) | ours
    ran = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    checks = {}
    for file in results.glob("*/checks.json"):
        scenario = re.sub(r"^(server|client)-|-\d{4}-\d\d-\d\dT.*$", "", file.parent.name)
        for number, check in enumerate(json.loads(file.read_text())):
            # The same check may be made more than once.
            name = (scenario, check["id"], sum(1 for key in checks if key[:2] == (scenario, check["id"])))
            checks[name] = check["status"], check.get("errorMessage", "")
    if not checks:
        raise SystemExit(f"the suite made no check: {ran.stdout}{ran.stderr}")
    return checks


def server_checks(url, revision):
    with scratch() as folder:
        return suite(["server", "--url", url, "--requirements", revision], folder)


def client_scenarios(revision):
    """What a client must do at a revision, without authorization: the proxy has another address."""
    text = (MCP / f"conformance/requirements/{revision}.yaml").read_text()
    required = text.split("\nclient:")[1].split("\nnot_scored:")[0]
    return [name for name in re.findall(r"- (\S+)", required) if not name.startswith("auth/")]


def client_checks(command, revision):
    def play(scenario):
        with scratch() as folder:
            arguments = ["client", "--command", command, "--scenario", scenario, "--spec-version", revision]
            return suite(arguments, folder)

    checks = {}
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        for played in pool.map(play, client_scenarios(revision)):
            checks |= played
    return checks


def score(checks):
    ends = [status for status, _ in checks.values()]
    return f"{ends.count('SUCCESS')} passed, {ends.count('FAILURE')} failed"


def same(what, direct, through, again):
    """Compares, once more where a difference may be one of timing."""
    for attempt in range(2):
        names = sorted(set(direct) | set(through))
        differences = [name for name in names if direct.get(name, "-")[0] != through.get(name, "-")[0]]
        if not differences:
            break
        if attempt == 0:
            print(f"  {what}: {len(differences)} differ, again", flush=True)
            through = again()
    print(f"{what}: {score(through)} (direct: {score(direct)})", flush=True)
    for name in differences:
        print(f"  {name}: direct {direct.get(name)}, through the proxy {through.get(name)}")
    return not differences


def servers(revision):
    """The suite's client, against the fixture and against the proxy before it."""
    good = True
    with scratch() as folder, started([FIXTURE, "127.0.0.1:0"], environment(folder)) as url:
        direct = server_checks(url, revision)
        if any(status == "FAILURE" for status, _ in direct.values()):
            raise SystemExit(f"the fixture itself fails at {revision}: {score(direct)}")
        for mode in COMPARED:
            with proxied(mode, "--upstream", url) as ours:
                check = lambda: server_checks(ours, revision)
                good &= same(f"server {revision} {mode}", direct, check(), check)
    return good


def clients(revision):
    """The suite's server, with a client before it and with the proxy between."""
    good = True
    direct = client_checks(f"{PYTHON} {HERE}/suite_client.py", revision)
    for mode in COMPARED:
        command = f"{PYTHON} {HERE}/behind_proxy.py {mode}"
        check = lambda: client_checks(command, revision)
        good &= same(f"client {revision} {mode}", direct, check(), check)
    return good


def main():
    # The suite mostly waits; but what it waits for is shorter where little else runs.
    with concurrent.futures.ThreadPoolExecutor(2 if SHORT else 1) as pool:
        ends = [pool.submit(part, revision) for part in (servers, clients) for revision in REVISIONS]
        return 0 if all([end.result() for end in ends]) else 1


if __name__ == "__main__":
    sys.exit(main())
