//! `find` with tests and nothing that acts.

use super::Effect;
use super::word::Word;

pub(super) fn judge(words: &[Word]) -> Effect {
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let Some(text) = word.as_exact() else {
            match word.is_operand() {
                true => continue,
                false => return Effect::unknown("an expansion may become an action"),
            }
        };
        match text {
            _ if ACTIONS.contains(&text) => {
                return Effect::changes(format!("`{text}` acts on what is found"));
            }
            _ if ALONE.contains(&text) || word.is_operand() => {}
            _ if WITH_VALUE.contains(&text) => match rest.next() {
                Some(value) if value.is_exact || value.is_operand() => {}
                _ => return Effect::unknown("an expansion may become an action"),
            },
            _ => return Effect::unknown("a test or action that is not understood"),
        }
    }
    Effect::ReadOnly
}

const ACTIONS: &[&str] = &[
    "-delete", "-exec", "-execdir", "-fls", "-fprint", "-fprint0", "-fprintf", "-ok", "-okdir",
];

const ALONE: &[&str] = &[
    "-H",
    "-L",
    "-P",
    "-a",
    "-and",
    "-o",
    "-or",
    "-not",
    "-depth",
    "-empty",
    "-executable",
    "-ignore_readdir_race",
    "-ls",
    "-mount",
    "-nogroup",
    "-nouser",
    "-print",
    "-print0",
    "-prune",
    "-quit",
    "-readable",
    "-writable",
    "-xdev",
];

const WITH_VALUE: &[&str] = &[
    "-amin",
    "-anewer",
    "-atime",
    "-cmin",
    "-cnewer",
    "-ctime",
    "-gid",
    "-group",
    "-ilname",
    "-iname",
    "-inum",
    "-ipath",
    "-iregex",
    "-links",
    "-lname",
    "-maxdepth",
    "-mindepth",
    "-mmin",
    "-mtime",
    "-name",
    "-newer",
    "-path",
    "-perm",
    "-printf",
    "-regex",
    "-regextype",
    "-samefile",
    "-size",
    "-type",
    "-uid",
    "-user",
    "-wholename",
    "-xtype",
];
