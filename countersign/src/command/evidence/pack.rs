//! Putting a pack together.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use countersign_canon::{Hash, Json, Limits};
use countersign_engine::Approvers;
use countersign_event::{Line, Scope};
use countersign_pack::dsse::Envelope;
use countersign_pack::{DisclosedOpening, Selected, Statement, archive, member};
use countersign_store::{Error, Published, Reader, SessionHead, Stored};
use countersign_tlog::{Kind, Statement as CheckpointStatement, batch};
use countersign_vault::SessionKey;

use super::account;
use super::disclose::Disclose;
use super::session::Signer;
use crate::command::log::view;
use crate::errors::{Code, Failure};

/// Everything that goes into a pack.
pub(super) struct Contents {
    pub(super) selected: Selected,
    /// In the order of the log, all of them covered by the checkpoint.
    pub(super) events: Vec<Stored>,
    pub(super) published: Published,
    pub(super) disclose: Vec<Disclose>,
    pub(super) whole_audit: bool,
    pub(super) attachments: Vec<Vec<u8>>,
    /// Without policies, records, envelopes and CloudEvents.
    pub(super) bare: bool,
}

impl Contents {
    /// The bytes of the pack. The same contents give the same bytes.
    pub(super) fn write(&self, reader: &Reader) -> Result<Vec<u8>, Failure> {
        let openings = self.openings(reader)?;
        let mut members: Vec<(String, Vec<u8>)> = vec![
            (member::README.to_owned(), README.as_bytes().to_vec()),
            (
                member::CHECKPOINT.to_owned(),
                self.published.note.to_string().into_bytes(),
            ),
            (member::KEYS.to_owned(), text(&keys(reader)?)?),
            (member::EVENTS.to_owned(), self.lines()),
            (
                member::INCLUSION.to_owned(),
                text(&self.inclusion(reader)?)?,
            ),
            (member::SESSIONS.to_owned(), text(&self.sessions(reader)?)?),
            (member::OPENINGS.to_owned(), opening_lines(&openings)?),
            (member::AUDIT.to_owned(), self.audit(reader)?),
        ];
        if !self.bare {
            members.extend(self.told(&openings, reader)?);
        }
        let attached: BTreeMap<String, &Vec<u8>> = self
            .attachments
            .iter()
            .map(|content| (format!("attachments/{}", Hash::of(content)), content))
            .collect();
        members.extend(
            attached
                .into_iter()
                .map(|(name, content)| (name, content.clone())),
        );

        let mut statement = Statement {
            members: Vec::new(),
            selected: self.selected.clone(),
            events: self.events.len() as u64,
        };
        for (name, content) in &members {
            statement.list(name, content);
        }
        let payload = statement.to_text().map_err(|error| unwritten(&error))?;
        let signer = reader.log_signer()?;
        let envelope = Envelope::sign(payload, &signer, &signer.key(Kind::Note));
        members.insert(0, (member::STATEMENT.to_owned(), envelope.to_text()));
        archive::write(&members).map_err(|error| unwritten(&error))
    }

    /// Records, envelopes and CloudEvents, and the policies that decided.
    fn told(
        &self,
        openings: &[DisclosedOpening],
        reader: &Reader,
    ) -> Result<Vec<(String, Vec<u8>)>, Failure> {
        let signer = Signer::open(reader.folder())?;
        let policies = account::policies(&self.events, reader.folder())?;
        let mut members = account::members(&self.events, openings, &policies, &signer)?;
        for (digest, document) in &policies {
            let name = account::policy_member(digest);
            let text = document.to_text().map_err(|error| unwritten(&error))?;
            members.push((name, text));
        }
        Ok(members)
    }

    fn lines(&self) -> Vec<u8> {
        let mut lines = Vec::new();
        for event in &self.events {
            lines.extend_from_slice(&event.line);
            lines.push(b'\n');
        }
        lines
    }

    fn inclusion(&self, reader: &Reader) -> Result<Json, Failure> {
        let indices = self.events.iter().map(|event| event.id.saturating_sub(1));
        let indices: Vec<u64> = indices.collect();
        let hashes = reader.prove_batch(&indices, self.published.checkpoint.size)?;
        let indices = indices.into_iter().map(Json::from).collect();
        Ok(Json::object([
            ("hashes", list(&hashes)),
            ("indices", Json::Array(indices)),
        ]))
    }

