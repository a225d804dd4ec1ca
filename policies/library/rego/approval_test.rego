package countersign.library.approval_test

import rego.v1

import data.countersign.library.approval

test_small_amounts_pass if approval.over(100, 100).decision == "allow"

test_large_amounts_are_asked_about if approval.over(101, 100).reason == "amount_over_limit"

test_what_is_no_amount_is_asked_about if {
	every odd in ["5", null, -1, 1.5, {}] {
		approval.over(odd, 100).reason == "amount_unclear"
	}
}

test_marked_tools_are_asked_about if {
	approval.marked({"name": "wire", "approval": "required"}).decision == "escalate"
	approval.marked({"name": "read"}).decision == "allow"
}
