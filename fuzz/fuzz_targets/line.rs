//! Any bytes as one event: what is read has exactly one text.
#![no_main]

use countersign_canon::{Limits, Numbers, jcs};
use countersign_event::Line;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    if let Ok(line) = Line::read(text) {
        let limits = Limits {
            max_bytes: usize::MAX,
            max_depth: 130,
            numbers: Numbers::Double,
        };
        jcs::check(text, &limits).expect("an event is canonical");
        let _ = line.computed_hash();
        if let Some(seal) = line.seal {
            let _ = seal.read();
        }
    }
});
