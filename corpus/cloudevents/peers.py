"""Holds `countersign evidence export` and `push` against the official SDK of CloudEvents, and its bundles
against a reader of the bundle format that shares no code with the writer."""

import gzip
import hashlib
import http.server
import io
import json
import subprocess
import sys
import tarfile
import tempfile
import threading

from cloudevents.core.bindings.http import HTTPMessage, from_binary_event, from_structured_event
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

BINARY = sys.argv[1]
ASSAY = sys.argv[2] if len(sys.argv) > 2 else None
REQUIRED = """specversion type source id time datacontenttype assayrunid assayseq assayproducer
assayproducerversion assaygit assaypii assaysecrets assaycontenthash data""".split()


def run(*arguments, code=0):
    done = subprocess.run([BINARY, *arguments], capture_output=True)
    assert done.returncode == code, (arguments, done.returncode, done.stderr)
    return done.stdout


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def content_hash(event):
    names = ("specversion", "type", "datacontenttype", "subject", "data")
    kept = {name: event[name] for name in names if name in event}
    return "sha256:" + hashlib.sha256(canonical(kept)).hexdigest()


def check_events(lines):
    for seq, line in enumerate(lines):
        event = json.loads(line)
        assert not [name for name in REQUIRED if name not in event], event
        assert line == canonical(event)
        assert event["assayseq"] == seq and event["id"] == f"{event['assayrunid']}:{seq}"
        assert ":" not in event["assayrunid"] and event["time"].endswith("Z")
        assert event["assaycontenthash"] == content_hash(event)
        version, trace, span, flags = event["traceparent"].split("-")
        assert (version, len(trace), len(span), flags) == ("00", 32, 16, "01")
        read = JSONFormat().read(None, line)
        assert isinstance(read, CloudEvent) and read.get_id() == event["id"]
        assert read.get_extension("assayseq") == seq


def check_bundle(bundle, lines):
    assert bundle[4:8] == bytes(4) and bundle[9] == 255
    archive = gzip.decompress(bundle)
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        members = tar.getmembers()
        assert [member.name for member in members] == ["manifest.json", "events.ndjson"]
        for member in members:
            assert member.isreg() and member.mode == 0o644 and member.mtime == 0
            header = archive[member.offset : member.offset + 512]
            assert header[345:] == bytes(167) and header[157:257] == bytes(100)
            assert header[124:135].isdigit() and header[135] in (0, 32)
        manifest, events = (tar.extractfile(member).read() for member in members)
    end = members[1].offset_data + (len(events) + 511) // 512 * 512
    assert not any(archive[end:]) and len(archive) - end >= 1024
    assert events == b"".join(line + b"\n" for line in lines)
    read = json.loads(manifest)
    assert manifest == canonical(read) and read["schema_version"] == 1
    file = read["files"]["events.ndjson"]
    assert file["bytes"] == len(events)
    assert file["sha256"] == "sha256:" + hashlib.sha256(events).hexdigest()
    hashes = "".join(json.loads(line)["assaycontenthash"] + "\n" for line in lines)
    root = "sha256:" + hashlib.sha256(hashes.encode()).hexdigest()
    assert read["run_root"] == read["bundle_id"] == root
    assert read["event_count"] == len(lines)


class Endpoint(http.server.BaseHTTPRequestHandler):
    """Takes two requests of three, and reads what it takes with the SDK."""

    seen, asked = {}, 0

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        Endpoint.asked += 1
        # Every third request is taken, and the answer is lost: it will come again.
        taken = Endpoint.asked % 3 != 1
        if taken:
            headers = {name.lower(): value for name, value in self.headers.items()}
            message = HTTPMessage(headers=headers, body=body)
            is_structured = headers["content-type"].startswith("application/cloudevents+json")
            read = from_structured_event if is_structured else from_binary_event
            event = read(message)
            content = canonical([event.get_data(), str(sorted(map(str, event.get_attributes().items())))])
            assert Endpoint.seen.setdefault(event.get_id(), content) == content
        self.send_response(202 if Endpoint.asked % 3 == 2 else 503)
        self.end_headers()

    def log_message(self, *_):
        pass


def main():
    with tempfile.TemporaryDirectory() as folder:
        run("demo", "--yes-demo", "--data", folder)
        listed = json.loads(run("session", "list", "--data", folder, "--format", "json"))
        session = listed["sessions"][0]["session_id"]
        where = ["--session", session, "--data", folder]
        text = run("evidence", "export", *where, "--format", "cloudevents")
        assert text == run("evidence", "export", *where, "--format", "cloudevents")
        lines = text.splitlines()
        check_events(lines)
        print(f"{len(lines)} events pass the SDK of CloudEvents")
        bundle = run("evidence", "export", *where, "--format", "assay-bundle")
        assert bundle == run("evidence", "export", *where, "--format", "assay-bundle")
        check_bundle(bundle, lines)
        print("the bundle reads as it should")
        if ASSAY:
            verify = lambda bundle: subprocess.run([ASSAY], input=bundle, capture_output=True)
            done = verify(bundle)
            assert done.returncode == 0, done
            print(f"the verifier of Assay: {done.stdout.decode().strip()}")
            events = gzip.decompress(bundle)
            assert verify(gzip.compress(events.replace(b'"assayseq":1', b'"assayseq":7', 1))).returncode
        for more in ([], ["--binary"]):
            Endpoint.seen, Endpoint.asked = {}, 0
            server = http.server.HTTPServer(("127.0.0.1", 0), Endpoint)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            to = ["--to", f"http://127.0.0.1:{server.server_port}/{len(more)}"]
            run("evidence", "push", *where, *to, *more)
            assert len(Endpoint.seen) == len(lines)
            asked = Endpoint.asked
            run("evidence", "push", *where, *to, *more)
            assert Endpoint.asked == asked
            server.shutdown()
            print(f"{len(lines)} events arrive {'binary' if more else 'structured'} in {asked} requests")


main()
