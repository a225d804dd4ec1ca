//! What agents and their people read when a call does not run.

/// A reason, why it is given, and what an operator can do.
pub(super) struct Reason {
    pub(super) name: &'static str,
    pub(super) why: &'static str,
    pub(super) hint: &'static str,
}

macro_rules! reasons {
    ($( $name:literal: $why:literal, $hint:literal; )*) => {
        pub(super) const REASONS: &[Reason] = &[ $( Reason { name: $name, why: $why, hint: $hint } ),* ];
    };
}

reasons! {
    "APPROVAL_DENIED": "somebody denied the call", "`countersign approval list --all` shows who, and why";
    "APPROVAL_NOT_ANSWERED": "nobody decided as long as the call was kept open", "decide in `countersign approval watch`: the same call made again finds the decision";
    "APPROVAL_REQUIRED": "the manifest leaves this call to a human", "decide in `countersign approval watch`; `countersign approver init` makes you somebody who may";
    "APPROVAL_UNKNOWN": "the call names an approval that is not one of its session", "let the agent make the call without it";
    "APPROVAL_USED": "the approval has had its one use", "let the agent make the call again, which asks anew";
    "APPROVAL_WITHDRAWN": "the agent, its user or the end of its session took the request back", "nothing; the same call made again asks anew";
    "ARGUMENTS_INVALID": "the arguments are not an object, are too large, or have numbers that a double does not hold", "send such numbers as text";
    "ARGUMENT_DRIFT": "the call is not the one that was approved", "look at both with `countersign approval show ID --full`";
    "BODY_REFUSED": "the body of an HTTP request is too large, too slow, or broken off", "see --max-frame; send the body at once";
    "BUDGET_EXCEEDED": "the session has used up a budget, which the refusal names", "raise it in `permissions.budgets` of the manifest, or begin a new session";
    "CANCELLED": "the client cancelled the call before it ran", "nothing";
    "EGRESS_DENY": "the call would reach a host that the manifest does not list", "list the host in `permissions.net.domains`, if it may be reached";
    "EXEC_DENY": "the call would run a program that the manifest does not allow, or one that cannot be told", "allow it under `permissions.exec`; `countersign policy explain` shows what the rule saw";
    "FORBIDDEN": "the request names a host or comes from a web page that is not let in", "see --allow-host and --allow-origin";
    "FRAME_REFUSED": "the message is not strict JSON-RPC, which two readers would understand alike", "the refusal names the place; mend the client";
    "HEADER_MISMATCH": "a header says something else than the body", "let the client send the same in both";
    "ID_IN_USE": "another request waits under this id", "let the client use a new id for each request";
    "ID_REUSED": "the id of the call was used before in the session", "let the client use a new id for each request";
    "INPUT_REQUEST_REFUSED": "the result asks the client's model or human in a way that is not known", "look at the server; --unknown-methods pass lets other kinds of questions through";
    "LOOP_DETECTED": "the session has done this before, and it changes nothing", "see `loops` of the manifest: `identical_calls`, `no_progress_steps`, `polling_tools`";
    "METHOD_UNKNOWN": "the protocol has no such method", "--unknown-methods pass lets it through undecided";
    "NO_SUCH_PATH": "there is no server at this path", "`countersign mcp serve` prints where its servers are";
    "OUTPUT_TOO_LARGE": "the result is larger than the manifest allows", "let the agent ask for less, or raise `permissions.budgets.max_output_bytes`";
    "PATH_DENY": "the call would read or write outside the folders of the manifest", "add the folder to `permissions.fs`, if it may be used";
    "PERMISSION_UNDECLARED": "the manifest does not declare the tool", "declare it under `permissions.tools`; `countersign tools list` shows its digest";
    "SERVER_BUSY": "the server does not read what it is sent", "look at the server; try again later";
    "SERVER_ERROR": "the server answered with an HTTP error; what it said beside that was not passed on", "look at the log of the server";
    "SERVER_FRAME_REFUSED": "the server's answer is not a message that can be judged", "`countersign log list --type ERROR_RAISED` tells what is wrong with it";
    "SERVER_GONE": "the server ended, or cannot be reached", "start it by hand to see what it says";
    "SERVER_REDIRECTS": "the server sends clients to another address, where nobody would decide", "give --upstream that address";
    "SESSION_UNKNOWN": "the session of the request is over, or another door's", "let the client begin anew";
    "SIDE_EFFECT_UNKNOWN": "nobody has said that the tool only reads, so a human decides about each call", "`countersign tools review` says so once for each tool; or declare the tool in a manifest";
    "STATE_REFUSED": "what the client brought back was not given out for this call, or is too old", "let the agent make the call again without it";
    "TAINTED_TO_HIGH_RISK": "the session has read content that nobody vouches for, and the call could do harm with it", "let people approve it, or begin a new session; `countersign policy explain` shows what the rule saw";
    "TASK_UNFIT": "the server answered the call of a task with a question, which a task cannot carry", "let the agent make the call again";
    "TASK_UNKNOWN": "the session has no such task, or it is too old", "look in the log before the call is made again";
    "TIMEOUT": "the server took longer than the manifest or --response-time allows", "raise `permissions.budgets.timeout_ms`, or --response-time";
    "TOOL_AMBIGUOUS": "the server lists the tool twice, or shows the client another definition than us", "mend the server";
    "TOOL_CHANGED": "the tool is not what was accepted", "`countersign tools diff SERVER TOOL` shows what differs, `countersign tools review` accepts it; a manifest that names the digest has to name the new one";
    "TOOL_CONFUSABLE": "the name of the tool looks like that of another one", "look at both with `countersign tools list`; a name that looks like that of a method stays refused";
    "TOOL_OF_ANOTHER_SERVER": "the manifest expects the tool of another server", "see `server` of the tool in the manifest";
    "TOOL_SHADOWED": "another server had a tool of this name first", "`countersign tools diff SERVER TOOL` names that server; `countersign tools review` accepts the tool here";
    "TOOL_UNLISTED": "the server does not list the tool, or there was no room for it", "`countersign tools list` shows what is known of the server";
    "TOO_MANY_REQUESTS": "too many requests of the session wait", "let the client wait for answers";
    "TOO_MANY_SESSIONS": "the door has no place for another session, or for another program", "close sessions that are not used";
    "UNAUTHORIZED": "the request has no token, or a wrong one", "let the client bring the token of --token-file";
}
