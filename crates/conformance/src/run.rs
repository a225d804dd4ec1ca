//! Walking through a pack.

use countersign_canon::{Json, Limits, Numbers};

use crate::case::Case;
use crate::chain;
use crate::expect::{Mismatch, check, short};
use crate::pack::Pack;
use crate::peer::{Answer, Deed, Door, Peer, Request, Trouble};
use crate::report::{Outcome, PackReport, Tested};
use crate::step::{Act, Body, Step};
use crate::template::{Saved, fill, text};

/// Runs every case of a pack that `wanted` names, one after the other.
pub fn run(pack: &Pack, peer: &mut dyn Peer, wanted: &dyn Fn(&Case) -> bool) -> PackReport {
    let mut preparing = Walk::new(peer);
    preparing.may_be_refused = preparing.peer.is_foreign();
    let before = preparing.walk(&pack.before);
    let tested = pack
        .cases
        .iter()
        .filter(|case| wanted(case))
        .map(|case| {
            let result = match &before {
                Ok(()) => Walk::new(peer).walk(&case.steps),
                Err(stop) => Err(stop.before()),
            };
            tested(case, result)
        })
        .collect();
    PackReport {
        name: pack.name.clone(),
        description: pack.description.clone(),
        requirements: pack.requirements.clone(),
        tested,
    }
}

fn tested(case: &Case, result: Result<(), Stop>) -> Tested {
    let (outcome, step, detail) = match (result, &case.expected_failure) {
        (Ok(()), None) => (Outcome::Passed, None, String::new()),
        (Ok(()), Some(_)) => {
            let detail = "it was expected to fail, and holds".to_owned();
            (Outcome::Failed, None, detail)
        }
        (Err(stop), _) if stop.skip => (Outcome::Skipped, Some(stop.step), stop.detail),
        (Err(stop), Some(_)) => (Outcome::ExpectedFailure, Some(stop.step), stop.detail),
        (Err(stop), None) => (Outcome::Failed, Some(stop.step), stop.detail),
    };
    Tested {
        id: case.id.clone(),
        req_id: case.req_id.clone(),
        description: case.description.clone(),
        outcome,
        step,
        detail,
        reason: case.expected_failure.clone(),
    }
}

/// Where and why a case ended early.
struct Stop {
    step: usize,
    detail: String,
    skip: bool,
}

impl Stop {
    fn before(&self) -> Self {
        Self {
            step: 0,
            detail: format!("the pack could not be prepared: {}", self.detail),
            skip: self.skip,
        }
    }
}

/// One case on its way.
struct Walk<'p> {
    peer: &'p mut dyn Peer,
    saved: Saved,
    /// Whether a server that does not let us do this is no server that is wrong.
    may_be_refused: bool,
}

impl<'p> Walk<'p> {
    fn new(peer: &'p mut dyn Peer) -> Self {
        let session = Json::from(peer.fresh());
        Self {
            peer,
            saved: Saved::from([("session".to_owned(), session)]),
            may_be_refused: false,
        }
    }

    fn walk(&mut self, steps: &[Step]) -> Result<(), Stop> {
        for (index, step) in steps.iter().enumerate() {
            self.take(step).map_err(|trouble| Stop {
                step: index + 1,
                skip: matches!(trouble, Trouble::Cannot(_)),
                detail: trouble.to_string(),
            })?;
        }
        Ok(())
    }

    fn take(&mut self, step: &Step) -> Result<(), Trouble> {
        let (status, body) = self.act(step)?;
        self.judge(step, status, &body)?;
        if step.save.is_empty() {
            return Ok(());
        }
        let json = parse(&body).ok_or_else(|| failed("the answer is no JSON".to_owned()))?;
        for (name, pointer) in &step.save {
            let found = at(&json, pointer);
            let found = found.ok_or_else(|| failed(format!("the answer has no `{pointer}`")))?;
            self.saved.insert(name.clone(), found.clone());
        }
        Ok(())
    }

