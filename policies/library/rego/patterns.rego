# Patterns: stops kinds of content, from the annotator `builtin: secrets`, and text that speaks to the
# model, from `builtin: injection`. Objects are searched like texts.
package countersign.library.patterns

import rego.v1

# The kinds that were found and are not wanted.
unwanted(secrets, kinds) := {kind |
	some kind, number in secrets.kinds
	number > 0
	kind in {one | some one in kinds}
}

looked(secrets) if is_object(secrets.kinds)

verdict(secrets, kinds) := {"decision": "deny", "reason": "pattern_not_examined"} if {
	not looked(secrets)
} else := {"decision": "deny", "reason": "pattern_denied", "message": message} if {
	count(unwanted(secrets, kinds)) > 0
	message := sprintf("found: %s", [concat(", ", sort(unwanted(secrets, kinds)))])
} else := {"decision": "allow"}

# Text that speaks to the model is held from this score on.
injection(found, score) := {"decision": "deny", "reason": "injection_not_examined"} if {
	not is_number(found.score)
} else := {"decision": "escalate", "reason": "injection_suspected", "message": message} if {
	found.score >= score
	message := sprintf("signs: %s", [concat(", ", found.signals)])
} else := {"decision": "allow"}
