//! Tools as the server lists them, on the client's request or on ours.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use countersign_canon::{Limits, Numbers};

use crate::frame::{Frame, Kind, Span};
use crate::gate::{Call, Delivery};
use crate::outbound::Outbound;
use crate::reply;
use crate::tools::{Definition, Listing, Shelf};
use crate::{Era, Fault, Id};

use super::pending::Asked;
use super::seen::Sights;
use super::{Effect, Session};

/// Lists on their way.
pub(super) struct Fetch {
    nonce: String,
    count: u64,
    /// Our own lists that are not whole, the newest last.
    own: Vec<Own>,
    /// Lists of the client that are not whole, by the cursor of the page that follows.
    begun: VecDeque<(Vec<u8>, Pages)>,
    /// The last whole list.
    last: Option<Pages>,
    /// What the client was shown.
    sights: Sights,
    /// Until when that was told in what was judged last.
    news: u64,
    /// How many whole lists were given away to be judged.
    lists: u64,
    /// Whether the last of them is not back.
    judging: bool,
    /// Whether the server has said since that its tools have changed.
    changed: bool,
    /// Calls that wait for the list, and until when.
    calls: Vec<(Call, Option<Instant>)>,
    /// How the client introduces itself with the call for which the list was asked; a server may want that with
    /// each request.
    meta: Option<String>,
}

/// A list that we have asked for ourselves.
pub(super) struct Own {
    /// The request for the page that follows.
    id: Id,
    pages: Pages,
    /// The call for which it was asked: its client is let in, or not, by what came with it.
    caller: Id,
    /// How many pages were asked for.
    count: u64,
    /// Calls have waited for it in vain. It still counts when it comes, but nobody waits for it any more.
    is_overdue: bool,
}

/// The pages of a list so far.
#[derive(Debug, Clone, Default)]
struct Pages {
    tools: Vec<Arc<Definition>>,
    bytes: usize,
    /// How many tools are not among them because they cannot be read, or are too many or too large.
    left_out: usize,
    /// Which of the lists that the client reads this is.
    shown_in: u64,
}

/// All tools of a server, on their way to be held against the books.
#[derive(Debug)]
pub struct List {
    number: u64,
    tools: Vec<Arc<Definition>>,
}

impl List {
    /// The tools.
    pub fn tools(&self) -> &[Arc<Definition>] {
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
            own: Vec::new(),
            begun: VecDeque::new(),
            last: None,
            sights: Sights::of_a_session(),
            news: 0,
            lists: 0,
            judging: false,
            changed: false,
            calls: Vec::new(),
            meta: None,
        }
    }

    /// Whether the client was shown something that no judgement has heard of.
    fn is_behind(&self) -> bool {
        self.sights.look().news() != self.news
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

    /// Our own request under this id, which nobody waits for then.
    pub(super) fn take_own(&mut self, id: &Id) -> Option<Own> {
        let at = self.own.iter().position(|own| own.id == *id)?;
        Some(self.own.remove(at))
    }

    /// When the first call has waited long enough.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.calls.iter().filter_map(|(_, until)| *until).min()
    }

    /// Asks for the page of our own list that follows those we have.
    fn ask(
        &mut self,
        caller: Id,
        cursor: Option<&str>,
        pages: Pages,
        count: u64,
    ) -> Option<Effect> {
        self.count += 1;
        let id = Id::own(&format!("countersign-{}-{}", self.nonce, self.count)).ok()?;
        let bytes = reply::tools_list(&id, self.meta.as_deref(), cursor);
        if self.own.len() >= MAX_OWN {
            self.own.remove(0);
        }
        self.own.push(Own {
            id,
            pages,
            caller: caller.clone(),
            count: count + 1,
            is_overdue: false,
        });
        Some(Effect::ToServer(Outbound::own_for(caller, bytes)))
    }

    /// What came before the page that has this cursor; `None` if nobody knows.
    fn before(&self, cursor: Option<&[u8]>) -> Option<Pages> {
        let Some(cursor) = cursor else {
            return Some(Pages::default());
        };
        let mut begun = self.begun.iter();
        let found = begun.find(|(next, _)| next == cursor);
        found.map(|(_, pages)| pages.clone())
    }

    /// Which tools of a page the client may be shown, and the list so far that they belong to.
    ///
    /// SECURITY: the client sees nothing that its calls are not held against.
    fn show(&self, listing: &Listing, cursor: Option<&[u8]>) -> (Option<Pages>, Vec<bool>) {
        let mut seen = self.sights.look();
        let mut pages = self.before(cursor);
        let list = match (cursor, &pages) {
            (None, _) => seen.begin(),
            (_, Some(pages)) => pages.shown_in,
            (_, None) => seen.latest(),
        };
        if let Some(pages) = &mut pages {
            pages.shown_in = list;
        }
        let mut fits = Vec::new();
        for one in listing.definitions() {
            let has_room = pages.as_mut().is_none_or(|pages| pages.take(one));
            fits.push(has_room && seen.show(one, list));
        }
        (pages, fits)
    }

    /// The client may ask for what follows, also more than once.
    fn remember(&mut self, next: Vec<u8>, pages: Pages) {
        self.begun.retain(|(cursor, _)| *cursor != next);
        if self.begun.len() >= MAX_BEGUN {
            self.begun.pop_front();
        }
        self.begun.push_back((next, pages));
    }
}

