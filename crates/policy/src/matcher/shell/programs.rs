//! The programs that can be read-only, and what keeps them so.

use super::Effect;
use super::options::{Options, Rule};
use super::word::Word;
use super::{find, git, sed};

/// What keeps a program read-only, if anything does.
pub(super) fn rule(name: &str) -> Option<Rule> {
    if ANY.contains(&name) {
        return Some(Rule::Any);
    }
    let listed = ONLY.iter().find(|(program, _)| *program == name);
    let listed = listed.map(|(_, options)| Rule::Only(*options));
    listed.or(match name {
        "find" => Some(Rule::Special(find::judge)),
        "sed" => Some(Rule::Special(sed::judge)),
        "git" => Some(Rule::Special(git::judge)),
        "date" => Some(Rule::Special(date)),
        "jq" => Some(Rule::Special(jq)),
        "test" | "[" => Some(Rule::Special(test)),
        _ => None,
    })
}

/// With an operand that is no format it sets the clock.
fn date(words: &[Word]) -> Effect {
    match DATE.operands_of(words) {
        Ok(operands) if operands.iter().all(|word| word.text.starts_with('+')) => Effect::ReadOnly,
        Ok(_) => Effect::changes("sets the clock"),
        Err(effect) => effect,
    }
}

/// Its programs can read the environment. Values of `--arg` stand among the operands, so any of them
/// may be the program.
fn jq(words: &[Word]) -> Effect {
    let is_tame = |word: &&Word| word.is_exact && !word.text.to_ascii_lowercase().contains("env");
    match JQ.operands_of(words) {
        Ok(operands) if operands.iter().all(is_tame) => Effect::ReadOnly,
        Ok(_) => Effect::unknown("a program that may show the environment"),
        Err(effect) => effect,
    }
}

/// Some shells evaluate what stands in the brackets of `-v NAME[…]`, some also that of numbers.
fn test(words: &[Word]) -> Effect {
    let is_tame = |word: &Word| match word.as_exact() {
        Some(text) if text.starts_with('-') => TESTS.contains(&text),
        Some(text) => !text.contains(['$', '`']),
        None => false,
    };
    match words.iter().all(is_tame) {
        true => Effect::ReadOnly,
        false => Effect::unknown("a condition that is not understood"),
    }
}

/// Programs without any option that writes, runs something or shows the environment.
const ANY: &[&str] = &[
    ":",
    "basename",
    "cat",
    "cksum",
    "cmp",
    "comm",
    "cut",
    "dirname",
    "du",
    "echo",
    "egrep",
    "expand",
    "expr",
    "false",
    "fgrep",
    "fmt",
    "fold",
    "free",
    "grep",
    "groups",
    "head",
    "id",
    "join",
    "logname",
    "ls",
    "md5sum",
    "nl",
    "nproc",
    "od",
    "paste",
    "pr",
    "pwd",
    "readlink",
    "realpath",
    "rev",
    "seq",
    "sha1sum",
    "sha224sum",
    "sha256sum",
    "sha384sum",
    "sha512sum",
    "sleep",
    "stat",
    "sum",
    "tac",
    "tail",
    "tr",
    "true",
    "tsort",
    "tty",
    "type",
    "uname",
    "unexpand",
    "uptime",
    "wc",
    "which",
    "whoami",
];

