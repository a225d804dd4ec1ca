# Budgets: a counter that has reached its limit stops the agent. A counter that is missing or is no
# number counts as reached: nobody knows how much is left.
package countersign.library.budgets

import rego.v1

# The names of the limits that are reached, from the counters and the limits of the same names.
reached(counters, limits) := {name |
	some name, limit in limits
	not left(counters, name, limit)
}

left(counters, name, limit) if {
	is_number(limit)
	is_number(counters[name])
	counters[name] < limit
}

verdict(counters, limits) := {"decision": "deny", "reason": "budget_exceeded", "message": message} if {
	count(reached(counters, limits)) > 0
	message := sprintf("no budget left: %s", [concat(", ", sort(reached(counters, limits)))])
} else := {"decision": "allow"}
