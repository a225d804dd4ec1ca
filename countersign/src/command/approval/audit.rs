//! `countersign approval audit`

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;
use std::time::Duration;

use clap::Args;
use countersign_approval::audit::{
    Absent, Anchor, AuditChain, Condition, Damage, Evidence, Report, SignedHead,
};
use countersign_approval::{SigningKey, VerifyingKey};
use countersign_canon::{Hash, Json};
use countersign_store::Folder;

use crate::cli::DataFolder;
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::input::unreadable;
use crate::output::{self, Format, inline};

mod original;

use original::{Comparison, Database, Original};

#[derive(Args)]
#[command(after_help = "\
Changes nothing: reads approvals.jsonl, head.json and anchor.json in the folder `audit` of the data
folder, and compares them with the database, if there is one. Note the last hash and the public key that it prints, elsewhere: with --head and
--public-key a later check finds what nobody can find from the files alone.

Examples:
  countersign approval audit
  countersign approval audit --head 3ae18f55… --public-key 9c1d33b0…")]
pub(crate) struct Audit {
    /// The hash of an entry that you noted: the audit must still have it
    #[arg(long, value_name = "HASH")]
    head: Option<Hash>,
    /// The key of the audit that you noted [default: the one in the data folder]
    #[arg(long, value_name = "HEX")]
    public_key: Option<String>,
    #[command(flatten)]
    data: DataFolder,
}

/// What was found out, and what was not.
struct Findings {
    report: Report,
    key: Option<VerifyingKey>,
    problems: Vec<String>,
    checked: Vec<String>,
    not_checked: Vec<String>,
    /// Whether the database is ahead of the file, and nothing else is wrong between them.
    is_behind: bool,
}

/// What there was to check the lines against, and what of it fits.
struct Against {
    is_signed: bool,
    is_anchored: bool,
    is_noted: bool,
    database: Database,
}

