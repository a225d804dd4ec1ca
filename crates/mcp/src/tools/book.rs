//! The definitions that were accepted.

use std::collections::{BTreeMap, BTreeSet};

use countersign_canon::{Digest, Json};
use countersign_event::fetching;

use super::Definition;

/// The accepted tools of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Book {
    server: String,
    /// Digests of the commands that start it; none if nobody has noted one.
    commands: BTreeSet<Digest>,
    /// Commands that came under its name, and that nobody has said anything about.
    waiting_commands: BTreeSet<Digest>,
    pins: BTreeMap<String, Pin>,
    /// How many bytes the definitions of pins take.
    pinned: usize,
    /// What was seen and waits for somebody to look at it.
    proposed: BTreeMap<String, Definition>,
}

/// One accepted tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// The digest that its definition must have.
    pub digest: Digest,
    /// Who accepted it.
    pub origin: Origin,
    /// Whether a person said that it only reads. What the server says about itself does not count.
    pub reads: bool,
    /// The definition, for comparing; a manifest gives the digest alone.
    pub definition: Option<Json>,
    /// How many bytes the definition takes.
    size: usize,
}

/// How a tool was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// It was there when the server was first seen.
    FirstSight,
    /// A manifest names its digest.
    Manifest,
    /// A person looked at it.
    Accepted,
}

/// Why a definition waits for somebody to look at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// Another one was accepted.
    Changed,
    /// A manifest names the digest of another one.
    NotOfManifest,
    /// Nothing was accepted under its name: another server has that name, or another tool looks like it.
    Posing,
    /// It is called like a method of the protocol that fetches something.
    Method,
}

/// What came of looking at a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Sighting {
    /// It was never seen before, and is accepted now.
    New,
    /// It is what was accepted.
    Same,
    /// It is not what was accepted.
    Changed,
    /// It was never seen before, and the book has no room for it.
    NoRoom,
}

