//! Reading the flat members of a coverage, collecting everything that is wrong with them.

use countersign_canon::{Json, Object};

use crate::word::Word;

/// What is wrong with a coverage.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{member}` {fault}")]
pub struct CoverageProblem {
    /// The member, as a path below the coverage.
    pub member: String,
    /// What is wrong with it.
    pub fault: CoverageFault,
}

/// How a member of a coverage is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CoverageFault {
    /// It has to be there.
    #[error("is missing")]
    Missing,
    /// It is of another type.
    #[error("is not {0}")]
    NotA(&'static str),
    /// It is not one of the closed words.
    #[error("is none of the words that it may be")]
    UnknownWord,
    /// It has the wrong form.
    #[error("is not {0}")]
    Form(&'static str),
}

/// The members of a coverage that were not read yet.
pub(super) struct Members<'a> {
    rest: Object,
    prefix: &'static str,
    problems: &'a mut Vec<CoverageProblem>,
}

impl<'a> Members<'a> {
    pub(super) fn new(
        object: &Object,
        prefix: &'static str,
        problems: &'a mut Vec<CoverageProblem>,
    ) -> Self {
        Self {
            rest: object.clone(),
            prefix,
            problems,
        }
    }

    /// What nobody asked for.
    pub(super) fn rest(self) -> Object {
        self.rest
    }

    pub(super) fn problem(&mut self, member: &str, fault: CoverageFault) {
        self.problems.push(CoverageProblem {
            member: format!("{}{member}", self.prefix),
            fault,
        });
    }

    pub(super) fn is_text(&self, name: &str) -> bool {
        matches!(self.rest.get(name), Some(Json::String(_)))
    }

    pub(super) fn text(&mut self, name: &str) -> String {
        let text = self.optional_text(name);
        self.required(name, text)
    }

    /// A text that names something, so it is not empty.
    pub(super) fn name(&mut self, name: &str) -> String {
        let text = self.optional_text(name);
        if text.as_deref() == Some("") {
            self.problem(name, CoverageFault::NotA("a name: it is empty"));
        }
        self.required(name, text)
    }

    pub(super) fn optional_text(&mut self, name: &str) -> Option<String> {
        self.taken(name, "a string", Json::into_string)
    }

    pub(super) fn list(&mut self, name: &str) -> Vec<String> {
        let list = self.optional_list(name);
        self.required(name, list)
    }

    pub(super) fn optional_list(&mut self, name: &str) -> Option<Vec<String>> {
        self.taken(name, "a list of strings", |value| {
            let elements = value.into_array()?.into_iter();
            elements.map(Json::into_string).collect()
        })
    }

    pub(super) fn flag(&mut self, name: &str) -> bool {
        let flag = self.optional_flag(name);
        self.required(name, flag)
    }

    pub(super) fn optional_flag(&mut self, name: &str) -> Option<bool> {
        self.taken(name, "a boolean", |value| value.as_bool())
    }

    pub(super) fn count(&mut self, name: &str) -> Option<u64> {
        self.taken(name, "a whole number", |value| value.as_u64())
    }

    pub(super) fn object(&mut self, name: &str) -> Option<Object> {
        self.taken(name, "an object", Json::into_object)
    }

    /// A word of a closed vocabulary; `fallback` stands in for it where there is a problem.
    pub(super) fn word<W: Word>(&mut self, name: &str, fallback: W) -> W {
        match self.optional_text(name) {
            Some(text) => W::named(&text).unwrap_or_else(|| {
                self.problem(name, CoverageFault::UnknownWord);
                fallback
            }),
            None => {
                self.missing(name);
                fallback
            }
        }
    }

    fn taken<T>(
        &mut self,
        name: &str,
        expected: &'static str,
        read: impl FnOnce(Json) -> Option<T>,
    ) -> Option<T> {
        let value = self.rest.remove(name)?;
        let value = read(value);
        if value.is_none() {
            self.problem(name, CoverageFault::NotA(expected));
        }
        value
    }

    fn required<T: Default>(&mut self, name: &str, value: Option<T>) -> T {
        value.unwrap_or_else(|| {
            self.missing(name);
            T::default()
        })
    }

    /// A member of the wrong type was told already.
    fn missing(&mut self, name: &str) {
        let member = format!("{}{name}", self.prefix);
        if !self.problems.iter().any(|problem| problem.member == member) {
            self.problem(name, CoverageFault::Missing);
        }
    }
}
