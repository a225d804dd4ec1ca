package countersign.library.drift_test

import rego.v1

import data.countersign.library.drift

limits := {"warn": 30, "escalate": 70}

test_three_zones if {
	drift.verdict(29, limits).decision == "allow"
	drift.verdict(30, limits).decision == "warn"
	drift.verdict(70, limits).decision == "escalate"
}

test_no_score_is_drift if {
	drift.verdict(null, limits).decision == "escalate"
	drift.verdict("12", limits).decision == "escalate"
}
