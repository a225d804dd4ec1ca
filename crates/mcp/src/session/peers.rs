//! Who the peers say they are, kept once for each session.
//!
//! What they say about themselves is theirs to say: it is recorded, and decides nothing.

use countersign_canon::{Digest, Json, Limits};

use crate::Era;
use crate::frame::{Frame, Kind, Params, Span};
use crate::gate::{Delivery, Job};
use crate::record::{self, Entry};

use super::{Effect, Session};

/// What was heard of the peers.
#[derive(Default)]
pub(super) struct Peers {
    client: Option<Json>,
    trace: Option<Json>,
    /// Both are in the log already.
    recorded: bool,
    /// Who opened the session has recorded the client.
    introduced: bool,
}

impl Session {
    /// A request that says who the client is.
    pub(super) fn meet_client(&mut self, frame: &Frame, params: &Params) {
        let info = frame.member(params.whole, "clientInfo");
        let info = info.or_else(|| frame.member(params.meta, Era::CLIENT_KEY));
        let trace = frame.member(params.meta, "traceparent");
        if self.peers.client.is_none() {
            self.peers.client = short(frame, info);
        }
        if self.peers.trace.is_none() {
            self.peers.trace = short(frame, trace);
        }
    }

    /// The server has said who it is and which revision is spoken.
    pub(super) fn meet_server(&mut self, frame: &Frame) -> Option<Entry> {
        let Kind::Response { result, .. } = frame.kind() else {
            return None;
        };
        let meta = frame.member(Some(*result), "_meta");
        let info = frame.member(Some(*result), "serverInfo");
        let info = info.or_else(|| frame.member(meta, SERVER));
        let instructions = frame.member(Some(*result), "instructions");
        self.introduction(short(frame, info), instructions.map(|it| whole(frame, it)))
    }

    /// A revision in which nobody has to introduce themselves: the first request tells what there is.
    pub(super) fn meet_in_passing(&mut self) -> Option<Effect> {
        let entry = self.introduction(None, None)?;
        Some(Effect::job(Job::Record {
            entries: vec![entry],
            then: Delivery::default(),
        }))
    }

    fn introduction(&mut self, server: Option<Json>, instructions: Option<Json>) -> Option<Entry> {
        if std::mem::replace(&mut self.peers.recorded, true) {
            return None;
        }
        let version = self.era.map(|era| Json::from(era.version));
        let members = [
            ("client", self.peers.client.take()),
            ("instructions", instructions),
            ("protocol_version", version),
            ("server", server),
            ("traceparent", self.peers.trace.take()),
        ];
        let members = members
            .into_iter()
            .filter_map(|(key, value)| Some((key, value?)));
        let about = Json::object(members).to_sorted_ascii();
        Some(record::write(
            "mcp/peers".to_owned(),
            &self.settings.server,
            &about,
        ))
    }

    /// The client is in the log since the session was opened: no request waits for that again.
    pub(crate) fn client_is_known(&mut self) {
        self.peers.introduced = true;
    }

    /// Whether a request of a revision without a handshake is the first that is heard.
    pub(super) fn is_new(&self) -> bool {
        !self.peers.introduced
            && !self.peers.recorded
            && self.era.is_some_and(|era: &Era| !era.handshake)
    }
}

/// What is too long to be a name is not kept.
fn short(frame: &Frame, span: Option<Span>) -> Option<Json> {
    let part = Some(frame.part(span?)).filter(|part| part.len() <= LONGEST)?;
    Json::admit(part, &Limits::event()).ok()
}

/// What the server tells the model to do, which no list of tools shows. Of what is too long its digest is kept.
fn whole(frame: &Frame, span: Span) -> Json {
    let part = frame.part(span);
    let text = Some(part).filter(|part| part.len() <= LONGEST_TEXT);
    let text = text.and_then(|part| Json::admit(part, &Limits::event()).ok());
    text.unwrap_or_else(|| Json::object([("digest", Json::from(Digest::of(part).to_string()))]))
}

const SERVER: &str = "io.modelcontextprotocol/serverInfo";
const LONGEST: usize = 4096;
const LONGEST_TEXT: usize = 64 << 10;
