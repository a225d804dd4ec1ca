//! Every way in which an audit log can be damaged, and what finds it.

use std::num::NonZeroU64;

use countersign_approval::audit::*;
use countersign_approval::*;

use crate::desk::*;

/// A log of so many entries, line by line, and the heads after each.
fn log(count: u64) -> (Vec<Vec<u8>>, Vec<Head>) {
    let envelope = Envelope::create(draft()).unwrap();
    let (mut lines, mut heads) = (Vec::new(), vec![Head::genesis()]);
    for place in 0..count {
        let entry = Entry {
            about: Some(About::envelope(&envelope)),
            decisions: vec![decision("call-1", if place % 2 == 0 { 'y' } else { 'n' })],
            computed_plan_hash: Some(envelope.plan().hash()),
            detail: Some(format!("entry {place}")),
            ..Entry::new(at(place), Outcome::ALL[place as usize % Outcome::ALL.len()])
        };
        let (line, head) = heads[place as usize].append(&entry);
        lines.push(line);
        heads.push(head);
    }
    (lines, heads)
}

fn text(lines: &[Vec<u8>]) -> Vec<u8> {
    lines
        .iter()
        .flat_map(|line| [line.as_slice(), b"\n"].concat())
        .collect()
}

fn key() -> SigningKey {
    signing_key("lee")
}

fn signed(head: Head) -> Evidence {
    Evidence {
        head: Some((head.sign(&key()), key().verifying_key())),
        anchors: Vec::new(),
        must_be_signed: false,
    }
}

fn anchored(head: Head) -> Evidence {
    Evidence {
        head: None,
        anchors: vec![Anchor {
            head,
            written_at: at(0),
        }],
        must_be_signed: false,
    }
}

/// The entries at which something is wrong.
fn places(report: &Report) -> Vec<u64> {
    report
        .findings
        .iter()
        .map(|finding| finding.entry)
        .collect()
}

#[test]
fn an_intact_log_is_intact_and_the_report_says_what_it_cannot_show() {
    let (lines, heads) = log(5);
    let report = AuditChain::verify(&text(&lines), Evidence::default());
    assert_eq!(report.condition(), Condition::Intact);
    assert_eq!(report.head, heads[5]);
    assert_eq!(report.absent, [Absent::SignedHead, Absent::Anchor]);
    let report = AuditChain::verify(&text(&lines), signed(heads[5]));
    assert_eq!(report.absent, [Absent::Anchor]);
    let report = AuditChain::verify(&text(&lines), anchored(heads[3]));
    assert_eq!(
        (report.condition(), report.absent),
        (Condition::Intact, vec![Absent::SignedHead])
    );
    let empty = AuditChain::verify(b"", signed(heads[0]));
    assert_eq!(empty.condition(), Condition::Intact);
}

#[test]
fn g02_every_flipped_bit_is_found_where_it_is() {
    let (lines, heads) = log(2);
    let good = text(&lines);
    let mut starts = vec![0];
    starts.extend(
        good.iter()
            .enumerate()
            .filter(|(_, byte)| **byte == b'\n')
            .map(|(at, _)| at + 1),
    );
    for place in 0..good.len() {
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[place] ^= 1 << bit;
            let report = AuditChain::verify(&bad, signed(heads[2]));
            assert_eq!(
                report.condition(),
                Condition::Damaged,
                "byte {place} bit {bit}"
            );
            let entry = starts.iter().filter(|start| **start <= place).count() as u64;
            let first = places(&report)[0];
            // A line that still reads well shows by the next one, or by the head.
            assert!(
                first == entry || first == entry + 1,
                "byte {place}: {first} not {entry}"
            );
        }
    }
}

#[test]
fn g02_a_line_that_cannot_be_read_is_one_finding() {
    let (mut lines, heads) = log(4);
    lines[1] = b"{}".to_vec();
    let report = AuditChain::verify(&text(&lines), signed(heads[4]));
    assert_eq!(places(&report), [2]);
    assert_eq!(
        report.findings[0].to_string(),
        "entry 2: not an entry: member `envelope_id` is missing"
    );
}

#[test]
fn g03_a_removed_entry_is_found() {
    let (mut lines, heads) = log(5);
    lines.remove(2);
    let report = AuditChain::verify(&text(&lines), Evidence::default());
    assert_eq!(places(&report), [3]);
    let Damage::Unlinked { stated, actual } = report.findings[0].damage else {
        panic!();
    };
    assert_eq!((stated, actual), (heads[3].hash, heads[2].hash));
    lines = log(5).0;
    lines.remove(0);
    assert_eq!(
        places(&AuditChain::verify(&text(&lines), Evidence::default())),
        [1]
    );
}

