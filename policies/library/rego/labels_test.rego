package countersign.library.labels_test

import rego.v1

import data.countersign.library.labels

call(sources, clearance) := {
	"snapshot": {"ifc": {"source_labels": sources}},
	"tool": {"clearance": clearance, "security_labels": {"result": ["internal"]}},
}

test_a_clearance_covers_what_stands_below_it if {
	labels.dominates("secret", "public")
	labels.dominates("internal", "internal")
	not labels.dominates("public", "internal")
}

test_unknown_labels_are_cleared_by_nothing if {
	not labels.dominates("secret", "purple")
	not labels.dominates("purple", "public")
	not labels.cleared("secret", ["public", "purple"])
}

test_lists_that_say_nothing_are_refused if {
	every bad in [[], "internal", null, {}, [1]] {
		verdict := labels.verdict with input as call(bad, "secret")
		verdict.reason == "ifc_labels_unusable"
	}
}

test_nothing_at_all_is_refused if {
	verdict := labels.verdict with input as {"snapshot": {}, "tool": null}
	verdict.decision == "deny"
}

test_writing_down_is_refused if {
	verdict := labels.verdict with input as call(["internal", "secret"], "confidential")
	verdict == {"decision": "deny", "reason": "ifc_clearance_violation"}
}

test_a_tool_without_a_clearance_is_refused if {
	verdict := labels.verdict with input as {"snapshot": {"ifc": {"source_labels": ["public"]}}, "tool": {"name": "x"}}
	verdict.reason == "ifc_clearance_violation"
}

test_labels_go_on_with_the_result if {
	verdict := labels.verdict with input as call(["public"], "internal")
	verdict == {"decision": "allow", "result_labels": ["internal", "public"]}
}

extended := {"hr": ["confidential"], "legal": ["confidential"], "board": ["hr", "legal"]}

test_incomparable_labels_clear_neither_other if {
	not labels.dominates("hr", "legal") with data.labels.below as extended
	not labels.dominates("legal", "hr") with data.labels.below as extended
	not labels.cleared("hr", ["hr", "legal"]) with data.labels.below as extended
	labels.cleared("board", ["hr", "legal", "public"]) with data.labels.below as extended
}

test_what_nobody_says_is_nothing if {
	labels.sources == [] with input as {}
	labels.added == [] with input as {}
	labels.clearance == "" with input as {}
}
