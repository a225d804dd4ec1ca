package countersign.library.confidence_test

import rego.v1

import data.countersign.library.confidence

test_sure_enough if confidence.verdict(0.9, 0.8).decision == "allow"

test_not_sure if confidence.verdict(0.7, 0.8).reason == "low_confidence"

test_no_score if {
	confidence.verdict(null, 0).decision == "deny"
	confidence.verdict("1", 0).decision == "deny"
}
