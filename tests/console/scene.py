"""A daemon on loopback with something to look at, and people who look at it in a browser."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

MANIFEST = """
schema: countersign/manifest/v1
name: shop
version: "1.0.0"
publisher: acme
permissions:
  tools:
    catalog_list: {side_effect: read}
    read_file: {side_effect: read}
    deploy: {side_effect: mutate-external, approval: required}
    pay: {side_effect: mutate-external, approval: required}
    wipe: {side_effect: mutate-external, approval: required, irreversible: true}
  budgets: {max_steps: 400, max_tool_calls: 200, max_wall_time_ms: 86400000}
"""

LIMITS = """package shop.limits

import rego.v1

verdict := {"decision": "deny", "reason": "TOO_DEAR"} if input.action.args.amount > 1000000

else := {"decision": "escalate", "reason": "DEAR"} if input.action.args.amount > 500000

else := {"decision": "allow"}
"""

LIMITS_TEST = """package shop.limits_test

import rego.v1

import data.shop.limits

test_dear if limits.verdict.decision == "deny" with input.action.args.amount as 1000001

test_dearer if limits.verdict.reason == "TOO_DEAR" with input.action.args.amount as 9000000
"""

READS = """package shop.reads

import rego.v1

verdict := {"decision": "deny", "reason": "NO_LISTS"} if input.action.tool == "catalog_list"

else := {"decision": "allow"}
"""


class Daemon:
    """`countersign serve` in a folder of its own."""

    def __init__(self, binary, port=0, config=""):
        self.binary = str(pathlib.Path(binary).resolve())
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="countersign-console-"))
        self.environment = {**os.environ, "HOME": str(self.folder / "home")}
        for name in list(self.environment):
            if name.startswith(("COUNTERSIGN_", "XDG_", "OTEL_")):
                del self.environment[name]
        (self.folder / "home").mkdir()
        (self.folder / "manifest.yaml").write_text(MANIFEST)
        (self.folder / "countersign.toml").write_text(config)
        (self.folder / "policies").mkdir()
        (self.folder / "policies" / "limits.rego").write_text(LIMITS)
        (self.folder / "policies" / "limits_test.rego").write_text(LIMITS_TEST)
        (self.folder / "reads.rego").write_text(READS)
        self.keys = {}
        for name in ["dana", "lee"]:
            self.keys[name] = self.folder / f"{name}.key"
            self.run("approver", "init", "--name", name, "--key", str(self.keys[name]))
        self.process = None
        self.serve(port)

    def serve(self, port):
        out, err = self.folder / "out", self.folder / "err"
        with open(out, "w") as stdout, open(err, "w") as stderr:
            self.process = subprocess.Popen(
                [self.binary, "serve", "--data", "data", "--manifest", "manifest.yaml",
                 "--policy", "policies", "--shadow", "reads.rego", "--config", "countersign.toml",
                 "--listen", f"127.0.0.1:{port}"],
                cwd=self.folder, env=self.environment, stdout=stdout, stderr=stderr)
        end = time.monotonic() + 60
        while True:
            link = re.search(r"works once: (\S+)", err.read_text())
            if link:
                break
            if self.process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"the daemon did not start:\n{err.read_text()}")
            time.sleep(0.05)
        self.link = link.group(1)
        self.place = self.link.split("/login")[0]
        token = re.search(r"cst_\w+", out.read_text())
        if token:
            self.operator = token.group(0)

    def run(self, *arguments, check=True):
        words = [self.binary, *arguments, "--data", "data"]
        done = subprocess.run(words, cwd=self.folder, env=self.environment, capture_output=True, text=True)
        if check and done.returncode:
            raise SystemExit(f"{words}: {done.stderr}")
        return done.stdout.strip()

    def verify(self, pack):
        words = [self.binary, "verify", str(pack)]
        return subprocess.run(words, cwd=self.folder, env=self.environment, capture_output=True, text=True).stdout

    def call_tool(self, server, tool, says, mode="enforce"):
        """One call of a tool, through the proxy, to a server that says this about itself."""
        ask = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": {}}}
        words = [self.binary, "mcp", "--data", "data", "--server", server, "--mode", mode, "--hold-wait", "0", "--",
                 sys.executable, str(pathlib.Path(__file__).parent / "tool_server.py"), says]
        done = subprocess.run(words, cwd=self.folder, env=self.environment, capture_output=True, text=True,
                              input=json.dumps(ask) + "\n", timeout=60)
        return done.stdout

    def token(self, role, name):
        tenant = ["--tenant", "default"] if role in ("agent", "approver") else []
        return self.run("token", "create", "--role", role, "--name", name, *tenant)

    def ask(self, path, token, body=None, headers=None):
        data = None if body is None else json.dumps(body).encode() if body != "" else b""
        request = urllib.request.Request(self.place + path, data=data)
        request.add_header("Authorization", f"Bearer {token}")
        for name, value in (headers or {}).items():
            request.add_header(name, value)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class Agent:
    """A program that asks."""

    def __init__(self, daemon, name="shop-bot"):
        self.daemon, self.token = daemon, daemon.token("agent", name)

    def propose(self, session, tool, args, **more):
        body = {"session_id": session, "tool_name": tool, "args": args, **more}
        return self.daemon.ask("/v1/actions", self.token, body)

    def settle(self, action, content="done"):
        body = {"permit": action["permit"], "content": content}
        return self.daemon.ask(f"/v1/actions/{action['action_id']}/result", self.token, body)

    def record(self, session, kind, payload):
        body = {"session_id": session, "event_type": kind, "payload": payload}
        return self.daemon.ask("/v1/events", self.token, body)


def fill(daemon):
    """A working day in a shop."""
    agent = Agent(daemon)
    for number in range(3):
        session = f"orders-{number + 1}"
        agent.record(session, "MODEL_CALL_STARTED", {"call_id": "m1", "model_id": "small-1", "prompt": "hi"})
        agent.record(session, "MODEL_CALL_FINISHED", {"call_id": "m1", "model_id": "small-1", "total_tokens": 9})
        agent.settle(agent.propose(session, "catalog_list", {"of": "everything"}))
        agent.settle(agent.propose(session, "read_file", {"path": f"invoice-{number}.txt"}), "pay me")
        agent.propose(session, "disk_format", {"disk": "/dev/sda"})
    daemon.call_tool("shelf", "look", "Looks at a shelf", mode="observe")
    daemon.call_tool("shelf", "look", "Looks at a shelf, and mails what it sees")
    agent.propose("orders-1", "deploy", {"to": "prod", "version": "1.4.2"})
    agent.propose("orders-2", "pay", {"amount": 180, "currency": "EUR", "order": 1042})
    agent.propose("orders-3", "wipe", {"disk": "/dev/sda", "keep": []})
    return agent
