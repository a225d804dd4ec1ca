//! Tools as the server lists them, on the client's request or on ours.

use std::time::Instant;

use countersign_canon::{Limits, Numbers};

use crate::Id;
use crate::frame::{Frame, Kind};
use crate::gate::{Call, Delivery};
use crate::outbound::Outbound;
use crate::reply;
use crate::tools::{Definition, Listing, Shelf};

use super::{Effect, Session};

/// A list on its way.
pub(super) struct Fetch {
    nonce: String,
    count: u64,
    /// Our own request that waits for an answer.
    own: Option<Id>,
    /// Whether it is for the first page.
    own_first: bool,
    /// The pages so far that answer our own requests, and those that answer the client's.
    own_pages: Vec<Definition>,
    client_pages: Vec<Definition>,
    /// How many requests of the client wait for an answer.
    clients: usize,
    /// How many whole lists were given away to be judged.
    lists: u64,
    /// Whether the last of them is not back.
    judging: bool,
    /// Whether the server has said since that its tools have changed.
    changed: bool,
    /// Calls that wait for the list, and until when.
    calls: Vec<(Call, Option<Instant>)>,
    /// What the first waiting call brought along; a server may want it with each request.
    meta: Option<String>,
}

/// Which page of which list an answer is.
pub(super) struct Page {
    pub(super) first: bool,
    /// Whether we asked for it, and not the client.
    pub(super) own: bool,
}

/// All tools of a server, on their way to be held against the books.
#[derive(Debug)]
pub struct List {
    number: u64,
    tools: Vec<Definition>,
}

impl List {
    /// The tools.
    pub fn tools(&self) -> &[Definition] {
        &self.tools
    }

    /// Which of the lists of its session this is.
    pub fn number(&self) -> u64 {
        self.number
    }
}

/// What came of an answer.
pub(super) struct Listed {
    /// The frame as the client may see it, if that is not as it came.
    pub(super) shown: Option<Vec<u8>>,
    pub(super) effects: Vec<Effect>,
}

impl Fetch {
    pub(super) fn new(nonce: &str) -> Self {
        Self {
            nonce: nonce.to_owned(),
            count: 0,
            own: None,
            own_first: false,
            own_pages: Vec::new(),
            client_pages: Vec::new(),
            clients: 0,
            lists: 0,
            judging: false,
            changed: false,
            calls: Vec::new(),
            meta: None,
        }
    }

    pub(super) fn client_asks(&mut self) {
        self.clients += 1;
    }

    pub(super) fn client_has_answer(&mut self) {
        self.clients = self.clients.saturating_sub(1);
    }

    pub(super) fn is_own(&self, id: &Id) -> bool {
        self.own.as_ref() == Some(id)
    }

    /// Whether a list is on its way to be judged.
    pub(super) fn is_judging(&self) -> bool {
        self.judging
    }

    /// The client no longer wants this call.
    pub(super) fn forget(&mut self, id: &Id) {
        self.calls.retain(|(call, _)| call.id != *id);
    }

    pub(super) fn forget_all(&mut self) {
        self.calls.clear();
    }

    /// Our own request is lost; tells whether there was one.
    pub(super) fn give_up(&mut self) -> bool {
        self.own.take().is_some()
    }

    /// When the first call has waited long enough.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.calls.iter().filter_map(|(_, until)| *until).min()
    }

    fn ask(&mut self, cursor: Option<&str>) -> Option<Effect> {
        self.count += 1;
        let id = Id::own(&format!("countersign-{}-{}", self.nonce, self.count)).ok()?;
        let bytes = reply::tools_list(&id, self.meta.as_deref(), cursor);
        self.own = Some(id);
        self.own_first = cursor.is_none();
        Some(Effect::ToServer(Outbound::own(bytes)))
    }
}

impl Session {
    /// A call waits until the tools are known.
    pub(super) fn wait_for_list(&mut self, call: Call, now: Instant) -> Vec<Effect> {
        if let Kind::Request { params, .. } = call.frame.kind()
            && self.list.calls.is_empty()
        {
            let meta = params.meta.map(|meta| call.frame.part(meta).to_vec());
            self.list.meta = meta.and_then(|meta| String::from_utf8(meta).ok());
        }
        let until = now.checked_add(self.settings.list_wait);
        self.list.calls.push((call, until));
        if self.list.own.is_some() || self.list.clients > 0 || self.list.judging {
            return Vec::new();
        }
        self.list.ask(None).into_iter().collect()
    }

