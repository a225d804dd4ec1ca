# Unit tests of the capability rules: `countersign policy test policies/`.
#
# Each test changes a calm call in one respect, on both sides of the edge of a rule. The order of the
# rules is tested by calls that several of them would refuse.
package countersign.capability_test

import rego.v1

import data.countersign.capability

manifest := {
	"open": false,
	"classic": true,
	"tools": {"read_file": true, "exec": true, "mcp.https": true, "deploy": true, "write_file": true},
	"hosts": {"x.com": true},
	"host_suffixes": {"y.com": true},
	"programs": {"/usr/bin/git": true},
	"approval": {"deploy": true},
	"limits": {"steps": 24, "tool_calls": 12, "model_calls": 100, "wall_time_ms": 120000},
}

calm := {
	"names": ["read_file"],
	"network": false, "hosts": [], "hosts_clear": true,
	"exec": false, "programs": [], "command_clear": true,
	"paths_outside": [], "uncleared": [],
	"steps": 0, "tool_calls": 0, "model_calls": 0, "wall_time_ms": 0,
	"loop": "", "sink": false, "tainted": false, "sanitized": false, "taint_holds": false,
	"side_effect": "unknown",
}

# What each reason decides; on taint, the manifest chooses.
decisions := {
	"PERMISSION_UNDECLARED": {"deny"},
	"EGRESS_DENY": {"deny"},
	"BUDGET_EXCEEDED": {"deny"},
	"LOOP_DETECTED": {"deny"},
	"TAINTED_TO_HIGH_RISK": {"deny", "escalate"},
	"CLEARANCE_EXCEEDED": {"deny"},
	"EXEC_DENY": {"deny"},
	"PATH_DENY": {"deny"},
	"APPROVAL_REQUIRED": {"escalate"},
	"SIDE_EFFECT_UNKNOWN": {"escalate"},
	"OK": {"allow"},
}

reason(changes) := reason_under({}, changes)

# The reason, if the decision is one of its own.
reason_under(other, changes) := found.reason if {
	found := answer_under(other, changes)
	found.decision in decisions[found.reason]
}

answer(changes) := answer_under({}, changes)

answer_under(other, changes) := decision if {
	decision := capability.decision with input as object.union(calm, changes)
		with data.manifest as object.union(manifest, other)
}

test_allow if reason({}) == "OK"

test_undeclared if answer({"names": ["nobody"]}) == {"rule": "undeclared", "decision": "deny", "reason": "PERMISSION_UNDECLARED"}

test_undeclared_without_a_name if reason({"names": []}) == "PERMISSION_UNDECLARED"

test_prefix if reason({"names": ["mcp.https.get", "mcp.https", "mcp"]}) == "OK"

test_egress_without_host if reason({"names": ["mcp.https"], "network": true}) == "EGRESS_DENY"

test_egress_exact if reason({"names": ["mcp.https"], "network": true, "hosts": [{"name": "x.com", "parents": ["com"]}]}) == "OK"

test_egress_other if reason({"names": ["mcp.https"], "network": true, "hosts": [{"name": "z.com", "parents": ["com"]}]}) == "EGRESS_DENY"

test_egress_wildcard if reason({"names": ["mcp.https"], "network": true, "hosts": [{"name": "a.y.com", "parents": ["y.com", "com"]}]}) == "OK"

test_egress_every_host if reason({"names": ["mcp.https"], "network": true, "hosts": [{"name": "x.com", "parents": []}, {"name": "z.com", "parents": []}]}) == "EGRESS_DENY"

test_egress_wildcard_is_not_its_parent if reason({"names": ["mcp.https"], "network": true, "hosts": [{"name": "y.com", "parents": ["com"]}]}) == "EGRESS_DENY"

test_egress_exact_is_not_a_wildcard if reason({"names": ["mcp.https"], "network": true, "hosts": [{"name": "a.x.com", "parents": ["x.com", "com"]}]}) == "EGRESS_DENY"

test_egress_doubt if reason({"names": ["mcp.https"], "network": true, "hosts_clear": false, "hosts": [{"name": "x.com", "parents": []}]}) == "EGRESS_DENY"

test_budget_reached if reason({"steps": 24}) == "BUDGET_EXCEEDED"

test_budget_not_reached if reason({"steps": 23, "tool_calls": 11, "wall_time_ms": 119999}) == "OK"

