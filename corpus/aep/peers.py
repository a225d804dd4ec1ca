"""Holds `countersign evidence` against the published corpus, schema and signatures of the Agent Evidence
Protocol. Every verdict of the corpus must be ours, and every record of ours must pass."""

import base64
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile

import jsonschema
import wasmagent_protocol
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

BINARY = sys.argv[1]
PACKAGE = pathlib.Path(wasmagent_protocol.__file__).parent
CORPUS = PACKAGE / "conformance/aep"


def run(*arguments, code=None):
    done = subprocess.run([BINARY, *arguments], capture_output=True, text=True)
    assert code is None or done.returncode == code, (arguments, done.returncode, done.stderr)
    return done


def corpus():
    manifest = json.loads((CORPUS / "manifest.json").read_text())
    keys = []
    for name, path in manifest["verifying_keys"]["by_keyid"].items():
        keys += ["--key", f"{name}={(CORPUS / path).read_text().strip()}"]
    checked = 0
    for target in manifest["conformance_target"]:
        answer = run("evidence", "check", str(CORPUS / target["path"]), *keys, "--format", "json")
        file = json.loads(answer.stdout)["files"][0]
        axis = lambda name: {record[name].get("status") for record in file["records"]}
        seen = {
            "structural": "valid" if axis("structural") == {"pass"} else "invalid",
            "semantic": "valid" if axis("semantic") == {"pass"} else "invalid",
            "chain": file["chain"].get("status"),
        }
        # The corpus has one word for what we tell apart.
        words = {"valid": "dsse-valid", "binding-mismatch": "invalid"}
        (status,) = axis("authenticity")
        seen["authenticity"] = words.get(status, status)
        for name, expected in target.items():
            if name in seen and expected != "not-checked":
                assert seen[name] == expected, (target["path"], name, expected, seen[name])
                checked += 1
    print(f"corpus of protocol {manifest['protocol_version']}: {checked} verdicts, all the same")


def canonical(record, without=()):
    kept = {name: value for name, value in record.items() if name not in without}
    return json.dumps(kept, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def ours():
    schema = json.loads((PACKAGE / "schemas/aep/aep-record.schema.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    unsigned = ("signature", "dsse_envelope")
    with tempfile.TemporaryDirectory() as folder:
        run("demo", "--yes-demo", "--data", folder, code=0)
        listed = json.loads(run("session", "list", "--data", folder, "--format", "json").stdout)
        session = listed["sessions"][0]["session_id"] if "sessions" in listed else listed["session_id"]
        for more in ([], ["--dsse"]):
            made = run("evidence", "aep", "--session", session, "--data", folder, *more, code=0)
            again = run("evidence", "aep", "--session", session, "--data", folder, *more, code=0)
            assert made.stdout == again.stdout
            key = Ed25519PublicKey.from_public_bytes(
                bytes.fromhex(made.stderr.strip().rsplit("=", 1)[1])
            )
            before = None
            for line in made.stdout.splitlines():
                record = json.loads(line)
                validator.validate(record)
                assert record["prev_record_hash"] == before
                text = canonical(record, unsigned)
                before = hashlib.sha256(text).hexdigest()
                if more:
                    envelope = record["dsse_envelope"]
                    body = base64.b64decode(envelope["payload"], validate=True)
                    kind = envelope["payloadType"]
                    pae = f"DSSEv1 {len(kind)} {kind} {len(body)} ".encode() + body
                    (signature,) = envelope["signatures"]
                    key.verify(base64.b64decode(signature["sig"], validate=True), pae)
                    statement = json.loads(body)
                    assert canonical(statement["predicate"]) == text
                    (subject,) = statement["subject"]
                    assert subject["digest"]["sha256"] == before
                else:
                    key.verify(base64.b64decode(record["signature"]["sig"], validate=True), text)
            count = len(made.stdout.splitlines())
            assert count > 0
            print(f"{record['schema_version']}: {count} records of ours pass the schema and verify")


corpus()
ours()