    /// The server answered a request for tools.
    pub(super) fn listed(&mut self, frame: &Frame, page: Page) -> Listed {
        let listing = match frame.kind() {
            Kind::Response { result, .. } => Listing::read(frame.bytes(), *result, &LIMITS),
            _ => None,
        };
        let Some(listing) = listing else {
            return Listed {
                shown: None,
                effects: self.release(),
            };
        };
        let pages = match page.own {
            true => &mut self.list.own_pages,
            false => &mut self.list.client_pages,
        };
        if page.first {
            pages.clear();
        }
        // A definition that cannot be read is not there; calls of it are refused as unlisted.
        let readable = listing.definitions().flatten().cloned();
        pages.extend(readable.take(MAX_TOOLS.saturating_sub(pages.len())));
        let mut effects = Vec::new();
        if !listing.has_more() {
            let tools = std::mem::take(pages);
            effects.push(self.judge(tools));
        }
        let shown = self.settings.shown.as_ref();
        let shown = shown.and_then(|shown| listing.only(frame.bytes(), |name| shown.include(name)));
        Listed { shown, effects }
    }

    /// The server answered our own request: the client does not see it.
    pub(super) fn own_listed(&mut self, frame: Frame) -> Vec<Effect> {
        self.list.own = None;
        let first = self.list.own_first;
        let cursor = match frame.kind() {
            Kind::Response { result, .. } => frame.member(Some(*result), "nextCursor"),
            _ => None,
        };
        let cursor = cursor.map(|cursor| String::from_utf8_lossy(frame.part(cursor)).into_owned());
        let cursor = cursor.filter(|cursor| cursor != "null" && cursor.len() <= LONGEST_CURSOR);
        let mut effects = self.listed(&frame, Page { first, own: true }).effects;
        if let Some(cursor) = cursor
            && self.list.count <= MAX_PAGES
        {
            effects.extend(self.list.ask(Some(&cursor)));
        } else if !self.shelf.is_complete() && !self.list.judging {
            effects.extend(self.release());
        }
        effects
    }

    /// Gives a whole list away to be judged.
    ///
    /// SECURITY: until it is back, no tool counts as known. Others may have pinned the same names since
    /// this session looked at the books.
    fn judge(&mut self, tools: Vec<Definition>) -> Effect {
        self.shelf.expire();
        self.list.lists += 1;
        self.list.judging = true;
        Effect::Judge(Box::new(List {
            number: self.list.lists,
            tools,
        }))
    }

    /// A list was held against the books: how its tools stand now, and what is pinned on the disk. `None` if that
    /// could not be done. Calls that have waited for it go on.
    pub fn judged(&mut self, number: u64, shelf: Option<Shelf>) -> Vec<Effect> {
        if number != self.list.lists {
            // A later one is on its way.
            return Vec::new();
        }
        self.list.judging = false;
        let mut effects = Vec::new();
        match shelf {
            Some(shelf) => self.shelf = shelf,
            // FAIL-CLOSED: what could not be kept was not seen. The next call asks again.
            None => effects.push(self.complain(
                "tools_not_kept",
                "the tools could not be held against the books".to_owned(),
                Delivery::default(),
            )),
        }
        effects.extend(self.release());
        if std::mem::take(&mut self.list.changed) {
            self.shelf.expire();
        }
        effects
    }

    /// Calls that have waited go on; a tool that is not known now is refused.
    pub(super) fn release(&mut self) -> Vec<Effect> {
        let calls = std::mem::take(&mut self.list.calls);
        calls
            .into_iter()
            .map(|(call, _)| self.submit(call))
            .collect()
    }

    /// The server says that its tools have changed: the next call asks again.
    pub(super) fn list_changed(&mut self) {
        self.shelf.expire();
        self.list.changed = self.list.judging;
    }

    pub(super) fn release_late(&mut self, now: Instant) -> Vec<Effect> {
        let late = self.list.deadline().is_some_and(|until| until <= now);
        if !late {
            return Vec::new();
        }
        let mut effects = vec![self.complain(
            "tools_not_listed",
            "the server has not listed its tools in time".to_owned(),
            Delivery::default(),
        )];
        effects.extend(self.release());
        effects
    }
}

const LIMITS: Limits = Limits {
    max_bytes: usize::MAX,
    max_depth: 512,
    numbers: Numbers::Exact,
};
const LONGEST_CURSOR: usize = 4096;
const MAX_PAGES: u64 = 1000;
/// What is beyond is not listed, and cannot be called.
const MAX_TOOLS: usize = 10_000;
