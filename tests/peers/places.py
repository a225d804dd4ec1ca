"""Where the peers and the programs are, and how they are started."""

import contextlib
import json
import os
import pathlib
import re
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PEERS = pathlib.Path(os.environ["COUNTERSIGN_PEERS"])
COUNTERSIGN = os.environ["COUNTERSIGN_PROGRAM"]
FIXTURE = os.environ["COUNTERSIGN_FIXTURE"]
MODULES = PEERS / "node_modules"
NODE = str(MODULES / "node/bin/node")
MCP = MODULES / "@modelcontextprotocol"
PYTHON = str(PEERS / "venv/bin/python")

# Whether only the most telling part is run.
SHORT = os.environ.get("COUNTERSIGN_SHORT", "") not in ("", "0")

# Both let every call through: one because nothing is stopped, one because everything is allowed.
MODES = {
    "observe": ["--mode", "observe"],
    "enforce": ["--mode", "enforce", "--policy", str(HERE / "allow-all.rego")],
}


def module(name):
    """The program of a package."""
    about = json.loads((MODULES / name / "package.json").read_text())
    program = about["bin"] if isinstance(about["bin"], str) else next(iter(about["bin"].values()))
    return [NODE, str(MODULES / name / program)]


def environment(folder):
    """Nothing of whoever runs this reaches the peers, and they keep everything in one folder."""
    path = f"{pathlib.Path(NODE).parent}:{os.environ['PATH']}"
    memory = str(pathlib.Path(folder) / "work/memory.jsonl")
    return {"PATH": path, "HOME": str(folder), "TMPDIR": str(folder), "MEMORY_FILE_PATH": memory}


@contextlib.contextmanager
def scratch():
    """A folder that is gone afterwards, with one in it for a server to work in."""
    with tempfile.TemporaryDirectory(prefix="countersign-peers-") as folder:
        folder = pathlib.Path(folder)
        (folder / "work").mkdir()
        yield folder


@contextlib.contextmanager
def started(command, env, address=r"(http://\S+)"):
    """Runs a program until the end of the block, from when it says where it is."""
    kind = dict(stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, env=env, **kind)
    try:
        said = []
        for line in process.stdout:
            said.append(line)
            if found := re.search(address, line):
                # What it says later is let go, so that it never waits for us.
                drain = subprocess.Popen(["cat"], stdin=process.stdout, stdout=subprocess.DEVNULL)
                process.stdout.close()
                yield found.group(1)
                break
        else:
            raise SystemExit(f"{command} did not start: {''.join(said)}")
    finally:
        process.terminate()
        code = process.wait(timeout=20)
    drain.wait(timeout=20)
    if code not in (0, -15):
        raise SystemExit(f"{command} ended with {code}")


@contextlib.contextmanager
def proxied(mode, *upstream):
    """The proxy before a server: its address."""
    with scratch() as folder:
        command = [COUNTERSIGN, "mcp", "serve", "--listen", "127.0.0.1:0", "--data", str(folder / "data")]
        command += [*MODES[mode], *upstream]
        with started(command, environment(folder), r"countersign: (http://\S+) stands before") as url:
            yield url
        verified(folder / "data")


def wrapped(mode, data, *command):
    """A server's command behind the wrapper."""
    return [COUNTERSIGN, "mcp", "--data", str(data), *MODES[mode], "--", *command]


def verified(data):
    """What was recorded is whole."""
    ran = subprocess.run([COUNTERSIGN, "verify", "--data", str(data)], capture_output=True, text=True)
    if ran.returncode != 0:
        raise SystemExit(f"the log does not verify: {ran.stdout}{ran.stderr}")
