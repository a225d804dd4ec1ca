//! A badge.

use countersign_canon::Json;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Color {
    Green,
    /// Nothing failed, but not everything was tried.
    Yellow,
    Red,
}

impl Color {
    const fn name(self) -> &'static str {
        match self {
            Self::Green => "brightgreen",
            Self::Yellow => "yellow",
            Self::Red => "red",
        }
    }

    const fn hex(self) -> &'static str {
        match self {
            Self::Green => "#2e7d32",
            Self::Yellow => "#8d6e00",
            Self::Red => "#b3261e",
        }
    }
}

pub(crate) fn shield(message: &str, color: Color) -> Json {
    Json::object([
        ("schemaVersion", Json::from(1_u64)),
        ("label", Json::from(LABEL)),
        ("message", Json::from(message)),
        ("color", Json::from(color.name())),
    ])
}

/// The message is digits and a stroke; nothing in it needs escaping.
pub(crate) fn svg(message: &str, color: Color) -> String {
    let (left, right) = (LABEL.len() * LETTER + 20, message.len() * LETTER + 20);
    let (width, fill) = (left + right, color.hex());
    let (middle_left, middle_right) = (left / 2, left + right / 2);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"20\" role=\"img\" \
         aria-label=\"{LABEL}: {message}\"><title>{LABEL}: {message}</title>\
         <rect width=\"{left}\" height=\"20\" fill=\"#444\"/>\
         <rect x=\"{left}\" width=\"{right}\" height=\"20\" fill=\"{fill}\"/>\
         <g fill=\"#fff\" text-anchor=\"middle\" font-family=\"Verdana,DejaVu Sans,sans-serif\" font-size=\"11\">\
         <text x=\"{middle_left}\" y=\"14\">{LABEL}</text>\
         <text x=\"{middle_right}\" y=\"14\">{message}</text></g></svg>\n"
    )
}

const LABEL: &str = "countersign conformance";
const LETTER: usize = 7;
