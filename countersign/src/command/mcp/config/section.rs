//! One table of the file, and how to say what is wrong with it.

use countersign_policy::manifest::nearest;
use toml_edit::{Item, TableLike};

/// A table.
pub(super) struct Section<'t> {
    text: &'t str,
    /// `servers.files`; nothing for the file itself.
    name: String,
    at: usize,
    table: &'t dyn TableLike,
}

impl<'t> Section<'t> {
    pub(super) fn root(text: &'t str, table: &'t dyn TableLike) -> Self {
        Self {
            text,
            name: String::new(),
            at: 0,
            table,
        }
    }

    /// Other keys than these are mistakes.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), String> {
        let mut keys = self.table.iter().map(|(key, _)| key);
        let Some(key) = keys.find(|key| !known.contains(key)) else {
            return Ok(());
        };
        let hint = match nearest(key, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                let known: Vec<String> = known.iter().map(|one| format!("`{one}`")).collect();
                format!("expected one of {}", known.join(", "))
            }
        };
        let place = self.place();
        Err(format!(
            "{}: unknown key `{key}`{place}, {hint}",
            self.line_of(key)
        ))
    }

    pub(super) fn string(&self, key: &str) -> Result<Option<String>, String> {
        self.read(key, "must be a text", |item| {
            item.as_str().map(str::to_owned)
        })
    }

    pub(super) fn strings(&self, key: &str) -> Result<Option<Vec<String>>, String> {
        self.read(key, "must be a list of texts", |item| {
            let words = item.as_array()?.iter();
            words.map(|word| word.as_str().map(str::to_owned)).collect()
        })
    }

    pub(super) fn boolean(&self, key: &str) -> Result<Option<bool>, String> {
        self.read(key, "must be true or false", Item::as_bool)
    }

    pub(super) fn seconds(&self, key: &str) -> Result<Option<u64>, String> {
        self.read(key, "must be a number of seconds", |item| {
            item.as_integer().and_then(|number| number.try_into().ok())
        })
    }

    /// One of a few words.
    pub(super) fn choice<T>(
        &self,
        key: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, String> {
        let Some(word) = self.string(key)? else {
            return Ok(None);
        };
        let wrong = |_| self.wrong(key, &format!("cannot be `{word}`"));
        parse(&word).map(Some).map_err(wrong)
    }

    /// The table under this key.
    pub(super) fn table(&self, key: &str) -> Result<Option<Section<'t>>, String> {
        self.table
            .get(key)
            .map(|item| self.below(key, item))
            .transpose()
    }

    /// All tables in this one.
    pub(super) fn tables(&self) -> Result<Vec<(&'t str, Section<'t>)>, String> {
        let each = self.table.iter();
        each.map(|(key, item)| Ok((key, self.below(key, item)?)))
            .collect()
    }

    /// All texts in this one.
    pub(super) fn all_strings(&self) -> Result<Vec<(String, String)>, String> {
        let each = self.table.iter().map(|(key, _)| key);
        each.map(|key| Ok((key.to_owned(), self.string(key)?.unwrap_or_default())))
            .collect()
    }

    /// A key that has no place here.
    pub(super) fn absent(&self, key: &str, why: &str) -> Result<(), String> {
        match self.table.contains_key(key) {
            true => Err(self.wrong(key, why)),
            false => Ok(()),
        }
    }

    pub(super) fn wrong(&self, key: &str, why: &str) -> String {
        format!("{}: `{key}`{} {why}", self.line_of(key), self.place())
    }

    pub(super) fn here(&self, why: &str) -> String {
        format!("{}: [{}]: {why}", line(self.text, self.at), self.name)
    }

    fn read<T>(
        &self,
        key: &str,
        why: &str,
        read: impl Fn(&Item) -> Option<T>,
    ) -> Result<Option<T>, String> {
        let Some(item) = self.table.get(key) else {
            return Ok(None);
        };
        read(item).map(Some).ok_or_else(|| self.wrong(key, why))
    }

    fn below(&self, key: &str, item: &'t Item) -> Result<Section<'t>, String> {
        let table = item.as_table_like();
        let table = table.ok_or_else(|| self.wrong(key, "must be a table"))?;
        let name = match self.name.as_str() {
            "" => key.to_owned(),
            name => format!("{name}.{key}"),
        };
        Ok(Section {
            text: self.text,
            at: item.span().map_or(self.at, |span| span.start),
            name,
            table,
        })
    }

    fn place(&self) -> String {
        match self.name.as_str() {
            "" => String::new(),
            name => format!(" in [{name}]"),
        }
    }

    fn line_of(&self, key: &str) -> String {
        let span = self
            .table
            .get_key_value(key)
            .and_then(|(key, _)| key.span());
        line(self.text, span.map_or(self.at, |span| span.start))
    }
}

/// The line in which a byte stands, as people count.
pub(super) fn line(text: &str, at: usize) -> String {
    let before = text.as_bytes().iter().take(at);
    format!("line {}", 1 + before.filter(|byte| **byte == b'\n').count())
}
