//! From parser events to a value, without recursion.

use std::borrow::Cow;
use std::collections::BTreeMap;

use countersign_canon::{Json, Limits};
use saphyr_parser::{Event, ScalarStyle, Tag};

use super::{YamlFault, scalar};

/// Containers that are still open, and the document once it is closed.
pub(super) struct Builder {
    limits: Limits,
    open: Vec<Container>,
    document: Option<Json>,
    documents: usize,
}

enum Container {
    List(Vec<Json>),
    Map {
        members: BTreeMap<String, Json>,
        key: Option<String>,
    },
}

impl Builder {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            limits: *limits,
            open: Vec::new(),
            document: None,
            documents: 0,
        }
    }

    /// The document; without one, `null`.
    pub(super) fn finish(self) -> Json {
        self.document.unwrap_or(Json::Null)
    }

    pub(super) fn take(&mut self, event: Event<'_>) -> Result<(), YamlFault> {
        match event {
            Event::DocumentStart(_) => self.start_document(),
            Event::Alias(_) => Err(YamlFault::Anchor),
            Event::Scalar(text, style, anchor, tag) => {
                check_properties(anchor, tag.as_ref())?;
                self.scalar(&text, style)
            }
            Event::SequenceStart(anchor, tag) => {
                check_properties(anchor, tag.as_ref())?;
                self.push(Container::List(Vec::new()))
            }
            Event::MappingStart(anchor, tag) => {
                check_properties(anchor, tag.as_ref())?;
                self.push(Container::Map {
                    members: BTreeMap::new(),
                    key: None,
                })
            }
            Event::SequenceEnd | Event::MappingEnd => self.pop(),
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
        }
    }

    fn start_document(&mut self) -> Result<(), YamlFault> {
        self.documents += 1;
        match self.documents {
            1 => Ok(()),
            _ => Err(YamlFault::Documents),
        }
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle) -> Result<(), YamlFault> {
        let is_plain = style == ScalarStyle::Plain;
        match self.open.last_mut() {
            Some(Container::Map { members, key }) if key.is_none() => {
                check_key(text, is_plain, &self.limits)?;
                if members.contains_key(text) {
                    return Err(YamlFault::DuplicateKey(text.to_owned()));
                }
                *key = Some(text.to_owned());
                Ok(())
            }
            _ => {
                let value = value(text, is_plain, &self.limits)?;
                self.add(value);
                Ok(())
            }
        }
    }

    fn push(&mut self, container: Container) -> Result<(), YamlFault> {
        if let Some(Container::Map { key: None, .. }) = self.open.last() {
            return Err(YamlFault::Key);
        }
        let limit = self.limits.max_depth.min(DEEPEST);
        if self.open.len() >= limit {
            return Err(YamlFault::TooDeep { limit });
        }
        self.open.push(container);
        Ok(())
    }

    fn pop(&mut self) -> Result<(), YamlFault> {
        match self.open.pop() {
            Some(Container::List(elements)) => self.add(Json::Array(elements)),
            Some(Container::Map { members, .. }) => self.add(Json::object(members)),
            None => {}
        }
        Ok(())
    }

    fn add(&mut self, value: Json) {
        match self.open.last_mut() {
            Some(Container::List(elements)) => elements.push(value),
            Some(Container::Map { members, key }) => {
                members.extend(key.take().map(|key| (key, value)));
            }
            None => self.document = Some(value),
        }
    }
}

fn check_properties(anchor: usize, tag: Option<&Cow<'_, Tag>>) -> Result<(), YamlFault> {
    match (anchor, tag) {
        (0, None) => Ok(()),
        (0, Some(_)) => Err(YamlFault::Tag),
        _ => Err(YamlFault::Anchor),
    }
}

fn check_key(text: &str, is_plain: bool, limits: &Limits) -> Result<(), YamlFault> {
    match value(text, is_plain, limits) {
        Ok(Json::String(_)) if is_plain && text == "<<" => Err(YamlFault::MergeKey),
        Ok(Json::String(_)) => Ok(()),
        _ => Err(YamlFault::Key),
    }
}

fn value(text: &str, is_plain: bool, limits: &Limits) -> Result<Json, YamlFault> {
    match is_plain {
        true => scalar::plain(text, limits),
        false => Ok(Json::from(text)),
    }
}

/// SECURITY: bounds the recursion of whoever walks the value, whatever a caller asks for.
const DEEPEST: usize = 128;
