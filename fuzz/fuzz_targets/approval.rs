//! Any bytes as one of the approval formats: what is read has exactly one text.
#![no_main]

use countersign_approval::audit::{Anchor, AuditChain, Entry, Evidence, SignedHead};
use countersign_approval::lease::SignedLease;
use countersign_approval::{Arguments, Envelope, Submission};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    if let Ok(arguments) = Arguments::admit(text) {
        let again = Arguments::admit(arguments.canonical()).expect("canonical text is admitted");
        assert_eq!(again, arguments);
    }
    if let Ok(submission) = Submission::parse(text) {
        let again = Submission::parse(&submission.to_text()).expect("a submission reads back");
        assert_eq!(again, submission);
    }
    if let Ok(envelope) = Envelope::read(text) {
        assert_eq!(envelope.to_text(), text);
    }
    if let Ok(lease) = SignedLease::read(text) {
        assert_eq!(lease.to_text(), text);
    }
    if let Ok((entry, prev)) = Entry::read(text) {
        assert_eq!(entry.to_line(prev), text);
    }
    if let Ok(head) = SignedHead::read(text) {
        assert_eq!(head.to_text(), text);
    }
    if let Ok(anchor) = Anchor::read(text) {
        assert_eq!(anchor.to_text(), text);
    }
    let _ = AuditChain::verify(text, Evidence::default());
});
