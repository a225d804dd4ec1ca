# Several verdicts as one: the strictest counts, and labels of all go on. Two different changes are no
# change that both asked for.
package countersign.library.strictest

import rego.v1

rank := {"allow": 0, "warn": 1, "transform": 2, "escalate": 3, "deny": 4}

labels(verdicts) := sort([label |
	some label in {one | some verdict in verdicts; some one in object.get(verdict, "result_labels", [])}
])

changes(verdicts) := {verdict.transform | some verdict in verdicts; verdict.transform}

known(verdicts) if {
	count(verdicts) > 0
	count([verdict | some verdict in verdicts; not rank[verdict.decision] >= 0]) == 0
}

highest(verdicts) := max([rank[verdict.decision] | some verdict in verdicts])

# Of equally strict ones, the first.
of(verdicts) := {"decision": "deny", "reason": "no_verdict"} if {
	not known(verdicts)
} else := {"decision": "deny", "reason": "two_transforms"} if {
	highest(verdicts) == 2
	count(changes(verdicts)) > 1
} else := object.union(first, {"result_labels": labels(verdicts)}) if {
	first := [verdict | some verdict in verdicts; rank[verdict.decision] == highest(verdicts)][0]
}
