# Information flow: what was read with one label must not leave through a tool that is not cleared for
# it. `public < internal < confidential < secret`; `data.labels.below` adds labels and says what stands
# directly below each: {"hr": ["confidential"], "legal": ["confidential"]}. Two labels of which neither
# stands below the other are incomparable, and neither clears the other.
package countersign.library.labels

import rego.v1

base := {
	"public": [],
	"internal": ["public"],
	"confidential": ["internal"],
	"secret": ["confidential"],
}

default more := {}

more := data.labels.below

below := object.union(base, more)

known(label) if is_array(below[label])

# Whether `high` is `low` or stands above it.
dominates(high, low) if {
	known(high)
	known(low)
	low in graph.reachable(below, {high})
}

# Labels that can be judged: a list that says something, of labels that are known.
valid(labels) if {
	is_array(labels)
	count(labels) > 0
	count([label | some label in labels; not known(label)]) == 0
}

# Whether a clearance covers every label.
cleared(clearance, labels) if {
	valid(labels)
	known(clearance)
	count([label | some label in labels; not dominates(clearance, label)]) == 0
}

# The labels of what comes out: those of what went in, and those that the tool adds.
result(labels, added) := [label | some label in {one | some one in array.concat(labels, added)}]

default sources := []

sources := input.snapshot.ifc.source_labels

default added := []

added := input.tool.security_labels.result

default clearance := ""

clearance := input.tool.clearance

# The verdict for a tool call, from `snapshot.ifc.source_labels` and the tool's `clearance`.
verdict := {"decision": "deny", "reason": "ifc_labels_unusable"} if {
	not valid(sources)
} else := {"decision": "deny", "reason": "ifc_clearance_violation"} if {
	not cleared(clearance, sources)
} else := {"decision": "allow", "result_labels": result(sources, added)}