impl Pages {
    /// Takes what is in a page. A definition that cannot be read is not there; calls of it are refused as
    /// unlisted.
    fn add(&mut self, listing: &Listing) {
        self.left_out += listing.unreadable();
        for definition in listing.definitions() {
            self.left_out += usize::from(!self.take(definition));
        }
    }

    /// Takes a tool if there is room for it.
    fn take(&mut self, definition: &Arc<Definition>) -> bool {
        let bytes = self.bytes.saturating_add(definition.size());
        let has_room = self.tools.len() < MAX_TOOLS && bytes <= MAX_BYTES;
        if has_room {
            self.bytes = bytes;
            self.tools.push(Arc::clone(definition));
        }
        has_room
    }

    /// The same list with what a page shows in the place of what was shown under the same names.
    fn with(&self, listing: &Listing) -> Self {
        let names: BTreeSet<&str> = listing.definitions().map(|one| one.name()).collect();
        let mut pages = Self::default();
        for known in &self.tools {
            if !names.contains(known.name()) {
                pages.bytes += known.size();
                pages.tools.push(Arc::clone(known));
            }
        }
        pages.add(listing);
        pages
    }
}

impl Session {
    /// A call waits until the tools are known.
    pub(super) fn wait_for_list(&mut self, call: Call, now: Instant) -> Vec<Effect> {
        let until = now.checked_add(self.settings.list_wait);
        self.list.calls.push((call, until));
        self.ask_for_list().into_iter().collect()
    }

    /// Asks for the tools, if calls wait for them and no list is on its way: for the one that waits longest.
    pub(super) fn ask_for_list(&mut self) -> Option<Effect> {
        if self.is_list_coming() {
            return None;
        }
        let (call, _) = self.list.calls.first()?;
        let caller = call.id.clone();
        self.list.meta = introduction(&call.frame);
        self.list.ask(caller, None, Pages::default(), 0)
    }

    fn is_list_coming(&self) -> bool {
        let is_wanted = |asked: &Asked| matches!(asked, Asked::List(page) if page.is_wanted);
        self.list.judging
            || self.list.own.iter().any(|own| !own.is_overdue)
            || self.asked.iter().any(|(_, asked)| is_wanted(asked))
    }

    /// A list of ours will not come. The call for which it was asked goes on without; others may be let in where
    /// that was not.
    pub(super) fn own_lost(&mut self, own: &Own) -> Vec<Effect> {
        let calls = &mut self.list.calls;
        let at = calls.iter().position(|(call, _)| call.id == own.caller);
        let call = at.map(|at| calls.remove(at).0);
        let call = call.map(|call| self.submit(call));
        call.into_iter().chain(self.ask_for_list()).collect()
    }

    /// The client no longer wants a list. Calls do.
    pub(super) fn list_unwanted(&mut self, id: &Id) -> Option<Effect> {
        if let Some(Asked::List(page)) = self.asked.get_mut(id) {
            page.is_wanted = false;
        }
        self.ask_for_list()
    }

