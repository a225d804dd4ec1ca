//! A server that cases are run against: one of our own, or somebody's.

use std::collections::HashMap;
use std::path::Path;

use countersign_approval::SigningKey;
use countersign_canon::{Json, Limits};
use countersign_conformance::{Answer, Deed, Door, Peer, Request, Trouble};

use super::client::Client;
use super::house::House;
use super::sign::Person;
use crate::errors::{Code, Failure};

/// Speaks to a server.
pub(super) struct Live {
    api: Client,
    mcp: Option<Client>,
    /// The session that the MCP door gave.
    session: Option<String>,
    /// The operator's token, if there is any.
    token: Option<String>,
    /// Tokens of other roles, as they were made.
    roles: HashMap<String, Option<String>>,
    person: Option<Person>,
    house: Option<House>,
    restart: Option<String>,
    /// Whether somebody has put the manifests of the packs in force.
    is_governed: bool,
    prefix: String,
    cases: usize,
}

impl Live {
    /// A server of our own.
    pub(super) fn own(house: House) -> Result<Self, Failure> {
        Ok(Self {
            api: Client::new(&house.api),
            mcp: house.mcp.as_deref().map(Client::new),
            token: Some(house.token.clone()),
            person: Some(house.person()?),
            house: Some(house),
            ..Self::nobody("")
        })
    }

    /// Somebody's server.
    pub(super) fn theirs(target: &str, token: Option<String>) -> Self {
        Self {
            token,
            ..Self::nobody(target)
        }
    }

    fn nobody(target: &str) -> Self {
        let mut random = [0; 4];
        // Sessions of an earlier run would only make cases fail.
        let _ = getrandom::fill(&mut random);
        Self {
            api: Client::new(target),
            mcp: None,
            session: None,
            token: None,
            roles: HashMap::new(),
            person: None,
            house: None,
            restart: None,
            is_governed: false,
            prefix: base16ct::lower::encode_string(&random),
            cases: 0,
        }
    }

    /// Where its MCP door is.
    pub(super) fn with_mcp(mut self, address: &str) -> Self {
        self.mcp = Some(Client::new(address));
        self
    }

    /// How it is started again.
    pub(super) fn with_restart(mut self, command: String) -> Self {
        self.restart = Some(command);
        self
    }

    /// The Agent Control manifest of the pack is in force there.
    pub(super) fn governed(mut self) -> Self {
        self.is_governed = true;
        self
    }

    /// Who decides.
    pub(super) fn with_person(mut self, name: &str, key: &Path) -> Result<Self, Failure> {
        let secret = countersign_vault::open_secret(key)?;
        let person = Person::new(name, SigningKey::from_bytes(&secret));
        let wrong = |error| Failure::new(Code::ApproverKey, error);
        self.person = Some(person.map_err(wrong)?);
        Ok(self)
    }

    /// Whether anybody is there, and takes the token. Servers that know no callers do not say.
    pub(super) fn knock(&mut self, target: &str) -> Result<(), Failure> {
        let nobody = |trouble| Failure::new(Code::NoDaemon, format!("`{target}`: {trouble}"));
        let health = plain("GET", "/healthz", None);
        self.api.send(&health, &[], "").map_err(nobody)?;
        let me = plain("GET", "/v1/me", None);
        let sent = self.api.send(&me, &bearer(self.token.as_ref()), "");
        let (answer, _) = sent.map_err(nobody)?;
        if answer.status == 401 {
            let why = match self.token {
                Some(_) => "does not take this token",
                None => "wants a token: give --token-file with that of an operator",
            };
            return Err(Failure::new(
                Code::Unauthenticated,
                format!("`{target}` {why}; nothing was tried"),
            ));
        }
        let me = Json::admit(&answer.body, &Limits::event()).unwrap_or(Json::Null);
        match me.get("role").and_then(Json::as_str) {
            Some(role) if answer.status == 200 && role != "operator" => Err(Failure::new(
                Code::Forbidden,
                format!(
                    "the token is that of an {role}, and `{target}` is prepared by an operator; nothing was tried"
                ),
            )),
            _ => Ok(()),
        }
    }

