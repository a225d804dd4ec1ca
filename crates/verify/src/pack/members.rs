//! What a pack holds, and whose word it is.

use std::collections::BTreeMap;

use countersign_approval::VerifyingKey;
use countersign_canon::{Hash, Json, Limits as JsonLimits, Numbers};
use countersign_pack::archive::{self, Limits};
use countersign_pack::{Statement, dsse::Envelope, member};
use countersign_tlog::{
    Checkpoint, Durability, Key, Kind, Note, Refused, Statement as CheckpointStatement,
};

use super::{PackProblem, PackReport, Trust};

/// The members, each with the digest that the statement says.
pub(super) struct Members<'a> {
    by_name: BTreeMap<&'a str, &'a [u8]>,
    envelope: Envelope,
    pub(super) statement: Statement,
    /// Keys of people as the pack lists them: whose, and which.
    pub(super) people: Vec<(String, VerifyingKey)>,
    log_key: Key,
}

/// The log at its checkpoint.
pub(super) struct Log {
    pub(super) checkpoint: Checkpoint,
    pub(super) says: Option<CheckpointStatement>,
}

impl<'a> Members<'a> {
    pub(super) fn read(
        file: &'a [u8],
        limits: &Limits,
        report: &mut PackReport,
    ) -> Result<Self, PackProblem> {
        let members = archive::read(file, limits)?;
        let (first, rest) = members
            .split_first()
            .filter(|(first, _)| first.name == member::STATEMENT)
            .ok_or_else(|| PackProblem::Member(member::STATEMENT.to_owned()))?;
        let envelope = Envelope::read(first.content)?;
        let statement = Statement::read(&envelope.payload)?;
        let mut listed = statement.members.iter();
        for found in rest {
            let listed = listed.next().filter(|listed| listed.name == found.name);
            let listed = listed.ok_or_else(|| PackProblem::Member(found.name.to_owned()))?;
            if Hash::of(found.content) != listed.digest {
                return Err(PackProblem::Digest(listed.name.clone()));
            }
        }
        if let Some(missing) = listed.next() {
            return Err(PackProblem::Member(missing.name.clone()));
        }
        report.selected = Some(statement.selected.clone());
        report.check(format!(
            "the digest of each of {} member(s), and that there is no other",
            rest.len()
        ));
        for listed in &statement.members {
            if member::usual_type(&listed.name) != Some(listed.media_type.as_str()) {
                report.leave(format!(
                    "what is in `{}` ({}); only its digest",
                    listed.name, listed.media_type
                ));
            }
        }
        let by_name: BTreeMap<&str, &[u8]> = rest
            .iter()
            .map(|found| (found.name, found.content))
            .collect();
        let (log_key, people) = keys(by_name.get(member::KEYS).copied().unwrap_or_default())?;
        Ok(Self {
            by_name,
            envelope,
            statement,
            people,
            log_key,
        })
    }

