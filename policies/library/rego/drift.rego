# Drift: an agent that moves away from its task, by a score of the host from 0 to 100. No score is
# drift: nobody knows.
package countersign.library.drift

import rego.v1

verdict(score, limits) := {"decision": "escalate", "reason": "drift"} if {
	not is_number(score)
} else := {"decision": "escalate", "reason": "drift"} if {
	score >= limits.escalate
} else := {"decision": "warn", "reason": "drift"} if {
	score >= limits.warn
} else := {"decision": "allow"}