    /// The heads of the sessions that have events here, proven from the checkpoint.
    fn sessions(&self, reader: &Reader) -> Result<Json, Failure> {
        let mut here = BTreeSet::new();
        for event in &self.events {
            here.insert(scope(&view::read(event)?)?);
        }
        let all = reader.session_heads(&self.published)?;
        let leaves: Vec<Hash> = all.iter().map(SessionHead::leaf).collect();
        let mine: Vec<(u64, &SessionHead)> = (0..)
            .zip(&all)
            .filter(|(_, head)| here.contains(&head.scope))
            .collect();
        let indices: Vec<u64> = mine.iter().map(|(index, _)| *index).collect();
        let nodes = |level, index| {
            Ok::<_, Failure>(countersign_tlog::Range::of_node(level, index, &leaves))
        };
        let hashes = batch::prove(&indices, leaves.len() as u64, nodes)?;
        let heads = mine.iter().map(|(index, head)| {
            Json::object([
                ("count", Json::from(head.count)),
                ("head", Json::from(head.head.to_string())),
                ("index", Json::from(*index)),
                ("session_id", Json::from(head.scope.session.as_str())),
                ("tenant_id", Json::from(head.scope.tenant.as_str())),
            ])
        });
        Ok(Json::object([
            ("hashes", list(&hashes)),
            ("heads", Json::Array(heads.collect())),
        ]))
    }

    /// Single places that no event here has sealed: a name that is misspelt discloses nothing.
    pub(super) fn idle(&self) -> Result<Vec<&Disclose>, Failure> {
        let mut idle: Vec<&Disclose> = self.disclose.iter().collect();
        idle.retain(|what| matches!(what, Disclose::Place(..)));
        for event in &self.events {
            if idle.is_empty() {
                break;
            }
            let line = view::read(event)?;
            let seal = line.seal.as_ref().map(|seal| seal.read()).transpose();
            let Some(seal) = seal.map_err(Error::from)? else {
                continue;
            };
            let has = |what: &Disclose| {
                let mut places = seal.commitments.iter();
                places.any(|(place, _)| what.takes(line.event_type, place))
            };
            idle.retain(|what| !has(what));
        }
        Ok(idle)
    }

    /// SECURITY: the only place where sealed values leave; each because somebody asked for it.
    fn openings(&self, reader: &Reader) -> Result<Vec<DisclosedOpening>, Failure> {
        let mut disclosed = Vec::new();
        let mut keys: HashMap<Scope, Option<SessionKey>> = HashMap::new();
        for event in &self.events {
            let line = view::read(event)?;
            let (Some(_), Some(ciphertext)) = (&line.seal, &event.ciphertext) else {
                continue;
            };
            let asked = |place: &str| {
                let mut disclose = self.disclose.iter();
                disclose.any(|what| what.takes(line.event_type, place))
            };
            let seal = line.seal.as_ref().map(|seal| seal.read()).transpose();
            let seal = seal.map_err(Error::from)?;
            if !seal.is_some_and(|seal| seal.commitments.iter().any(|(place, _)| asked(place))) {
                continue;
            }
            let scope = scope(&line)?;
            if !keys.contains_key(&scope) {
                let key = match reader.session_key(&scope) {
                    Ok(key) => Some(key),
                    // What was erased stays on the list of what is not disclosed.
                    Err(Error::Erased) => None,
                    Err(error) => return Err(error.into()),
                };
                keys.insert(scope.clone(), key);
            }
            let Some(Some(key)) = keys.get(&scope) else {
                continue;
            };
            let mut openings = key.open(ciphertext, &scope).map_err(Error::from)?;
            openings.sort_by(|(first, _), (second, _)| first.cmp(second));
            for (place, opening) in openings {
                if asked(&place) {
                    disclosed.push(DisclosedOpening {
                        event: line.hash,
                        place,
                        opening,
                    });
                }
            }
        }
        Ok(disclosed)
    }

