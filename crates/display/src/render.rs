//! From canonical bytes to lines.

use std::collections::BTreeMap;

use countersign_canon::{Error, Hash, Json, Limits};

use crate::block::{self, Canvas, Extent, fits_inline, plural};
use crate::character::Hidden;
use crate::piece::{Piece, Show, pieces};
use crate::quoted::short;
use crate::sheet::{Kind, Sheet};
use crate::survey::{Step, Survey};
use crate::warning::Warning;

/// How much is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// Long texts are cut in the middle, with a marker; beginning and end are always there.
    Summary,
    /// Everything.
    Full,
}

/// A plan as a human sees it.
#[derive(Clone, Debug)]
pub struct Rendering {
    sheet: Sheet,
    plan_sha256: Hash,
    display_sha256: Hash,
    warnings: Vec<Warning>,
    stats: Stats,
}

/// What there is to see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    /// The canonical bytes.
    pub bytes: usize,
    /// Values of every kind, nested ones included.
    pub values: usize,
    /// Texts and numbers that are not shown in full.
    pub truncated: usize,
    /// Characters that do not show as themselves.
    pub hidden: BTreeMap<Hidden, usize>,
    /// Warnings beyond those that are listed.
    pub warnings_left_out: usize,
}

/// The bytes are not the canonical text of a plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotCanonical {
    /// They are no JSON that can be admitted.
    #[error("not a plan: {0}")]
    NotJson(#[from] Error),
    /// They are JSON, written in another way.
    #[error("the plan is not in its canonical form")]
    OtherForm,
}

impl Rendering {
    /// Renders the bytes that the plan hash covers. Nothing else can be rendered: what is shown is
    /// what is hashed.
    pub fn of(canonical: &[u8], view: View) -> Result<Self, NotCanonical> {
        let plan = Json::admit(canonical, &Limits::plan())?;
        match plan.to_sorted_ascii() == canonical {
            true => Ok(Self::of_plan(&plan, canonical, view)),
            false => Err(NotCanonical::OtherForm),
        }
    }

    pub(crate) fn of_plan(plan: &Json, canonical: &[u8], view: View) -> Self {
        let mut writer = Writer::new(view);
        writer.value(plan, 0);
        let Writer {
            canvas,
            survey,
            values,
            truncated,
            ..
        } = writer;
        let plan_sha256 = Hash::of(canonical);
        let hidden_count = survey.hidden_count();
        let hidden = survey.hidden();
        let (warnings, warnings_left_out) = survey.finish();
        let stats = Stats {
            bytes: canonical.len(),
            values,
            truncated,
            hidden,
            warnings_left_out,
        };
        let mut sheet = Sheet::default();
        head(&mut sheet, &plan_sha256, &stats, hidden_count);
        warn(&mut sheet, &warnings, warnings_left_out);
        sheet.append(&canvas.sheet);
        Self {
            display_sha256: sheet.sha256(),
            sheet,
            plan_sha256,
            warnings,
            stats,
        }
    }

    /// The lines.
    pub fn sheet(&self) -> &Sheet {
        &self.sheet
    }

    /// The lines as plain text.
    pub fn text(&self) -> &str {
        self.sheet.text()
    }

    /// SHA-256 over the canonical bytes: the plan hash.
    pub fn plan_sha256(&self) -> Hash {
        self.plan_sha256
    }

    /// The first eight hex digits of the plan hash, the same on every channel.
    pub fn short_code(&self) -> String {
        short(&self.plan_sha256)
    }

    /// SHA-256 over the plain text: what was on the screen.
    pub fn display_sha256(&self) -> Hash {
        self.display_sha256
    }

    /// What to look at twice.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// What there is to see.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Whether every character of the plan is in these lines.
    pub fn is_complete(&self) -> bool {
        self.stats.truncated == 0
    }
}

fn head(sheet: &mut Sheet, plan: &Hash, stats: &Stats, hidden: usize) {
    let state = match stats.truncated {
        0 => "complete".to_owned(),
        1 => "NOT COMPLETE: 1 value is truncated".to_owned(),
        several => format!("NOT COMPLETE: {several} values are truncated"),
    };
    let bytes = plural(stats.bytes, "byte");
    let title = format!("{HEAD}plan {}, {bytes}, {state}", short(plan));
    sheet.push_line(Kind::Heading, &title);
    if hidden > 0 {
        let characters = plural(hidden, "character");
        let note = format!("{HEAD}written as ⟨U+XXXX⟩: {characters}");
        sheet.push_line(Kind::Heading, &note);
    }
}

pub(crate) fn warn(sheet: &mut Sheet, warnings: &[Warning], left_out: usize) {
    for warning in warnings {
        sheet.push_line(Kind::Warning, &format!("{WARN}{warning}"));
    }
    if left_out > 0 {
        let more = plural(left_out, "more warning");
        sheet.push_line(Kind::Warning, &format!("{WARN}and {more}"));
    }
}