    /// The token of a role. Roles that the server has no tokens for are the operator.
    fn token(&mut self, role: &str) -> Result<Option<String>, Trouble> {
        if role == "operator" {
            return Ok(self.token.clone());
        }
        if role == "nobody" {
            return Ok(None);
        }
        if let Some(token) = self.roles.get(role) {
            return Ok(token.clone());
        }
        let (known, tenant) = match role {
            "agent" | "neighbour" => ("agent", Some("default")),
            "foreigner" => ("agent", Some("elsewhere")),
            "approver" => ("approver", Some("default")),
            "auditor" => ("auditor", None),
            other => return Err(Trouble::Failed(format!("there is no role `{other}`"))),
        };
        let mut wanted = vec![("role", Json::from(known)), ("name", Json::from(role))];
        wanted.extend(tenant.map(|tenant| ("tenant_id", Json::from(tenant))));
        let body = Json::object(wanted).to_sorted();
        let request = plain("POST", "/v1/tokens", Some(body));
        let (answer, _) = self.api.send(&request, &bearer(self.token.as_ref()), "")?;
        let json = Json::admit(&answer.body, &Limits::event()).unwrap_or(Json::Null);
        let made = json.get("token").and_then(Json::as_str).map(str::to_owned);
        let token = match made {
            Some(token) => Some(token),
            // A server that knows no roles has one kind of caller.
            None if matches!(answer.status, 404 | 405) => self.token.clone(),
            None => {
                let text = String::from_utf8_lossy(&answer.body);
                return Err(Trouble::Failed(format!("no token for `{role}`: {text}")));
            }
        };
        self.roles.insert(role.to_owned(), token.clone());
        Ok(token)
    }

    fn mcp(&mut self, request: &Request) -> Result<Answer, Trouble> {
        let client = self.mcp.as_ref().ok_or_else(|| {
            Trouble::Cannot("the server has no MCP door that we know of: give --mcp".to_owned())
        })?;
        let accepted = "application/json, text/event-stream".to_owned();
        let mut more = vec![("accept", accepted)];
        more.extend(self.session.clone().map(|name| ("mcp-session-id", name)));
        let (mut answer, session) = client.send(request, &more, "mcp-session-id")?;
        self.session = session.or(self.session.take());
        if let Some(message) = last_message(&answer.body) {
            answer.body = message;
        }
        Ok(answer)
    }

    fn together(&mut self, requests: &[Request]) -> Result<Json, Trouble> {
        let mut prepared = Vec::new();
        for request in requests {
            prepared.push((request, bearer(self.token(&request.role)?.as_ref())));
        }
        let api = &self.api;
        let answers: Vec<_> = std::thread::scope(|threads| {
            let sent: Vec<_> = prepared
                .iter()
                .map(|(request, more)| threads.spawn(move || api.send(request, more, "")))
                .collect();
            let lost = || Err(Trouble::Failed("a request was lost".to_owned()));
            sent.into_iter()
                .map(|thread| thread.join().unwrap_or_else(|_| lost()))
                .collect()
        });
        let mut statuses = Vec::new();
        for answer in answers {
            statuses.push(answer?.0.status);
        }
        let accepted = statuses
            .iter()
            .filter(|status| (200..300).contains(*status));
        Ok(Json::object([
            ("accepted", Json::from(accepted.count() as u64)),
            (
                "statuses",
                Json::Array(
                    statuses
                        .iter()
                        .map(|one| Json::from(u32::from(*one)))
                        .collect(),
                ),
            ),
        ]))
    }

    fn restarted(&mut self) -> Result<Json, Trouble> {
        match (&mut self.house, &self.restart) {
            (Some(house), _) => house.restart().map_err(|failure| said(&failure))?,
            (None, Some(command)) => {
                let status = std::process::Command::new("sh")
                    .args(["-c", command])
                    .status();
                match status {
                    Ok(status) if status.success() => {}
                    _ => return Err(Trouble::Failed(format!("`{command}` failed"))),
                }
            }
            (None, None) => {
                let text = "the server cannot be started again from here: give --restart-command";
                return Err(Trouble::Cannot(text.to_owned()));
            }
        }
        self.session = None;
        Ok(Json::Null)
    }

