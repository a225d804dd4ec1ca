//! The filter language of the API, the command line and the console: `decision:deny tool:mcp.* since:1h`.
//!
//! A query is words with spaces between them. A word is `key:value`; `*` in a value stands for any text,
//! quotes hold spaces, and `-` in front turns a word around. Words with the same key are alternatives,
//! words with different keys must all fit. Reading needs no clock: `since:1h` becomes a time when the
//! query is asked ([`Query::at`]).

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use countersign_canon::{Json, Limits};
use countersign_event::{EventType, Line};

/// A query that was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    words: Vec<Word>,
}

/// A query at a moment: its times are fixed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked {
    words: Vec<Word>,
    since_unix_ms: Option<u64>,
    until_unix_ms: Option<u64>,
}

/// What an event is about, as far as it is public.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// When it happened.
    pub ts_unix_ms: u64,
    /// By key, in the order of [`Key`].
    texts: [Option<String>; KEYS],
}

/// An action in a log: a call that was proposed, and what was decided about it.
#[derive(Debug, Clone, Copy)]
pub struct LoggedAction<'a> {
    /// The tenant.
    pub tenant: &'a str,
    /// The session.
    pub session: &'a str,
    /// When it was proposed.
    pub ts_unix_ms: u64,
    /// The tool.
    pub tool: &'a str,
    /// The server that offers it.
    pub server: Option<&'a str>,
    /// The call.
    pub call: &'a str,
    /// The agent.
    pub agent: Option<&'a str>,
    /// What was decided: `allow`, `deny` or `require_approval`.
    pub outcome: &'a str,
    /// The reason code.
    pub reason: Option<&'a str>,
}

/// Why a query cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// It goes on too long.
    #[error("a query has at most {MAX_CHARS} characters and {MAX_WORDS} words")]
    TooLong,
    /// A word has no key.
    #[error("`{0}` is no `key:value`; keys are {keys}", keys = key_names())]
    NoKey(String),
    /// There is no such key.
    #[error("there is no key `{0}`{near}; keys are {keys}", near = near(.0), keys = key_names())]
    UnknownKey(String),
    /// There is no value.
    #[error("`{0}:` has no value")]
    NoValue(&'static str),
    /// A quote is not closed.
    #[error("a quote is not closed")]
    OpenQuote,
    /// It is neither a time nor a length of time.
    #[error("`{0}` is no time: write 90s, 30m, 2h, 7d or 2026-11-15T08:00:00Z")]
    Time(String),
    /// A decision is one of three.
    #[error("`{0}` is no decision: allow, deny or hold")]
    Decision(String),
    /// An event type that there is not.
    #[error("no event type fits `{0}`")]
    Type(String),
    /// Times cannot be turned around, and are given once.
    #[error("`{0}` is given once, and not turned around")]
    Twice(&'static str),
}

/// What a word is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Tenant,
    Session,
    Type,
    Tool,
    Server,
    Call,
    Agent,
    Decision,
    Reason,
    Since,
    Until,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Word {
    is_not: bool,
    key: Key,
    value: Value,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    Pattern(String),
    Ago(Duration),
    Moment(u64),
}

impl Key {
    const ALL: [Self; 11] = [
        Self::Tenant,
        Self::Session,
        Self::Type,
        Self::Tool,
        Self::Server,
        Self::Call,
        Self::Agent,
        Self::Decision,
        Self::Reason,
        Self::Since,
        Self::Until,
    ];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Tenant => "tenant",
            Self::Session => "session",
            Self::Type => "type",
            Self::Tool => "tool",
            Self::Server => "server",
            Self::Call => "call",
            Self::Agent => "agent",
            Self::Decision => "decision",
            Self::Reason => "reason",
            Self::Since => "since",
            Self::Until => "until",
        }
    }

    fn is_time(self) -> bool {
        matches!(self, Self::Since | Self::Until)
    }
}

impl FromStr for Query {
    type Err = QueryError;

    fn from_str(text: &str) -> Result<Self, QueryError> {
        if text.chars().count() > MAX_CHARS {
            return Err(QueryError::TooLong);
        }
        let mut words: Vec<Word> = Vec::new();
        for piece in pieces(text)? {
            let word = word(&piece)?;
            if words.len() >= MAX_WORDS {
                return Err(QueryError::TooLong);
            }
            let is_there = words.iter().any(|known| known.key == word.key);
            if word.key.is_time() && (is_there || word.is_not) {
                return Err(QueryError::Twice(word.key.as_str()));
            }
            words.push(word);
        }
        Ok(Self { words })
    }
}

impl Query {
    /// Fixes the times of the query.
    pub fn at(&self, now_unix_ms: u64) -> Asked {
        let time = |key: Key| {
            let word = self.words.iter().find(|word| word.key == key)?;
            match word.value {
                Value::Moment(time) => Some(time),
                Value::Ago(ago) => {
                    let ago = u64::try_from(ago.as_millis()).unwrap_or(u64::MAX);
                    Some(now_unix_ms.saturating_sub(ago))
                }
                Value::Pattern(_) => None,
            }
        };
        let words = self.words.iter().filter(|word| !word.key.is_time());
        Asked {
            words: words.cloned().collect(),
            since_unix_ms: time(Key::Since),
            until_unix_ms: time(Key::Until),
        }
    }
}

