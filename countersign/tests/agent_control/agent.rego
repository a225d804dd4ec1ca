package agent
import rego.v1
args := input.snapshot.tool_call.args
labels := input.snapshot.ifc.source_labels

default call := {"decision": "allow"}
call := {"decision": "deny", "reason": "not_that"} if args.path == "/secret"
call := {"decision": "escalate", "reason": "look_first"} if args.path == "/ask"
call := {"decision": "transform", "reason": "moved",
	"transform": {"path": "$policy_target.path", "value": "/safe"}} if args.path == "/move"
call := {"decision": "allow", "result_labels": ["confidential"]} if args.path == "/ledger"
call := {"decision": "deny", "reason": "not_that", "result_labels": ["secret"]} if args.path == "/labelled"
call := {"decision": "deny", "reason": "ifc_clearance_violation"} if {
	input.tool.name == "mail"
	"confidential" in labels
}
call := {"decision": "deny", "reason": "suspicious"} if input.annotations.mood.score > 50

default result := {"decision": "allow", "result_labels": ["seen"]}
result := {"decision": "deny", "reason": "leaks", "result_labels": ["secret"]} if contains(input.policy_target.value, "PASSWORD")
result := {"decision": "transform", "reason": "cleaned",
	"transform": {"path": "$policy_target", "value": "clean"}} if contains(input.policy_target.value, "dirty")
result := {"decision": "escalate", "reason": "look_at_it", "result_labels": ["internal"]} if {
	contains(input.policy_target.value, "odd")
}

default words := {"decision": "allow", "result_labels": ["public"]}
words := {"decision": "deny", "reason": "rude"} if contains(input.policy_target.value, "rude")
words := {"decision": "escalate", "reason": "odd", "result_labels": ["internal"]} if contains(input.policy_target.value, "odd")
words := {"decision": "transform", "reason": "polite",
	"transform": {"path": "$policy_target", "value": "please"}} if contains(input.policy_target.value, "now")
