//! What a human sees of a plan before deciding: a total, injective rendering of its canonical bytes.
//!
//! [`Rendering::of`] takes the very bytes that the plan hash covers and gives lines of marked spans,
//! for a terminal, the HTTP API and a web page alike. Its plain text is one-to-one: [`parse_back`]
//! recovers the canonical bytes from it, so no two plans look the same. What would not show, or would
//! show as something else (controls, direction overrides, zero-width, tag and private-use characters,
//! combining marks, unassigned code points), is written as `⟨U+XXXX⟩`. [`AgentSays`] keeps text that
//! an agent wrote apart from what is known, and [`quote`] makes a name or a reason safe for one line.
//!
//! ```
//! use countersign_display::{Rendering, View, parse_back};
//!
//! let plan = br#"{"n":1.0,"path":"a\u202e.txt"}"#;
//! let shown = Rendering::of(plan, View::Full)?;
//! assert!(shown.text().contains("path: «a⟨U+202E⟩.txt»"));
//! assert!(shown.is_complete());
//! assert_eq!(parse_back(shown.text())?, plan);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The crate does *not* decide, colour, wrap to a window or escape HTML, and it knows nothing of what
//! the members of a plan mean. Channels must show every line that they are given, left to right.

#![forbid(unsafe_code)]

mod agent;
mod alike;
mod back;
mod block;
mod character;
mod lookalike;
mod piece;
mod quoted;
mod render;
mod sheet;
mod survey;
mod warning;

pub use agent::AgentSays;
pub use alike::{alike, is_invisible, outlines, unseen};
pub use back::{ParseBackError, parse_back};
pub use character::Hidden;
pub use quoted::{quote, shell, short};
pub use render::{NotCanonical, Rendering, Stats, View};
pub use sheet::{Kind, Line, Sheet, Span};
pub use warning::{Subject, Warning};
