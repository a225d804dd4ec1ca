//! Records of the Agent Evidence Protocol: any bytes are judged, none stops the reader, and the answer is
//! the same each time.
#![no_main]

use countersign_evidence::aep::{Keys, Record, check};
use countersign_evidence::envelope::{SideDocuments, envelopes};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let mut keys = Keys::default();
    let key = "a7045fabcf32973dab3c5796bde8b13833384e63a7d24e384a7315d80f0d89fa";
    keys.add("conformance-seed-key-01", key).unwrap();
    let records: Vec<Record> = text
        .split(|byte| *byte == b'\n')
        .map(Record::read)
        .collect();
    let checked = check(&records, &keys);
    assert_eq!(checked, check(&records, &keys));
    assert!(checked.to_json().to_jcs().is_ok());
    for record in records.iter().filter_map(Record::json) {
        let _ = envelopes(record, &SideDocuments::default());
    }
});
