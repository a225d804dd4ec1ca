# Approval: somebody decides about what is large, or about tools that the catalog marks.
package countersign.library.approval

import rego.v1

ask(reason, message) := {"decision": "escalate", "reason": reason, "message": message}

# Whole numbers only: money in its smallest unit. What is no number is asked about.
over(amount, limit) := ask("amount_unclear", "the amount is not a whole number") if {
	not whole(amount)
} else := ask("amount_over_limit", sprintf("%d is over %d", [amount, limit])) if {
	amount > limit
} else := {"decision": "allow"}

whole(amount) if {
	is_number(amount)
	amount == floor(amount)
	amount >= 0
}

# `approval: required` in the catalog.
marked(tool) := ask("tool_needs_approval", sprintf("%s needs an approval", [tool.name])) if {
	tool.approval == "required"
} else := {"decision": "allow"}
