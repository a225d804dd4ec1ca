"""Clients and servers from the registries, with the proxy between them and without it."""

import asyncio
import concurrent.futures
import contextlib
import json
import re
import shlex
import socket
import subprocess
import sys
import warnings

import stdio_bytes
from places import FIXTURE, MODULES, SHORT, environment, module, proxied, scratch, started, verified, wrapped

EVERYTHING = [*module("@modelcontextprotocol/server-everything"), "stdio"]
FILESYSTEM = [*module("@modelcontextprotocol/server-filesystem"), "@work"]
MEMORY = module("@modelcontextprotocol/server-memory")

ENTITY = {"name": "countersign", "entityType": "program", "observations": ["stands between"]}
# For each server: its command and calls whose results are the same each time.
SERVERS = {
    "everything": (EVERYTHING, [("echo", {"message": "grüße, \u202e"}), ("get-sum", {"a": 1, "b": 2})]),
    "filesystem": (
        FILESYSTEM,
        [
            ("write_file", {"path": "@work/new.txt", "content": "line\n"}),
            ("read_text_file", {"path": "@work/new.txt"}),
            ("list_directory", {"path": "@work"}),
            ("read_text_file", {"path": "/etc/passwd"}),
        ],
    ),
    "memory": (MEMORY, [("create_entities", {"entities": [ENTITY]}), ("read_graph", {})]),
    "fixture": ([FIXTURE], [("test_simple_text", {}), ("test_image_content", {}), ("test_error_handling", {})]),
}


def filled(value, work):
    return json.loads(json.dumps(value).replace("@work", str(work)))


async def python_sdk(server, calls):
    """The official Python client."""
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters

    if isinstance(server, dict):
        server = StdioServerParameters(**server)
    async with Client(server, read_timeout_seconds=60) as client:
        tools = await client.list_tools()
        said = [tool.model_dump(mode="json") for tool in tools.tools]
        for tool, arguments in calls:
            result = await client.call_tool(tool, arguments)
            said.append(result.model_dump(mode="json"))
    return said


async def openai_agents(server, calls):
    """The OpenAI Agents SDK, without a model."""
    from agents.mcp import MCPServerStdio, MCPServerStreamableHttp

    slow = dict(client_session_timeout_seconds=60)
    if isinstance(server, dict):
        made = MCPServerStdio(params=server, **slow)
    else:
        made = MCPServerStreamableHttp(params={"url": server, "timeout": 60}, **slow)
    async with made as connected:
        said = [tool.model_dump(mode="json") for tool in await connected.list_tools()]
        for tool, arguments in calls:
            said.append((await connected.call_tool(tool, arguments)).model_dump(mode="json"))
    return said


async def inspector(server, calls):
    """The command line of the MCP Inspector."""
    said = []
    with scratch() as folder:
        if isinstance(server, dict):
            target = [server["command"], *server["args"]]
        else:
            target = [server, "--transport", "http"]
        for more in [["--method", "tools/list"], *map(as_options, calls)]:
            command = [*module("@modelcontextprotocol/inspector"), "--cli", *target, *more]
            env = server["env"] if isinstance(server, dict) else environment(folder)
            ran = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
            if not ran.stdout.strip():
                raise SystemExit(f"{command} said nothing: {ran.stderr}")
            said.append(ran.stdout)
    return said