#[test]
fn g04_a_cut_of_one_entry_is_found_with_a_signed_head_or_an_anchor_only() {
    let (lines, heads) = log(5);
    let cut = text(&lines[..4]);
    let expect = [Finding {
        entry: 5,
        damage: Damage::Cut { stated: 5 },
    }];
    for evidence in [signed(heads[5]), anchored(heads[5])] {
        assert_eq!(AuditChain::verify(&cut, evidence).findings, expect);
    }
    let blind = AuditChain::verify(&cut, Evidence::default());
    assert_eq!(blind.condition(), Condition::Intact);
    let warning = "no signed head: a cut or rewritten end would not be found";
    assert_eq!(blind.absent[0].to_string(), warning);
    // Where a head is written with every entry, its absence is damage.
    let folder = Evidence {
        must_be_signed: true,
        ..Evidence::default()
    };
    let report = AuditChain::verify(&cut, folder.clone());
    assert_eq!(report.condition(), Condition::Damaged);
    assert_eq!(report.findings[0].damage, Damage::Headless);
    assert_eq!(
        AuditChain::verify(b"", folder).condition(),
        Condition::Intact
    );
}

#[test]
fn g05_a_removed_file_is_found() {
    let (_, heads) = log(5);
    let report = AuditChain::verify(b"", signed(heads[5]));
    assert_eq!(
        report.findings[0].to_string(),
        "entry 1: missing: the log once had 5 entries"
    );
}

#[test]
fn g06_swapped_entries_are_found() {
    let (mut lines, _) = log(5);
    lines.swap(1, 2);
    let report = AuditChain::verify(&text(&lines), Evidence::default());
    assert_eq!(places(&report), [2, 3, 4]);
}

#[test]
fn g07_a_repeated_entry_is_found() {
    let (mut lines, _) = log(5);
    lines.insert(2, lines[1].clone());
    let report = AuditChain::verify(&text(&lines), Evidence::default());
    let expect = [Finding {
        entry: 3,
        damage: Damage::Repeated,
    }];
    assert_eq!(report.findings, expect);
}

#[test]
fn g08_a_rewritten_end_of_the_same_length_is_found_with_a_signed_head_or_an_anchor() {
    let (mut lines, heads) = log(5);
    let mut head = heads[3];
    for (place, old) in lines.iter_mut().enumerate().skip(3) {
        let (mut entry, _) = Entry::read(old).unwrap();
        entry.detail = Some(format!("ENTRY {place}"));
        let (line, next) = head.append(&entry);
        assert_eq!(line.len(), old.len());
        *old = line;
        head = next;
    }
    let rewritten = text(&lines);
    let blind = AuditChain::verify(&rewritten, Evidence::default());
    assert_eq!(blind.condition(), Condition::Intact);
    assert!(blind.absent.contains(&Absent::SignedHead));
    let expect = Damage::Rewritten {
        stated: heads[5].hash,
        actual: head.hash,
    };
    for evidence in [signed(heads[5]), anchored(heads[5])] {
        let report = AuditChain::verify(&rewritten, evidence);
        assert_eq!(
            (places(&report), &report.findings[0].damage),
            (vec![5], &expect)
        );
    }
    assert_eq!(
        places(&AuditChain::verify(&rewritten, anchored(heads[4]))),
        [4]
    );
    // Whoever rewrites the log cannot sign for it.
    let mut forged = signed(head);
    forged.head.as_mut().unwrap().0 = head.sign(&signing_key("mallory"));
    let report = AuditChain::verify(&rewritten, forged);
    assert_eq!(report.findings[0].damage, Damage::HeadSignature);
}

#[test]
fn g09_an_old_log_with_its_old_head_is_found_by_an_anchor_kept_elsewhere() {
    let (lines, heads) = log(5);
    let old = text(&lines[..3]);
    let report = AuditChain::verify(&old, signed(heads[3]));
    assert_eq!(
        (report.condition(), report.absent),
        (Condition::Intact, vec![Absent::Anchor])
    );
    let evidence = Evidence {
        anchors: anchored(heads[5]).anchors,
        ..signed(heads[3])
    };
    let report = AuditChain::verify(&old, evidence);
    assert_eq!(report.findings[0].damage, Damage::Cut { stated: 5 });
}

