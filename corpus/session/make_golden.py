#!/usr/bin/env python3
"""Writes golden.json: sessions with the exact bytes and hashes of their snapshots.

Everything here is worked out from the description of the snapshot with the standard library alone,
so that it shares no mistake with the program that the file is held against.

    make_golden.py           writes golden.json
    make_golden.py --check   compares golden.json with what would be written
    make_golden.py --fold    reads sessions, one per line, as arrays of [ts, event type, payload], and
                             writes the snapshot of each
"""

import hashlib
import json
import pathlib
import sys

GOLDEN = pathlib.Path(__file__).with_name("golden.json")
START = 1760000000000
MAX_LABELS, MORE_LABELS = 64, "(more labels)"
NEWEST_CALLS, NEWEST_SEQS = 32, 32
MAX_SOURCES, MAX_KEYS, MAX_OPEN = 256, 256, 128


def whole(value):
    """JCS writes 1.0 as 1."""
    if isinstance(value, dict):
        return {key: whole(one) for key, one in value.items()}
    if isinstance(value, list):
        return [whole(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def jcs(value):
    # Sorting by code point is what JCS asks for as long as all keys are ASCII.
    text = json.dumps(whole(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode()


def sha(data):
    return hashlib.sha256(data).hexdigest()


def name(text):
    if text is None:
        return None
    data = text.encode()
    short = len(data) <= 128 and not text.startswith("sha256:") and min(data, default=32) >= 32
    return text if short else "sha256:" + sha(data)


def mark(kind, changed_at, *digests):
    state = (2**64 - 1 if changed_at is None else changed_at).to_bytes(8, "big")
    parts = b"".join(bytes.fromhex(digest) for digest in digests)
    return sha(f"countersign/outcome/{kind}/v1\0".encode() + state + parts)


class Session:
    def __init__(self):
        self.events = self.models = self.tools = self.wall = 0
        self.start = self.handoff = self.changed_at = self.tool_run = self.model_run = None
        self.closed = self.reduced = False
        self.last = dict.fromkeys(["model_call_id", "policy_outcome", "tool_call_id", "tool_name"])
        self.last["tool_was_error"] = False
        self.open, self.recent, self.keys, self.taint, self.labels = {}, [], {}, {}, set()

    def apply(self, ts, kind, payload):
        seq, p = self.events, payload if isinstance(payload, dict) else {}
        effect = getattr(self, kind.lower(), None)
        if effect:
            effect(seq, p)
        self.start = ts if self.start is None else self.start
        self.wall = max(self.wall, ts - self.start)
        self.events += 1

    def model_call_started(self, seq, p):
        self.models += 1
        self.last["model_call_id"] = name(p.get("call_id"))

    def model_call_finished(self, seq, p):
        if "content" not in p:
            self.model_run = None
            return
        outcome = mark("model", self.changed_at, sha(jcs(p["content"])))
        self.model_run = run(self.model_run, outcome, None, seq, seq)

    def tool_call_proposed(self, seq, p):
        self.tools += 1
        self.model_run = None
        self.last["tool_call_id"] = name(p.get("call_id"))
        self.last["tool_name"] = name(p.get("tool_name"))
        if "tool_name" not in p:
            return
        call = {"args": sha(jcs(p.get("args"))), "seq": seq, "tool_name": name(p["tool_name"])}
        self.recent = (self.recent + [call])[-NEWEST_CALLS:]
        if "call_id" in p:
            self.open[name(p["call_id"])] = {"call": call, "server": name(p.get("server"))}
            forget_oldest(self.open, MAX_OPEN, lambda one: one["call"]["seq"])

    def tool_call_denied(self, seq, p):
        call, _ = self.close(p)
        self.last["policy_outcome"] = "deny"
        known = "reason_code" in p and ("denied", [sha(p["reason_code"].encode())])
        self.outcome(seq, call, known)

    def tool_result(self, seq, p):
        call, server = self.close(p)
        tool = call and call["tool_name"]
        if "tool_name" in p and name(p["tool_name"]) != tool:
            tool = server = None
        self.source("tool_output", tool, server, seq)
        for label in map(name, p.get("result_labels") or []):
            label = label if len(self.labels) < MAX_LABELS or label in self.labels else MORE_LABELS
            self.changed_at = self.changed_at if label in self.labels else seq
            self.labels.add(label)
        error = self.last["tool_was_error"] = p.get("is_error", False)
        if call is None or "content" not in p:
            self.outcome(seq, None, None)
        elif error:
            self.outcome(seq, call, ("error", [sha(jcs(p["content"]))]))
        else:
            self.outcome(seq, call, ("content", [call["args"], sha(jcs(p["content"]))]))

    def error_raised(self, seq, p):
        if p.get("call_id") is None:
            return
        call, server = self.close(p)
        self.source("tool_output", call and call["tool_name"], server, seq)
        self.last["tool_was_error"] = True
        self.outcome(seq, call, "message" in p and ("error", [sha(jcs(p["message"]))]))

    def close(self, p):
        known = self.open.pop(name(p.get("call_id")), None) or {"call": None, "server": None}
        return known["call"], known["server"]

    def outcome(self, seq, call, known):
        if call is None or not known:
            self.tool_run = None
            return
        kind, digests = known
        tool = call["tool_name"]
        outcome = mark(kind, self.changed_at, sha(tool.encode()), *digests)
        self.tool_run = run(self.tool_run, outcome, tool, seq, call["seq"])

    def policy_decision(self, seq, p):
        self.last["policy_outcome"] = name(p.get("outcome"))

    def memory_read(self, seq, p):
        self.source("memory_read", name(p.get("memory_key")), None, seq)

    def source(self, label, origin, server, seq):
        key = (label, origin, server)
        if key not in self.taint and len(self.taint) >= MAX_SOURCES:
            key = ("overflow", None, None)
        if key not in self.taint:
            self.taint[key] = {"count": 0, "first_seq": seq, "label": key[0], "name": key[1], "server": key[2]}
            self.changed_at = seq
        self.taint[key]["count"] += 1

    def handoff_requested(self, seq, p):
        self.reduced = self.reduced or bool(self.taint)
        names = {member: name(p.get(member)) for member in ["from_agent", "to_agent", "context_id"]}
        self.handoff = {"active": True, "seq": seq, **names}
        self.changed_at = seq

    def handoff_completed(self, seq, p):
        if self.handoff and self.handoff["context_id"] == name(p.get("context_id")):
            self.handoff["active"] = False
            self.changed_at = seq

    def sanitized_text(self, seq, p):
        key = name(p.get("key"))
        if key:
            if key not in self.keys:
                self.changed_at = seq
            self.keys[key] = seq
            forget_oldest(self.keys, MAX_KEYS, lambda at: at)

    def termination(self, seq, p):
        self.taint, self.labels, self.keys, self.closed = {}, set(), {}, True

    def bytes(self):
        sources = sorted(self.taint.values(), key=in_order)
        return jcs({
            "closed": self.closed,
            "counters": {
                "events": self.events,
                "model_calls_consumed": self.models,
                "session_start_ms": self.start,
                "steps_consumed": self.models + self.tools,
                "tool_calls_consumed": self.tools,
                "wall_time_ms": self.wall,
            },
            "handoff": self.handoff,
            "labels": sorted(self.labels),
            "last": self.last,
            "open_calls": [{**self.open[one], "call_id": one} for one in sorted(self.open)],
            "progress": {
                "changed_at": self.changed_at,
                "model": self.model_run,
                "tool": self.tool_run,
            },
            "recent_calls": self.recent,
            "sanitized_keys": [{"key": key, "seq": self.keys[key]} for key in sorted(self.keys)],
            "taint": sources,
            "trust": "reduced" if self.reduced else "full",
            "version": 3,
        })


def run(before, outcome, tool, seq, proposed_at):
    if before is None or before["outcome"] != outcome:
        return {"outcome": outcome, "seqs": [seq], "steps": 1, "tool_name": tool}
    if proposed_at <= before["seqs"][-1]:
        return before
    seqs = (before["seqs"] + [seq])[-NEWEST_SEQS:]
    return {**before, "seqs": seqs, "steps": before["steps"] + 1}


def in_order(source):
    names = [source["name"], source["server"]]
    return source["label"], [(one is not None, one or "") for one in names]


def forget_oldest(known, limit, age):
    if len(known) > limit:
        del known[min(known, key=lambda one: age(known[one]))]


def call(call_id, tool, args, result, **more):
    """The events of a call that runs."""
    return [
        ("TOOL_CALL_PROPOSED", {"call_id": call_id, "tool_name": tool, "args": args}),
        ("POLICY_DECISION", {"call_id": call_id, "outcome": "allow", "verdict": "allow"}),
        ("TOOL_CALL_ALLOWED", {"call_id": call_id}),
        ("TOOL_CALL_EXECUTED", {"call_id": call_id, "started_ms": START}),
        ("TOOL_RESULT", {"call_id": call_id, "tool_name": tool, "content": result, **more}),
    ]


def denied(call_id, tool, args, reason):
    """The events of a call that does not."""
    return [
        ("TOOL_CALL_PROPOSED", {"call_id": call_id, "tool_name": tool, "args": args}),
        ("POLICY_DECISION", {"call_id": call_id, "outcome": "deny", "reason_code": reason}),
        ("TOOL_CALL_DENIED", {"call_id": call_id, "reason_code": reason}),
    ]


SESSIONS = {
    "a life from the first prompt to the end": [
        ("MODEL_CALL_STARTED", {"call_id": "m1", "model_id": "large-2", "prompt": "read the mail"}),
        ("MODEL_CALL_FINISHED", {"call_id": "m1", "content": "I will look."}),
        *call("c1", "mail.read", {"box": "in", "limit": 10.0}, [{"from": "eve"}]),
        ("SANITIZED_TEXT", {"key": "safe-k1", "method": "strip", "text": "hello"}),
        ("MEMORY_READ", {"memory_key": "notes/1", "content": "…"}),
        ("MODEL_CALL_STARTED", {"call_id": "m2"}),
        ("MODEL_CALL_FINISHED", {"call_id": "m2", "content": {"text": "Grüße", "n": 0.5}}),
        *denied("c2", "exec", {"cmd": "sh"}, "TAINTED_TO_HIGH_RISK"),
        ("TOOL_CALL_PROPOSED", {"call_id": "c3", "tool_name": "mail.send", "args": {"to": "bob"}}),
        ("POLICY_DECISION", {"call_id": "c3", "outcome": "require_approval"}),
        ("APPROVAL_REQUESTED", {"call_id": "c3", "approval_id": "apr_1"}),
        ("APPROVAL_DECIDED", {"call_id": "c3", "approval_id": "apr_1", "approved": True}),
        ("TOOL_CALL_ALLOWED", {"call_id": "c3", "approval_id": "apr_1"}),
        ("HANDOFF_REQUESTED", {"from_agent": "agt_1", "to_agent": "agt_2", "context_id": "h1"}),
        ("HANDOFF_COMPLETED", {"context_id": "h1", "success": True}),
        ("CHECKPOINT_CREATED", {"checkpoint_id": "cp1"}),
        ("ERROR_RAISED", {"code": "E1"}),
        ("TERMINATION", {"reason_code": "done"}),
    ],
    "the same error again and again": [
        event
        for at in range(4)
        for event in [
            ("MODEL_CALL_FINISHED", {"content": f"try {at}"}),
            *call(f"c{at}", "net.get", {"try": at}, "connection refused", is_error=True),
        ]
    ],
    "two servers with tools of one name, one of which fails": [
        ("TOOL_CALL_PROPOSED", {"call_id": "a", "tool_name": "find", "server": "files", "args": 1}),
        ("TOOL_CALL_PROPOSED", {"call_id": "b", "tool_name": "find", "server": "web", "args": 1}),
        ("TOOL_CALL_PROPOSED", {"call_id": "c", "tool_name": "find", "args": 1}),
        ("TOOL_RESULT", {"call_id": "b", "content": "found"}),
        ("ERROR_RAISED", {"call_id": "a", "code": "timeout", "message": "no result"}),
        ("ERROR_RAISED", {"call_id": "z", "code": "timeout"}),
        ("ERROR_RAISED", {"code": "timeout", "message": "of nobody"}),
    ],
    "parallel calls, one without a result": [
        ("TOOL_CALL_PROPOSED", {"call_id": "b", "tool_name": "fs.read", "args": {"p": 1}}),
        ("TOOL_CALL_PROPOSED", {"call_id": "a", "tool_name": "fs.read", "args": {"p": 2}}),
        ("TOOL_CALL_PROPOSED", {"call_id": "c", "tool_name": "fs.read"}),
        ("TOOL_RESULT", {"call_id": "a", "is_error": True, "content": "gone"}),
        ("TOOL_RESULT", {"call_id": "b", "is_error": True, "content": "gone"}),
    ],
    "what says little": [
        ("TOOL_CALL_PROPOSED", ["not an object"]),
        ("TOOL_RESULT", "not an object"),
        ("TOOL_CALL_PROPOSED", {"call_id": "c1"}),
        ("TOOL_RESULT", {"call_id": "c1", "tool_name": "fs.read", "content": 1}),
        ("TOOL_CALL_PROPOSED", {"tool_name": "fs.read"}),
        ("TOOL_CALL_DENIED", {}),
        ("MEMORY_READ", {}),
        ("SANITIZED_TEXT", {"key": ""}),
        ("POLICY_DECISION", {"verdict": "allow"}),
        ("HANDOFF_COMPLETED", {"context_id": "never asked for"}),
        ("HANDOFF_REQUESTED", {}),
        ("MODEL_CALL_FINISHED", {"content": "same"}),
        ("MODEL_CALL_FINISHED", {"content": "same"}),
    ],
    "a result that names another tool than the proposal": [
        ("TOOL_CALL_PROPOSED", {"call_id": "c1", "tool_name": "web.fetch", "args": {}}),
        ("TOOL_RESULT", {"call_id": "c1", "tool_name": "clock.now", "content": "12:00", "result_labels": ["secret", "public"]}),
    ],
    "long and odd names": [
        ("TOOL_CALL_PROPOSED", {"call_id": "i" * 129, "tool_name": "t" * 500, "args": [1.0, -0.5]}),
        ("TOOL_RESULT", {"call_id": "i" * 129, "content": None}),
        ("MEMORY_READ", {"memory_key": "sha256:" + "0" * 64}),
        ("MEMORY_READ", {"memory_key": "two\nlines"}),
        ("MEMORY_READ", {"memory_key": "\"q\" \\ é 😀"}),
        ("SANITIZED_TEXT", {"key": "k" * 128}),
    ],
}


def golden():
    sessions = []
    for title, script in SESSIONS.items():
        session, events = Session(), []
        for at, (kind, payload) in enumerate(script):
            # The clock goes back once, and catches up.
            ts = START + 250 * at - (900 if at == 4 else 0)
            session.apply(ts, kind, payload)
            text = json.dumps(payload, ensure_ascii=False)
            digest = sha(session.bytes())
            events.append({"event_type": kind, "ts_unix_ms": ts, "payload": text, "hash": digest})
        sessions.append({"title": title, "events": events, "snapshot": session.bytes().decode()})
    return json.dumps({"sessions": sessions}, indent=1, sort_keys=True) + "\n"


def main():
    if sys.argv[1:] == ["--check"]:
        if GOLDEN.read_text() != golden():
            sys.exit("golden.json is not what make_golden.py writes")
    elif sys.argv[1:] == ["--fold"]:
        for line in sys.stdin.buffer:
            session = Session()
            for event in json.loads(line):
                session.apply(*event)
            sys.stdout.buffer.write(session.bytes() + b"\n")
    else:
        GOLDEN.write_text(golden())


if __name__ == "__main__":
    main()