    /// The content of a member that must be there.
    pub(super) fn need(&self, name: &'static str) -> Result<&'a [u8], PackProblem> {
        let found = self.by_name.get(name).copied();
        found.ok_or_else(|| PackProblem::Member(name.to_owned()))
    }

    /// Whether there is such a member.
    pub(super) fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// The members of a folder.
    pub(super) fn within(&self, folder: &'static str) -> impl Iterator<Item = (&'a str, &'a [u8])> {
        let all = self.by_name.iter();
        let inside = all.filter(move |(name, _)| name.starts_with(folder));
        inside.map(|(name, content)| (*name, *content))
    }

    /// The lines of a member that must be there.
    pub(super) fn needed_lines(&self, name: &'static str) -> Result<Vec<&'a [u8]>, PackProblem> {
        self.need(name)?;
        self.lines(name)
    }

    /// The lines of a member that may be missing.
    pub(super) fn lines(&self, name: &'static str) -> Result<Vec<&'a [u8]>, PackProblem> {
        match self.by_name.get(name).copied() {
            None | Some([]) => Ok(Vec::new()),
            Some(text) => {
                let text = text.strip_suffix(b"\n");
                let text = text.ok_or_else(|| form(name, "it does not end in a line end"))?;
                Ok(text.split(|byte| *byte == b'\n').collect())
            }
        }
    }

    /// The JSON of a member, which has one text only.
    pub(super) fn json(&self, name: &'static str) -> Result<Json, PackProblem> {
        json(name, self.need(name)?)
    }

    /// The checkpoint, if the keys that count have signed it and the pack.
    pub(super) fn log(&self, trust: &Trust, report: &mut PackReport) -> Result<Log, PackProblem> {
        let key = &self.log_key;
        // SECURITY: who is trusted to witness checkpoints is not trusted to make them.
        let is_log = key.kind() == Kind::Note;
        if !is_log || !trust.keys.is_empty() && !trust.keys.contains(key) {
            return Err(PackProblem::Untrusted);
        }
        if !self.envelope.is_signed_by(key) {
            return Err(PackProblem::Signature("the pack"));
        }
        let note = Note::read(self.need(member::CHECKPOINT)?)?;
        if note.verify(key).is_err() {
            return Err(PackProblem::Signature("the checkpoint"));
        }
        let checkpoint = Checkpoint::read(note.text())?;
        // A key is that of one log: what it signs for another name is not about this one.
        if checkpoint.origin != key.name() {
            return Err(PackProblem::Signature("the checkpoint"));
        }
        report.log = Some((checkpoint.origin.clone(), checkpoint.size));
        report.check(format!(
            "the signatures of `{}` under the pack and under its checkpoint of {} event(s)",
            checkpoint.origin, checkpoint.size
        ));
        if trust.keys.is_empty() {
            report.leave("whose key that is: give --trust with the key of the log");
        } else {
            report.check("that the key of the log is one that you trust");
        }
        self.witnesses(&note, trust, report)?;
        let says = CheckpointStatement::of(&checkpoint);
        report.durability = says.map(|says| says.durability);
        if report.durability == Some(Durability::Relaxed) {
            report.leave(
                "that no event was lost with the power: the log says that it was not always written \
                 to the disk before it was acknowledged (durability `relaxed`)",
            );
        }
        Ok(Log { checkpoint, says })
    }

    fn witnesses(
        &self,
        note: &Note,
        trust: &Trust,
        report: &mut PackReport,
    ) -> Result<(), PackProblem> {
        let mut seen = 0;
        let witnesses = trust.keys.iter();
        for key in witnesses.filter(|key| key.kind() == Kind::Cosignature) {
            match note.verify(key) {
                Ok(time) => {
                    let time = time.unwrap_or_default();
                    report.check(format!("the cosignature of `{}` at {time}", key.name()));
                    seen += 1;
                }
                Err(Refused::Unsigned) => {}
                Err(_) => return Err(PackProblem::Witness(key.name().to_owned())),
            }
        }
        if seen == 0 {
            report.leave(
                "that the log shows everybody the same history: no trusted witness has signed the \
                 checkpoint",
            );
        }
        Ok(())
    }
}

pub(super) fn form(name: &'static str, why: impl ToString) -> PackProblem {
    PackProblem::Form(name, why.to_string())
}

fn json(name: &'static str, text: &[u8]) -> Result<Json, PackProblem> {
    let text = text.strip_suffix(b"\n");
    let text = text.ok_or_else(|| form(name, "it does not end in a line end"))?;
    let json = Json::admit(text, &LIMITS).map_err(|error| form(name, error))?;
    match json.to_jcs().is_ok_and(|canonical| canonical == text) {
        true => Ok(json),
        false => Err(form(name, "it is not in canonical form")),
    }
}

fn keys(text: &[u8]) -> Result<(Key, Vec<(String, VerifyingKey)>), PackProblem> {
    let keys = json(member::KEYS, text)?;
    let log = keys.get("log").and_then(Json::as_str).unwrap_or_default();
    let log: Key = log.parse()?;
    let listed = keys.get("people").and_then(Json::as_array);
    let mut people = Vec::new();
    for one in listed.ok_or_else(|| form(member::KEYS, "`people` is missing"))? {
        let text = |name| one.get(name).and_then(Json::as_str).unwrap_or_default();
        let key = hex_key(text("key")).ok_or_else(|| form(member::KEYS, "a key of a person"))?;
        people.push((text("person").to_owned(), key));
    }
    Ok((log, people))
}

fn hex_key(hex: &str) -> Option<VerifyingKey> {
    // A hash and a key have the same text form.
    let bytes: Hash = hex.parse().ok()?;
    let key = VerifyingKey::from_bytes(bytes.as_bytes()).ok()?;
    (!key.is_weak()).then_some(key)
}

const LIMITS: JsonLimits = JsonLimits {
    max_bytes: 512 << 20,
    max_depth: 8,
    numbers: Numbers::Double,
};
