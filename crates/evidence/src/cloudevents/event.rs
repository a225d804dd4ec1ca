//! One event, with every attribute.

use countersign_approval::UnixMs;
use countersign_canon::{Digest, Error, Hash, Json};
use countersign_redact::Redacted;

/// Who produces events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Producer {
    /// The program.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The commit that it was built from, as far as it is known.
    pub git: String,
    /// This very instance, as a URI.
    pub source: String,
}

/// An event. What it says of its content can no longer change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloudEvent {
    attributes: Vec<(&'static str, Json)>,
    data: Json,
}

/// What an event is made from.
pub(super) struct Parts<'a> {
    pub(super) kind: String,
    pub(super) run: &'a str,
    pub(super) seq: u64,
    pub(super) at_unix_ms: u64,
    pub(super) subject: Option<String>,
    pub(super) policy: Option<String>,
    pub(super) may_be_personal: bool,
    pub(super) data: Redacted<Json>,
}

impl CloudEvent {
    pub(super) fn new(parts: Parts<'_>, producer: &Producer) -> Result<Self, Error> {
        let data = parts.data.into_inner();
        let mut content = vec![
            ("specversion", Json::from(SPEC_VERSION)),
            ("type", Json::from(parts.kind)),
            ("datacontenttype", Json::from(JSON)),
        ];
        content.extend(
            parts
                .subject
                .map(|subject| ("subject", Json::from(subject))),
        );
        let hashed = content.iter().cloned();
        let hash = Self::content_hash(&Json::object(hashed.chain([("data", data.clone())])))?;
        let (run, seq) = (parts.run, parts.seq);
        let mut attributes = content;
        attributes.extend([
            ("source", Json::from(producer.source.as_str())),
            ("id", Json::from(format!("{run}:{seq}"))),
            (
                "time",
                Json::from(UnixMs::new(parts.at_unix_ms).to_string()),
            ),
            ("traceparent", Json::from(trace_parent(run, seq))),
            ("assayrunid", Json::from(run)),
            ("assayseq", Json::from(seq)),
            ("assayproducer", Json::from(producer.name.as_str())),
            (
                "assayproducerversion",
                Json::from(producer.version.as_str()),
            ),
            ("assaygit", Json::from(producer.git.as_str())),
            ("assaypii", Json::Bool(parts.may_be_personal)),
            // SECURITY: what is secret has no class that leaves.
            ("assaysecrets", Json::Bool(false)),
            ("assaycontenthash", Json::from(hash)),
        ]);
        attributes.extend(
            parts
                .policy
                .map(|policy| ("assaypolicyid", Json::from(policy))),
        );
        Ok(Self { attributes, data })
    }

    /// The content hash that an event must state.
    pub fn content_hash(event: &Json) -> Result<String, Error> {
        let members = HASHED.iter().filter_map(|name| {
            let value = event.get(name)?;
            Some((*name, value.clone()))
        });
        Ok(Digest::of(&Json::object(members).to_jcs()?).to_string())
    }

    /// The attributes, by name.
    pub fn attributes(&self) -> impl Iterator<Item = (&'static str, &Json)> {
        self.attributes.iter().map(|(name, value)| (*name, value))
    }

    /// An attribute that is text.
    pub fn text(&self, name: &str) -> &str {
        let value = self.attributes.iter().find(|(it, _)| *it == name);
        value
            .and_then(|(_, value)| value.as_str())
            .unwrap_or_default()
    }

    /// The data.
    pub fn data(&self) -> &Json {
        &self.data
    }

    /// The event as one JSON object.
    pub fn to_json(&self) -> Json {
        let attributes = self.attributes.iter().cloned();
        Json::object(attributes.chain([("data", self.data.clone())]))
    }
}

/// A trace for each run and a span for each event: the log knows no other.
fn trace_parent(run: &str, seq: u64) -> String {
    let trace = Hash::of(run.as_bytes()).to_string();
    let span = Hash::of(format!("{run}:{seq}").as_bytes()).to_string();
    let digits = |hash: &str, count| hash.chars().take(count).collect::<String>();
    format!("00-{}-{}-01", digits(&trace, 32), digits(&span, 16))
}

/// What the content hash covers.
const HASHED: &[&str] = &["specversion", "type", "datacontenttype", "subject", "data"];
const SPEC_VERSION: &str = "1.0";
const JSON: &str = "application/json";
