//! The statement of a pack: in-toto, with what was selected as its predicate.

use countersign_canon::{Hash, Json, Limits, Numbers, Object};

use crate::member;

/// What a pack says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// Every other member, in the order of the file.
    pub members: Vec<Listed>,
    /// What was asked for.
    pub selected: Selected,
    /// How many events it has.
    pub events: u64,
}

/// A member as the statement lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// The SHA-256 value of its content.
    pub digest: Hash,
    /// What it is.
    pub media_type: String,
}

/// What a pack is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selected {
    /// One session, from its first event to the last before the checkpoint.
    Session {
        /// The tenant.
        tenant: String,
        /// The session.
        session: String,
    },
    /// Every event with a time in a range.
    Range {
        /// From this time on.
        since_unix_ms: Option<u64>,
        /// Before this time.
        until_unix_ms: Option<u64>,
    },
    /// The session of one approval.
    Approval {
        /// Which.
        id: String,
        /// The tenant.
        tenant: String,
        /// The session that asked for it.
        session: String,
    },
}

/// Why bytes are no statement.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StatementError {
    /// It is not strict JSON, or has no canonical text.
    #[error(transparent)]
    Json(#[from] countersign_canon::Error),
    /// A member is missing, of another type, or not known.
    #[error("the statement has no proper `{0}`")]
    Member(&'static str),
    /// It is written in another way than here.
    #[error("the statement is not in canonical form")]
    NotCanonical,
}

impl Statement {
    /// The payload that is signed: RFC 8785.
    pub fn to_text(&self) -> Result<Vec<u8>, StatementError> {
        let subject = self.members.iter().map(|member| {
            let digest = Json::object([("sha256", Json::from(member.digest.to_string()))]);
            Json::object([
                ("digest", digest),
                ("mediaType", Json::from(member.media_type.as_str())),
                ("name", Json::from(member.name.as_str())),
            ])
        });
        let predicate = Json::object([
            ("events", Json::from(self.events)),
            ("selected", self.selected.to_json()),
        ]);
        let statement = Json::object([
            ("_type", Json::from(STATEMENT_TYPE)),
            ("predicate", predicate),
            ("predicateType", Json::from(PREDICATE_TYPE)),
            ("subject", Json::Array(subject.collect())),
        ]);
        Ok(statement.to_jcs()?)
    }

    /// Reads the payload of an envelope.
    pub fn read(text: &[u8]) -> Result<Self, StatementError> {
        let json = Json::admit(text, &LIMITS)?;
        let text_of = |json: &Json, name| json.get(name).and_then(Json::as_str).map(str::to_owned);
        if text_of(&json, "_type").as_deref() != Some(STATEMENT_TYPE) {
            return Err(StatementError::Member("_type"));
        }
        if text_of(&json, "predicateType").as_deref() != Some(PREDICATE_TYPE) {
            return Err(StatementError::Member("predicateType"));
        }
        let subject = json.get("subject").and_then(Json::as_array);
        let mut members = Vec::new();
        for one in subject.ok_or(StatementError::Member("subject"))? {
            let digest = one
                .get("digest")
                .and_then(|digest| text_of(digest, "sha256"));
            let digest = digest.and_then(|digest| digest.parse().ok());
            members.push(Listed {
                name: text_of(one, "name").ok_or(StatementError::Member("name"))?,
                digest: digest.ok_or(StatementError::Member("digest"))?,
                media_type: text_of(one, "mediaType").ok_or(StatementError::Member("mediaType"))?,
            });
        }
        let predicate = json.get("predicate").and_then(Json::as_object);
        let predicate = predicate.ok_or(StatementError::Member("predicate"))?;
        let events = predicate.get("events").and_then(Json::as_u64);
        let statement = Self {
            members,
            selected: predicate
                .get("selected")
                .and_then(Json::as_object)
                .and_then(Selected::read)
                .ok_or(StatementError::Member("selected"))?,
            events: events.ok_or(StatementError::Member("events"))?,
        };
        match statement.to_text()? == text {
            true => Ok(statement),
            false => Err(StatementError::NotCanonical),
        }
    }

    /// Lists a member by its content.
    pub fn list(&mut self, name: &str, content: &[u8]) {
        let media_type = member::usual_type(name).unwrap_or(member::ATTACHMENT_TYPE);
        self.members.push(Listed {
            name: name.to_owned(),
            digest: Hash::of(content),
            media_type: media_type.to_owned(),
        });
    }
}

impl Selected {
    fn to_json(&self) -> Json {
        let time = |time: &Option<u64>| time.map_or(Json::Null, Json::from);
        match self {
            Self::Session { tenant, session } => Json::object([
                ("session_id", Json::from(session.as_str())),
                ("tenant_id", Json::from(tenant.as_str())),
            ]),
            Self::Range {
                since_unix_ms,
                until_unix_ms,
            } => Json::object([
                ("since_unix_ms", time(since_unix_ms)),
                ("until_unix_ms", time(until_unix_ms)),
            ]),
            Self::Approval {
                id,
                tenant,
                session,
            } => Json::object([
                ("approval_id", Json::from(id.as_str())),
                ("session_id", Json::from(session.as_str())),
                ("tenant_id", Json::from(tenant.as_str())),
            ]),
        }
    }

    fn read(members: &Object) -> Option<Self> {
        let text = |name| members.get(name).and_then(Json::as_str).map(str::to_owned);
        if members.get("since_unix_ms").is_some() {
            let time = |name| members.get(name).and_then(Json::as_u64);
            return Some(Self::Range {
                since_unix_ms: time("since_unix_ms"),
                until_unix_ms: time("until_unix_ms"),
            });
        }
        let (tenant, session) = (text("tenant_id")?, text("session_id")?);
        Some(match text("approval_id") {
            Some(id) => Self::Approval {
                id,
                tenant,
                session,
            },
            None => Self::Session { tenant, session },
        })
    }
}

/// What the predicate of the statement is.
pub const PREDICATE_TYPE: &str = "urn:countersign:evidence-pack:v1";
const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";
const LIMITS: Limits = Limits {
    max_bytes: 16 << 20,
    max_depth: 8,
    numbers: Numbers::Double,
};
