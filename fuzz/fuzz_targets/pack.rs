//! Any bytes as an evidence pack: verification ends, nothing that fuzzing finds verifies by chance, and
//! every report has a page.
#![no_main]

use countersign_pack::archive::{self, Limits};
use countersign_pack::dsse::Envelope;
use countersign_pack::{DisclosedOpening, PolicyDocument, Statement};
use countersign_verify::pack::{Trust, html, verify_pack};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let report = verify_pack(bytes, &Trust::default(), &Limits::default());
    assert!(report.failure.is_some());
    let _ = html("pack", &report);
    if let Ok(members) = archive::read(bytes, &Limits::default()) {
        let members: Vec<_> = members
            .iter()
            .map(|member| (member.name.to_owned(), member.content.to_vec()))
            .collect();
        assert_eq!(archive::write(&members).as_deref(), Ok(bytes));
    }
    if let Ok(envelope) = Envelope::read(bytes) {
        assert_eq!(envelope.to_text(), bytes);
    }
    if let Ok(statement) = Statement::read(bytes) {
        assert_eq!(statement.to_text().as_deref(), Ok(bytes));
    }
    if let Ok(policies) = PolicyDocument::read(bytes) {
        assert_eq!(policies.to_text().as_deref(), Ok(bytes));
        let _ = policies.digest();
    }
    if let Ok(opening) = DisclosedOpening::read(bytes) {
        assert_eq!(opening.to_line().as_deref(), Ok(bytes));
    }
});
