"""Frames over stdio, with and without the wrapper: the same bytes in both directions."""

import json
import os
import select
import shutil
import subprocess
import time

from places import environment, scratch, verified, wrapped


def frames(version, calls):
    """What the scripted client says, line by line. Odd spacing and order show what is rewritten."""
    hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "s", "version": "1"}}
    yield f'{{"jsonrpc":"2.0","id":"a-1","method":"initialize","params":{json.dumps(hello)}}}'
    yield '{ "method" : "notifications/initialized" ,  "jsonrpc":"2.0" }'
    yield '{"id":2,"jsonrpc":"2.0","method":"ping"}'
    yield '{"params":{},"id":3,"jsonrpc":"2.0","method":"tools/list"}'
    for number, (tool, arguments) in enumerate(calls):
        arguments = json.dumps(arguments, indent=None, separators=(" , ", " :  "), ensure_ascii=False)
        yield f'{{"jsonrpc":"2.0","method":"tools/call","params":{{"arguments":{arguments},"name":"{tool}","x":1.50}},"id":{number + 4}}}'


def conversation(command, folder, version, calls):
    """What server and client have read, byte for byte."""
    heard, work = folder / "heard", folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    # Written down on its way into the server.
    recording = ["sh", "-c", f'tee "{heard}" | exec "$@"', "sh"]
    with subprocess.Popen(
        command(recording), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env=environment(folder), cwd=work, bufsize=0,
    ) as server:
        said = []
        for frame in frames(version, calls):
            server.stdin.write(frame.encode() + b"\n")
            ask = json.loads(frame)
            while "id" in ask:
                line = read_line(server.stdout)
                said.append(line)
                if json.loads(line).get("id") == ask["id"]:
                    break
        server.stdin.close()
        said.append(server.stdout.read())
    return heard.read_bytes(), b"".join(sorted(said))


def read_line(stream, limit=60):
    line, until = b"", time.monotonic() + limit
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([stream], [], [], max(0, until - time.monotonic()))
        piece = os.read(stream.fileno(), 1) if ready else b""
        if not piece:
            raise SystemExit(f"the server fell silent after {line!r}")
        line += piece
    return line


def check(name, command, version, calls):
    with scratch() as folder:
        work = folder / "work"
        command = [part.replace("@work", str(work)) for part in command]
        calls = json.loads(json.dumps(calls).replace("@work", str(work)))
        direct = conversation(lambda recording: [*recording, *command], folder, version, calls)
        good = True
        for mode in ("observe", "enforce"):
            data = folder / f"data-{mode}"
            ours = conversation(lambda recording: wrapped(mode, data, *recording, *command), folder, version, calls)
            verified(data)
            for side, before, after in zip(("server", "client"), direct, ours):
                if before != after:
                    good = False
                    at = len(os.path.commonprefix([before, after]))
                    print(f"stdio bytes, {name}, {mode}: the {side} read others\n  {before[at:at + 200]!r}\n  {after[at:at + 200]!r}")
        if good:
            print(f"stdio bytes, {name}: {len(direct[0])} to the server and {len(direct[1])} to the client, the same", flush=True)
        return good
