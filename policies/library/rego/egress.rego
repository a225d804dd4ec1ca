# Egress: where arguments lead, from the facts of the annotator `builtin: shape`. It takes addresses
# apart as clients do: user names, ports, fragments and international names do not fool it, every text
# of an object is looked at, and what it cannot tell is refused.
package countersign.library.egress

import rego.v1

# A host is allowed by its name, or as a sub-domain of `*.name`.
allowed(host, patterns) if host in {pattern | some pattern in patterns}

allowed(host, patterns) if {
	some pattern in patterns
	startswith(pattern, "*.")
	endswith(host, substring(pattern, 1, -1))
}

# Hosts that nobody allowed.
foreign(shape, patterns) := {host |
	some host in shape.hosts
	not allowed(host, patterns)
}

told(shape) if {
	is_array(shape.hosts)
	shape.complete == true
	count([url | some url in shape.urls; url.unclear]) == 0
}

verdict(shape, patterns) := {"decision": "deny", "reason": "egress_unclear"} if {
	not told(shape)
} else := {"decision": "deny", "reason": "egress_denied", "message": message} if {
	count(foreign(shape, patterns)) > 0
	message := sprintf("not allowed: %s", [concat(", ", sort(foreign(shape, patterns)))])
} else := {"decision": "allow"}