impl Audit {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let folder = self.data.folder()?;
        let findings = self.check(&folder)?;
        match format {
            Format::Text => output::text(&findings.text(&folder.audit()))?,
            Format::Json => output::json(&findings.json())?,
        }
        match findings.problems.first() {
            None => Ok(Exit::Done),
            Some(first) => Err(Failure::new(
                Code::AuditUnverified,
                format!("the audit does not hold: {first}"),
            )),
        }
    }

    fn check(&self, folder: &Folder) -> Result<Findings, Failure> {
        let original = Original::open(folder)?;
        // Whoever writes commits to the database first, and to the file a moment later.
        for _ in 0..PATIENCE {
            let findings = self.look(folder, original.as_ref())?;
            if !findings.is_behind {
                return Ok(findings);
            }
            std::thread::sleep(PAUSE);
        }
        self.look(folder, original.as_ref())
    }

    fn look(&self, folder: &Folder, original: Option<&Original>) -> Result<Findings, Failure> {
        let audit = folder.audit();
        let mut problems = Vec::new();
        let lines = Lines::open(&audit.join("approvals.jsonl"))?;
        let head = file(&audit.join("head.json"))?;
        let anchor = file(&audit.join("anchor.json"))?;
        let lines = lines.map(Lines::release).transpose()?;
        let key = self.key(folder)?;
        let must_be_signed = head.is_none();
        let head = head.and_then(|text| {
            let read = SignedHead::read(&text);
            read.map_err(|error| problems.push(format!("head.json: {error}")))
                .ok()
        });
        let anchor = anchor.and_then(|text| {
            let read = Anchor::read(&text);
            read.map_err(|error| problems.push(format!("anchor.json: {error}")))
                .ok()
        });
        if head.is_some() && key.is_none() {
            problems.push("head.json: the key of the audit is gone; give --public-key".to_owned());
        }
        let evidence = Evidence {
            head: head.zip(key),
            anchors: anchor.into_iter().collect(),
            must_be_signed,
        };
        let is_signed = evidence.head.is_some();
        let (report, found, database) = self.read(lines, evidence, original)?;
        let is_empty = report.head.count == 0 && must_be_signed && anchor.is_none();
        // A log that has never asked anybody has no audit.
        if is_empty && database != Database::Same {
            problems.push("there is no audit here".to_owned());
        }
        problems.extend(report.findings.iter().map(ToString::to_string));
        if self.head.is_some() && !found {
            problems.push("the entry of --head is not in the audit".to_owned());
        }
        match database {
            Database::Absent | Database::Same => {}
            Database::Ahead(count) => problems.push(format!(
                "entry {}: missing: the database has {}",
                report.head.count.saturating_add(1),
                entries(count)
            )),
            Database::Differs(entry) => {
                problems.push(format!("entry {entry}: not the one that the database has"));
            }
        }
        let is_behind = matches!(database, Database::Ahead(_));
        let against = Against {
            is_signed,
            is_anchored: anchor.is_some(),
            is_noted: found,
            database,
        };
        let mut findings = Findings {
            report,
            key,
            problems,
            checked: Vec::new(),
            not_checked: Vec::new(),
            is_behind,
        };
        self.tell(&against, &mut findings);
        Ok(findings)
    }

    /// Reads the lines; says as well whether one of them has the hash that was noted, and whether they
    /// are those of the database.
    fn read(
        &self,
        lines: Option<(String, io::Take<File>)>,
        evidence: Evidence,
        original: Option<&Original>,
    ) -> Result<(Report, bool, Database), Failure> {
        let mut chain = AuditChain::new(evidence);
        let mut comparison = original.map(Original::compare);
        let mut found = false;
        let mut rest = None;
        // A file that is gone has no lines; what was signed tells of them.
        if let Some((name, lines)) = lines {
            let mut lines = BufReader::with_capacity(1 << 20, lines);
            let mut line = Vec::new();
            loop {
                line.clear();
                let read = lines.by_ref().take(MAX_LINE).read_until(b'\n', &mut line);
                if read.map_err(|error| unreadable(&name, &error))? == 0 {
                    break;
                }
                let Some(line) = line.strip_suffix(b"\n") else {
                    found |= self.head == Some(Hash::of(&line));
                    chain.rest(&line);
                    rest = Some(line.clone());
                    continue;
                };
                found |= self.head == Some(Hash::of(line));
                chain.line(line);
                if let Some(comparison) = &mut comparison {
                    comparison.line(line)?;
                }
            }
        }
        let report = chain.finish();
        let counts = report.torn.is_some_and(|torn| torn.complete);
        if let (Some(comparison), Some(rest)) = (&mut comparison, rest.filter(|_| counts)) {
            comparison.line(&rest)?;
        }
        let database = comparison.map_or(Database::Absent, Comparison::finish);
        Ok((report, found, database))
    }

    fn key(&self, folder: &Folder) -> Result<Option<VerifyingKey>, Failure> {
        if let Some(hex) = &self.public_key {
            let mut bytes = [0; 32];
            let decoded = base16ct::lower::decode(hex.as_bytes(), &mut bytes);
            let whole = decoded.is_ok_and(|decoded| decoded.len() == 32);
            let key = VerifyingKey::from_bytes(&bytes).ok().filter(|_| whole);
            let wrong = || Failure::new(Code::Hash, format!("`{hex}` is not a public key"));
            return key.map(Some).ok_or_else(wrong);
        }
        let path = folder.audit_key();
        match path.exists() {
            true => {
                let secret = countersign_vault::open_secret(&path)?;
                Ok(Some(SigningKey::from_bytes(&secret).verifying_key()))
            }
            false => Ok(None),
        }
    }

    /// What was checked and holds, and what was not checked. What does not hold is among the problems.
    fn tell(&self, against: &Against, findings: &mut Findings) {
        let is_found = |wrong: fn(&Damage) -> bool| {
            let mut damages = findings.report.findings.iter();
            damages.any(|finding| wrong(&finding.damage))
        };
        let unreadable = is_found(|it| matches!(it, Damage::Unreadable(_)));
        let unlinked = is_found(|it| matches!(it, Damage::Unlinked { .. } | Damage::Repeated));
        let cut = is_found(|it| matches!(it, Damage::Cut { .. } | Damage::Rewritten { .. }));
        let uncovered = is_found(|it| matches!(it, Damage::HeadSignature | Damage::Uncovered));
        let count = findings.report.head.count;
        let claims = [
            (
                !unreadable && count > 0,
                format!("the form of each of {}", entries(count)),
            ),
            (
                !unreadable && !unlinked && count > 0,
                "the link of each of them to the one before it, from the first on".to_owned(),
            ),
            (
                against.is_signed && !cut && !uncovered,
                "the end of it against the signed head".to_owned(),
            ),
            (
                against.is_anchored && !cut,
                "the anchor beside the audit".to_owned(),
            ),
            (
                against.database == Database::Same,
                match count {
                    0 => "that the database has no entry either".to_owned(),
                    _ => "that the database has the same entries".to_owned(),
                },
            ),
            (
                against.is_noted,
                "that the entry you noted is still there".to_owned(),
            ),
        ];
        let holds = claims.into_iter().filter(|(holds, _)| *holds);
        findings.checked.extend(holds.map(|(_, claim)| claim));
        let not_checked = &mut findings.not_checked;
        if !against.is_signed && count > 0 {
            not_checked.push(Absent::SignedHead.to_string());
        }
        if against.database == Database::Absent {
            not_checked.push("the entries against the database, which is not here".to_owned());
        }
        if self.head.is_none() {
            not_checked.push(
                "that no older audit was put back with its head and its database: give --head from \
                 your own notes"
                    .to_owned(),
            );
        }
        if self.public_key.is_none() {
            not_checked.push(
                "whose key signed the head, as it lies in the same folder: give --public-key from \
                 your own notes"
                    .to_owned(),
            );
        }
        not_checked.push("that the recorded clocks were right".to_owned());
    }
}