def as_options(call):
    tool, arguments = call
    pairs = [f"{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in arguments.items()]
    return ["--method", "tools/call", "--tool-name", tool, *(f"--tool-arg={pair}" for pair in pairs)]


def plain(said, work):
    """What was said, without what differs between any two runs."""
    text = json.dumps(said, indent=1, sort_keys=True).replace(str(work), "@work")
    return re.sub(r"countersign-peers-\w+", "@scratch", text)


def compare(what, direct, through):
    if direct == through:
        print(f"{what}: the same", flush=True)
        return True
    before, after = direct.splitlines(), through.splitlines()
    at = next((n for n, pair in enumerate(zip(before, after)) if pair[0] != pair[1]), min(len(before), len(after)))
    print(f"{what}: differs\n  direct {before[at:at + 3]}\n  through {after[at:at + 3]}", flush=True)
    return False


def over_stdio(client, name, mode):
    command, calls = SERVERS[name]
    with scratch() as folder:
        work = folder / "work"
        command, data = filled(command, work), folder / "data"
        if mode:
            command = wrapped(mode, data, *command)
        # Clients take `--` for themselves, show what a server says beside the protocol, and some keep
        # most of the environment to themselves, without which servers would share their state.
        script, memory = folder / "server.sh", environment(folder)["MEMORY_FILE_PATH"]
        script.write_text(f'export MEMORY_FILE_PATH="{memory}"\nexec {shlex.join(command)} 2>>"{folder}/said"\n')
        server = {"command": "sh", "args": [str(script)], "env": environment(folder)}
        said = asyncio.run(client(server, filled(calls, work)))
        if mode:
            verified(data)
        return plain(said, work)


def over_http(client, name, mode):
    """A program behind the HTTP door; without the proxy, over its pipes."""
    command, calls = SERVERS[name]
    with scratch() as folder:
        work = folder / "work"
        with proxied(mode, "--", *filled(command, work)) as url:
            return plain(asyncio.run(client(url, filled(calls, work))), work)


@contextlib.contextmanager
def everything_over_http(folder):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    command = [*module("@modelcontextprotocol/server-everything"), "streamableHttp"]
    env = environment(folder) | {"PORT": str(port)}
    with started(command, env, r"listening on port (\d+)"):
        yield f"http://localhost:{port}/mcp"


def claude_code():
    """Claude Code connects to its servers when it lists them; no model and no account take part."""
    claude = str(MODULES / ".bin/claude")
    with scratch() as folder, everything_over_http(folder) as url, proxied("enforce", "--upstream", url) as ours:
        env = environment(folder)
        tell = lambda *words: subprocess.run([claude, "mcp", *words], env=env, cwd=folder, capture_output=True, text=True, timeout=180)
        tell("add", "wrapped", "--", *wrapped("enforce", folder / "data", *EVERYTHING))
        tell("add", "--transport", "http", "proxied", ours)
        listed = tell("list")
        good = all(re.search(rf"^{name}: .*Connected", listed.stdout, re.M) for name in ("wrapped", "proxied"))
        print(f"claude mcp list: {'both connected' if good else listed.stdout + listed.stderr}", flush=True)
        return good


def checks():
    """Everything that is to be the same, to be done in any order."""
    for name, (command, calls) in SERVERS.items():
        yield lambda name=name, command=command, calls=calls: stdio_bytes.check(name, command, "2025-11-25", calls)
    for client in (python_sdk, openai_agents, inspector):
        for name in SERVERS:
            if not SHORT or client is python_sdk or name == "everything":
                yield lambda client=client, name=name: programs(client, name)
        if not SHORT or client is python_sdk:
            yield lambda client=client: everything(client)
    if not SHORT:
        yield claude_code


def programs(client, name):
    what, direct = f"{client.__name__}, {name}", over_stdio(client, name, None)
    good = compare(f"{what}, stdio", direct, over_stdio(client, name, "enforce"))
    if client is python_sdk or name == "everything":
        good &= compare(f"{what}, program behind http", direct, over_http(client, name, "enforce"))
    return good


def everything(client):
    with scratch() as folder, everything_over_http(folder) as url:
        calls = SERVERS["everything"][1]
        direct = plain(asyncio.run(client(url, calls)), folder)
        with proxied("observe", "--upstream", url) as ours:
            through = plain(asyncio.run(client(ours, calls)), folder)
        return compare(f"{client.__name__}, everything, http", direct, through)


def main():
    warnings.simplefilter("ignore")
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        ends = [pool.submit(check) for check in checks()]
        return 0 if all([end.result() for end in ends]) else 1


if __name__ == "__main__":
    sys.exit(main())
