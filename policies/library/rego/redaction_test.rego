package countersign.library.redaction_test

import rego.v1

import data.countersign.library.redaction

test_clean_text_stays if redaction.verdict({"found": false}).decision == "allow"

test_a_cleaned_copy_takes_its_place if {
	verdict := redaction.verdict({"found": true, "kinds": {"email": 1, "card": 2}, "redacted": {"a": "[email]"}})
	verdict.transform == {"path": "$policy_target", "value": {"a": "[email]"}}
	verdict.message == "removed: card, email"
}

test_without_a_copy_nothing_passes if {
	redaction.verdict({"found": true, "kinds": {"card": 1}}).decision == "deny"
	redaction.verdict({}).decision == "deny"
	redaction.verdict(null).decision == "deny"
}