impl Asked {
    /// Whether an event fits.
    pub fn fits(&self, about: &About) -> bool {
        let is_in_time = self
            .since_unix_ms
            .is_none_or(|since| about.ts_unix_ms >= since)
            && self
                .until_unix_ms
                .is_none_or(|until| about.ts_unix_ms < until);
        is_in_time && Key::ALL.into_iter().all(|key| self.fits_key(key, about))
    }

    /// Whether every event fits.
    pub fn is_everything(&self) -> bool {
        *self == Self::default()
    }

    fn fits_key(&self, key: Key, about: &About) -> bool {
        let text = about.text(key);
        let mut is_wanted = None;
        for word in self.words.iter().filter(|word| word.key == key) {
            let Value::Pattern(pattern) = &word.value else {
                continue;
            };
            let is_it = text.is_some_and(|text| glob(pattern, text));
            match word.is_not {
                true if is_it => return false,
                true => {}
                false => is_wanted = Some(is_wanted == Some(true) || is_it),
            }
        }
        is_wanted != Some(false)
    }
}

impl About {
    /// What a stored event is about.
    pub fn of(line: &Line<'_>) -> Self {
        let limits = Limits {
            max_bytes: usize::MAX,
            max_depth: 130,
            ..Limits::event()
        };
        let payload = Json::admit(line.payload, &limits).unwrap_or(Json::Null);
        let text = |name: &str| payload.get(name).and_then(Json::as_str).map(str::to_owned);
        let mut about = Self {
            ts_unix_ms: line.ts_unix_ms,
            texts: Default::default(),
        };
        about.set(Key::Tenant, Some(line.tenant_id.clone().into_owned()));
        about.set(Key::Session, Some(line.session_id.clone().into_owned()));
        about.set(Key::Type, Some(line.event_type.as_str().to_owned()));
        about.set(Key::Tool, text("tool_name"));
        about.set(Key::Server, text("server"));
        about.set(Key::Call, text("call_id"));
        about.set(Key::Agent, text("agent_id").or_else(|| text("from_agent")));
        about.set(
            Key::Decision,
            decision(line.event_type, &payload).map(str::to_owned),
        );
        about.set(Key::Reason, text("reason_code").or_else(|| text("reason")));
        about
    }

    /// What an action is about: the call and its decision in one.
    pub fn action(action: &LoggedAction<'_>) -> Self {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let mut about = Self {
            ts_unix_ms: action.ts_unix_ms,
            texts: Default::default(),
        };
        let proposed = EventType::ToolCallProposed.as_str();
        about.set(Key::Tenant, owned(Some(action.tenant)));
        about.set(Key::Session, owned(Some(action.session)));
        about.set(Key::Type, owned(Some(proposed)));
        about.set(Key::Tool, owned(Some(action.tool)));
        about.set(Key::Server, owned(action.server));
        about.set(Key::Call, owned(Some(action.call)));
        about.set(Key::Agent, owned(action.agent));
        about.set(Key::Decision, owned(word_of(action.outcome)));
        about.set(Key::Reason, owned(action.reason));
        about
    }

    /// The tenant and the session.
    pub fn session(&self) -> (&str, &str) {
        let text = |key| self.text(key).unwrap_or_default();
        (text(Key::Tenant), text(Key::Session))
    }

    fn set(&mut self, key: Key, text: Option<String>) {
        if let Some(place) = self.texts.get_mut(key as usize) {
            *place = text;
        }
    }

    fn text(&self, key: Key) -> Option<&str> {
        self.texts.get(key as usize)?.as_deref()
    }
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, word) in self.words.iter().enumerate() {
            if index > 0 {
                f.write_str(" ")?;
            }
            if word.is_not {
                f.write_str("-")?;
            }
            write!(f, "{}:", word.key.as_str())?;
            match &word.value {
                Value::Pattern(pattern) => quoted(pattern, f)?,
                Value::Ago(ago) => write!(f, "{}s", ago.as_secs())?,
                Value::Moment(time) => {
                    let time = i64::try_from(*time).unwrap_or(i64::MAX);
                    match jiff::Timestamp::from_millisecond(time) {
                        Ok(time) => write!(f, "{time}")?,
                        Err(_) => write!(f, "{time}")?,
                    }
                }
            }
        }
        Ok(())
    }
}

/// What was decided, as far as the event tells.
fn decision(event_type: EventType, payload: &Json) -> Option<&'static str> {
    match event_type {
        EventType::PolicyDecision => word_of(payload.get("outcome").and_then(Json::as_str)?),
        EventType::ToolCallAllowed => Some("allow"),
        EventType::ToolCallDenied => Some("deny"),
        EventType::ApprovalRequested => Some("hold"),
        _ => None,
    }
}

