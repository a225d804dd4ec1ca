//! Any bytes: the strict reader, both canonical forms and the canonical checker agree.
#![no_main]

use countersign_canon::{Json, Limits, jcs};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let limits = Limits::event();
    let admitted = Json::admit(text, &limits);
    let is_canonical = jcs::check(text, &limits).is_ok();
    match &admitted {
        Ok(json) => {
            let form = json
                .to_jcs()
                .expect("an admitted event value has a canonical form");
            assert_eq!(is_canonical, form == text);
            assert_eq!(Json::admit(&form, &limits).unwrap().to_jcs().unwrap(), form);
        }
        Err(_) => assert!(!is_canonical),
    }
    if let Ok(json) = Json::admit(text, &Limits::plan()) {
        let form = json.to_sorted_ascii();
        assert!(form.is_ascii());
        assert_eq!(
            Json::admit(&form, &Limits::plan())
                .unwrap()
                .to_sorted_ascii(),
            form
        );
    }
});