#[test]
fn g11_a_torn_last_line_is_told_apart_and_not_dropped() {
    let (lines, heads) = log(4);
    let (kept, last) = (text(&lines[..3]), &lines[3]);
    for cut in 1..last.len() {
        let torn = [&kept, &last[..cut]].concat();
        // The entry was never acknowledged: the head is the one before.
        let report = AuditChain::verify(&torn, signed(heads[3]));
        assert_eq!(report.condition(), Condition::Torn, "{cut}");
        let expect = Torn {
            entry: 4,
            bytes: cut,
            complete: false,
        };
        assert_eq!((report.torn, report.head), (Some(expect), heads[3]));
        // It was acknowledged: then it is missing.
        let report = AuditChain::verify(&torn, signed(heads[4]));
        assert_eq!(report.findings[0].damage, Damage::Cut { stated: 4 });
    }
    let whole = [&kept, last.as_slice()].concat();
    for head in [heads[3], heads[4]] {
        let report = AuditChain::verify(&whole, signed(head));
        assert_eq!(report.condition(), Condition::Torn);
        assert!(report.torn.unwrap().complete);
        assert_eq!(report.head, heads[4]);
    }
}

#[test]
fn a_head_names_the_key_that_signed_it() {
    use ed25519_dalek::Signer as _;
    let other = KeyId::of(&signing_key("dana").verifying_key());
    let hash = Head::genesis().hash;
    let members = format!(r#""ctx":"{HEAD_CONTEXT}","head":"{hash}","key_id":"{other}""#);
    let signature = key().sign(format!("{{\"count\":0,{members}}}").as_bytes());
    let signature: String = signature
        .to_bytes()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let text = format!("{{\"count\":0,{members},\"signature\":\"{signature}\"}}");
    let head = SignedHead::read(text.as_bytes()).unwrap();
    assert_eq!(head.verify(&key().verifying_key()), None);
}

#[test]
fn entries_that_nobody_signed_for_are_found() {
    let (lines, heads) = log(5);
    let report = AuditChain::verify(&text(&lines), signed(heads[3]));
    let expect = [Finding {
        entry: 4,
        damage: Damage::Uncovered,
    }];
    assert_eq!(report.findings, expect);
}

#[test]
fn anchors_are_due_every_so_many_entries() {
    let (_, heads) = log(6);
    let every = NonZeroU64::new(3).unwrap();
    let due = heads[1..].iter().filter(|head| head.wants_anchor(every));
    assert_eq!(due.map(|head| head.count).collect::<Vec<_>>(), [3, 6]);
}

#[test]
fn g12_every_outcome_reads_back() {
    let (lines, heads) = log(2 * Outcome::ALL.len() as u64);
    let report = AuditChain::verify(&text(&lines), signed(*heads.last().unwrap()));
    assert_eq!(report.condition(), Condition::Intact);
    for (line, outcome) in lines.iter().zip(Outcome::ALL) {
        assert_eq!(Entry::read(line).unwrap().0.outcome, *outcome);
    }
    let seed = [
        "executed",
        "rejected:tampered",
        "rejected:expired",
        "rejected:replayed",
    ];
    for outcome in seed
        .iter()
        .chain(&["rejected:mismatch", "rejected:bijection"])
    {
        assert!(outcome.parse::<Outcome>().is_ok());
    }
}

/// `COUNTERSIGN_AUDIT_ENTRIES=1000000` makes it the long form; the time it takes is printed, not judged.
#[test]
fn g12_a_long_audit_is_checked_line_by_line_in_little_memory() {
    let entries = std::env::var("COUNTERSIGN_AUDIT_ENTRIES");
    let entries: u64 = entries.map_or(20_000, |count| count.parse().unwrap());
    let envelope = Envelope::create(draft()).unwrap();
    // Written twice rather than kept: first for the head that the check has to arrive at.
    let lines = |visit: &mut dyn FnMut(&[u8])| {
        let mut head = Head::genesis();
        for place in 0..entries {
            let mut entry = Entry::new(at(place), Outcome::VoteCounted);
            entry.about = Some(About::envelope(&envelope));
            entry.detail = Some(format!("entry {place}"));
            let (line, next) = head.append(&entry);
            visit(&line);
            head = next;
        }
        head
    };
    let end = lines(&mut |_| {});
    let mut spent = std::time::Duration::ZERO;
    let mut chain = AuditChain::new(signed(end));
    let mut damaged = AuditChain::new(signed(end));
    let mut number = 0;
    lines(&mut |line| {
        let started = std::time::Instant::now();
        chain.line(line);
        spent += started.elapsed();
        number += 1;
        if number != entries / 2 {
            damaged.line(line);
        }
    });
    let report = chain.finish();
    assert_eq!((report.condition(), report.head), (Condition::Intact, end));
    assert_eq!(places(&damaged.finish())[0], entries / 2);
    eprintln!("{entries} entries checked in {spent:?}");
}
