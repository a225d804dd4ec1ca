//! What a server shows now, held against the books.

use std::collections::BTreeMap;

use countersign_canon::Digest;
use countersign_display::outlines;
use countersign_event::{FETCHING, fetching};

use super::{Book, Definition, Origin, Sighting};

/// The tools of one server as they stand now.
#[derive(Debug, Clone)]
pub struct Shelf {
    book: Book,
    /// The books of other servers.
    others: Vec<Book>,
    /// The books of servers that may be this one, started by other words.
    kin: Vec<Book>,
    /// Servers whose books cannot be read.
    unread: Vec<String>,
    /// What accepted names and those of methods look like, with the first of each look.
    looks: BTreeMap<String, String>,
    listed: BTreeMap<String, Listed>,
    complete: bool,
    changed_book: bool,
    /// How many tools were left out because the book has no room.
    left_out: usize,
}

/// How a tool relates to what was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Standing {
    /// It is what was accepted.
    Accepted,
    /// The server does not list it.
    Unlisted,
    /// There is no whole list that would say so.
    Unknown,
    /// It is not what was accepted.
    Changed {
        /// What was accepted.
        accepted: Digest,
        /// What it is now.
        now: Digest,
        /// Who accepted what it is not.
        by: Origin,
    },
    /// The server lists it twice, or shows the client another one than us.
    Ambiguous,
    /// Another server offers a tool of this name, and was there first.
    Shadowed {
        /// The other server.
        server: String,
    },
    /// It is called like a method of the protocol that fetches something.
    Method,
    /// Its name looks like that of another tool or of such a method, which was there first.
    Confusable {
        /// The other.
        tool: String,
    },
}

/// Why calls of a tool are refused, whatever policies say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Objection {
    /// The reason code.
    pub reason: &'static str,
    /// The same in words.
    pub because: &'static str,
}

#[derive(Debug, Clone)]
enum Listed {
    Once(Digest, Box<Definition>),
    Ambiguous,
}

impl Shelf {
    /// An empty shelf beside what was accepted from this server and from others.
    pub fn new(book: Book, others: Vec<Book>) -> Self {
        let books = std::iter::once(&book).chain(&others);
        let names = books.flat_map(|book| book.pins().keys());
        let mut looks = BTreeMap::new();
        for name in FETCHING {
            remember(name, &mut looks);
        }
        for name in names {
            remember(name, &mut looks);
        }
        Self {
            book,
            others,
            kin: Vec::new(),
            unread: Vec::new(),
            looks,
            listed: BTreeMap::new(),
            complete: false,
            changed_book: false,
            left_out: 0,
        }
    }

    /// The same beside servers whose books cannot be read: any name could be theirs.
    #[must_use]
    pub fn with_unread(mut self, servers: Vec<String>) -> Self {
        self.unread = servers;
        self
    }

    /// The same beside servers that may be this one: it may offer what they offer, and nothing else by that name.
    #[must_use]
    pub fn with_kin(mut self, kin: Vec<Book>) -> Self {
        for name in kin.iter().flat_map(|book| book.pins().keys()) {
            remember(name, &mut self.looks);
        }
        self.kin = kin;
        self
    }

