//! One step of a case.

use countersign_canon::{Json, Object};

/// A step: something is done, and what comes back is looked at.
#[derive(Debug, Clone)]
pub struct Step {
    /// What is done.
    pub act: Act,
    /// Who does it.
    pub(crate) role: String,
    pub(crate) headers: Vec<(String, String)>,
    /// The statuses that are right; empty if none was named.
    pub(crate) status: Vec<u16>,
    /// What the answer must look like.
    pub(crate) json: Option<Json>,
    /// What the answer must not hold anywhere, as text.
    pub(crate) absent: Vec<String>,
    /// The verdict, for a question about a policy.
    pub(crate) outcome: Option<String>,
    /// What its reason must hold.
    pub(crate) reason: Option<String>,
    /// Names for parts of the answer, with JSON pointers to them.
    pub(crate) save: Vec<(String, String)>,
}

/// What is done.
#[derive(Debug, Clone)]
pub enum Act {
    /// A request to the API.
    Http {
        /// The method.
        method: String,
        /// The path.
        path: String,
        /// The body.
        body: Body,
        /// How often it is sent at the same time.
        at_once: Option<usize>,
    },
    /// A message to the MCP door.
    Mcp(Body),
    /// A question about a policy: `POST /v1/policy/decide`.
    Decide(Json),
    /// A person decides: the card is read, signed, and the vote handed in.
    Approve {
        /// The approval.
        approval: String,
        /// `approved` or `denied`.
        decision: String,
        /// Whether the key is one that nobody registered.
        stranger: bool,
    },
    /// All events of a session are fetched, and every hash and link is computed again.
    Chain(String),
    /// The server is started again.
    Restart,
    /// An Agent Control manifest comes into force, beside the manifest of what may be used.
    Govern {
        /// The Agent Control manifest.
        agent_control: Json,
        /// What may be used.
        manifest: Json,
    },
    /// A stored event is changed.
    Tamper {
        /// The session.
        session: String,
        /// The event.
        seq: u64,
    },
    /// What the server behind the MCP door did.
    Effects,
    /// Words in what the server keeps.
    Search(Vec<String>),
    /// Evidence of a session, judged by an offline verifier.
    Evidence {
        /// The session.
        session: String,
        /// Whether it is changed on the way.
        damage: bool,
    },
}

/// The body of a request.
#[derive(Debug, Clone)]
pub enum Body {
    /// None.
    Empty,
    /// A value, in its canonical form.
    Value(Json),
    /// A text as it stands.
    Text(String),
}

impl Step {
    /// A question about a policy, and what must be said to it.
    pub(crate) fn decide(question: Json, outcome: String, reason: Option<String>) -> Self {
        Self {
            outcome: Some(outcome),
            reason,
            ..Self::doing(Act::Decide(question))
        }
    }

    fn doing(act: Act) -> Self {
        Self {
            act,
            role: "operator".to_owned(),
            headers: Vec::new(),
            status: Vec::new(),
            json: None,
            absent: Vec::new(),
            outcome: None,
            reason: None,
            save: Vec::new(),
        }
    }

    /// Reads a step. Whatever it has that nobody knows is an error: a misspelt expectation would hold
    /// for everything.
    pub(crate) fn read(step: &Json) -> Result<Self, String> {
        let mut members = step
            .as_object()
            .cloned()
            .ok_or("a step is an object with one thing to do")?;
        let mut read = Self::doing(act(&mut members)?);
        if let Some(role) = members.remove("as") {
            read.role = role.into_string().ok_or("`as` is the name of a role")?;
        }
        if let Some(headers) = members.remove("headers") {
            read.headers = texts(headers, "headers")?;
        }
        if let Some(save) = members.remove("save") {
            read.save = texts(save, "save")?;
        }
        if let Some(status) = members.remove("status") {
            let one = |status: &Json| status.as_u64().and_then(|status| status.try_into().ok());
            let all = match &status {
                Json::Array(all) => all.iter().map(one).collect::<Option<_>>(),
                status => one(status).map(|status| vec![status]),
            };
            read.status = all.ok_or("`status` is a number, or several")?;
        }
        if let Some(absent) = members.remove("absent") {
            read.absent = list(absent, "absent")?;
        }
        let mut text = |name: &str| match members.remove(name) {
            None => Ok(None),
            Some(Json::String(text)) => Ok(Some(text)),
            Some(_) => Err(format!("`{name}` is a text")),
        };
        read.outcome = text("outcome")?;
        read.reason = text("reason")?;
        read.json = members.remove("json");
        if let Some(json) = &read.json {
            check_rules(json)?;
        }
        match members.iter().next() {
            None => Ok(read),
            Some((name, _)) => Err(format!("a step has no `{name}`")),
        }
    }
}

