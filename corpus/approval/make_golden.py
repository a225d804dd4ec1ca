#!/usr/bin/env python3
"""Writes golden.json: the exact texts, hashes and signatures of the approval formats.

It shares nothing with the Rust code. `--check` compares instead of writing."""

import hashlib
import json
import pathlib
import sys


def canon(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def sha(text):
    return hashlib.sha256(text if isinstance(text, bytes) else text.encode()).hexdigest()


# Ed25519 as RFC 8032 defines it, plainly and slowly.
P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
BASE_Y = 4 * pow(5, P - 2, P) % P


def base_x():
    square = (BASE_Y * BASE_Y - 1) * pow(D * BASE_Y * BASE_Y + 1, P - 2, P)
    root = pow(square, (P + 3) // 8, P)
    if (root * root - square) % P:
        root = root * pow(2, (P - 1) // 4, P) % P
    return P - root if root % 2 else root


BASE = (base_x(), BASE_Y)


def add(a, b):
    (ax, ay), (bx, by) = a, b
    product = D * ax * bx * ay * by
    x = (ax * by + bx * ay) * pow(1 + product, P - 2, P)
    y = (ay * by + ax * bx) * pow(1 - product, P - 2, P)
    return x % P, y % P


def times(scalar, point):
    result = (0, 1)
    while scalar:
        if scalar & 1:
            result = add(result, point)
        point = add(point, point)
        scalar >>= 1
    return result


def encode(point):
    x, y = point
    return (y | (x & 1) << 255).to_bytes(32, "little")


def number(*parts):
    return int.from_bytes(hashlib.sha512(b"".join(parts)).digest(), "little")


def keys(seed):
    digest = hashlib.sha512(seed).digest()
    scalar = int.from_bytes(digest[:32], "little")
    scalar = scalar & ~7 & (1 << 255) - 1 | 1 << 254
    return scalar, digest[32:], encode(times(scalar, BASE))


def sign(seed, text):
    scalar, prefix, public = keys(seed)
    nonce = number(prefix, text.encode()) % L
    point = encode(times(nonce, BASE))
    s = (nonce + number(point, public, text.encode()) * scalar) % L
    return (point + s.to_bytes(32, "little")).hex()


SEED = bytes(range(32))
KEY_ID = sha(keys(SEED)[2])
ISSUED = 1771113600000
NONCE = "00112233445566778899aabbccddeeff"
ENVELOPE_ID = "apr_11111111111141118111111111111111"
POLICY = "sha256:" + sha("policy")
DISPLAY = sha("display")

PLAN = {
    "format": "countersign.plan.v1",
    "policy_digest": POLICY,
    "preconditions": [
        {"fingerprint": "sha256:" + sha("old content"), "kind": "file", "subject": "/tmp/workspace/a.txt"},
        {"fingerprint": None, "kind": "git-head", "subject": "/tmp/workspace"},
    ],
    "scope": {
        "agent_name": "chat",
        "session_id": "s1",
        "tenant_id": "default",
        "toolset_mode": "require_write_approval",
        "trust": "full",
        "work_item_id": "w1",
        "workspace_device": 2049,
        "workspace_inode": 131,
        "workspace_root": "/tmp/workspace",
    },
    "tool_calls": [
        {
            "args": {"path": "a.txt"},
            "definition_digest": "sha256:" + sha('{"name":"write_file"}'),
            "irreversible": False,
            "server": None,
            "side_effect_class": "mutate-local",
            "tool_call_id": "call-1",
            "tool_name": "write_file",
        },
        {
            "args": {"command": "echo \u202ehello", "n": 9007199254740993, "timeout": 1.0},
            "definition_digest": None,
            "irreversible": True,
            "server": "shell",
            "side_effect_class": "unknown",
            "tool_call_id": "call-2",
            "tool_name": "execute",
        },
    ],
}
PLAN_HASH = sha(canon(PLAN))
CLOCKS = {
    "decide_by_ms": ISSUED + 3600000,
    "execute_by_ms": ISSUED + 7200000,
    "execute_within_ms": None,
    "issued_at_ms": ISSUED,
}
ENVELOPE = {
    "agent_says": "I need to write a file.",
    "envelope_id": ENVELOPE_ID,
    "format": "countersign.envelope.v1",
    "lineage": ["human:dana", "agent:chat"],
    "nonce": NONCE,
    "parent_action_id": None,
    "plan": PLAN,
    "plan_hash": PLAN_HASH,
    "quorum": {"deny": "veto", "required": 1, "roster": ["human:dana", "human:lee"]},
    "supersedes": None,
    **CLOCKS,
}
REASON = "not the shell, please: use caf\u00e9.txt"
SIGNED = {
    "approver": "human:dana",
    "ctx": "countersign.approval.decision.v1",
    "decisions": [
        {"decision": "approved", "reason_hash": None, "tool_call_id": "call-1"},
        {"decision": "denied", "reason_hash": sha(REASON), "tool_call_id": "call-2"},
    ],
    "display_hash": DISPLAY,
    "envelope_hash": sha(canon(ENVELOPE)),
    "envelope_id": ENVELOPE_ID,
    "key_id": KEY_ID,
    "nonce": NONCE,
    "plan_hash": PLAN_HASH,
    "policy_digest": POLICY,
    "signed_at_ms": ISSUED + 30000,
    **CLOCKS,
}
DECISIONS = [
    {"decision": "approved", "reason": None, "tool_call_id": "call-1"},
    {"decision": "denied", "reason": REASON, "tool_call_id": "call-2"},
]
SUBMISSION = {
    "approver": "human:dana",
    "decisions": DECISIONS,
    "display_hash": DISPLAY,
    "key_id": KEY_ID,
    "nonce": NONCE,
    "signature": sign(SEED, canon(SIGNED)),
    "signed_at_ms": ISSUED + 30000,
}
LEASE = {
    "arguments": {
        "amount": {"kind": "range", "may_be_absent": False, "value": [1, 500]},
        "host": {"kind": "host_in", "may_be_absent": True, "value": ["api.example.com", "example.com"]},
        "mode": {"kind": "one_of", "may_be_absent": False, "value": ["fast", 1]},
        "name": {"kind": "prefix", "may_be_absent": True, "value": "feature/"},
        "path": {"kind": "path_under", "may_be_absent": False, "value": "/tmp/workspace/out"},
        "unit": {"kind": "exact", "may_be_absent": False, "value": "eur"},
    },
    "budget": {"argument": "amount", "limit": 1000},
    "children": False,
    "ctx": "countersign.lease.v1",
    "definition_digest": "sha256:" + sha('{"name":"pay"}'),
    "expires_at_ms": ISSUED + 900000,
    "granted_at_ms": ISSUED,
    "granted_by": "human:dana",
    "lease_id": "lse_22222222222242228222222222222222",
    "least_trust": "reduced",
    "lineage": ["human:dana", "agent:chat"],
    "max_uses": 5,
    "parent_lease_id": None,
    "policy_digest": POLICY,
    "server": "bank",
    "session_id": "s1",
    "tenant_id": "default",
    "tool_name": "pay",
    "work_item_id": "w1",
}


def audit():
    about = {"envelope_id": ENVELOPE_ID, "nonce": NONCE, "plan_hash": PLAN_HASH, "work_item_id": "w1"}
    nothing = dict.fromkeys(about)
    entries = [
        {**about, "computed_plan_hash": None, "decisions": [], "outcome": "requested", "actor": "agent:chat"},
        {
            **about,
            "computed_plan_hash": PLAN_HASH,
            "decisions": DECISIONS,
            "outcome": "vote:counted",
            "actor": "human:dana",
            "key_id": KEY_ID,
            "display_hash": DISPLAY,
        },
        {**about, "computed_plan_hash": PLAN_HASH, "decisions": [], "outcome": "executed", "tool_call_id": "call-1"},
        {**nothing, "computed_plan_hash": None, "decisions": [], "outcome": "lease:used", "lease_id": LEASE["lease_id"], "detail": "amount 20"},
    ]
    previous, lines = sha("autopoiesis:audit:genesis"), []
    for place, entry in enumerate(entries):
        time = f"2026-02-15T00:00:0{place}" + (".250Z" if place == 3 else "Z")
        lines.append(canon({**entry, "prev_hash": previous, "timestamp": time}))
        previous = sha(lines[-1])
    return lines, previous


def golden():
    lines, last = audit()
    head = {"count": len(lines), "ctx": "countersign.audit.head.v1", "head": last, "key_id": KEY_ID}
    anchor = {"count": len(lines), "format": "countersign.audit.anchor.v1", "head": last, "written_at": "2026-02-15T00:01:00Z"}
    lease = {**LEASE, "key_id": KEY_ID}
    return {
        "seed": SEED.hex(),
        "key_id": KEY_ID,
        "plan": canon(PLAN),
        "plan_hash": PLAN_HASH,
        "envelope": canon(ENVELOPE),
        "envelope_hash": sha(canon(ENVELOPE)),
        "signed_text": canon(SIGNED),
        "submission": canon(SUBMISSION),
        "lease": canon({**lease, "signature": sign(SEED, canon(lease))}),
        "audit": lines,
        "head": canon({**head, "signature": sign(SEED, canon(head))}),
        "anchor": canon(anchor),
    }


def main():
    text = json.dumps(golden(), indent=1) + "\n"
    path = pathlib.Path(__file__).with_name("golden.json")
    if "--check" in sys.argv[1:]:
        sys.exit(0 if path.read_text() == text else "golden.json is not what this program writes")
    path.write_text(text)


main()
