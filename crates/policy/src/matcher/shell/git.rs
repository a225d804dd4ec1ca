//! `git` commands that only look.
//!
//! Options that run a program (`--ext-diff`, `--textconv`, `-O`, `--show-signature`), that write
//! (`--output`) or that choose another configuration (`-c`, `-C`, `--git-dir`, `--exec-path`) are in
//! no list. What the repository's own configuration runs is the operator's affair.

use super::Effect;
use super::options::Options;
use super::word::Word;

pub(super) fn judge(words: &[Word]) -> Effect {
    let global = |word: &&Word| word.as_exact().is_some_and(|text| GLOBAL.contains(&text));
    let skipped = words.iter().take_while(global).count();
    let rest = words.get(skipped..).unwrap_or_default();
    let Some((name, rest)) = rest.split_first() else {
        return Effect::unknown("no command");
    };
    match name.as_exact() {
        Some("--version" | "version") if rest.is_empty() => Effect::ReadOnly,
        Some(name) if !name.starts_with('-') => command(name, rest),
        Some(_) => Effect::unknown("a global option that is not understood"),
        None => Effect::unknown("an expansion decides what it does"),
    }
}

fn command(name: &str, rest: &[Word]) -> Effect {
    // `%G…` asks for signatures, which runs a program.
    if rest.iter().any(|word| word.text.contains("%G")) {
        return Effect::unknown("a format that checks signatures");
    }
    let first = rest.first().and_then(Word::as_exact);
    match name {
        "branch" | "tag" => listing(name, rest),
        "stash" | "worktree" if first == Some("list") => after_first(&PLAIN, rest),
        "remote" if first == Some("get-url") => after_first(&PLAIN, rest),
        "remote" => none_but(&["-v", "--verbose"], rest),
        "reflog" => none_but(&[], rest),
        "config" => config(rest),
        _ => match COMMANDS.iter().find(|(command, _)| *command == name) {
            Some((_, options)) => options.judge(rest),
            None if CHANGING.contains(&name) => {
                Effect::changes(format!("`{name}` changes something"))
            }
            None => Effect::unknown("a command that is not understood"),
        },
    }
}

/// Without `--list` an operand is a name to be created.
fn listing(name: &str, rest: &[Word]) -> Effect {
    let lists = rest.iter().any(|word| word.as_exact() == Some("--list"));
    let options = Options {
        // `git tag -v` checks a signature.
        letters: if name == "tag" { "" } else { "arv" },
        operands: if lists { usize::MAX } else { 0 },
        ..LISTING
    };
    match options.judge(rest) {
        Effect::ReadOnly => Effect::ReadOnly,
        _ => Effect::unknown(format!("`{name}` with more than a list")),
    }
}

fn config(rest: &[Word]) -> Effect {
    let reads = |word: &Word| word.as_exact().is_some_and(|text| READS.contains(&text));
    let asks = |word: &Word| word.as_exact().is_some_and(|text| ASKS.contains(&text));
    let is_tame = |word: &Word| word.is_operand() || reads(word) || asks(word);
    match rest.first().is_some_and(asks) && rest.iter().all(is_tame) {
        true => Effect::ReadOnly,
        false => Effect::unknown("`config` with more than a question"),
    }
}

fn after_first(options: &Options, rest: &[Word]) -> Effect {
    options.judge(rest.get(1..).unwrap_or_default())
}

fn none_but(known: &[&str], rest: &[Word]) -> Effect {
    let is_known = |word: &Word| word.as_exact().is_some_and(|text| known.contains(&text));
    match rest.iter().all(is_known) {
        true => Effect::ReadOnly,
        false => Effect::unknown("arguments that are not understood"),
    }
}

const GLOBAL: &[&str] = &[
    "--no-pager",
    "--no-optional-locks",
    "--literal-pathspecs",
    "-P",
];

const ASKS: &[&str] = &["--get", "--get-all", "--list", "-l"];
const READS: &[&str] = &[
    "--local",
    "--global",
    "--system",
    "--show-origin",
    "--name-only",
];

const PLAIN: Options = Options::NONE;

const LISTING: Options = Options {
    long: &[
        "all",
        "list",
        "remotes",
        "show-current",
        "verbose",
        "column",
        "sort",
    ],
    ..Options::NONE
};

