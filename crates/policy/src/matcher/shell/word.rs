//! Words of a command, as far as they are known before it runs.

/// A word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Word {
    /// The text up to the first expansion.
    pub(super) text: String,
    /// Whether that is all of it.
    pub(super) is_exact: bool,
    /// Whether it can become several words, which then may begin with anything.
    pub(super) splits: bool,
    /// Whether a part of it was quoted, so that it is no reserved word.
    pub(super) is_quoted: bool,
}

impl Word {
    pub(super) fn exact(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            is_exact: true,
            splits: false,
            is_quoted: true,
        }
    }

    /// Words that come from elsewhere.
    pub(super) fn anything() -> Self {
        Self {
            splits: true,
            ..Self::default()
        }
    }

    /// The text, if it is known.
    pub(super) fn as_exact(&self) -> Option<&str> {
        self.is_exact.then_some(self.text.as_str())
    }

    /// Whether it is certain that this is no option.
    pub(super) fn is_operand(&self) -> bool {
        match self.is_exact {
            true => !self.text.starts_with('-') || self.text == "-",
            false => !self.splits && !self.text.is_empty() && !self.text.starts_with('-'),
        }
    }

    /// Whether it may name a place that holds more than files: the environment of a process, a
    /// device, a socket.
    pub(super) fn may_be_special(&self) -> bool {
        let text = self.text.as_str();
        let parts = || text.split(['/', '=']);
        let is_rooted = text.starts_with('/') || text.contains("=/");
        // `/*` and `/d*` may become `/dev` and `/proc`.
        let is_open_root = !self.is_exact && is_rooted && parts().nth(2).is_none();
        let is_below = |name: &str| is_rooted && parts().any(|part| part == name);
        let names_one = is_below("dev")
            || is_below("sys")
            || text.contains('/') && parts().any(|part| part == "proc")
            || parts().any(|part| part == "environ");
        let is_harmless = self.is_exact && HARMLESS.contains(&text);
        !is_harmless && (is_open_root || names_one)
    }
}

const HARMLESS: &[&str] = &["/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"];
