//! Any JSON as a question: an answer comes, and an allow never comes without its constraints.
#![no_main]

use countersign_canon::{Json, Limits};
use countersign_policy::whatif::decide;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let Ok(request) = Json::admit(text, &Limits::event()) else {
        return;
    };
    let answer = decide(&request);
    let event_type = request
        .get("event")
        .and_then(|event| event.get("event_type"));
    if answer.outcome() == "allow"
        && event_type.and_then(Json::as_str) == Some("TOOL_CALL_PROPOSED")
    {
        assert!(answer.constraints.is_some());
        let tool = request
            .get("event")
            .and_then(|event| event.get("payload")?.get("tool_name"));
        assert!(tool.and_then(Json::as_str).is_some());
    }
});