    /// The server answered a request of the client for tools.
    pub(super) fn client_listed(
        &mut self,
        frame: &Frame,
        listing: &Listing,
        cursor: Option<&[u8]>,
    ) -> Listed {
        let (pages, fits) = self.list.show(listing, cursor);
        let hidden = fits.iter().filter(|fits| !**fits).count() + listing.unreadable();
        let next = listing.next(frame.bytes());
        let effect = match (pages, next.map(|next| cursor_at(frame, next))) {
            (Some(whole), None) => Some(self.judge(whole)),
            (pages, next) => {
                if let (Some(pages), Some(next)) = (pages, next) {
                    self.list.remember(next, pages);
                }
                // SECURITY: what the client is shown counts at once, whatever follows.
                let last = self.list.last.as_ref();
                let last = last.filter(|_| self.list.is_behind());
                match last.map(|last| last.with(listing)) {
                    Some(list) => Some(self.judge(list)),
                    None => self.ask_for_list(),
                }
            }
        };
        let left_out = (hidden > 0).then(|| self.left_out(hidden));
        Listed {
            shown: self.shown(frame, listing, &fits, hidden),
            effects: effect.into_iter().chain(left_out).collect(),
        }
    }

    /// A page as the client may see it; `None` if that is as it came.
    fn shown(
        &self,
        frame: &Frame,
        listing: &Listing,
        fits: &[bool],
        hidden: usize,
    ) -> Option<Vec<u8>> {
        let names = self.settings.shown.as_ref();
        if names.is_none() && hidden == 0 {
            return None;
        }
        let mut fits = fits.iter();
        listing.only(frame.bytes(), |one| {
            let fits = fits.next().copied().unwrap_or_default();
            fits && names.is_none_or(|names| names.include(one.name()))
        })
    }

    /// The server answered our own request: the client does not see it.
    pub(super) fn own_listed(&mut self, frame: &Frame, mut own: Own) -> Vec<Effect> {
        let Ok(Some(listing)) = listing(frame) else {
            return self.own_lost(&own);
        };
        let mut pages = std::mem::take(&mut own.pages);
        pages.add(&listing);
        let Some(next) = listing.next(frame.bytes()) else {
            return vec![self.judge(pages)];
        };
        let cursor = String::from_utf8_lossy(frame.part(next));
        let asked = match cursor.len() <= LONGEST_CURSOR && own.count < MAX_PAGES {
            true => self
                .list
                .ask(own.caller.clone(), Some(&cursor), pages, own.count),
            false => None,
        };
        match asked {
            Some(asked) => vec![asked],
            None => self.own_lost(&own),
        }
    }

