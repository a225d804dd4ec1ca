//! Which options keep a program read-only.

use super::Effect;
use super::word::Word;

/// What a program may be told.
#[derive(Clone, Copy)]
pub(super) enum Rule {
    /// Anything: it has no option that writes or runs something.
    Any,
    /// These options and no others.
    Only(Options),
    /// A grammar of its own.
    Special(fn(&[Word]) -> Effect),
}

/// A list of options. What is not in it is not understood: abbreviations of long options are in no
/// list, so none slips through.
#[derive(Clone, Copy)]
pub(super) struct Options {
    /// Letters that may stand alone or together.
    pub(super) letters: &'static str,
    /// Letters that take a value: the rest of the word, or the next one.
    pub(super) with_value: &'static str,
    /// Long names without dashes; a value follows `=` if at all.
    pub(super) long: &'static [&'static str],
    /// Words that may stand as they are.
    pub(super) exact: &'static [&'static str],
    /// The most operands.
    pub(super) operands: usize,
}

impl Options {
    /// No option, any operands.
    pub(super) const NONE: Self = Self {
        letters: "",
        with_value: "",
        long: &[],
        exact: &[],
        operands: usize::MAX,
    };
}

impl Rule {
    pub(super) fn judge(&self, words: &[Word]) -> Effect {
        if words.iter().any(Word::may_be_special) {
            return Effect::unknown("names a special file");
        }
        match self {
            Self::Any => Effect::ReadOnly,
            Self::Only(options) => options.judge(words),
            Self::Special(judge) => judge(words),
        }
    }
}

impl Options {
    pub(super) fn judge(&self, words: &[Word]) -> Effect {
        match self.operands_of(words) {
            Ok(operands) if self.allows(&operands) => Effect::ReadOnly,
            Ok(_) => Effect::unknown("more operands than are understood"),
            Err(effect) => effect,
        }
    }

    /// An expansion may be any number of operands.
    fn allows(&self, operands: &[&Word]) -> bool {
        let are_counted = || operands.iter().all(|operand| operand.is_exact);
        self.operands == usize::MAX || operands.len() <= self.operands && are_counted()
    }

    /// The operands, if every option is in the list.
    pub(super) fn operands_of<'w>(&self, words: &'w [Word]) -> Result<Vec<&'w Word>, Effect> {
        let mut operands = Vec::new();
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            if word.as_exact() == Some("--") {
                operands.extend(rest);
                break;
            }
            match word.as_exact() {
                _ if word.is_operand() => operands.push(word),
                Some(text) if self.exact.contains(&text) => {}
                Some(text) => self.option(text, &mut rest)?,
                None => return Err(Effect::unknown("an expansion may become an option")),
            }
        }
        Ok(operands)
    }

    fn option<'w>(
        &self,
        text: &str,
        rest: &mut impl Iterator<Item = &'w Word>,
    ) -> Result<(), Effect> {
        let unknown = || Effect::unknown(format!("option `{}`", shown(text)));
        if let Some(long) = text.strip_prefix("--") {
            let name = long.split('=').next().unwrap_or_default();
            return self.long.contains(&name).then_some(()).ok_or_else(unknown);
        }
        let mut letters = text.chars().skip(1);
        while let Some(letter) = letters.next() {
            if self.with_value.contains(letter) {
                // An expansion could become several words, and the second one an option.
                if letters.next().is_none() && rest.next().is_none_or(|value| !value.is_exact) {
                    return Err(unknown());
                }
                return Ok(());
            }
            if !self.letters.contains(letter) {
                return Err(unknown());
            }
        }
        Ok(())
    }
}

/// An option in a message: agents choose it, so it is kept short and plain.
fn shown(text: &str) -> String {
    let is_plain = |c: &char| c.is_ascii_graphic() && *c != '`';
    text.chars().filter(is_plain).take(40).collect()
}
