package countersign.library.budgets_test

import rego.v1

import data.countersign.library.budgets

limits := {"tool_call_count": 3, "cost_cents": 100}

test_below_the_limits if {
	budgets.verdict({"tool_call_count": 2, "cost_cents": 99}, limits).decision == "allow"
}

test_a_limit_that_is_reached_stops if {
	budgets.reached({"tool_call_count": 3, "cost_cents": 0}, limits) == {"tool_call_count"}
	budgets.verdict({"tool_call_count": 3, "cost_cents": 0}, limits).reason == "budget_exceeded"
}

test_what_is_not_counted_has_no_budget if {
	budgets.reached({}, limits) == {"tool_call_count", "cost_cents"}
	budgets.reached({"tool_call_count": "2", "cost_cents": null}, limits) == {"tool_call_count", "cost_cents"}
}

test_no_limits_stop_nothing if budgets.verdict({}, {}).decision == "allow"
