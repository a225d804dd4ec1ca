//! Any bytes as an Agent Control manifest: read or refused, and what is read says the same again.
#![no_main]

use countersign_acs::{Manifest, NoFiles, Policies};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    match Manifest::read(text) {
        Ok(manifest) => {
            let again = Manifest::read(&manifest.source().to_sorted());
            assert_eq!(again.as_ref(), Ok(&manifest));
            let _ = Policies::activate(&manifest, &NoFiles);
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert!(error.reserved().as_str().starts_with("runtime_error:"));
        }
    }
});