    /// Entries about approvals of these events, as far as the checkpoint goes; or all of them.
    fn audit(&self, reader: &Reader) -> Result<Vec<u8>, Failure> {
        let says = CheckpointStatement::of(&self.published.checkpoint);
        let mut approvals = BTreeSet::new();
        for event in &self.events {
            let refs = view::read(event)?.refs;
            approvals.extend(refs.approval_id.map(std::borrow::Cow::into_owned));
        }
        let mut lines = Vec::new();
        for line in reader.audit_lines(says.map_or(0, |says| says.audit.count))? {
            let about = Json::admit(&line, &Limits::plan()).ok();
            let about = about.as_ref().and_then(|entry| entry.get("envelope_id"));
            let about = about.and_then(Json::as_str);
            if self.whole_audit || about.is_some_and(|id| approvals.contains(id)) {
                lines.extend_from_slice(&line);
                lines.push(b'\n');
            }
        }
        Ok(lines)
    }
}

fn opening_lines(openings: &[DisclosedOpening]) -> Result<Vec<u8>, Failure> {
    let mut lines = Vec::new();
    for opening in openings {
        lines.extend(opening.to_line().map_err(|error| unwritten(&error))?);
        lines.push(b'\n');
    }
    Ok(lines)
}

fn keys(reader: &Reader) -> Result<Json, Failure> {
    let log = reader.log_signer()?.key(Kind::Note);
    let approvers = Approvers::load(reader.folder().path());
    let approvers = approvers.map_err(|error| Failure::new(Code::Approvers, error.to_string()))?;
    let ring = approvers.keyring();
    let ring = ring.map_err(|error| Failure::new(Code::Approvers, error.to_string()))?;
    let people = ring.iter().filter_map(|(id, person, status)| {
        let (_, key) = ring.historical(id)?;
        Some(Json::object([
            (
                "key",
                Json::from(base16ct::lower::encode_string(key.as_bytes())),
            ),
            ("person", Json::from(person.to_string())),
            ("status", Json::from(status.to_string())),
        ]))
    });
    Ok(Json::object([
        ("log", Json::from(log.to_string())),
        ("people", Json::Array(people.collect())),
    ]))
}

pub(super) fn scope(line: &Line<'_>) -> Result<Scope, Failure> {
    Ok(Scope::new(
        line.tenant_id.as_ref(),
        line.session_id.as_ref(),
    )?)
}

fn list(hashes: &[Hash]) -> Json {
    Json::Array(
        hashes
            .iter()
            .map(|hash| Json::from(hash.to_string()))
            .collect(),
    )
}

pub(super) fn text(json: &Json) -> Result<Vec<u8>, Failure> {
    let mut text = json.to_jcs()?;
    text.push(b'\n');
    Ok(text)
}

pub(super) fn unwritten(error: &dyn std::fmt::Display) -> Failure {
    Failure::new(Code::Output, format!("the pack cannot be written: {error}"))
}

const README: &str = "\
This is an evidence pack of Countersign: what an agent wanted to do, what was allowed, by whom, and what
was done, with proofs that a reader can check alone.

Check it:            countersign verify FILE --trust KEYS
Look inside:         tar -tf FILE

statement.dsse.json  what this pack is about and the digest of every other member, signed by the log
checkpoint           the signed root of the log's Merkle tree (C2SP tlog-checkpoint)
keys.json            public keys of the log and of the people who decide
events.jsonl         the events, one a line; each has its own hash and that of the event before it
inclusion.json       where each event stands in the log, and one proof for all of them (RFC 9162 hashes;
                     the entry of the log is the 32 bytes of the event's hash)
sessions.json        how many events each session had at the checkpoint, with one proof
openings.jsonl       sealed values that are disclosed, each with the salt of its commitment
audit.jsonl          entries of the audit of approvals
producer.json        who made the next three, and the key of the records
records.jsonl        what was allowed, done and changed, one record an action (aep/v0.3, signed)
envelopes.jsonl      the decision envelope of each record
cloudevents.ndjson   the events as CloudEvents 1.0
policies/            the policies that decided, with their manifest, by digest

Records, envelopes and CloudEvents follow from the events and from what is disclosed of them; a verifier
works them out again. They say no more than the pack discloses.

The keys in the pack are what the pack says they are. To know whose they are, get them from the operator
of the log in another way and give them with --trust.
";
