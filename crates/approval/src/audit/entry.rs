//! One line of the audit.

use countersign_canon::{Hash, Json, Limits};

use super::outcome::Outcome;
use crate::decision::CallDecision;
use crate::envelope::Envelope;
use crate::form::{self, Fields, FormError};
use crate::key::KeyId;
use crate::plan::PlanHash;
use crate::time::UnixMs;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When.
    pub at: UnixMs,
    /// To which envelope, if it is about one.
    pub about: Option<About>,
    /// The verdicts that were given or came out of it.
    pub decisions: Vec<CallDecision>,
    /// What.
    pub outcome: Outcome,
    /// The plan hash as it was worked out again, where it was.
    pub computed_plan_hash: Option<PlanHash>,
    /// Who did it.
    pub actor: Option<String>,
    /// The key that proves it.
    pub key: Option<KeyId>,
    /// The hash of what was shown.
    pub display: Option<Hash>,
    /// The one call it is about, where it is about one.
    pub call: Option<String>,
    /// The lease it is about.
    pub lease: Option<String>,
    /// What else there is to say, in words.
    pub detail: Option<String>,
}

/// The envelope that an entry is about, by the names that others may have given it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// The envelope's id.
    pub envelope: String,
    /// Its piece of work.
    pub work_item: String,
    /// Its plan hash.
    pub plan_hash: PlanHash,
    /// Its nonce.
    pub nonce: String,
}

impl About {
    /// This envelope.
    pub fn envelope(envelope: &Envelope) -> Self {
        Self {
            envelope: envelope.id().to_string(),
            work_item: envelope.plan().scope().work_item.as_str().to_owned(),
            plan_hash: envelope.plan().hash(),
            nonce: envelope.nonce().to_string(),
        }
    }
}

impl Entry {
    /// An entry that says only what happened and when.
    pub const fn new(at: UnixMs, outcome: Outcome) -> Self {
        Self {
            at,
            about: None,
            decisions: Vec::new(),
            outcome,
            computed_plan_hash: None,
            actor: None,
            key: None,
            display: None,
            call: None,
            lease: None,
            detail: None,
        }
    }

    /// The line after the one with hash `prev`, without a line end. Its SHA-256 is the next `prev`.
    pub fn to_line(&self, prev: Hash) -> Vec<u8> {
        let about = self.about.as_ref();
        let decisions = self.decisions.iter().map(CallDecision::to_json);
        let plan = |hash: Option<PlanHash>| Json::from(hash.map(|hash| hash.to_string()));
        let always = [
            ("computed_plan_hash", plan(self.computed_plan_hash)),
            ("decisions", Json::Array(decisions.collect())),
            (
                "envelope_id",
                Json::from(about.map(|it| it.envelope.as_str())),
            ),
            ("nonce", Json::from(about.map(|it| it.nonce.as_str()))),
            ("outcome", Json::from(self.outcome.as_str())),
            ("plan_hash", plan(about.map(|it| it.plan_hash))),
            ("prev_hash", Json::from(prev.to_string())),
            ("timestamp", Json::from(self.at.to_string())),
            (
                "work_item_id",
                Json::from(about.map(|it| it.work_item.as_str())),
            ),
        ];
        let where_known = [
            ("actor", self.actor.clone()),
            ("detail", self.detail.clone()),
            ("display_hash", self.display.map(|hash| hash.to_string())),
            ("key_id", self.key.map(|key| key.to_string())),
            ("lease_id", self.lease.clone()),
            ("tool_call_id", self.call.clone()),
        ];
        let where_known = where_known
            .into_iter()
            .filter_map(|(name, value)| Some((name, Json::from(value?))));
        Json::object(always.into_iter().chain(where_known)).to_sorted_ascii()
    }

    /// Reads a line, which must be exactly the text that [`Entry::to_line`] writes; returns the hash
    /// of the line before as well.
    pub fn read(line: &[u8]) -> Result<(Self, Hash), FormError> {
        let mut fields = Fields::of("entry", form::canonical(line, &Limits::plan())?)?;
        let about = read_about(&mut fields)?;
        let decisions = fields.list("decisions")?.into_iter();
        let entry = Self {
            at: fields.parsed("timestamp")?,
            about,
            decisions: decisions
                .map(CallDecision::read)
                .collect::<Result<_, _>>()?,
            outcome: fields.parsed("outcome")?,
            computed_plan_hash: fields.nullable("computed_plan_hash")?,
            actor: optional(&mut fields, "actor")?,
            key: optional_parsed(&mut fields, "key_id")?,
            display: optional_parsed(&mut fields, "display_hash")?,
            call: optional(&mut fields, "tool_call_id")?,
            lease: optional(&mut fields, "lease_id")?,
            detail: optional(&mut fields, "detail")?,
        };
        let prev = fields.parsed("prev_hash")?;
        fields.end()?;
        Ok((entry, prev))
    }
}

fn read_about(fields: &mut Fields) -> Result<Option<About>, FormError> {
    let envelope = fields.nullable_text("envelope_id")?;
    let work_item = fields.nullable_text("work_item_id")?;
    let plan_hash = fields.nullable("plan_hash")?;
    let nonce = fields.nullable_text("nonce")?;
    match (envelope, work_item, plan_hash, nonce) {
        (None, None, None, None) => Ok(None),
        (Some(envelope), Some(work_item), Some(plan_hash), Some(nonce)) => Ok(Some(About {
            envelope,
            work_item,
            plan_hash,
            nonce,
        })),
        _ => Err(form::wrong("envelope_id", "given with its plan and nonce")),
    }
}

fn optional(fields: &mut Fields, member: &'static str) -> Result<Option<String>, FormError> {
    match fields.take_optional(member) {
        None => Ok(None),
        Some(Json::String(text)) => Ok(Some(text)),
        Some(_) => Err(form::wrong(member, "a text")),
    }
}

fn optional_parsed<T>(fields: &mut Fields, member: &'static str) -> Result<Option<T>, FormError>
where
    T: std::str::FromStr<Err: std::fmt::Display>,
{
    let text = optional(fields, member)?;
    let value = text.map(|text| text.parse()).transpose();
    value.map_err(|error| FormError::refused(member, error))
}
