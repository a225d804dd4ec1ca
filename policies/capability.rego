# The capability rules: the first that speaks decides.
#
# `input` holds flat facts about one action and its session; `data.manifest` is the manifest,
# indexed once when it was loaded. Nothing here looks at arguments: hosts, paths and command lines
# were taken apart before, by code that knows the tricks.
package countersign.capability

import rego.v1

decision := answer("undeclared", "deny", "PERMISSION_UNDECLARED") if not declared

else := answer("egress", "deny", "EGRESS_DENY") if egress_denied

else := answer("budget", "deny", "BUDGET_EXCEEDED") if over_budget

else := answer("loop", "deny", "LOOP_DETECTED") if input.loop != ""

else := answer("taint", on_taint, "TAINTED_TO_HIGH_RISK") if tainted_sink

else := answer("clearance", "deny", "CLEARANCE_EXCEEDED") if count(input.uncleared) > 0

else := answer("exec", "deny", "EXEC_DENY") if exec_denied

else := answer("path", "deny", "PATH_DENY") if count(input.paths_outside) > 0

else := answer("approval", "escalate", "APPROVAL_REQUIRED") if needs_approval

else := answer("side-effect", "escalate", "SIDE_EFFECT_UNKNOWN") if side_effect_unknown

else := answer("allow", "allow", "OK")

answer(rule, decision, reason) := {"rule": rule, "decision": decision, "reason": reason}

# 1. The tool is in the manifest: by its own name or, for network and exec tools, by a dotted prefix.
# Without a manifest every tool is known, and nothing is known about it.
declared if data.manifest.open

declared if {
	some name in input.names
	data.manifest.tools[name]
}

# 2. A network tool needs a destination, and every destination must be allowed.
egress_denied if {
	input.network
	not egress_allowed
}

egress_allowed if {
	input.hosts_clear
	count(input.hosts) > 0
	not foreign_host
}

foreign_host if {
	some index, _ in input.hosts
	not host_allowed(index)
}

host_allowed(index) if data.manifest.hosts[input.hosts[index].name]

host_allowed(index) if {
	some parent in input.hosts[index].parents
	data.manifest.host_suffixes[parent]
}

# 3. A counter that has reached its limit denies.
over_budget if input.steps >= data.manifest.limits.steps

over_budget if input.tool_calls >= data.manifest.limits.tool_calls

over_budget if input.model_calls >= data.manifest.limits.model_calls

over_budget if input.wall_time_ms >= data.manifest.limits.wall_time_ms

# 4. What counts as a loop was decided when the session was reduced.
#
# 5. Untrusted content must not reach a sink unless it was sanitised.
tainted_sink if {
	input.sink
	input.tainted
	not input.sanitized
}

on_taint := "escalate" if input.taint_holds

else := "deny"

# Beside it: information must not reach a tool that is not cleared for its label. Manifests of the
# first schema declare no clearance, so there this is silent.
#
# 6. Every program that would run must be allowed, and no doubt may remain about which those are.
exec_denied if {
	input.exec
	not exec_allowed
}

exec_allowed if {
	input.command_clear
	count(input.programs) > 0
	not foreign_program
}

foreign_program if {
	some program in input.programs
	not data.manifest.programs[program]
}

# 7. Paths were compared with the roots before, one by one.
#
# 8. The manifest asks for a human.
needs_approval if {
	some name in input.names
	data.manifest.approval[name]
}

# 9. Nobody has said what the tool does. Manifests of the first schema cannot say it, so there the
# rules above decide alone.
side_effect_unknown if {
	not data.manifest.classic
	input.side_effect == "unknown"
}
