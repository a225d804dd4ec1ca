#!/usr/bin/env python3
"""Writes golden.json: events with their exact bytes and hashes.

Everything here is worked out from the description of the format with the standard library alone, so
that it shares no mistake with the program that the file is held against.

    make_golden.py           writes golden.json
    make_golden.py --check   compares golden.json with what would be written
"""

import hashlib
import json
import pathlib
import sys
from decimal import Decimal

GOLDEN = pathlib.Path(__file__).with_name("golden.json")
COMMITMENT_DOMAIN = b"countersign/commitment/v1\0"
LARGEST_EXACT = 2**53 - 1

# What each event type stores in clear, and what it stores encrypted. Members that are in neither
# list are stored encrypted too, all together.
MEMBERS = {
    "MODEL_CALL_STARTED": ("call_id model_id provider agent_id prompt_tokens", "prompt"),
    "MODEL_CALL_FINISHED": (
        "call_id model_id completion_tokens total_tokens finish_reason latency_ms",
        "content",
    ),
    "TOOL_CALL_PROPOSED": (
        "call_id tool_name tool_id server agent_id parent_call_id sanitizer_key",
        "args",
    ),
    "TOOL_CALL_ALLOWED": ("call_id policy_ref approval_id action_digest", ""),
    "TOOL_CALL_DENIED": ("call_id policy_ref approval_id reason_code reason", "message"),
    "TOOL_CALL_EXECUTED": ("call_id started_ms action_digest", ""),
    "TOOL_RESULT": ("call_id tool_name is_error latency_ms content_bytes result_labels", "content"),
    "POLICY_DECISION": (
        "call_id outcome verdict reason reason_code reason_codes policy_ref policy_digest"
        " snapshot_hash side_effect constraints",
        "",
    ),
    "APPROVAL_REQUESTED": (
        "call_id approval_id channel plan_hash expires_unix_ms",
        "approval_token envelope",
    ),
    "APPROVAL_DECIDED": (
        "call_id approval_id approved decided_by plan_hash reason_code",
        "approval_token edited_args message submission",
    ),
    "MEMORY_READ": ("memory_key memory_store bytes_read", "content"),
    "MEMORY_WRITE": ("memory_key memory_store bytes_written", "content"),
    "HANDOFF_REQUESTED": ("from_agent to_agent context_id", "context"),
    "HANDOFF_COMPLETED": ("from_agent to_agent context_id success", ""),
    "CHECKPOINT_CREATED": ("checkpoint_id snapshot_hash snapshot_seq", ""),
    "TERMINATION": ("reason_code cycle_seqs", "detail"),
    "ERROR_RAISED": ("call_id code fatal", "message"),
    "SANITIZED_TEXT": ("key method", "text"),
}

H = "5f" * 32