fn act(members: &mut Object) -> Result<Act, String> {
    let known: Vec<&str> = ACTS
        .iter()
        .copied()
        .filter(|name| members.contains_key(name))
        .collect();
    let [name] = known.as_slice() else {
        return Err(format!("a step does exactly one of {}", ACTS.join(", ")));
    };
    let given = members.remove(name).unwrap_or(Json::Null);
    let text = |value: Json| value.into_string().ok_or(format!("`{name}` is a text"));
    Ok(match *name {
        "get" | "post" | "delete" => Act::Http {
            method: name.to_ascii_uppercase(),
            path: text(given)?,
            body: body(members)?,
            at_once: match members.remove("at_once") {
                None => None,
                Some(times) => {
                    let times = times.as_u64().and_then(|times| times.try_into().ok());
                    Some(times.ok_or("`at_once` is a number")?)
                }
            },
        },
        "mcp" => Act::Mcp(Body::Value(given)),
        "mcp_text" => Act::Mcp(Body::Text(text(given)?)),
        "decide" => Act::Decide(given),
        "approve" | "deny" => Act::Approve {
            approval: text(given)?,
            decision: match *name {
                "approve" => "approved".to_owned(),
                _ => "denied".to_owned(),
            },
            stranger: flag(members, "stranger")?,
        },
        "chain" => Act::Chain(text(given)?),
        "restart" => Act::Restart,
        "agent_control" => Act::Govern {
            agent_control: given,
            manifest: members
                .remove("manifest")
                .ok_or("`agent_control` goes with a `manifest`")?,
        },
        "tamper" => Act::Tamper {
            session: text(given)?,
            seq: members
                .remove("seq")
                .and_then(|seq| seq.as_u64())
                .ok_or("`tamper` needs a `seq`")?,
        },
        "effects" => Act::Effects,
        "search" => Act::Search(list(given, "search")?),
        _ => Act::Evidence {
            session: text(given)?,
            damage: flag(members, "damage")?,
        },
    })
}

fn body(members: &mut Object) -> Result<Body, String> {
    match (members.remove("body"), members.remove("text")) {
        (None, None) => Ok(Body::Empty),
        (Some(value), None) => Ok(Body::Value(value)),
        (None, Some(Json::String(text))) => Ok(Body::Text(text)),
        _ => Err("a request has a `body` or a `text`".to_owned()),
    }
}

fn flag(members: &mut Object, name: &str) -> Result<bool, String> {
    match members.remove(name) {
        None => Ok(false),
        Some(Json::Bool(flag)) => Ok(flag),
        Some(_) => Err(format!("`{name}` is true or false")),
    }
}

fn list(value: Json, name: &str) -> Result<Vec<String>, String> {
    let items = value.into_array().unwrap_or_default().into_iter();
    let items: Option<Vec<_>> = items.map(Json::into_string).collect();
    items
        .filter(|items| !items.is_empty())
        .ok_or(format!("`{name}` is a list of texts"))
}

fn texts(value: Json, name: &str) -> Result<Vec<(String, String)>, String> {
    let wrong = || format!("`{name}` has texts by name");
    let members = value.as_object().ok_or_else(wrong)?;
    let one = |(name, value): (&str, &Json)| Some((name.to_owned(), value.as_str()?.to_owned()));
    let all: Option<Vec<_>> = members
        .iter()
        .map(|(name, value)| one((name, value)))
        .collect();
    all.ok_or_else(wrong)
}

/// A misspelt rule would hold for nothing, and its case could never pass; it is found when it is read.
fn check_rules(expected: &Json) -> Result<(), String> {
    match expected {
        Json::Object(members) => members.iter().try_for_each(|(name, value)| {
            match name.starts_with('$') && !name.starts_with("${") {
                true if members.len() > 1 || !crate::expect::is_rule(name) => {
                    Err(format!("there is no rule `{name}`"))
                }
                _ => check_rules(value),
            }
        }),
        Json::Array(items) => items.iter().try_for_each(check_rules),
        _ => Ok(()),
    }
}

const ACTS: &[&str] = &[
    "get",
    "post",
    "delete",
    "mcp",
    "mcp_text",
    "decide",
    "approve",
    "deny",
    "chain",
    "restart",
    "agent_control",
    "tamper",
    "effects",
    "search",
    "evidence",
];
