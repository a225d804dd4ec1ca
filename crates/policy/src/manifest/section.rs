//! Strict, typed reading of one JSON object, with every fault noted.

use std::fmt::Display;

use countersign_canon::{Json, Object};

use super::error::Problem;
use super::named::Named;
use super::near::nearest;
use super::pointer::segment;
use countersign_canon::Quoted;

/// An object being read. Faults go to the list that all sections of a document share; reading goes
/// on after a fault, so that all of them are found.
pub struct Section<'j, 'p> {
    members: Option<&'j Object>,
    pointer: String,
    problems: &'p mut Vec<Problem>,
}

impl<'j, 'p> Section<'j, 'p> {
    /// The whole document.
    pub fn root(source: &'j Json, problems: &'p mut Vec<Problem>) -> Self {
        let mut section = Self {
            members: source.as_object(),
            pointer: String::new(),
            problems,
        };
        if section.members.is_none() {
            section.note_type("", "an object", source);
        }
        section
    }

    /// Whether there is anything to read from.
    pub fn is_object(&self) -> bool {
        self.members.is_some()
    }

    /// An object inside this one; empty if it is absent or no object.
    pub fn section(&mut self, name: &str) -> Section<'j, '_> {
        let members = match self.value(name) {
            Some(Json::Object(members)) => Some(members),
            Some(other) => {
                self.note_type(&segment(name), "an object", other);
                None
            }
            None => None,
        };
        Section {
            members,
            pointer: format!("{}{}", self.pointer, segment(name)),
            problems: self.problems,
        }
    }

    /// Notes every field that is not in the list.
    #[must_use = "gives the section back"]
    pub fn only(mut self, known: &[&'static str]) -> Self {
        let names = self.names();
        for name in names.filter(|name| !known.contains(name)) {
            let message = match nearest(name, known) {
                Some(near) => format!("unknown field, did you mean `{near}`?"),
                None => format!("unknown field, expected one of {}", list(known)),
            };
            self.note(&segment(name), message);
        }
        self
    }

    /// The names of all fields.
    pub fn names(&self) -> impl Iterator<Item = &'j str> + use<'j> {
        self.members.into_iter().flatten().map(|(name, _)| name)
    }

    /// The value of a field.
    pub fn value(&self, name: &str) -> Option<&'j Json> {
        self.members?.get(name)
    }

    /// A text that has to be there and to say something.
    pub fn required_text(&mut self, name: &str) -> String {
        match self.value(name) {
            None => self.note(&segment(name), "missing"),
            Some(_) => return self.text(name).unwrap_or_default().to_owned(),
        }
        String::new()
    }

    /// A text that says something, if it is there.
    pub fn text(&mut self, name: &str) -> Option<&'j str> {
        let value = self.value(name)?;
        self.check_text(&segment(name), value)
    }

    /// A boolean, if it is there.
    pub fn flag(&mut self, name: &str) -> Option<bool> {
        let value = self.value(name)?;
        if value.as_bool().is_none() {
            self.note_type(&segment(name), "a boolean", value);
        }
        value.as_bool()
    }

    /// A count, if it is there.
    pub fn count(&mut self, name: &str) -> Option<u64> {
        let value = self.value(name)?;
        if value.as_u64().is_none() {
            self.note_type(&segment(name), "a non-negative integer", value);
        }
        value.as_u64()
    }

    /// A list of texts, each turned into what it stands for.
    pub fn each<T, E: Display>(
        &mut self,
        name: &str,
        read: impl Fn(&'j str) -> Result<T, E>,
    ) -> Option<Vec<T>> {
        let value = self.value(name)?;
        let Some(elements) = value.as_array() else {
            self.note_type(&segment(name), "an array of strings", value);
            return None;
        };
        let mut values = Vec::new();
        for (index, element) in elements.iter().enumerate() {
            let at = format!("{}/{index}", segment(name));
            values.extend(self.element(&at, element, &read));
        }
        Some(values)
    }

    /// A text, or a list of texts.
    pub fn one_or_each<T, E: Display>(
        &mut self,
        name: &str,
        read: impl Fn(&'j str) -> Result<T, E>,
    ) -> Vec<T> {
        match self.value(name) {
            Some(one @ Json::String(_)) => self
                .element(&segment(name), one, read)
                .into_iter()
                .collect(),
            _ => self.each(name, read).unwrap_or_default(),
        }
    }

    /// A text, turned into what it stands for.
    pub fn parsed<T, E: Display>(
        &mut self,
        name: &str,
        read: impl Fn(&'j str) -> Result<T, E>,
    ) -> Option<T> {
        let value = self.value(name)?;
        self.element(&segment(name), value, read)
    }

    fn element<T, E: Display>(
        &mut self,
        at: &str,
        value: &'j Json,
        read: impl Fn(&'j str) -> Result<T, E>,
    ) -> Option<T> {
        let text = self.check_text(at, value)?;
        match read(text) {
            Ok(value) => Some(value),
            Err(error) => {
                self.note(at, error);
                None
            }
        }
    }

    /// One of a few names.
    pub fn choice<T: Named>(&mut self, name: &str) -> Option<T> {
        self.parsed(name, |text| {
            T::from_name(text).ok_or_else(|| {
                let known: Vec<&str> = T::NAMES.iter().map(|(name, _)| *name).collect();
                format!("{} is not one of {}", Quoted(text), list(&known))
            })
        })
    }

    /// Notes a fault at a place below this section. A text made to be wrong is not worth more than
    /// so many of them.
    pub fn note(&mut self, at: &str, message: impl Display) {
        if self.problems.len() < MOST_PROBLEMS {
            let pointer = format!("{}{at}", self.pointer);
            let problem = Problem::new(pointer, message.to_string());
            self.problems.push(problem);
        }
    }

    fn check_text(&mut self, at: &str, value: &'j Json) -> Option<&'j str> {
        match value.as_str() {
            None => self.note_type(at, "a string", value),
            Some("") => self.note(at, "must not be empty"),
            Some(_) => {}
        }
        value.as_str().filter(|text| !text.is_empty())
    }

    fn note_type(&mut self, at: &str, expected: &str, found: &Json) {
        self.note(at, format!("expected {expected}, found {}", kind(found)));
    }
}

/// What a value is, in a message.
fn kind(value: &Json) -> String {
    match value {
        Json::Null => "null".to_owned(),
        Json::Bool(_) => "a boolean".to_owned(),
        Json::Number(number) => format!("the number {}", Quoted(&number.to_string())),
        Json::String(_) => "a string".to_owned(),
        Json::Array(_) => "an array".to_owned(),
        Json::Object(_) => "an object".to_owned(),
    }
}

fn list(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

const MOST_PROBLEMS: usize = 1000;