const HISTORY: Options = Options {
    letters: "pqsuwbzi0123456789",
    with_value: "nUSGL",
    long: &[
        "abbrev",
        "abbrev-commit",
        "after",
        "all",
        "author",
        "before",
        "branches",
        "cached",
        "cc",
        "color",
        "committer",
        "date",
        "decorate",
        "diff-filter",
        "exit-code",
        "first-parent",
        "follow",
        "format",
        "full-history",
        "graph",
        "grep",
        "histogram",
        "ignore-all-space",
        "ignore-space-change",
        "max-count",
        "merge-base",
        "merges",
        "minimal",
        "name-only",
        "name-status",
        "no-color",
        "no-ext-diff",
        "no-index",
        "no-merges",
        "no-patch",
        "no-prefix",
        "no-renames",
        "no-textconv",
        "numstat",
        "oneline",
        "patch",
        "patience",
        "pretty",
        "quiet",
        "raw",
        "regexp-ignore-case",
        "remotes",
        "reverse",
        "shortstat",
        "since",
        "skip",
        "staged",
        "stat",
        "summary",
        "tags",
        "text",
        "topo-order",
        "unified",
        "until",
        "word-diff",
    ],
    exact: &["-M", "-C"],
    ..Options::NONE
};

const COMMANDS: &[(&str, Options)] = &[
    ("log", HISTORY),
    ("show", HISTORY),
    ("diff", HISTORY),
    ("rev-list", HISTORY),
    (
        "status",
        Options {
            letters: "sbz",
            long: &[
                "short",
                "branch",
                "porcelain",
                "long",
                "untracked-files",
                "ignored",
                "show-stash",
            ],
            exact: &["-uno", "-unormal", "-uall", "-u"],
            ..Options::NONE
        },
    ),
    (
        "blame",
        Options {
            letters: "elswcfnt",
            with_value: "L",
            long: &["date", "porcelain", "line-porcelain", "show-email"],
            ..Options::NONE
        },
    ),
    (
        "rev-parse",
        Options {
            long: &[
                "abbrev-ref",
                "git-dir",
                "is-bare-repository",
                "is-inside-work-tree",
                "short",
                "show-prefix",
                "show-toplevel",
                "verify",
                "symbolic-full-name",
            ],
            ..Options::NONE
        },
    ),
    (
        "ls-files",
        Options {
            letters: "cdmostuvz",
            with_value: "x",
            long: &[
                "cached",
                "deleted",
                "exclude",
                "exclude-standard",
                "full-name",
                "ignored",
                "modified",
                "others",
                "stage",
                "unmerged",
            ],
            ..Options::NONE
        },
    ),
    (
        "ls-tree",
        Options {
            letters: "drtlz",
            long: &["full-tree", "long", "name-only", "object-only"],
            ..Options::NONE
        },
    ),
    (
        "cat-file",
        Options {
            letters: "pste",
            ..Options::NONE
        },
    ),
    (
        "describe",
        Options {
            long: &[
                "abbrev",
                "all",
                "always",
                "exact-match",
                "long",
                "match",
                "tags",
            ],
            ..Options::NONE
        },
    ),
    (
        "shortlog",
        Options {
            letters: "nse",
            long: &["all", "email", "no-merges", "numbered", "since", "summary"],
            ..Options::NONE
        },
    ),
    (
        "grep",
        Options {
            letters: "cEFhHilLnPqvwo",
            with_value: "ABCe",
            long: &[
                "cached",
                "color",
                "count",
                "files-with-matches",
                "fixed-strings",
                "ignore-case",
                "line-number",
                "no-color",
                "word-regexp",
            ],
            ..Options::NONE
        },
    ),
    ("merge-base", PLAIN),
    ("name-rev", PLAIN),
    ("count-objects", PLAIN),
    ("check-ignore", PLAIN),
];

const CHANGING: &[&str] = &[
    "add",
    "am",
    "apply",
    "bisect",
    "checkout",
    "cherry-pick",
    "clean",
    "clone",
    "commit",
    "fetch",
    "filter-branch",
    "gc",
    "init",
    "merge",
    "mv",
    "notes",
    "prune",
    "pull",
    "push",
    "rebase",
    "repack",
    "reset",
    "restore",
    "revert",
    "rm",
    "switch",
    "update-ref",
];