# Each chain: name, tenant, session, first timestamp, and its events as (type, payload text). Payload
# texts are as an agent might send them: with spaces, needless escapes and other number texts.
CHAINS = [
    (
        "every type, one life",
        "acme",
        "ses_01J9ZK3W8Q",
        1_760_000_000_000,
        [
            ("MODEL_CALL_STARTED", '{"call_id":"m1","model_id":"large-2","provider":"local","agent_id":"agt_1","prompt_tokens":812,"prompt":[{"role":"user","text":"Grüße, 世界"}]}'),
            ("MODEL_CALL_FINISHED", '{"call_id":"m1","model_id":"large-2","completion_tokens":64,"total_tokens":876,"finish_reason":"tool_use","latency_ms":1520,"content":"I will look."}'),
            ("TOOL_CALL_PROPOSED", '{"call_id":"c1","tool_name":"fs.read","tool_id":"fs.read@1","server":"files","agent_id":"agt_1","parent_call_id":"m1","args":{"path":"/etc/hosts","follow":false}}'),
            ("POLICY_DECISION", '{"call_id":"c1","outcome":"allow","verdict":"allow","reason":"declared","reason_code":"OK","reason_codes":["OK","BUDGET_OK"],"policy_ref":"default@3","policy_digest":"sha256:%s","snapshot_hash":"%s","constraints":{"timeout_ms":30000,"max_output_bytes":1048576}}' % (H, H)),
            ("TOOL_CALL_ALLOWED", '{"call_id":"c1","policy_ref":"default@3","action_digest":"sha256:%s"}' % H),
            ("TOOL_CALL_EXECUTED", '{"call_id":"c1","started_ms":1760000000123,"action_digest":"sha256:%s"}' % H),
            ("TOOL_RESULT", '{"call_id":"c1","tool_name":"fs.read","is_error":false,"latency_ms":7,"content_bytes":221,"content":{"text":"127.0.0.1\\tlocalhost\\n"}}'),
            ("SANITIZED_TEXT", '{"key":"safe-k1","method":"escape","text":"127.0.0.1 localhost"}'),
            ("TOOL_CALL_PROPOSED", '{"call_id":"c2","tool_name":"exec","sanitizer_key":"safe-k1","args":["rm","-rf","/tmp/x"],"trace":{"span":"ab12"}}'),
            ("APPROVAL_REQUESTED", '{"call_id":"c2","approval_id":"apr_1","channel":"console","plan_hash":"sha256:%s","expires_unix_ms":1760000300000,"approval_token":"t0k3n"}' % H),
            ("APPROVAL_DECIDED", '{"call_id":"c2","approval_id":"apr_1","approved":false,"decided_by":"olga","plan_hash":"sha256:%s","reason_code":"NO","approval_token":"t0k3n","edited_args":null,"message":"not on my watch"}' % H),
            ("TOOL_CALL_DENIED", '{"call_id":"c2","policy_ref":"default@3","approval_id":"apr_1","reason_code":"APPROVAL_DENIED","reason":"denied by a human","message":"ask the operator; do not retry"}'),
            ("MEMORY_READ", '{"memory_key":"notes","memory_store":"kv","bytes_read":12,"content":"old"}'),
            ("MEMORY_WRITE", '{"memory_key":"notes","memory_store":"kv","bytes_written":3,"content":"new"}'),
            ("HANDOFF_REQUESTED", '{"from_agent":"agt_1","to_agent":"agt_2","context_id":"ctx_1","context":{"task":"review"}}'),
            ("HANDOFF_COMPLETED", '{"from_agent":"agt_1","to_agent":"agt_2","context_id":"ctx_1","success":true}'),
            ("CHECKPOINT_CREATED", '{"checkpoint_id":"chk_1","snapshot_hash":"%s","snapshot_seq":15}' % H),
            ("ERROR_RAISED", '{"call_id":"c2","code":"UPSTREAM_GONE","fatal":true,"message":"broken pipe"}'),
            ("TERMINATION", '{"reason_code":"DONE","cycle_seqs":[2,5,8],"detail":{"note":"bye"}}'),
        ],
    ),
    (
        "ids that need care",
        "tenant \"q\" \\ / \u0000\u001f\u007f",
        "séance 😀 \u2028\ue000\n",
        0,
        [
            ("TOOL_CALL_PROPOSED", '{"call_id":"a\\u0000\\"\\\\\\/\\u00e9\\ud83d\\ude00\\u2028","tool_name":"\\t\\b\\f\\r\\n"}'),
            ("TOOL_CALL_ALLOWED", '{ "call_id" : "a\\u0000\\"\\\\/é😀\\u2028" }'),
            ("TOOL_CALL_EXECUTED", '{"call_id":"a\\u0000\\"\\\\/é😀\\u2028","started_ms":9007199254740991}'),
        ],
    ),
    (
        "payloads that need care",
        "t",
        "s",
        LARGEST_EXACT - 10,
        [
            ("ERROR_RAISED", "{}"),
            ("ERROR_RAISED", "null"),
            ("ERROR_RAISED", "[1.0, 1e2, -0.0, 1e21, 0.000001, 1e-7, 5e-324, 123456789.125]"),
            ("MEMORY_READ", '"just text"'),
            ("MEMORY_READ", '{"sealed":{"ciphertext":"mine"},"hash":"mine","*":1,"":2,"content":null}'),
            ("MEMORY_READ", '{"bytes_read":1.0,"memory_key":"","content":{"\\ue000":1,"\\ud83d\\ude00":2,"z":3,"é":4}}'),
            ("POLICY_DECISION", '{"reason_codes":[],"constraints":{"\\ufb33":1,"\\ud83d\\ude02":2,"1":3}}'),
        ],
    ),
]

COMMITTED = ["null", '""', "{}", '{ "b": 1.50, "a": "\\u00e9" }', "[true, 1e3]"]