/// The lines of the audit, while nobody writes. Whoever writes holds the lock until lines and head
/// fit.
struct Lines {
    name: String,
    file: File,
}

impl Lines {
    fn open(path: &Path) -> Result<Option<Self>, Failure> {
        let name = path.display().to_string();
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            result => result.map_err(|error| unreadable(&name, &error))?,
        };
        // Where there are no locks, as on some read-only copies, nobody writes either.
        let _ = file.lock_shared();
        Ok(Some(Self { name, file }))
    }

    /// What is there now; what is added later is not looked at.
    fn release(self) -> Result<(String, io::Take<File>), Failure> {
        let Self { name, file } = self;
        let length = file.metadata();
        let length = length.map_err(|error| unreadable(&name, &error))?.len();
        let _ = file.unlock();
        Ok((name, file.take(length)))
    }
}

impl Findings {
    fn is_good(&self) -> bool {
        self.problems.is_empty()
    }

    fn text(&self, folder: &Path) -> String {
        let word = match self.is_good() {
            true => "VERIFIED ✓",
            false => "FAILED ✗",
        };
        let head = self.report.head;
        let name = inline(&folder.display().to_string());
        let count = match (head.count, self.is_good()) {
            (0, true) => "no entry yet".to_owned(),
            (count, _) => entries(count),
        };
        let mut lines = vec![format!("{word}  {name}: {count}")];
        if !self.is_good() {
            lines.push("\ndoes not hold:".to_owned());
            let shown = self.problems.iter().take(MAX_SHOWN);
            lines.extend(shown.map(|problem| format!("  ✗ {}", inline(problem))));
            if self.problems.len() > MAX_SHOWN {
                lines.push(format!("  … and {} more", self.problems.len() - MAX_SHOWN));
            }
        }
        if let Some(torn) = self.report.torn {
            let kept = match torn.complete {
                true => "all of it is there",
                false => "it was never acknowledged",
            };
            let (entry, bytes) = (torn.entry, torn.bytes);
            lines.push(format!(
                "\ntorn: entry {entry} has {bytes} bytes and no line end; {kept}"
            ));
        }
        lines.push("\nchecked:".to_owned());
        lines.extend(self.checked.iter().map(|what| format!("  ✓ {what}")));
        lines.push("not checked:".to_owned());
        lines.extend(self.not_checked.iter().map(|what| format!("  – {what}")));
        if head.count > 0 {
            lines.push(format!("\nlast entry  {}", head.hash));
        }
        if let Some(key) = &self.key {
            lines.push(format!("public key  {}", hex(key)));
        }
        lines.join("\n")
    }

    fn json(&self) -> Json {
        let texts = |texts: &[String]| Json::Array(texts.iter().cloned().map(Json::from).collect());
        let condition = match self.report.condition() {
            Condition::Intact if self.is_good() => "intact",
            Condition::Torn if self.is_good() => "torn",
            Condition::Intact | Condition::Torn | Condition::Damaged => "damaged",
        };
        let key = self.key.as_ref();
        Json::object([
            ("ok", Json::from(self.is_good())),
            ("condition", Json::from(condition)),
            ("entries", Json::from(self.report.head.count)),
            ("head", Json::from(self.report.head.hash.to_string())),
            (
                "public_key",
                key.map_or(Json::Null, |key| Json::from(hex(key))),
            ),
            ("problems", texts(&self.problems)),
            ("checked", texts(&self.checked)),
            ("not_checked", texts(&self.not_checked)),
        ])
    }
}

fn entries(count: u64) -> String {
    match count {
        1 => "1 entry".to_owned(),
        several => format!("{several} entries"),
    }
}

fn hex(key: &VerifyingKey) -> String {
    base16ct::lower::encode_string(key.as_bytes())
}

/// The text of a small file without its last line end; `None` if there is none.
fn file(path: &Path) -> Result<Option<Vec<u8>>, Failure> {
    match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unreadable(&path.display().to_string(), &error)),
        Ok(mut text) => {
            if text.last() == Some(&b'\n') {
                text.pop();
            }
            Ok(Some(text))
        }
    }
}

/// No entry is longer; what is goes in pieces, none of which is an entry.
const MAX_LINE: u64 = 64 << 20;
const MAX_SHOWN: usize = 20;
/// How often to look again, and how long to wait, for a process that is about to write.
const PATIENCE: u32 = 10;
const PAUSE: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests;
