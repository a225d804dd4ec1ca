//! What an agent says about itself, kept apart.

use countersign_canon::Hash;

use crate::block::{self, Canvas, Extent, plural};
use crate::render::{View, warn};
use crate::sheet::{Kind, Sheet};
use crate::survey::Survey;
use crate::warning::Warning;

/// Text from an agent in a box of its own. Nobody has checked it.
///
/// Every line of the text begins with [`AgentSays::EDGE`], and no line of a
/// [`Rendering`](crate::Rendering) does, so the text cannot pass for what the system says.
#[derive(Clone, Debug)]
pub struct AgentSays {
    sheet: Sheet,
    warnings: Vec<Warning>,
    is_complete: bool,
}

impl AgentSays {
    /// How each line of the agent's text begins.
    pub const EDGE: &str = "┆ ";

    /// Puts a text into the box.
    pub fn of(text: &str, view: View) -> Self {
        let mut survey = Survey::default();
        survey.text(text, &[]);
        let hidden = survey.hidden_count();
        let (warnings, left_out) = survey.finish();
        let mut canvas = Canvas::new(Self::EDGE);
        let is_complete = block::write(&mut canvas, text, (0, Kind::Text), view);
        let mut sheet = Sheet::default();
        let note = Extent::of(text).note();
        let hidden = plural(hidden, "hidden character");
        let title = format!("╭ agent says (unverified): {note}, {hidden}");
        sheet.push_line(Kind::Heading, &title);
        warn(&mut sheet, &warnings, left_out);
        sheet.append(&canvas.sheet);
        sheet.push_line(Kind::Heading, "╰ end of what the agent says");
        Self {
            sheet,
            warnings,
            is_complete,
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

    /// SHA-256 over the plain text.
    pub fn display_sha256(&self) -> Hash {
        self.sheet.sha256()
    }

    /// What to look at twice.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Whether the whole text is shown.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }
}
