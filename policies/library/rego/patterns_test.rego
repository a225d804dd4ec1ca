package countersign.library.patterns_test

import rego.v1

import data.countersign.library.patterns

test_kinds_in_the_list_are_stopped if {
	found := {"kinds": {"email": 2, "card": 1}}
	patterns.verdict(found, ["card", "iban"]).message == "found: card"
	patterns.verdict(found, ["iban"]).decision == "allow"
}

test_what_was_not_examined_does_not_pass if {
	patterns.verdict({}, ["card"]).decision == "deny"
	patterns.verdict(null, ["card"]).decision == "deny"
	patterns.injection({}, 40).decision == "deny"
}

test_suspicious_text_is_held if {
	patterns.injection({"score": 60, "signals": ["secrecy"]}, 40).decision == "escalate"
	patterns.injection({"score": 10, "signals": []}, 40).decision == "allow"
}
