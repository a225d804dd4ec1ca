//! Checks an audit log line by line, and says what the check cannot show.

use countersign_canon::Hash;

use super::entry::Entry;
use super::head::{Anchor, Head, SignedHead};
use crate::form::FormError;
use crate::key::VerifyingKey;

/// What is known about the end of a log apart from the log itself.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// The signed head, with the key that must have signed it.
    pub head: Option<(SignedHead, VerifyingKey)>,
    /// Copies of earlier or later heads, kept elsewhere.
    pub anchors: Vec<Anchor>,
    /// Whether a head has to be there: whoever writes the log signs a head with every entry.
    pub must_be_signed: bool,
}

/// A check in progress. Feed it the lines in order.
#[derive(Debug)]
pub struct AuditChain {
    head: Head,
    evidence: Evidence,
    /// How many of the anchors lie behind.
    passed: usize,
    /// Whether the line before could be read, so that its hash means something.
    linked: bool,
    findings: Vec<Finding>,
    torn: Option<Torn>,
    /// The head before a torn line that counts: nobody may have signed for that line.
    before_torn: Option<Head>,
}

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Report {
    /// Where the log ends: entries read, hash of the last.
    pub head: Head,
    /// What is wrong, in the order of the entries.
    pub findings: Vec<Finding>,
    /// What a power cut left behind.
    pub torn: Option<Torn>,
    /// What the check cannot show.
    pub absent: Vec<Absent>,
}

/// How a log is, as far as the check can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Condition {
    /// Nothing is wrong.
    Intact,
    /// Every acknowledged entry is there; after them is the rest of a line that was never finished.
    Torn,
    /// Somebody or something changed it.
    Damaged,
}

/// The end of a log without a line end: what a power cut leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Torn {
    /// Which entry it would be, from 1.
    pub entry: u64,
    /// How long it is.
    pub bytes: usize,
    /// Whether all of the entry is there and only the line end is missing; it then counts.
    pub complete: bool,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("entry {entry}: {damage}")]
pub struct Finding {
    /// Where, from 1.
    pub entry: u64,
    /// What.
    pub damage: Damage,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// The line is no entry in canonical form.
    #[error("not an entry: {0}")]
    Unreadable(FormError),
    /// The line is the same as the one before.
    #[error("the same as the entry before")]
    Repeated,
    /// The line follows another line than the one before it.
    #[error("follows `{stated}`, but the entry before is `{actual}`")]
    Unlinked {
        /// The hash it names.
        stated: Hash,
        /// The hash of the line before it.
        actual: Hash,
    },
    /// There are entries, and no head that covers them.
    #[error("the signed head is gone, which is written with every entry: the end may be cut")]
    Headless,
    /// Nobody who should have signed the head has.
    #[error("the signature of the head does not fit")]
    HeadSignature,
    /// Entries that were acknowledged are gone.
    #[error("missing: the log once had {stated} entries")]
    Cut {
        /// How many there were.
        stated: u64,
    },
    /// Entries follow that the signed head does not cover.
    #[error("not covered by the signed head")]
    Uncovered,
    /// The log is as long as it was, but says something else.
    #[error("rewritten: the entry was `{stated}`, and is `{actual}`")]
    Rewritten {
        /// The hash it had.
        stated: Hash,
        /// The hash it has.
        actual: Hash,
    },
}

/// A guarantee that the check cannot give, because what it needs is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Absent {
    /// There is no signed head.
    #[error("no signed head: a cut or rewritten end would not be found")]
    SignedHead,
    /// There is no copy of a head from elsewhere.
    #[error("no anchor kept elsewhere: an old log put back with its old head would not be found")]
    Anchor,
}

impl AuditChain {
    /// A check against this evidence.
    pub fn new(mut evidence: Evidence) -> Self {
        evidence.anchors.sort_by_key(|anchor| anchor.head.count);
        let mut chain = Self {
            head: Head::genesis(),
            evidence,
            passed: 0,
            linked: true,
            findings: Vec::new(),
            torn: None,
            before_torn: None,
        };
        chain.compare_anchors();
        chain
    }

