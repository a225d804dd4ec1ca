//! Queries: whatever is read is written back as the same query, and asking never fails.
#![no_main]

use countersign_api::query::{About, Query};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(query) = text.parse::<Query>() else {
        return;
    };
    let written = query.to_string();
    assert_eq!(written.parse::<Query>().as_ref(), Ok(&query), "{written}");
    let _ = query.at(u64::MAX).fits(&About::default());
});