fn word_of(outcome: &str) -> Option<&'static str> {
    match outcome {
        "allow" => Some("allow"),
        "deny" => Some("deny"),
        "require_approval" => Some("hold"),
        _ => None,
    }
}

/// A word in its parts: what it says, and where in it the first colon outside quotes is.
struct Piece {
    text: String,
    colon: Option<usize>,
}

fn pieces(text: &str) -> Result<Vec<Piece>, QueryError> {
    let mut pieces = Vec::new();
    let mut current: Option<Piece> = None;
    let mut is_quoted = false;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter.is_whitespace() && !is_quoted {
            pieces.extend(current.take());
            continue;
        }
        let piece = current.get_or_insert_with(|| Piece {
            text: String::new(),
            colon: None,
        });
        match letter {
            '"' => is_quoted = !is_quoted,
            '\\' if is_quoted => piece
                .text
                .push(letters.next().ok_or(QueryError::OpenQuote)?),
            ':' if !is_quoted && piece.colon.is_none() => {
                piece.colon = Some(piece.text.len());
                piece.text.push(':');
            }
            other => piece.text.push(other),
        }
    }
    if is_quoted {
        return Err(QueryError::OpenQuote);
    }
    pieces.extend(current);
    Ok(pieces)
}

fn word(piece: &Piece) -> Result<Word, QueryError> {
    let parts = piece.colon.and_then(|colon| {
        let (name, value) = piece.text.split_at_checked(colon)?;
        Some((name, value.strip_prefix(':')?))
    });
    let (name, value) = parts.ok_or_else(|| QueryError::NoKey(piece.text.clone()))?;
    let (is_not, name) = match name.strip_prefix('-') {
        Some(name) => (true, name),
        None => (false, name),
    };
    let key = Key::ALL.into_iter().find(|key| key.as_str() == name);
    let key = key.ok_or_else(|| QueryError::UnknownKey(name.to_owned()))?;
    if value.is_empty() {
        return Err(QueryError::NoValue(key.as_str()));
    }
    let value = match key {
        Key::Since | Key::Until => time(value)?,
        Key::Decision => match value.to_ascii_lowercase().as_str() {
            "allow" | "deny" | "hold" => Value::Pattern(value.to_ascii_lowercase()),
            "require_approval" | "escalate" => Value::Pattern("hold".to_owned()),
            _ => return Err(QueryError::Decision(value.to_owned())),
        },
        Key::Type => {
            let pattern = value.to_ascii_uppercase();
            let mut types = EventType::ALL.iter();
            match types.any(|kind| glob(&pattern, kind.as_str())) {
                true => Value::Pattern(pattern),
                false => return Err(QueryError::Type(value.to_owned())),
            }
        }
        _ => Value::Pattern(value.to_owned()),
    };
    Ok(Word { is_not, key, value })
}

fn time(text: &str) -> Result<Value, QueryError> {
    let wrong = || QueryError::Time(text.to_owned());
    if let Ok(moment) = text.parse::<jiff::Timestamp>() {
        let moment = u64::try_from(moment.as_millisecond()).map_err(|_| wrong())?;
        return Ok(Value::Moment(moment));
    }
    let unit = text.chars().last().ok_or_else(wrong)?;
    let number = text
        .strip_suffix(unit)
        .and_then(|number| number.parse::<u64>().ok());
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86400,
        _ => return Err(wrong()),
    };
    let seconds = number
        .and_then(|number| number.checked_mul(seconds))
        .ok_or_else(wrong)?;
    Ok(Value::Ago(Duration::from_secs(seconds)))
}

/// Whether a pattern fits all of a text; `*` stands for any text. Takes the first place that fits for
/// each part, which finds a fit whenever there is one.
fn glob(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(first) else {
        return false;
    };
    let mut parts = rest.split('*').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return text.ends_with(part);
        }
        match text
            .find(part)
            .and_then(|place| text.get(place + part.len()..))
        {
            Some(left) => text = left,
            None => return false,
        }
    }
    true
}

fn quoted(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let is_plain = |letter: char| !letter.is_whitespace() && !matches!(letter, '"' | '\\');
    if text.chars().all(is_plain) {
        return f.write_str(text);
    }
    write!(f, "\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn key_names() -> String {
    Key::ALL.map(Key::as_str).join(", ")
}

/// Perhaps that was meant.
fn near(name: &str) -> String {
    let is_near = |key: &Key| {
        let known = key.as_str();
        known.starts_with(name) || name.starts_with(known) || known.get(..3) == name.get(..3)
    };
    let found = Key::ALL
        .into_iter()
        .find(is_near)
        .filter(|_| !name.is_empty());
    found.map_or(String::new(), |key| format!(" (`{}`?)", key.as_str()))
}

const KEYS: usize = Key::ALL.len();
const MAX_CHARS: usize = 2048;
const MAX_WORDS: usize = 64;

#[cfg(test)]
mod tests;