const ONLY: &[(&str, Options)] = &[
    (
        "base64",
        Options {
            letters: "d",
            with_value: "w",
            long: &["decode", "wrap"],
            operands: 1,
            ..Options::NONE
        },
    ),
    (
        "cd",
        Options {
            operands: 1,
            ..Options::NONE
        },
    ),
    (
        "df",
        Options {
            letters: "ahHiklTP",
            long: &["all", "human-readable", "inodes", "local", "print-type"],
            ..Options::NONE
        },
    ),
    (
        "diff",
        Options {
            letters: "abBcdeinNpqrstTuwyZE",
            with_value: "CIUWx",
            long: &[
                "brief",
                "color",
                "exclude",
                "ignore-all-space",
                "ignore-blank-lines",
                "ignore-case",
                "ignore-space-change",
                "new-file",
                "recursive",
                "report-identical-files",
                "side-by-side",
                "text",
                "unified",
            ],
            operands: 2,
            ..Options::NONE
        },
    ),
    (
        "file",
        Options {
            letters: "bhiL",
            long: &["brief", "dereference", "mime", "mime-encoding", "mime-type"],
            ..Options::NONE
        },
    ),
    (
        "hostname",
        Options {
            letters: "fis",
            operands: 0,
            ..Options::NONE
        },
    ),
    ("printf", Options::NONE),
    (
        "ps",
        Options {
            letters: "efAF",
            with_value: "p",
            operands: 0,
            ..Options::NONE
        },
    ),
    (
        "rg",
        Options {
            letters: "acFhHiIlLnNopPqsSuUvwx0123456789",
            with_value: "ABCdegmMrtTf",
            long: &[
                "after-context",
                "before-context",
                "case-sensitive",
                "color",
                "column",
                "context",
                "count",
                "count-matches",
                "files",
                "files-with-matches",
                "files-without-match",
                "fixed-strings",
                "glob",
                "heading",
                "hidden",
                "iglob",
                "ignore-case",
                "invert-match",
                "json",
                "line-number",
                "line-regexp",
                "max-count",
                "max-depth",
                "multiline",
                "no-heading",
                "no-ignore",
                "no-line-number",
                "no-messages",
                "null",
                "only-matching",
                "pcre2",
                "regexp",
                "smart-case",
                "sort",
                "stats",
                "trim",
                "type",
                "type-list",
                "type-not",
                "word-regexp",
            ],
            ..Options::NONE
        },
    ),
    (
        "sort",
        Options {
            letters: "bcCdfghiMmnrRsuVz",
            with_value: "kt",
            long: &[
                "check",
                "dictionary-order",
                "field-separator",
                "general-numeric-sort",
                "human-numeric-sort",
                "ignore-case",
                "ignore-leading-blanks",
                "key",
                "merge",
                "month-sort",
                "numeric-sort",
                "random-sort",
                "reverse",
                "stable",
                "unique",
                "version-sort",
                "zero-terminated",
            ],
            ..Options::NONE
        },
    ),
    (
        "strings",
        Options {
            letters: "a",
            with_value: "ent",
            long: &["all", "bytes", "encoding", "radix"],
            ..Options::NONE
        },
    ),
    (
        "tree",
        Options {
            letters: "adDfFghinpstu",
            with_value: "ILP",
            long: &["dirsfirst", "du", "noreport", "prune"],
            ..Options::NONE
        },
    ),
    (
        "uniq",
        Options {
            letters: "cdDiuz",
            with_value: "fsw",
            long: &[
                "count",
                "ignore-case",
                "repeated",
                "unique",
                "zero-terminated",
            ],
            // The second one is written to.
            operands: 1,
            ..Options::NONE
        },
    ),
];

const DATE: Options = Options {
    letters: "uR",
    with_value: "dr",
    long: &[
        "date",
        "iso-8601",
        "reference",
        "rfc-3339",
        "rfc-email",
        "utc",
    ],
    exact: &["-I", "-Idate", "-Ihours", "-Iminutes", "-Iseconds", "-Ins"],
    operands: 1,
};

const JQ: Options = Options {
    letters: "cCeMnrsSj",
    long: &[
        "arg",
        "argjson",
        "color-output",
        "compact-output",
        "exit-status",
        "join-output",
        "monochrome-output",
        "null-input",
        "raw-output",
        "slurp",
        "sort-keys",
        "tab",
    ],
    ..Options::NONE
};

const TESTS: &[&str] = &[
    "-a", "-b", "-c", "-d", "-e", "-ef", "-eq", "-f", "-g", "-ge", "-gt", "-h", "-k", "-L", "-le",
    "-lt", "-n", "-ne", "-nt", "-o", "-ot", "-p", "-r", "-s", "-S", "-u", "-w", "-x", "-z",
];