    fn house(&mut self, what: &str) -> Result<&mut House, Trouble> {
        let cannot = || format!("{what} needs a server of our own: leave --target away");
        self.house.as_mut().ok_or_else(|| Trouble::Cannot(cannot()))
    }
}

impl Peer for Live {
    fn ask(&mut self, request: &Request) -> Result<Answer, Trouble> {
        if request.door == Door::Mcp {
            return self.mcp(request);
        }
        let more = bearer(self.token(&request.role)?.as_ref());
        self.api.send(request, &more, "").map(|(answer, _)| answer)
    }

    fn perform(&mut self, deed: &Deed) -> Result<Json, Trouble> {
        let failed = |failure: Failure| said(&failure);
        match deed {
            Deed::Restart => self.restarted(),
            Deed::Govern {
                agent_control,
                manifest,
            } => match &mut self.house {
                Some(house) => {
                    let governed = house.govern(agent_control, manifest);
                    governed.map_err(failed).map(|()| Json::Null)
                }
                None if self.is_governed => Ok(Json::Null),
                None => Err(Trouble::Cannot(UNGOVERNED.to_owned())),
            },
            Deed::Sign {
                card,
                decision,
                stranger,
            } => {
                let nobody = "nobody can decide from here: give --approver and --approver-key";
                let person = self.person.as_ref();
                let person = person.ok_or_else(|| Trouble::Cannot(nobody.to_owned()))?;
                let vote = match stranger {
                    false => person.sign(card, decision)?,
                    true => {
                        let stranger = person.stranger().map_err(Trouble::Failed)?;
                        stranger.sign(card, decision)?
                    }
                };
                Ok(Json::object([("vote", Json::from(vote))]))
            }
            Deed::Tamper { session, seq } => {
                let house = self.house("changing what is stored")?;
                house.tamper(session, *seq).map_err(failed)?;
                Ok(Json::Null)
            }
            Deed::Effects => {
                let effects = self.house("seeing what the MCP server did")?.effects();
                let effects = effects.into_iter().map(Json::from).collect();
                Ok(Json::object([("effects", Json::Array(effects))]))
            }
            Deed::Search(words) => {
                let found = self.house("looking into files")?.search(words);
                let found = found.map_err(failed)?.into_iter().map(Json::from).collect();
                Ok(Json::object([("found", Json::Array(found))]))
            }
            Deed::Evidence { session, damage } => {
                let house = self.house("evidence")?;
                house.evidence(session, *damage).map_err(failed)
            }
            Deed::Together(requests) => self.together(requests),
        }
    }

    fn is_foreign(&self) -> bool {
        self.house.is_none()
    }

    fn fresh(&mut self) -> String {
        self.cases += 1;
        self.session = None;
        if let Some(house) = &mut self.house {
            house.begin();
        }
        format!("conformance-{}-{}", self.prefix, self.cases)
    }
}

fn plain(method: &str, path: &str, body: Option<Vec<u8>>) -> Request {
    Request {
        door: Door::Api,
        method: method.to_owned(),
        path: path.to_owned(),
        role: String::new(),
        headers: Vec::new(),
        body,
    }
}

fn bearer(token: Option<&String>) -> Vec<(&'static str, String)> {
    let token = token.map(|token| ("authorization", format!("Bearer {token}")));
    token.into_iter().collect()
}

/// The last message of a stream of events, if the answer is one.
pub(super) fn last_message(body: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(body).ok()?;
    let lines = text.lines().filter_map(|line| line.strip_prefix("data:"));
    let message = lines.map(str::trim).rfind(|line| line.starts_with('{'))?;
    (!text.trim_start().starts_with('{')).then(|| message.as_bytes().to_vec())
}

const UNGOVERNED: &str = "the manifests of the pack cannot be put in force from here: start the server with \
                          them, and give --agent-control";

fn said(failure: &Failure) -> Trouble {
    Trouble::Failed(failure.message().to_owned())
}