    /// Does it: the status, if there is one, and what came back.
    fn act(&mut self, step: &Step) -> Result<(Option<u16>, Vec<u8>), Trouble> {
        match &step.act {
            Act::Http {
                method,
                path,
                body,
                at_once,
            } => {
                let request = self.request(step, method, path, body)?;
                match at_once {
                    None => self.answer(&request),
                    Some(times) => self.deed(&Deed::Together(vec![request; *times])),
                }
            }
            Act::Mcp(body) => {
                let mut request = self.request(step, "POST", "", body)?;
                request.door = Door::Mcp;
                self.answer(&request)
            }
            Act::Decide(question) => {
                let body = Body::Value(question.clone());
                let request = self.request(step, "POST", "/v1/policy/decide", &body)?;
                self.answer(&request)
            }
            Act::Approve {
                approval,
                decision,
                stranger,
            } => self.approve(step, approval, decision, *stranger),
            Act::Chain(session) => self.chain(step, session),
            Act::Restart => self.deed(&Deed::Restart),
            Act::Govern {
                agent_control,
                manifest,
            } => self.deed(&Deed::Govern {
                agent_control: agent_control.clone(),
                manifest: manifest.clone(),
            }),
            Act::Tamper { session, seq } => {
                let (session, seq) = (self.text(session)?, *seq);
                self.deed(&Deed::Tamper { session, seq })
            }
            Act::Effects => self.deed(&Deed::Effects),
            Act::Search(words) => {
                let words = words.iter().map(|word| self.text(word));
                let words = words.collect::<Result<_, _>>()?;
                self.deed(&Deed::Search(words))
            }
            Act::Evidence { session, damage } => {
                let (session, damage) = (self.text(session)?, *damage);
                self.deed(&Deed::Evidence { session, damage })
            }
        }
    }

    fn request(
        &self,
        step: &Step,
        method: &str,
        path: &str,
        body: &Body,
    ) -> Result<Request, Trouble> {
        let body = match body {
            Body::Empty => None,
            Body::Value(value) => Some(fill(value, &self.saved).map_err(failed)?.to_sorted()),
            Body::Text(template) => Some(self.text(template)?.into_bytes()),
        };
        let headers = step.headers.iter().map(|(name, value)| {
            let value = self.text(value)?;
            Ok((name.clone(), value))
        });
        Ok(Request {
            door: Door::Api,
            method: method.to_owned(),
            path: self.text(path)?,
            role: self.text(&step.role)?,
            headers: headers.collect::<Result<_, Trouble>>()?,
            body,
        })
    }

    fn answer(&mut self, request: &Request) -> Result<(Option<u16>, Vec<u8>), Trouble> {
        let Answer { status, body } = self.peer.ask(request)?;
        Ok((Some(status), body))
    }

    fn deed(&mut self, deed: &Deed) -> Result<(Option<u16>, Vec<u8>), Trouble> {
        Ok((None, self.peer.perform(deed)?.to_sorted()))
    }

    /// Reads the card, signs it, hands the vote in.
    fn approve(
        &mut self,
        step: &Step,
        approval: &str,
        decision: &str,
        stranger: bool,
    ) -> Result<(Option<u16>, Vec<u8>), Trouble> {
        let path = format!("/v1/approvals/{}", self.text(approval)?);
        let card = self.request(step, "GET", &path, &Body::Empty)?;
        let (_, card) = self.answer(&card)?;
        let card = parse(&card).ok_or_else(|| failed("the card is no JSON".to_owned()))?;
        let signed = self.peer.perform(&Deed::Sign {
            card,
            decision: decision.to_owned(),
            stranger,
        })?;
        let vote = signed.get("vote").and_then(Json::as_str);
        let vote = vote.ok_or_else(|| failed("nothing was signed".to_owned()))?;
        let body = Body::Text(vote.replace("${", "$ {"));
        let vote = self.request(step, "POST", &format!("{path}/votes"), &body)?;
        self.answer(&vote)
    }

