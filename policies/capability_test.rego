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
	"paths_outside": [],
	"steps": 0, "tool_calls": 0, "model_calls": 0, "wall_time_ms": 0,
	"loop": "", "sink": false, "tainted": false, "sanitized": false, "taint_holds": false,
	"side_effect": "unknown",
}

reason(changes) := capability.decision.reason with input as object.union(calm, changes) with data.manifest as manifest

test_allow if reason({}) == "OK"

test_undeclared if reason({"names": ["nobody"]}) == "PERMISSION_UNDECLARED"

test_prefix if reason({"names": ["mcp.https.get", "mcp.https", "mcp"]}) == "OK"

test_egress_without_host if reason({"names": ["mcp.https"], "network": true}) == "EGRESS_DENY"

test_egress_exact if reason({"names": ["mcp.https"], "network": true, "hosts": [{"name": "x.com", "parents": ["com"]}]}) == "OK"

test_egress_other if reason({"names": ["mcp.https"], "network": true, "hosts": [{"name": "z.com", "parents": ["com"]}]}) == "EGRESS_DENY"

test_egress_wildcard if reason({"names": ["mcp.https"], "network": true, "hosts": [{"name": "a.y.com", "parents": ["y.com", "com"]}]}) == "OK"

test_egress_every_host if reason({"names": ["mcp.https"], "network": true, "hosts": [{"name": "x.com", "parents": []}, {"name": "z.com", "parents": []}]}) == "EGRESS_DENY"

test_egress_doubt if reason({"names": ["mcp.https"], "network": true, "hosts_clear": false, "hosts": [{"name": "x.com", "parents": []}]}) == "EGRESS_DENY"

test_budget_reached if reason({"steps": 24}) == "BUDGET_EXCEEDED"

test_budget_not_reached if reason({"steps": 23, "tool_calls": 11, "wall_time_ms": 119999}) == "OK"

test_budget_models if reason({"model_calls": 100}) == "BUDGET_EXCEEDED"

test_loop if reason({"loop": "LOOP_IDENTICAL_CALL"}) == "LOOP_DETECTED"

test_taint if reason({"names": ["write_file"], "sink": true, "tainted": true}) == "TAINTED_TO_HIGH_RISK"

test_taint_sanitised if reason({"names": ["write_file"], "sink": true, "tainted": true, "sanitized": true}) == "OK"

test_exec_without_program if reason({"names": ["exec"], "exec": true}) == "EXEC_DENY"

test_exec_allowed if reason({"names": ["exec"], "exec": true, "programs": ["/usr/bin/git"]}) == "OK"

test_exec_other if reason({"names": ["exec"], "exec": true, "programs": ["/usr/bin/git", "rm"]}) == "EXEC_DENY"

test_exec_doubt if reason({"names": ["exec"], "exec": true, "command_clear": false, "programs": ["/usr/bin/git"]}) == "EXEC_DENY"

test_path if reason({"paths_outside": ["/etc/passwd"]}) == "PATH_DENY"

test_approval if reason({"names": ["deploy"]}) == "APPROVAL_REQUIRED"

test_unknown_side_effect if {
	capability.decision.reason == "SIDE_EFFECT_UNKNOWN" with input as calm
		with data.manifest as object.union(manifest, {"classic": false})
}

test_known_side_effect if {
	capability.decision.reason == "OK" with input as object.union(calm, {"side_effect": "read"})
		with data.manifest as object.union(manifest, {"classic": false})
}

test_no_manifest_knows_every_tool if {
	capability.decision.reason == "SIDE_EFFECT_UNKNOWN" with input as object.union(calm, {"names": ["anything"]})
		with data.manifest as object.union(manifest, {"classic": false, "open": true})
}
