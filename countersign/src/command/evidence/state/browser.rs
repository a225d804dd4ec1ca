//! A part of a page, from its HTML.

use clap::{Args, ValueEnum};
use countersign_canon::Digest;
use countersign_evidence::state::{
    AttributeOrder, Browser, BrowserBoundary, BrowserIdentity, BrowserObserved, BrowserSelector,
    CapturePhase, Coverage, SelectorKind, StateDigest, WhitespacePolicy,
};
use ego_tree::NodeRef;
use scraper::node::Element;
use scraper::{ElementRef, Html, Node, Selector};

use super::failed;
use crate::errors::Failure;
use crate::input;

#[derive(Args)]
#[command(after_help = "\
The HTML is read as the standard says. The digest is SHA-256 over the selected elements in their order, each
written as `<name attribute=\"value\">`, what is in it, and `</name>`; in text and values `&`, `<`, `>` and
`\"` are written as references. Comments are left out. With --whitespace collapse a run of white space is one
space, and text of nothing else is left out. Scripts do not run: the capture is what somebody saved.

Examples:
  countersign evidence state browser-dom page.html --origin https://shop.example --route '/orders/{id}' \\
    --select main --phase stable-quiescent")]
pub(crate) struct BrowserDom {
    /// The HTML, or - for standard input
    file: String,
    /// The origin of the page
    #[arg(long, value_name = "ORIGIN")]
    origin: String,
    /// The route, as a template: /orders/{id}
    #[arg(long, value_name = "ROUTE")]
    route: String,
    /// The frame
    #[arg(long, value_name = "PATH", default_value = "/")]
    frame: String,
    /// Which elements, as a CSS selector
    #[arg(long, value_name = "SELECTOR", default_value = "html")]
    select: String,
    /// When it was captured
    #[arg(long, value_enum)]
    phase: Phase,
    /// The time of the capture
    #[arg(long, value_name = "UNIX_MS")]
    captured_at: Option<u64>,
    /// In which order attributes are digested
    #[arg(long, value_enum, default_value = "sorted-asc")]
    attributes: Attributes,
    /// What becomes of white space
    #[arg(long, value_enum, default_value = "collapse")]
    whitespace: Whitespace,
    /// Digest text only
    #[arg(long)]
    text_only: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Phase {
    /// Before scripts took over
    PreHydration,
    /// After they did
    PostHydration,
    /// After a tool answered
    PostToolResult,
    /// When nothing changed any more
    StableQuiescent,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Attributes {
    /// As they stand
    AsIs,
    /// By name
    SortedAsc,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Whitespace {
    /// Keep it
    Preserve,
    /// A run of it is one space
    Collapse,
}

impl BrowserDom {
    pub(super) fn digest(self) -> Result<StateDigest, Failure> {
        let bytes = input::file(&self.file, MAX_FILE)?;
        let html = String::from_utf8(bytes).map_err(|_| failed("the HTML is not UTF-8"))?;
        let selector = Selector::parse(&self.select)
            .map_err(|_| failed(format!("`{}` is no CSS selector", self.select)))?;
        let page = Html::parse_document(&html);
        let mut text = String::new();
        let mut found = false;
        for element in page.select(&selector) {
            found = true;
            self.write(element, &mut text);
        }
        if !found {
            return Err(failed(format!("`{}` selects nothing", self.select)));
        }
        let coverage = Coverage::BrowserDom(Browser {
            identity: BrowserIdentity {
                origin: self.origin,
                route_path: self.route,
                frame_path: self.frame,
            },
            selector: BrowserSelector {
                selector_root: self.select,
                selector_kind: SelectorKind::Css,
            },
            boundary: BrowserBoundary {
                capture_phase: match self.phase {
                    Phase::PreHydration => CapturePhase::PreHydration,
                    Phase::PostHydration => CapturePhase::PostHydration,
                    Phase::PostToolResult => CapturePhase::PostToolResult,
                    Phase::StableQuiescent => CapturePhase::StableQuiescent,
                },
                capture_timestamp_ms: self.captured_at,
                attribute_order: match self.attributes {
                    Attributes::AsIs => AttributeOrder::AsIs,
                    Attributes::SortedAsc => AttributeOrder::SortedAsc,
                },
                whitespace_policy: match self.whitespace {
                    Whitespace::Preserve => WhitespacePolicy::Preserve,
                    Whitespace::Collapse => WhitespacePolicy::Collapse,
                },
            },
            observed: BrowserObserved {
                text_only: Some(self.text_only),
            },
        });
        let digest = Digest::of(text.as_bytes()).to_string();
        Ok(StateDigest::new(digest, coverage))
    }

    /// Writes an element and what is in it. A page may be nested deeper than a stack, so the walk keeps its
    /// own.
    fn write(&self, root: ElementRef<'_>, out: &mut String) {
        let mut open = vec![Step::Enter(*root)];
        while let Some(step) = open.pop() {
            let node = match step {
                Step::Leave(name) => {
                    out.push_str(&format!("</{name}>"));
                    continue;
                }
                Step::Enter(node) => node,
            };
            match node.value() {
                Node::Element(element) => {
                    if !self.text_only {
                        self.tag(element, out);
                        open.push(Step::Leave(element.name().to_owned()));
                    }
                    let children: Vec<_> = node.children().collect();
                    open.extend(children.into_iter().rev().map(Step::Enter));
                }
                Node::Text(text) => self.text(text, out),
                _ => {}
            }
        }
    }

    fn tag(&self, element: &Element, out: &mut String) {
        let mut attributes: Vec<(&str, &str)> = element.attrs().collect();
        if self.attributes == Attributes::SortedAsc {
            attributes.sort_unstable();
        }
        out.push('<');
        out.push_str(element.name());
        for (name, value) in attributes {
            out.push_str(&format!(" {name}=\"{}\"", escaped(value)));
        }
        out.push('>');
    }

    fn text(&self, text: &str, out: &mut String) {
        if self.whitespace == Whitespace::Preserve {
            out.push_str(&escaped(text));
            return;
        }
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        if words.is_empty() {
            return;
        }
        let edge = |is_space: bool| if is_space { " " } else { "" };
        let starts = text.starts_with(|letter: char| letter.is_ascii_whitespace());
        let ends = text.ends_with(|letter: char| letter.is_ascii_whitespace());
        out.push_str(edge(starts));
        out.push_str(&escaped(&words.join(" ")));
        out.push_str(edge(ends));
    }
}

enum Step<'a> {
    Enter(NodeRef<'a, Node>),
    Leave(String),
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

const MAX_FILE: usize = 64 << 20;