    /// Fetches all events, page by page, and computes their chain again.
    fn chain(&mut self, step: &Step, session: &str) -> Result<(Option<u16>, Vec<u8>), Trouble> {
        let session = self.text(session)?;
        let mut events = Vec::new();
        let mut cursor = String::new();
        for _ in 0..MOST_PAGES {
            let path = format!("/v1/events?session_id={session}&limit=100{cursor}");
            let request = self.request(step, "GET", &path, &Body::Empty)?;
            let (_, body) = self.answer(&request)?;
            let page = parse(&body).ok_or_else(|| failed("a page is no JSON".to_owned()))?;
            let listed = page.get("events").and_then(Json::as_array);
            events.extend_from_slice(listed.unwrap_or_default());
            match page.get("next").and_then(Json::as_str) {
                Some(next) if !next.is_empty() => cursor = format!("&cursor={next}"),
                _ => break,
            }
        }
        Ok((None, chain::check(&events).to_sorted()))
    }

    fn judge(&self, step: &Step, status: Option<u16>, body: &[u8]) -> Result<(), Trouble> {
        let seen = || {
            let text = String::from_utf8_lossy(body);
            text.trim_end().chars().take(MOST_SHOWN).collect::<String>()
        };
        if let Some(status) = status
            && !step.status.is_empty()
            && !step.status.contains(&status)
        {
            let expected = &step.status;
            let seen = format!("status: expected {expected:?}, seen {status}: {}", seen());
            return Err(match self.may_be_refused && REFUSALS.contains(&status) {
                true => Trouble::Cannot(seen),
                false => failed(seen),
            });
        }
        let json = parse(body);
        let verdict = |name: &str| {
            let value = json.as_ref().and_then(|json| json.get(name));
            value.and_then(Json::as_str).unwrap_or_default()
        };
        if let Some(outcome) = &step.outcome
            && !verdict("outcome").eq_ignore_ascii_case(outcome)
        {
            return Err(failed(format!("expected {outcome}, seen {}", seen())));
        }
        if let Some(reason) = &step.reason {
            let said = verdict("reason").to_ascii_lowercase();
            if !said.contains(&reason.to_ascii_lowercase()) {
                return Err(failed(format!("expected {reason}, seen {}", seen())));
            }
        }
        if let Some(expected) = &step.json {
            let expected = fill(expected, &self.saved).map_err(failed)?;
            if json.is_none() {
                return Err(failed(format!("the answer is no JSON: {}", seen())));
            }
            check(&expected, json.as_ref(), "").map_err(|mismatch: Mismatch| {
                let all = short(json.as_ref());
                failed(format!("{mismatch}, in {all}"))
            })?;
        }
        for word in &step.absent {
            let word = self.text(word)?;
            let is_there = body
                .windows(word.len().max(1))
                .any(|part| part == word.as_bytes());
            if is_there {
                return Err(failed(format!("the answer holds `{word}`")));
            }
        }
        Ok(())
    }

    fn text(&self, template: &str) -> Result<String, Trouble> {
        text(template, &self.saved).map_err(failed)
    }
}

fn parse(body: &[u8]) -> Option<Json> {
    Json::admit(body, &ANSWER).ok()
}

/// The value that a JSON pointer names.
fn at<'j>(json: &'j Json, pointer: &str) -> Option<&'j Json> {
    let mut value = json;
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        value = match value {
            Json::Array(items) => items.get(part.parse::<usize>().ok()?)?,
            other => other.get(&part)?,
        };
    }
    Some(value)
}

fn failed(text: String) -> Trouble {
    Trouble::Failed(text)
}

/// Statuses that say no more than that the caller may not do it here: another token, another server, or
/// policies that are in files.
const REFUSALS: [u16; 6] = [401, 403, 404, 405, 409, 501];
const MOST_PAGES: usize = 100;
const MOST_SHOWN: usize = 600;
const ANSWER: Limits = Limits {
    max_bytes: 64 << 20,
    max_depth: 200,
    numbers: Numbers::Double,
};