    /// Puts a whole list on the shelf, in the place of what was there.
    pub fn fill<'a>(&mut self, definitions: impl IntoIterator<Item = &'a Definition>) {
        self.listed.clear();
        self.left_out = 0;
        for definition in definitions {
            self.put(definition);
        }
        self.complete = true;
    }

    /// What is there no longer counts, until there is another list.
    pub fn expire(&mut self) {
        self.complete = false;
    }

    fn put(&mut self, definition: &Definition) {
        let name = definition.name().to_owned();
        let twice = self.listed.contains_key(&name);
        let listed = match twice {
            true => Listed::Ambiguous,
            false => Listed::Once(definition.digest(), Box::new(definition.clone())),
        };
        self.listed.insert(name, listed);
        // SECURITY: a newcomer that poses as something else is not accepted by being seen.
        let poses = method(definition.name())
            .or_else(|| self.shadowed(definition.name(), definition.digest()))
            .or_else(|| self.confusable(definition.name()));
        let news = match (twice, poses) {
            (true, _) => self.differs(definition) && self.book.propose(definition),
            (false, Some(_)) => self.book.propose(definition),
            (false, None) => self.see(definition),
        };
        self.changed_book |= news;
    }

    /// Whether another definition of this name was accepted.
    fn differs(&self, definition: &Definition) -> bool {
        let pin = self.book.pins().get(definition.name());
        pin.is_some_and(|pin| pin.digest != definition.digest())
    }

    /// Holds a definition against the book; tells whether the book changed.
    fn see(&mut self, definition: &Definition) -> bool {
        match self.book.see(definition) {
            Sighting::New => {
                remember(definition.name(), &mut self.looks);
                true
            }
            Sighting::Same => self.book.withdraw(definition.name()),
            Sighting::Changed => self.book.propose(definition),
            Sighting::NoRoom => {
                self.left_out += 1;
                false
            }
        }
    }

    /// Whether a whole list was read.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// How a tool stands.
    pub fn standing(&self, name: &str) -> Standing {
        // SECURITY: it is not judged as what the method does, whatever was accepted.
        if let Some(method) = method(name) {
            return method;
        }
        // FAIL-CLOSED: what no longer counts says nothing about what the server shows now.
        if !self.complete {
            return Standing::Unknown;
        }
        let now = match self.listed.get(name) {
            None => return Standing::Unlisted,
            Some(Listed::Ambiguous) => return Standing::Ambiguous,
            Some(Listed::Once(digest, _)) => *digest,
        };
        match self.book.pins().get(name) {
            Some(pin) if pin.digest == now => Standing::Accepted,
            Some(pin) => Standing::Changed {
                accepted: pin.digest,
                now,
                by: pin.origin,
            },
            None => self
                .shadowed(name, now)
                .or(self.confusable(name))
                // FAIL-CLOSED: what is listed and poses as nothing was accepted when it was seen, if there was
                // room for it.
                .unwrap_or(Standing::Unlisted),
        }
    }

    /// The definition that the server has shown last.
    pub fn definition(&self, name: &str) -> Option<&Definition> {
        match self.listed.get(name)? {
            Listed::Once(_, definition) => Some(definition),
            Listed::Ambiguous => None,
        }
    }

    /// Every definition that the server has shown last.
    pub fn definitions(&self) -> impl Iterator<Item = &Definition> {
        self.listed.values().filter_map(|listed| match listed {
            Listed::Once(_, definition) => Some(&**definition),
            Listed::Ambiguous => None,
        })
    }

    /// The book, if something was accepted since this was last asked.
    pub fn take_changed_book(&mut self) -> Option<&Book> {
        std::mem::take(&mut self.changed_book).then_some(&self.book)
    }

    /// How many tools are not known because there is no room for them.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// The book.
    pub fn book(&self) -> &Book {
        &self.book
    }

    fn shadowed(&self, name: &str, digest: Digest) -> Option<Standing> {
        let offers = |book: &&Book| book.pins().contains_key(name);
        let differs = |book: &&Book| {
            let pin = book.pins().get(name);
            pin.is_some_and(|pin| pin.digest != digest)
        };
        let other = self.others.iter().find(offers);
        let first = other.or_else(|| self.kin.iter().find(differs));
        // FAIL-CLOSED: whether a server was there first cannot be told from a book that cannot be read.
        let first = first.map(|book| book.server().to_owned());
        let server = first.or_else(|| self.unread.first().cloned())?;
        (!self.book.pins().contains_key(name)).then_some(Standing::Shadowed { server })
    }

    fn confusable(&self, name: &str) -> Option<Standing> {
        if self.book.pins().contains_key(name) {
            return None;
        }
        let outlines = outlines(name);
        let mut firsts = outlines.iter().filter_map(|look| self.looks.get(look));
        let first = firsts.find(|first| *first != name)?;
        Some(Standing::Confusable {
            tool: first.clone(),
        })
    }
}

fn method(name: &str) -> Option<Standing> {
    fetching(name).map(|_| Standing::Method)
}

fn remember(name: &str, looks: &mut BTreeMap<String, String>) {
    for outline in outlines(name) {
        looks.entry(outline).or_insert_with(|| name.to_owned());
    }
}

impl Standing {
    /// Why calls are refused; `None` if there is nothing to object to.
    pub const fn objection(&self) -> Option<Objection> {
        let (reason, because) = match self {
            Self::Accepted => return None,
            Self::Unlisted => ("TOOL_UNLISTED", "the server does not list it"),
            Self::Unknown => ("TOOL_UNLISTED", "the server's list of tools is not known"),
            Self::Changed {
                by: Origin::Manifest,
                ..
            } => (
                "TOOL_CHANGED",
                "its definition is not the one that the manifest names",
            ),
            Self::Changed { .. } => (
                "TOOL_CHANGED",
                "its definition is not the one that was accepted",
            ),
            Self::Ambiguous => ("TOOL_AMBIGUOUS", "the server shows two definitions of it"),
            Self::Shadowed { .. } => (
                "TOOL_SHADOWED",
                "another server had a tool of this name before",
            ),
            Self::Method => (
                "TOOL_CONFUSABLE",
                "it is called like a method of the protocol",
            ),
            Self::Confusable { .. } => (
                "TOOL_CONFUSABLE",
                "its name looks like that of another tool or of a method",
            ),
        };
        Some(Objection { reason, because })
    }
}
