package countersign.library.strictest_test

import rego.v1

import data.countersign.library.strictest

test_the_strictest_counts if {
	found := strictest.of([{"decision": "allow"}, {"decision": "deny", "reason": "a"}, {"decision": "deny", "reason": "b"}])
	found.reason == "a"
}

test_labels_of_all_go_on if {
	found := strictest.of([{"decision": "warn", "result_labels": ["b"]}, {"decision": "allow", "result_labels": ["a", "b"]}])
	found == {"decision": "warn", "result_labels": ["a", "b"]}
}

change(value) := {"decision": "transform", "transform": {"path": "$policy_target", "value": value}}

test_two_changes_are_refused if {
	strictest.of([change(1), change(2)]).reason == "two_transforms"
	strictest.of([change(1), change(1)]).decision == "transform"
}

test_nothing_is_a_deny if {
	strictest.of([]).decision == "deny"
	strictest.of([{"decision": "maybe"}]).decision == "deny"
	strictest.of([{}]).decision == "deny"
}
