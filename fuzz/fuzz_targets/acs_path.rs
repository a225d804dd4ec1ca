//! Any text as a path, into any value: it leads somewhere or it does not.
#![no_main]

use countersign_canon::{Json, Limits};
use countersign_policy::path::Path;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (path, value) = text.split_once('\n').unwrap_or((text, "null"));
    let Ok(path) = path.parse::<Path>() else {
        return;
    };
    assert_eq!(path.as_str().parse::<Path>().as_ref(), Ok(&path));
    let Ok(mut value) = Json::admit(value.as_bytes(), &Limits::plan()) else {
        return;
    };
    let found = path.resolve(&value).cloned();
    assert_eq!(path.resolve_mut(&mut value).cloned(), found);
});