def jcs(value):
    """The text of RFC 8785."""
    if value is None or value is True or value is False:
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return jcs_string(value)
    if isinstance(value, (int, float)):
        return jcs_number(value)
    if isinstance(value, list):
        return "[" + ",".join(map(jcs, value)) + "]"
    keys = sorted(value, key=lambda key: key.encode("utf-16-be"))
    return "{" + ",".join(jcs_string(key) + ":" + jcs(value[key]) for key in keys) + "}"


def jcs_string(text):
    short = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
    return '"' + "".join(short.get(c) or (f"\\u{ord(c):04x}" if c < " " else c) for c in text) + '"'


def jcs_number(number):
    """As ECMAScript prints a double."""
    if isinstance(number, int) and abs(number) <= LARGEST_EXACT:
        return str(number)
    double = float(number)
    assert double == number
    if double == 0:
        return "0"
    if double < 0:
        return "-" + jcs_number(-double)
    _, digits, exponent = Decimal(repr(double)).normalize().as_tuple()
    digits = "".join(map(str, digits))
    point = len(digits) + exponent
    if len(digits) <= point <= 21:
        return digits + "0" * (point - len(digits))
    if 0 < point <= 21:
        return digits[:point] + "." + digits[point:]
    if -6 < point <= 0:
        return "0." + "0" * -point + digits
    fraction = "." + digits[1:] if len(digits) > 1 else ""
    return f"{digits[0]}{fraction}e{point - 1:+d}"


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def commitment(salt, value):
    return "sha256:" + sha256(COMMITMENT_DOMAIN + salt + jcs(value).encode())


def halves(event_type, payload):
    """What is stored in clear, and what is sealed at which place."""
    if not isinstance(payload, dict):
        return {}, {"": payload}
    public, sealed = (names.split() for names in MEMBERS[event_type])
    other = {name: payload[name] for name in payload if name not in public + sealed}
    hidden = {"/" + name: payload[name] for name in sealed if name in payload}
    if other:
        hidden["/*"] = other
    return {name: payload[name] for name in public if name in payload}, hidden


def make_event(event_type, text, ts, tenant, session, seq, prev_hash):
    body, hidden = halves(event_type, json.loads(text))
    name = f"{tenant}|{session}|{seq}".encode()
    salts = {place: hashlib.sha256(name + place.encode()).digest()[:16] for place in hidden}
    ciphertext = b"\x01" + hashlib.sha256(b"ciphertext" + name).digest() if hidden else None
    if hidden:
        body["sealed"] = {
            "ciphertext": "sha256:" + sha256(ciphertext),
            "commitments": {place: commitment(salts[place], hidden[place]) for place in hidden},
        }
    event = {
        "tenant_id": tenant,
        "session_id": session,
        "seq": seq,
        "ts_unix_ms": ts,
        "event_type": event_type,
        "payload": body,
        "prev_hash": prev_hash,
    }
    event["hash"] = sha256(jcs(event).encode())
    return {
        "event_type": event_type,
        "ts_unix_ms": ts,
        "payload": text,
        "salts": {place: salt.hex() for place, salt in salts.items()},
        "ciphertext": ciphertext.hex() if ciphertext else None,
        "line": jcs(event),
        "hash": event["hash"],
    }


def make_chain(name, tenant, session, start, events):
    made, prev_hash = [], None
    for seq, (event_type, text) in enumerate(events):
        made.append(make_event(event_type, text, start + seq, tenant, session, seq, prev_hash))
        prev_hash = made[-1]["hash"]
    return {"name": name, "tenant_id": tenant, "session_id": session, "events": made}


def make_commitment(index, text):
    salt = bytes(range(index, index + 16))
    return {"salt": salt.hex(), "value": text, "commitment": commitment(salt, json.loads(text))}


def main(arguments):
    golden = {
        "chains": [make_chain(*chain) for chain in CHAINS],
        "commitments": [make_commitment(*case) for case in enumerate(COMMITTED)],
    }
    text = json.dumps(golden, indent=1, sort_keys=True) + "\n"
    if arguments == ["--check"]:
        if GOLDEN.read_text(encoding="ascii") != text:
            sys.exit("golden.json is not what make_golden.py writes")
    elif not arguments:
        GOLDEN.write_text(text, encoding="ascii")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
