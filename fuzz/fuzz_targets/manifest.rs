//! Any bytes as a manifest: read or refused, and what is read shows itself.
#![no_main]

use countersign_policy::manifest::Manifest;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    match Manifest::read(text) {
        Ok(manifest) => {
            let shown = manifest.to_json();
            assert!(shown.to_jcs().is_ok());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
