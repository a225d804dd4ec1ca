//! Which characters show as themselves.

use std::iter::once;

use unicode_normalization::{IsNormalized, is_nfc_quick};
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};
use unicode_script::{Script, UnicodeScript};

/// Why a character is written as `⟨U+XXXX⟩` instead of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hidden {
    /// A control character other than the tab.
    Control,
    /// A character that changes the direction of text.
    Direction,
    /// A character that right-to-left text beside it would move, or a right-to-left letter that
    /// would move others.
    Reordered,
    /// Zero width, a filler, a placeholder, or another character that is ignored when shown.
    Invisible,
    /// A tag character.
    Tag,
    /// A variation selector.
    Variation,
    /// A code point for private use.
    Private,
    /// A code point without a character.
    Unassigned,
    /// A code point that never will have one.
    Noncharacter,
    /// A separator of lines or paragraphs.
    Separator,
    /// A tab, a space that is not U+0020, or spaces in a row or at an end.
    Space,
    /// A mark that would change the character before it.
    Combining,
    /// A character that joins with its neighbour into one sign.
    Joining,
    /// A character that looks like its canonical equivalent.
    Equivalent,
    /// One of the characters that the rendering itself uses: `⟨`, `⟩`, `«`, `»`.
    Reserved,
}

impl Hidden {
    /// Whether it serves to deceive more often than to write.
    pub const fn is_alarming(self) -> bool {
        !matches!(
            self,
            Self::Space
                | Self::Reordered
                | Self::Combining
                | Self::Joining
                | Self::Equivalent
                | Self::Reserved
        )
    }

    /// A name for several of them.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Control => "control characters",
            Self::Direction => "characters that change the direction of text",
            Self::Reordered => "characters beside right-to-left text",
            Self::Invisible => "invisible characters",
            Self::Tag => "tag characters",
            Self::Variation => "variation selectors",
            Self::Private => "private-use characters",
            Self::Unassigned => "unassigned code points",
            Self::Noncharacter => "noncharacters",
            Self::Separator => "line or paragraph separators",
            Self::Space => "unusual spaces",
            Self::Combining => "combining marks",
            Self::Joining => "joining characters",
            Self::Equivalent => "characters with a canonical equivalent",
            Self::Reserved => "characters that this display uses itself",
        }
    }
}

/// Why a character never shows as itself, whatever stands around it.
pub(crate) fn hidden(c: char) -> Option<Hidden> {
    match c {
        ' '..='~' => None,
        '\t' => Some(Hidden::Space),
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' => Some(Hidden::Control),
        // Letters of everyday text, without a search in tables.
        _ if is_everyday_letter(c) => None,
        '⟨' | '⟩' | '«' | '»' => Some(Hidden::Reserved),
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            Some(Hidden::Direction)
        }
        '\u{180b}'..='\u{180d}'
        | '\u{180f}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{e0100}'..='\u{e01ef}' => Some(Hidden::Variation),
        '\u{e0000}'..='\u{e007f}' => Some(Hidden::Tag),
        // Ignored when shown, blank, or what a screen shows for something it cannot.
        '\u{34f}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{2065}'
        | '\u{2800}'
        | '\u{3164}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fff8}'
        | '\u{fffc}'
        | '\u{fffd}'
        | '\u{e0080}'..='\u{e0fff}' => Some(Hidden::Invisible),
        // Conjoining jamo, regional indicators, skin tones; phrases in one code point.
        '\u{1100}'..='\u{11ff}'
        | '\u{a960}'..='\u{a97f}'
        | '\u{d7b0}'..='\u{d7ff}'
        | '\u{fdf0}'..='\u{fdff}'
        | '\u{1f1e6}'..='\u{1f1ff}'
        | '\u{1f3fb}'..='\u{1f3ff}' => Some(Hidden::Joining),
        _ if is_noncharacter(c) => Some(Hidden::Noncharacter),
        _ => by_category(c),
    }
}

fn is_everyday_letter(c: char) -> bool {
    matches!(c,
        '\u{c0}'..='\u{24f}'
        | '\u{410}'..='\u{44f}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7a3}')
}

fn by_category(c: char) -> Option<Hidden> {
    match c.general_category() {
        GeneralCategory::Control => Some(Hidden::Control),
        GeneralCategory::Format => Some(Hidden::Invisible),
        GeneralCategory::PrivateUse => Some(Hidden::Private),
        GeneralCategory::Unassigned | GeneralCategory::Surrogate => Some(Hidden::Unassigned),
        GeneralCategory::LineSeparator | GeneralCategory::ParagraphSeparator => {
            Some(Hidden::Separator)
        }
        GeneralCategory::SpaceSeparator => Some(Hidden::Space),
        GeneralCategory::EnclosingMark => Some(Hidden::Combining),
        GeneralCategory::NonspacingMark | GeneralCategory::SpacingMark if !has_script(c) => {
            Some(Hidden::Combining)
        }
        _ if is_nfc_quick(once(c)) == IsNormalized::No => Some(Hidden::Equivalent),
        _ => None,
    }
}

fn is_noncharacter(c: char) -> bool {
    matches!(c, '\u{fdd0}'..='\u{fdef}') || u32::from(c) & 0xfffe == 0xfffe
}

/// Whether the character belongs to one script, and not to whatever stands before it.
fn has_script(c: char) -> bool {
    !matches!(
        c.script(),
        Script::Inherited | Script::Common | Script::Unknown
    )
}

/// Whether the character changes the one before it.
pub(crate) fn is_mark(c: char) -> bool {
    // The first combining mark of all is U+0300.
    c >= '\u{300}'
        && !is_everyday_letter(c)
        && matches!(
            c.general_category(),
            GeneralCategory::NonspacingMark
                | GeneralCategory::SpacingMark
                | GeneralCategory::EnclosingMark
        )
}

/// Whether the character stands in a block that is written from right to left (UAX 9 gives these to
/// unassigned code points as well).
pub(crate) fn is_right_to_left(c: char) -> bool {
    matches!(c,
        '\u{590}'..='\u{8ff}'
        | '\u{fb1d}'..='\u{fdff}'
        | '\u{fe70}'..='\u{feff}'
        | '\u{10800}'..='\u{10fff}'
        | '\u{1e800}'..='\u{1efff}')
}
