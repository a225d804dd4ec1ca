# Confidence: acts only on what a model or a classifier is sure of. No score is no confidence.
package countersign.library.confidence

import rego.v1

verdict(score, least) := {"decision": "allow"} if {
	is_number(score)
	score >= least
} else := {"decision": "deny", "reason": "low_confidence"}
