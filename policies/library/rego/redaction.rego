# Redaction: hands on a cleaned copy, from the annotator `builtin: secrets` with `redact: true`. The
# annotator has to look at `$policy_target`, so that its copy stands in the place of the whole.
package countersign.library.redaction

import rego.v1

verdict(secrets) := {"decision": "allow"} if {
	secrets.found == false
} else := {
	"decision": "transform",
	"reason": "redacted",
	"message": message,
	"transform": {"path": "$policy_target", "value": copy},
} if {
	secrets.found == true
	copy := secrets.redacted
	message := sprintf("removed: %s", [concat(", ", sort(object.keys(secrets.kinds)))])
} else := {"decision": "deny", "reason": "redaction_impossible"}