struct Writer<'j> {
    canvas: Canvas,
    survey: Survey,
    path: Vec<Step<'j>>,
    view: View,
    values: usize,
    truncated: usize,
}

impl<'j> Writer<'j> {
    fn new(view: View) -> Self {
        let mut canvas = Canvas::new(BODY);
        canvas.open(0);
        Self {
            canvas,
            survey: Survey::default(),
            path: Vec::new(),
            view,
            values: 0,
            truncated: 0,
        }
    }

    /// Writes a value from the middle of an open line to the end of a line.
    fn value(&mut self, value: &'j Json, depth: usize) {
        self.values += 1;
        match value {
            Json::Null => self.end(Kind::Literal, "null"),
            Json::Bool(true) => self.end(Kind::Literal, "true"),
            Json::Bool(false) => self.end(Kind::Literal, "false"),
            Json::Number(number) => self.number(&number.to_string(), depth),
            Json::String(text) => {
                self.survey.text(text, &self.path);
                self.string(text, depth);
            }
            Json::Array(elements) => self.array(elements, depth),
            Json::Object(object) => self.object(object, depth),
        }
    }

    fn array(&mut self, elements: &'j [Json], depth: usize) {
        if elements.is_empty() {
            return self.end(Kind::Mark, "[]");
        }
        self.end(Kind::Mark, "[");
        for (index, element) in elements.iter().enumerate() {
            self.canvas.open(depth + 1);
            self.canvas.push(Kind::Mark, "- ");
            self.path.push(Step::Element(index));
            self.value(element, depth + 1);
            self.path.pop();
        }
        self.canvas.open(depth);
        self.end(Kind::Mark, "]");
    }

    fn object(&mut self, object: &'j countersign_canon::Object, depth: usize) {
        if object.is_empty() {
            return self.end(Kind::Mark, "{}");
        }
        self.survey.keys(object, &self.path);
        self.end(Kind::Mark, "{");
        for (key, value) in object {
            self.canvas.open(depth + 1);
            self.key(key, depth + 1);
            self.path.push(Step::Member(key));
            self.value(value, depth + 1);
            self.path.pop();
        }
        self.canvas.open(depth);
        self.end(Kind::Mark, "}");
    }

    fn key(&mut self, key: &str, depth: usize) {
        if !fits_inline(key, Show::Label) {
            // As YAML writes a key that is too long for its line.
            self.canvas.push(Kind::Mark, "? ");
            self.block(key, depth);
            self.canvas.open(depth);
            return self.canvas.push(Kind::Mark, ": ");
        }
        match is_plain_key(key) {
            true => self.canvas.push(Kind::Key, key),
            false => self.inline(key, Kind::Key, Show::Label),
        }
        self.canvas.push(Kind::Mark, ": ");
    }

    fn string(&mut self, text: &str, depth: usize) {
        match !text.contains('\n') && fits_inline(text, Show::Text) {
            true => {
                self.inline(text, Kind::Text, Show::Text);
                self.canvas.close();
            }
            false => self.block(text, depth),
        }
    }

    fn inline(&mut self, text: &str, kind: Kind, show: Show) {
        self.canvas.push(Kind::Mark, "«");
        for piece in pieces(text, show) {
            match piece {
                Piece::Plain(plain) => self.canvas.push(kind, plain),
                Piece::Escaped(escape) => self.canvas.push(Kind::Escape, &escape.text()),
            }
        }
        self.canvas.push(Kind::Mark, "»");
    }

    fn block(&mut self, text: &str, depth: usize) {
        let extent = Extent::of(text);
        self.end(Kind::Note, &extent.note());
        self.lines(text, depth, Kind::Text);
    }

    fn number(&mut self, literal: &str, depth: usize) {
        if fits_inline(literal, Show::Text) {
            return self.end(Kind::Number, literal);
        }
        let note = format!("number, {}", plural(literal.len(), "char"));
        self.end(Kind::Note, &note);
        self.lines(literal, depth, Kind::Number);
    }

    fn lines(&mut self, text: &str, depth: usize, kind: Kind) {
        let place = (depth + 1, kind);
        let is_whole = block::write(&mut self.canvas, text, place, self.view);
        self.truncated += usize::from(!is_whole);
    }

    fn end(&mut self, kind: Kind, text: &str) {
        self.canvas.push(kind, text);
        self.canvas.close();
    }
}

/// A name that needs no quotes.
pub(crate) fn is_plain_key(key: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    key.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') && key.bytes().all(is_plain)
}

/// How the lines of the system, its warnings and the plan begin.
pub(crate) const HEAD: &str = "# ";
pub(crate) const WARN: &str = "! ";
pub(crate) const BODY: &str = "│ ";