test_budget_tool_calls if reason({"tool_calls": 12}) == "BUDGET_EXCEEDED"

test_budget_wall_time if reason({"wall_time_ms": 120000}) == "BUDGET_EXCEEDED"

test_budget_without_limit if {
	without := object.union(object.remove(manifest, ["limits"]), {"limits": {}})
	capability.decision.reason == "OK" with input as object.union(calm, {"model_calls": 1000000})
		with data.manifest as without
}

test_budget_models if reason({"model_calls": 100}) == "BUDGET_EXCEEDED"

test_clearance if reason({"uncleared": ["secret"]}) == "CLEARANCE_EXCEEDED"

test_loop if reason({"loop": "LOOP_IDENTICAL_CALL"}) == "LOOP_DETECTED"

test_taint if reason({"names": ["write_file"], "sink": true, "tainted": true}) == "TAINTED_TO_HIGH_RISK"

test_taint_denies if answer({"names": ["write_file"], "sink": true, "tainted": true}).decision == "deny"

test_taint_holds if answer({"names": ["write_file"], "sink": true, "tainted": true, "taint_holds": true}).decision == "escalate"

test_taint_elsewhere if reason({"names": ["write_file"], "sink": false, "tainted": true}) == "OK"

test_sink_without_taint if reason({"names": ["write_file"], "sink": true}) == "OK"

test_taint_sanitised if reason({"names": ["write_file"], "sink": true, "tainted": true, "sanitized": true}) == "OK"

test_exec_without_program if reason({"names": ["exec"], "exec": true}) == "EXEC_DENY"

test_exec_allowed if reason({"names": ["exec"], "exec": true, "programs": ["/usr/bin/git"]}) == "OK"

test_exec_other if reason({"names": ["exec"], "exec": true, "programs": ["/usr/bin/git", "rm"]}) == "EXEC_DENY"

test_exec_doubt if reason({"names": ["exec"], "exec": true, "command_clear": false, "programs": ["/usr/bin/git"]}) == "EXEC_DENY"

test_path if reason({"paths_outside": ["/etc/passwd"]}) == "PATH_DENY"

test_approval if answer({"names": ["deploy"]}) == {"rule": "approval", "decision": "escalate", "reason": "APPROVAL_REQUIRED"}

test_approval_of_a_prefix if reason_under({"approval": {"exec": true}}, {"names": ["exec.shell", "exec"]}) == "APPROVAL_REQUIRED"

test_unknown_side_effect if reason_under({"classic": false}, {}) == "SIDE_EFFECT_UNKNOWN"

test_known_side_effect if reason_under({"classic": false}, {"side_effect": "read"}) == "OK"

test_no_manifest_knows_every_tool if reason_under({"classic": false, "open": true}, {"names": ["anything"]}) == "SIDE_EFFECT_UNKNOWN"

test_no_manifest_has_no_limits_but_those_of_the_session if {
	open := {"open": true, "classic": false, "limits": {}}
	looping := object.union(calm, {"loop": "LOOP_IDENTICAL_CALL", "side_effect": "read"})
	capability.decision.reason == "LOOP_DETECTED" with input as looping with data.manifest as open
	capability.decision.reason == "OK" with input as object.union(calm, {"side_effect": "read"}) with data.manifest as open
}

# Everything is wrong with this call; each step mends what the rule before has found.
test_order if {
	wrong := {
		"names": ["nobody"], "network": true, "steps": 24, "loop": "LOOP_IDENTICAL_CALL",
		"sink": true, "tainted": true, "exec": true, "paths_outside": ["/etc/passwd"],
	}
	reason(wrong) == "PERMISSION_UNDECLARED"
	reason(object.union(wrong, {"names": ["deploy"]})) == "EGRESS_DENY"
	reason(object.union(wrong, {"names": ["deploy"], "network": false})) == "BUDGET_EXCEEDED"
	fresh := object.union(wrong, {"names": ["deploy"], "network": false, "steps": 0})
	reason(fresh) == "LOOP_DETECTED"
	reason(object.union(fresh, {"loop": ""})) == "TAINTED_TO_HIGH_RISK"
	clean := object.union(fresh, {"loop": "", "tainted": false})
	reason(clean) == "EXEC_DENY"
	reason(object.union(clean, {"exec": false})) == "PATH_DENY"
	reason(object.union(clean, {"exec": false, "paths_outside": []})) == "APPROVAL_REQUIRED"
}
