//! Reading answers: what is not there is shown as not there, and nothing fails.

use countersign_canon::{Json, Limits, Numbers};

/// A look at a value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look<'a>(pub(crate) Option<&'a Json>);

impl<'a> Look<'a> {
    pub(crate) fn at(json: &'a Json) -> Self {
        Self(Some(json))
    }

    /// A member, or a member of a member: `plan.scope`.
    pub(crate) fn get(self, path: &str) -> Self {
        let found = self.0.and_then(|json| {
            let mut names = path.split('.');
            names.try_fold(json, |json, name| json.get(name))
        });
        Self(found)
    }

    pub(crate) fn text(self, path: &str) -> &'a str {
        self.maybe_text(path).unwrap_or("")
    }

    pub(crate) fn maybe_text(self, path: &str) -> Option<&'a str> {
        self.get(path).0?.as_str()
    }

    pub(crate) fn number(self, path: &str) -> Option<u64> {
        self.get(path).0?.as_u64()
    }

    pub(crate) fn is(self, path: &str) -> bool {
        self.get(path).0.and_then(Json::as_bool).unwrap_or(false)
    }

    pub(crate) fn list(self, path: &str) -> impl Iterator<Item = Look<'a>> + use<'a> {
        let list = self.get(path).0.and_then(Json::as_array);
        list.unwrap_or_default().iter().map(Look::at)
    }

    pub(crate) fn texts(self, path: &str) -> Vec<&'a str> {
        self.list(path)
            .filter_map(|one| one.0.and_then(Json::as_str))
            .collect()
    }

    pub(crate) fn members(self, path: &str) -> impl Iterator<Item = (&'a str, Look<'a>)> + use<'a> {
        let members = self.get(path).0.and_then(Json::as_object);
        let members = members.into_iter().flat_map(|members| members.iter());
        members.map(|(name, value)| (name, Look::at(value)))
    }

    /// As one line of JSON.
    pub(crate) fn json(self) -> String {
        let json = self.0.map(Json::to_sorted_ascii).unwrap_or_default();
        String::from_utf8_lossy(&json).into_owned()
    }
}

/// A value that is kept as text, because others would round its numbers.
pub(crate) fn parsed(text: &str) -> Json {
    Json::admit(text.as_bytes(), &ANY).unwrap_or(Json::Null)
}

const ANY: Limits = Limits {
    max_bytes: usize::MAX,
    max_depth: 200,
    numbers: Numbers::Exact,
};
