//! HTML by construction: names are of this program, text is always escaped.

use std::fmt::Write as _;

use countersign_display::{quote, unseen};

/// A finished piece of HTML.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Html(String);

/// An element that is being put together.
#[derive(Debug, Clone)]
pub struct El {
    tag: &'static str,
    head: String,
    body: String,
}

/// A place in this server, and nowhere else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link(String);

/// An element with this name.
pub fn el(tag: &'static str) -> El {
    El {
        tag,
        head: String::new(),
        body: String::new(),
    }
}

impl El {
    /// Gives it an attribute.
    #[must_use]
    pub fn attr(mut self, name: &'static str, value: impl AsRef<str>) -> Self {
        // SECURITY: where a value is a place, only a `Link` is one; handlers and styles are not for us.
        debug_assert!(
            !name.starts_with("on") && !matches!(name, "href" | "src" | "action" | "style")
        );
        self.put(name, value.as_ref());
        self
    }

    /// Gives it an attribute with a number.
    #[must_use]
    pub fn number(mut self, name: &'static str, value: u64) -> Self {
        self.put(name, &value.to_string());
        self
    }

    /// Gives it an attribute without a value, if so.
    #[must_use]
    pub fn flag(mut self, name: &'static str, is_so: bool) -> Self {
        if is_so {
            self.head.push(' ');
            self.head.push_str(name);
        }
        self
    }

    /// Gives it classes.
    #[must_use]
    pub fn class(self, class: &'static str) -> Self {
        self.attr("class", class)
    }

    /// Gives it a name of its own.
    #[must_use]
    pub fn id(self, id: &str) -> Self {
        self.attr("id", id)
    }

    /// Lets it lead somewhere.
    #[must_use]
    pub fn link(mut self, link: &Link) -> Self {
        let name = match self.tag {
            "form" => "action",
            "script" | "img" => "src",
            _ => "href",
        };
        self.put(name, &link.0);
        self
    }

    /// Adds text. Whatever would not show as itself is written out, line ends too.
    #[must_use]
    pub fn text(mut self, text: &str) -> Self {
        escape(&mut self.body, text, &Keep::Nothing);
        self
    }

    /// Adds text whose line ends are line ends.
    #[must_use]
    pub fn lines(mut self, text: &str) -> Self {
        escape(&mut self.body, text, &Keep::Lines);
        self
    }

    /// Adds text that `countersign_display` has made safe already: its marks stay as they are.
    #[must_use]
    pub fn shown(mut self, text: &str) -> Self {
        escape(&mut self.body, text, &Keep::Shown);
        self
    }

    /// Adds a piece.
    #[must_use]
    pub fn with(mut self, piece: impl Into<Html>) -> Self {
        self.body.push_str(&piece.into().0);
        self
    }

    /// Adds a piece, if there is one.
    #[must_use]
    pub fn maybe(self, piece: Option<impl Into<Html>>) -> Self {
        match piece {
            Some(piece) => self.with(piece),
            None => self,
        }
    }

    /// Adds pieces, one after the other.
    #[must_use]
    pub fn each<T: Into<Html>>(mut self, pieces: impl IntoIterator<Item = T>) -> Self {
        for piece in pieces {
            self.body.push_str(&piece.into().0);
        }
        self
    }

    /// The finished element.
    pub fn html(self) -> Html {
        let Self { tag, head, body } = self;
        Html(match VOID.contains(&tag) {
            true => format!("<{tag}{head}>"),
            false => format!("<{tag}{head}>{body}</{tag}>"),
        })
    }

    fn put(&mut self, name: &'static str, value: &str) {
        self.head.push(' ');
        self.head.push_str(name);
        self.head.push_str("=\"");
        escape(&mut self.head, value, &Keep::Nothing);
        self.head.push('"');
    }
}

impl Html {
    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// As text.
    pub fn into_string(self) -> String {
        self.0
    }

    /// A whole document of this root.
    pub(crate) fn document(root: Self) -> Self {
        Self(format!("<!doctype html>\n{}\n", root.0))
    }

    /// Text alone.
    pub fn text(text: &str) -> Self {
        let mut out = String::new();
        escape(&mut out, text, &Keep::Nothing);
        Self(out)
    }

    /// A name on one line; one that goes on for too long is cut, with its length and hash.
    pub fn name(text: &str) -> Self {
        let mut out = String::new();
        match text.chars().nth(LONGEST) {
            None => escape(&mut out, text, &Keep::Nothing),
            Some(_) => escape(&mut out, &quote(text), &Keep::Shown),
        }
        Self(out)
    }
}

impl From<El> for Html {
    fn from(element: El) -> Self {
        element.html()
    }
}

impl FromIterator<Html> for Html {
    fn from_iter<I: IntoIterator<Item = Html>>(pieces: I) -> Self {
        Self(pieces.into_iter().map(|piece| piece.0).collect())
    }
}

impl Link {
    /// A path of these parts.
    pub fn to(parts: &[&str]) -> Self {
        let mut link = Self(String::new());
        for part in parts {
            link.0.push('/');
            // SECURITY: `//` would name another server, and dots would lead elsewhere.
            match *part {
                "" => link.0.push_str("%00"),
                "." => link.0.push_str("%2E"),
                ".." => link.0.push_str("%2E%2E"),
                part => percent(&mut link.0, part),
            }
        }
        if parts.is_empty() {
            link.0.push('/');
        }
        link
    }

    /// A place on the page itself.
    pub fn here(id: &'static str) -> Self {
        Self(format!("#{id}"))
    }

    /// With a parameter behind it.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: &str) -> Self {
        let mark = if self.0.contains('?') { '&' } else { '?' };
        self.0.push(mark);
        self.0.push_str(name);
        self.0.push('=');
        percent(&mut self.0, value);
        self
    }

    /// With a parameter behind it, if there is one.
    #[must_use]
    pub fn maybe(self, name: &'static str, value: Option<&str>) -> Self {
        match value.filter(|value| !value.is_empty()) {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn percent(out: &mut String, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte));
            }
            _ => {
                // Writing to a string does not fail.
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
}

/// What is not written out.
enum Keep {
    Nothing,
    Lines,
    /// Line ends, and the marks by which renderings tell what they wrote out.
    Shown,
}

fn escape(out: &mut String, text: &str, keep: &Keep) {
    out.reserve(text.len());
    let mut buffer = [0; 4];
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            ' '..='~' => out.push(c),
            '\n' if !matches!(keep, Keep::Nothing) => out.push('\n'),
            '«' | '»' | '⟨' | '⟩' if matches!(keep, Keep::Shown) => out.push(c),
            c if c.is_ascii() || unseen(c.encode_utf8(&mut buffer)).is_some() => {
                let _ = write!(out, "⟨U+{:04X}⟩", u32::from(c));
            }
            c => out.push(c),
        }
    }
}

/// The most characters of a name that are shown as they are.
const LONGEST: usize = 120;

const VOID: [&str; 8] = ["meta", "link", "input", "br", "hr", "img", "col", "wbr"];