    /// Checks a whole log at once.
    pub fn verify(log: &[u8], evidence: Evidence) -> Report {
        let mut chain = Self::new(evidence);
        let mut lines = log.split(|byte| *byte == b'\n');
        let rest = lines.next_back().unwrap_or_default();
        lines.for_each(|line| chain.line(line));
        chain.rest(rest);
        chain.finish()
    }

    /// The next line, which had a line end.
    pub fn line(&mut self, line: &[u8]) {
        match Entry::read(line) {
            Ok((_, prev)) => {
                self.link(line, prev);
                self.advance(line, true);
            }
            Err(error) => {
                self.find(Damage::Unreadable(error));
                self.advance(line, false);
            }
        }
    }

    /// What follows the last line end: nothing, unless the power was cut.
    pub fn rest(&mut self, rest: &[u8]) {
        if rest.is_empty() {
            return;
        }
        let complete = matches!(Entry::read(rest), Ok((_, prev)) if prev == self.head.hash);
        self.torn = Some(Torn {
            entry: self.head.count.saturating_add(1),
            bytes: rest.len(),
            complete,
        });
        if complete {
            self.before_torn = Some(self.head);
            self.advance(rest, true);
        }
    }

    /// The result, after the last line.
    pub fn finish(mut self) -> Report {
        let mut absent = Vec::new();
        match self.evidence.head.take() {
            Some((signed, key)) => match signed.verify(&key) {
                Some(head) => self.compare_head(head),
                None => self.push(signed.claims().count, Damage::HeadSignature),
            },
            None if self.evidence.must_be_signed && self.head.count > 0 => {
                self.push(self.head.count, Damage::Headless);
            }
            None => absent.push(Absent::SignedHead),
        }
        match self.evidence.anchors.last().map(|anchor| anchor.head.count) {
            None => absent.push(Absent::Anchor),
            Some(stated) if stated > self.head.count => self.find(Damage::Cut { stated }),
            Some(_) => {}
        }
        self.findings.dedup();
        Report {
            head: self.head,
            findings: self.findings,
            torn: self.torn,
            absent,
        }
    }

    fn link(&mut self, line: &[u8], prev: Hash) {
        if !self.linked || prev == self.head.hash {
            return;
        }
        match Hash::of(line) == self.head.hash {
            true => self.find(Damage::Repeated),
            false => self.find(Damage::Unlinked {
                stated: prev,
                actual: self.head.hash,
            }),
        }
    }

    fn advance(&mut self, line: &[u8], linked: bool) {
        self.head = Head {
            count: self.head.count.saturating_add(1),
            hash: Hash::of(line),
        };
        self.linked = linked;
        self.compare_anchors();
    }

    fn compare_anchors(&mut self) {
        while let Some(anchor) = self.evidence.anchors.get(self.passed) {
            let stated = anchor.head;
            if stated.count > self.head.count {
                return;
            }
            self.passed += 1;
            self.compare_hash(stated, self.head);
        }
    }

    fn compare_head(&mut self, stated: Head) {
        let unsigned = self
            .before_torn
            .filter(|before| before.count == stated.count);
        let actual = unsigned.unwrap_or(self.head);
        if stated.count > actual.count {
            let stated = stated.count;
            self.find(Damage::Cut { stated });
        } else if stated.count < actual.count {
            self.push(stated.count.saturating_add(1), Damage::Uncovered);
        } else {
            self.compare_hash(stated, actual);
        }
    }

    fn compare_hash(&mut self, stated: Head, actual: Head) {
        let (stated, entry, actual) = (stated.hash, actual.count, actual.hash);
        if stated != actual {
            self.push(entry, Damage::Rewritten { stated, actual });
        }
    }

    /// Something is wrong with the line that comes next.
    fn find(&mut self, damage: Damage) {
        self.push(self.head.count.saturating_add(1), damage);
    }

    fn push(&mut self, entry: u64, damage: Damage) {
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(Finding { entry, damage });
        }
    }
}

impl Report {
    /// How the log is, as far as the check can show.
    pub fn condition(&self) -> Condition {
        match (self.findings.is_empty(), self.torn) {
            (false, _) => Condition::Damaged,
            (true, Some(_)) => Condition::Torn,
            (true, None) => Condition::Intact,
        }
    }
}

/// A log that was rewritten as a whole is not described line by line.
const MAX_FINDINGS: usize = 1000;