    /// Gives a whole list away to be judged.
    ///
    /// SECURITY: until it is back, no tool counts as known. Others may have pinned the same names since
    /// this session looked at the books.
    fn judge(&mut self, pages: Pages) -> Effect {
        self.shelf.expire();
        self.list.lists += 1;
        self.list.judging = true;
        self.list.changed = false;
        let mut tools = pages.tools.clone();
        let mut seen = self.list.sights.look();
        // What was accepted since counts as that.
        seen.accept(self.shelf.book());
        tools.extend(seen.besides(&tools));
        self.list.news = seen.news();
        drop(seen);
        self.list.last = Some(pages);
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
            Some(shelf) => {
                self.list.sights.look().accept(shelf.book());
                self.shelf = shelf;
            }
            // FAIL-CLOSED: what could not be kept was not seen. The next call asks again.
            None => effects.push(self.complain(
                "tools_not_kept",
                "the tools could not be held against the books".to_owned(),
                Delivery::default(),
            )),
        }
        let unlisted = self.list.last.as_ref().map_or(0, |list| list.left_out);
        let count = unlisted + self.shelf.left_out();
        effects.extend((count > 0).then(|| self.left_out(count)));
        // SECURITY: what has changed meanwhile, or was shown, is not what was judged. Calls go on waiting.
        match std::mem::take(&mut self.list.changed) || self.list.is_behind() {
            true => {
                self.shelf.expire();
                effects.extend(self.ask_for_list());
            }
            false => effects.extend(self.release()),
        }
        effects
    }

    /// What this client is shown in other sessions counts here too.
    pub(crate) fn share_sights(&mut self, sights: Sights) {
        self.list.sights = sights;
    }

    /// Another session of the client may have been shown something since the tools were judged here.
    pub(super) fn heed_sights(&mut self) {
        if self.list.is_behind() {
            self.shelf.expire();
        }
    }

    /// Calls that have waited go on; a tool that is not known now is refused.
    pub(super) fn release(&mut self) -> Vec<Effect> {
        let calls = std::mem::take(&mut self.list.calls);
        calls
            .into_iter()
            .map(|(call, _)| self.submit(call))
            .collect()
    }

    /// Tools that cannot be read, or for which there is no room, are not known. The log says so.
    fn left_out(&mut self, count: usize) -> Effect {
        let message = format!(
            "tools that cannot be read, or for which there is no room, were left out: {count}"
        );
        self.complain("tools_left_out", message, Delivery::default())
    }

    /// The server says that its tools have changed: the next call asks again.
    pub(super) fn list_changed(&mut self) {
        self.shelf.expire();
        self.list.changed = self.list.judging;
        self.list.begun.clear();
        self.list.last = None;
    }

    /// Calls that have waited long enough go on. Nobody waits any longer for what they have waited for: the
    /// calls that came later, and those that come, ask again.
    pub(super) fn release_late(&mut self, now: Instant) -> Vec<Effect> {
        let is_late = |until: &Option<Instant>| until.is_some_and(|until| until <= now);
        let calls = std::mem::take(&mut self.list.calls);
        let (late, calls): (Vec<_>, Vec<_>) =
            calls.into_iter().partition(|(_, until)| is_late(until));
        self.list.calls = calls;
        if late.is_empty() {
            return Vec::new();
        }
        let mut effects = vec![self.complain(
            "tools_not_listed",
            "the server has not listed its tools in time".to_owned(),
            Delivery::default(),
        )];
        effects.extend(late.into_iter().map(|(call, _)| self.submit(call)));
        self.list
            .own
            .iter_mut()
            .for_each(|own| own.is_overdue = true);
        let asked = self.asked.iter();
        let lists = asked.filter(|(_, asked)| matches!(asked, Asked::List(_)));
        let lists: Vec<Id> = lists.map(|(id, _)| id.clone()).collect();
        for id in lists {
            if let Some(Asked::List(page)) = self.asked.get_mut(&id) {
                page.is_wanted = false;
            }
        }
        effects.extend(self.ask_for_list());
        effects
    }
}

/// The tools in an answer; `None` if it is an error.
pub(super) fn listing(frame: &Frame) -> Result<Option<Listing>, Fault> {
    match frame.kind() {
        Kind::Response { result, .. } => Listing::read(frame.bytes(), *result, &LIMITS).map(Some),
        _ => Ok(None),
    }
}

/// How a client introduces itself with a request.
///
/// SECURITY: nobody has decided about the call yet, so nothing else that it brings along reaches the server.
fn introduction(call: &Frame) -> Option<String> {
    let Kind::Request { params, .. } = call.kind() else {
        return None;
    };
    let told = INTRODUCTION.iter().filter_map(|(key, begins)| {
        let told = call.part(call.member(params.meta, key)?);
        let told = std::str::from_utf8(told).ok()?;
        told.starts_with(*begins)
            .then(|| format!(r#""{key}":{told}"#))
    });
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| format!("{{{}}}", told.join(",")))
}

/// A cursor, however it is written.
pub(super) fn cursor_at(frame: &Frame, at: Span) -> Vec<u8> {
    match frame.text(Some(at)) {
        Some(text) => text.into_owned().into_bytes(),
        None => frame.part(at).to_vec(),
    }
}

const LIMITS: Limits = Limits {
    max_bytes: usize::MAX,
    max_depth: 512,
    numbers: Numbers::Exact,
};
/// What it consists of, and how that begins in the form that the protocol has.
const INTRODUCTION: [(&str, char); 3] = [
    (Era::VERSION_KEY, '"'),
    (Era::CLIENT_KEY, '{'),
    (Era::CAPABILITIES_KEY, '{'),
];
const LONGEST_CURSOR: usize = 4096;
/// Of one list.
const MAX_PAGES: u64 = 1000;
/// What is beyond is not listed, and cannot be called.
const MAX_TOOLS: usize = 10_000;
/// The same for the bytes of definitions.
const MAX_BYTES: usize = 16 << 20;
/// How many lists of ours may be on their way, and how many of the client.
const MAX_OWN: usize = 4;
const MAX_BEGUN: usize = 8;