/// A book that cannot be read back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the book of accepted tools cannot be read: {0}")]
pub struct BookError(&'static str);

impl Book {
    /// An empty book.
    pub fn new(server: impl Into<String>) -> Self {
        Self {
            server: server.into(),
            commands: BTreeSet::new(),
            waiting_commands: BTreeSet::new(),
            pins: BTreeMap::new(),
            pinned: 0,
            proposed: BTreeMap::new(),
        }
    }

    /// The server.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The commands that start it, by their digests.
    pub fn commands(&self) -> &BTreeSet<Digest> {
        &self.commands
    }

    /// Notes that this command starts the server as well.
    pub fn accept_command(&mut self, command: Digest) {
        self.waiting_commands.remove(&command);
        self.commands.insert(command);
    }

    /// Commands that came under its name and wait for somebody to say that they start the same server.
    pub fn waiting_commands(&self) -> &BTreeSet<Digest> {
        &self.waiting_commands
    }

    /// Notes a command that is not one of its own; tells whether that is news.
    pub fn propose_command(&mut self, command: Digest) -> bool {
        let has_room = self.waiting_commands.len() < MAX_WAITING_COMMANDS;
        has_room && !self.commands.contains(&command) && self.waiting_commands.insert(command)
    }

    /// Forgets which tools only read: somebody said so about another program.
    pub fn forget_reads(&mut self) {
        self.pins.values_mut().for_each(|pin| pin.reads = false);
    }

    /// The accepted tools by name.
    pub fn pins(&self) -> &BTreeMap<String, Pin> {
        &self.pins
    }

    /// What was seen and not accepted, by name.
    pub fn proposed(&self) -> &BTreeMap<String, Definition> {
        &self.proposed
    }

    /// Notes a definition for somebody to look at; tells whether that is news.
    pub fn propose(&mut self, definition: &Definition) -> bool {
        let name = definition.name();
        let known = self.proposed.get(name) == Some(definition);
        let others = self.proposed.iter().filter(|(other, _)| *other != name);
        let (count, bytes) = others.fold((0, 0), |(count, bytes), (_, one)| {
            (count + 1, bytes + one.size())
        });
        let room = count < MAX_PROPOSED && bytes + definition.size() <= MAX_BYTES;
        let news = !known && room;
        if news {
            self.proposed.insert(name.to_owned(), definition.clone());
        }
        news
    }

    /// The server shows what was accepted again; tells whether that is news.
    pub fn withdraw(&mut self, tool: &str) -> bool {
        self.proposed.remove(tool).is_some()
    }

    /// Accepts a definition of a tool: somebody has looked at it, and says whether it only reads. It
    /// waits, or it was pinned without anybody looking. `false` if there is no such definition.
    pub fn accept_seen(&mut self, tool: &str, digest: Digest, reads: bool) -> bool {
        let waiting = self.proposed.get(tool).cloned();
        if let Some(definition) = waiting.filter(|one| one.digest() == digest) {
            self.proposed.remove(tool);
            self.pin(&definition, Origin::Accepted);
        }
        match self.pins.get_mut(tool).filter(|pin| pin.digest == digest) {
            Some(pin) => {
                pin.origin = Origin::Accepted;
                pin.reads = reads;
                true
            }
            None => false,
        }
    }

    /// Why a definition of this tool waits, if one does.
    pub fn waiting(&self, tool: &str) -> Option<Waiting> {
        let _waits = self.proposed.get(tool)?;
        if fetching(tool).is_some() {
            return Some(Waiting::Method);
        }
        Some(match self.pins.get(tool).map(|pin| pin.origin) {
            Some(Origin::Manifest) => Waiting::NotOfManifest,
            Some(Origin::FirstSight | Origin::Accepted) => Waiting::Changed,
            None => Waiting::Posing,
        })
    }

    /// Whether a person said that this very definition only reads.
    pub fn reads(&self, definition: &Definition) -> bool {
        let pin = self.pins.get(definition.name());
        pin.is_some_and(|pin| pin.reads && pin.digest == definition.digest())
    }

    /// Takes over what a person has accepted in another copy of this book.
    pub fn adopt(&mut self, other: &Self) {
        self.commands.clone_from(&other.commands);
        self.waiting_commands.clone_from(&other.waiting_commands);
        let accepted = other.pins.iter();
        for (name, pin) in accepted.filter(|(_, pin)| pin.origin == Origin::Accepted) {
            let digest = pin.digest;
            self.set(name.clone(), pin.clone());
            if self
                .proposed
                .get(name)
                .is_some_and(|one| one.digest() == digest)
            {
                self.proposed.remove(name);
            }
        }
    }

    /// Looks at a definition, and accepts it if its name was never seen before.
    pub fn see(&mut self, definition: &Definition) -> Sighting {
        match self.pins.get(definition.name()) {
            Some(pin) if pin.digest == definition.digest() => Sighting::Same,
            Some(_) => Sighting::Changed,
            None if !self.has_room(definition) => Sighting::NoRoom,
            None => {
                self.pin(definition, Origin::FirstSight);
                Sighting::New
            }
        }
    }

    /// Accepts a definition in the place of the old one: somebody has looked at it.
    pub fn accept(&mut self, definition: &Definition) {
        self.pin(definition, Origin::Accepted);
    }

    /// Takes over a digest from a manifest.
    pub fn pin_digest(&mut self, tool: impl Into<String>, digest: Digest) {
        let definition = None;
        let origin = Origin::Manifest;
        self.set(
            tool.into(),
            Pin {
                digest,
                origin,
                reads: false,
                definition,
                size: 0,
            },
        );
    }

    /// What a server shows takes so much of everybody's time and no more: whoever starts a server reads all
    /// books.
    fn has_room(&self, definition: &Definition) -> bool {
        self.pins.len() < MAX_PINS && self.pinned + definition.size() <= MAX_BYTES
    }

    fn set(&mut self, tool: String, pin: Pin) {
        self.pinned += pin.size;
        let before = self.pins.insert(tool, pin);
        self.pinned -= before.map_or(0, |before| before.size);
    }

    fn pin(&mut self, definition: &Definition, origin: Origin) {
        let pin = Pin {
            digest: definition.digest(),
            origin,
            reads: false,
            definition: Some(definition.value().clone()),
            size: definition.size(),
        };
        self.set(definition.name().to_owned(), pin);
    }

    /// The book as it is kept.
    pub fn to_json(&self) -> Json {
        let pin = |pin: &Pin| {
            Json::object([
                ("definition", Json::from(pin.definition.clone())),
                ("digest", Json::from(pin.digest.to_string())),
                ("origin", Json::from(pin.origin.as_str())),
                ("reads", Json::from(pin.reads)),
            ])
        };
        let pins = self.pins.iter().map(|(name, one)| (name.clone(), pin(one)));
        let proposed = self
            .proposed
            .iter()
            .map(|(name, definition)| (name.clone(), definition.value().clone()));
        let digests = |all: &BTreeSet<Digest>| {
            let all = all.iter().map(|one| Json::from(one.to_string()));
            Json::Array(all.collect())
        };
        Json::object([
            ("commands", digests(&self.commands)),
            ("waiting_commands", digests(&self.waiting_commands)),
            ("proposed", Json::object(proposed)),
            ("schema", Json::from(SCHEMA)),
            ("server", Json::from(self.server.as_str())),
            ("tools", Json::object(pins)),
        ])
    }

    /// Reads a book back. A definition must have the digest that stands beside it.
    pub fn from_json(json: &Json) -> Result<Self, BookError> {
        let text = |name| json.get(name).and_then(Json::as_str);
        if text("schema") != Some(SCHEMA) {
            return Err(BookError("it is of another schema"));
        }
        let server = text("server").ok_or(BookError("it names no server"))?;
        let tools = json.get("tools").and_then(Json::as_object);
        let tools = tools.ok_or(BookError("it has no tools"))?;
        let mut book = Self::new(server);
        for (name, one) in tools {
            book.set(name.to_owned(), read_pin(name, one)?);
        }
        // Books from before commands were noted have none.
        book.commands = digests(json.get("commands"))?;
        book.waiting_commands = digests(json.get("waiting_commands"))?;
        let proposed = json.get("proposed").and_then(Json::as_object);
        for (name, definition) in proposed.into_iter().flatten() {
            let definition = Definition::from_json(definition.clone());
            let definition = definition.ok().filter(|one| one.name() == name);
            let definition = definition.ok_or(BookError("a proposal cannot be read"))?;
            book.proposed.insert(name.to_owned(), definition);
        }
        Ok(book)
    }
}

fn digests(json: Option<&Json>) -> Result<BTreeSet<Digest>, BookError> {
    let all = json.and_then(Json::as_array).unwrap_or_default().iter();
    let all = all.map(|one| {
        let one = one.as_str().and_then(|one| one.parse().ok());
        one.ok_or(BookError("a command is no digest"))
    });
    all.collect()
}

fn read_pin(name: &str, json: &Json) -> Result<Pin, BookError> {
    let text = |name| json.get(name).and_then(Json::as_str);
    let digest = text("digest").and_then(|digest| digest.parse::<Digest>().ok());
    let digest = digest.ok_or(BookError("a digest is missing"))?;
    let origin = text("origin").and_then(Origin::parse);
    let definition = json.get("definition").filter(|value| !value.is_null());
    let mut size = 0;
    if let Some(definition) = definition {
        let read = Definition::from_json(definition.clone()).ok();
        let read = read.filter(|read| read.digest() == digest && read.name() == name);
        let read = read.ok_or(BookError("a definition does not have its digest"))?;
        size = read.size();
    }
    Ok(Pin {
        digest,
        origin: origin.ok_or(BookError("an origin is missing"))?,
        reads: json.get("reads").and_then(Json::as_bool).unwrap_or(false),
        definition: definition.cloned(),
        size,
    })
}

impl Waiting {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::NotOfManifest => "not what the manifest names",
            Self::Posing => "poses as another",
            Self::Method => "called like a method",
        }
    }
}

impl Origin {
    /// The name in a book.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FirstSight => "first-sight",
            Self::Manifest => "manifest",
            Self::Accepted => "accepted",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::FirstSight, Self::Manifest, Self::Accepted]
            .into_iter()
            .find(|origin| origin.as_str() == text)
    }
}

/// More than anybody has to say something about.
const MAX_WAITING_COMMANDS: usize = 16;
/// A server that shows more than this is not for a person to review.
const MAX_PROPOSED: usize = 1000;
/// So many tools of a server are accepted by being seen; a person may accept more.
const MAX_PINS: usize = 10_000;
/// So many bytes have the definitions of all of them, and once more so many those that wait. Names stand in a
/// book twice; whoever reads one has room for four times as much.
const MAX_BYTES: usize = 8 << 20;
const SCHEMA: &str = "countersign/tools/v1";
