//! Whatever an agent sends, the matchers return, and what they accept is what was listed.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

use std::collections::BTreeSet;

use countersign_canon::Json;
use countersign_policy::manifest::Manifest;
use countersign_policy::matcher::{
    ArgPatterns, Command, Host, HostPattern, HostRules, Link, NormalPath, covers, is_exec_tool,
    is_network_tool, is_sink, parents,
};

/// SplitMix64: the same numbers in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap()
    }

    fn join(&mut self, pieces: &[&str], most: usize) -> String {
        let count = self.below(most + 1);
        (0..count)
            .map(|_| pieces[self.below(pieces.len())])
            .collect()
    }

    /// Any characters at all, the low ones more often.
    fn noise(&mut self) -> String {
        let count = self.below(24);
        let one = |random: &mut Self| match random.below(4) {
            0 => char::from_u32(u32::try_from(random.below(0x11_0000)).unwrap())
                .unwrap_or('\u{fffd}'),
            _ => char::from(u8::try_from(random.below(0x80)).unwrap()),
        };
        (0..count).map(|_| one(self)).collect()
    }
}

const HOST_PIECES: &[&str] = &[
    "x", "x.com", ".", "..", "com", "evil", "https://", "http:", "//", "/", "\\", "@", ":", ":80",
    "#", "?", "%", "%2e", "%00", "%40", "[", "]", "::1", "::ffff:", "127", "0x7f", "0177", "1",
    "\t", "\n", " ", "\0", "。", "．", "／", "＠", "ß", "ü", "а", "xn--", "-", "_", "*",
    "\u{200d}", "\u{ad}", "\u{202e}", "API", "X.COM",
];

const PATH_PIECES: &[&str] = &[
    "/", "//", ".", "..", "../", "/..", "/data", "data", "space", "a", " ", "%2e", "%2f", "%", "~",
    "\\", "\0", "\n", ":", "file:", "∕", "‥", "...", "é",
];

const LINE_PIECES: &[&str] = &[
    "git", "rm", "sudo", "env", "sh", "-c", "xargs", "eval", " ", "  ", ";", "&", "&&", "|", "||",
    "\n", "'", "\"", "\\", "$", "$x", "${x}", "$(", ")", "`", "<", ">", "(", "{", "}", "#", "*",
    "?", "[", "~", "=", "A=b", "!", "if", "a", "b", "\u{a0}", "\0", "é",
];

#[test]
fn nothing_panics() {
    let mut random = Random(1);
    let bins = BTreeSet::from(["git".to_owned()]);
    let mut patterns = ArgPatterns::default();
    patterns.add("a*b?").unwrap();
    for round in 0..200_000 {
        let text = match round % 4 {
            0 => random.noise(),
            1 => random.join(HOST_PIECES, 8),
            2 => random.join(PATH_PIECES, 8),
            _ => random.join(LINE_PIECES, 12),
        };
        let _host = Host::from_argument(&text);
        let _pattern = HostPattern::parse(&text);
        let _path = NormalPath::from_argument(&text);
        let _walked = NormalPath::resolve(&text, Some(&NormalPath::root()), |_| Link::No);
        let _line = Command::from_line(&text).allowed(&bins, &patterns);
        let _args = Command::from_args(&Json::object([("cmd", Json::from(text.as_str()))]));
        let _name = (is_sink(&text), is_exec_tool(&text), is_network_tool(&text));
        let _cover = covers(&text, &text);
        if round % 4 == 0 {
            let _manifest = Manifest::read(text.as_bytes());
        }
    }
}

#[test]
fn manifests_of_noise_are_refused_without_panic() {
    let pieces = [
        "a",
        ": ",
        "\n",
        "  ",
        "- ",
        "[",
        "]",
        "{",
        "}",
        "\"",
        "'",
        "|",
        ">",
        "&x",
        "*x",
        "!",
        "%",
        "#",
        "---",
        "...",
        "? ",
        ",",
        "1",
        "0x",
        "~",
        "\t",
        "é",
        "schema",
        "permissions",
        "<<",
    ];
    let mut random = Random(2);
    for _ in 0..50_000 {
        assert!(Manifest::read(random.join(&pieces, 16).as_bytes()).is_err());
    }
}

#[test]
fn a_covered_host_is_the_listed_one_or_lies_below_it() {
    let mut random = Random(3);
    let patterns = [
        "x.com",
        "*.x.com",
        "127.0.0.1",
        "::1",
        "*.evil",
        "xn--tda.com",
    ];
    let patterns = patterns.map(|text| (text, HostPattern::parse(text).unwrap()));
    let rules: HostRules = patterns
        .iter()
        .map(|(_, pattern)| pattern.clone())
        .collect();
    let mut accepted = 0;
    for _ in 0..200_000 {
        let argument = random.join(HOST_PIECES, 7);
        let Ok(host) = Host::from_argument(&argument) else {
            continue;
        };
        let text = host.to_string();
        let expect = patterns
            .iter()
            .any(|(listed, _)| match listed.strip_prefix('*') {
                Some(suffix) => text.ends_with(suffix) && text.len() > suffix.len(),
                None => text == *listed,
            });
        assert_eq!(rules.covers(&host), expect, "{argument:?}");
        assert_eq!(
            patterns.iter().any(|(_, pattern)| pattern.covers(&host)),
            expect
        );
        accepted += usize::from(expect);
    }
    assert!(accepted > 1_000, "{accepted}");
}

#[test]
fn a_host_is_what_a_url_reader_makes_of_it() {
    let mut random = Random(4);
    let mut compared = 0;
    for _ in 0..100_000 {
        let rest = random.join(HOST_PIECES, 6);
        let Ok(host) = Host::from_argument(&format!("https://{rest}")) else {
            continue;
        };
        let url = url::Url::parse(&format!("https://{rest}")).unwrap();
        assert_eq!((url.username(), url.password()), ("", None), "{rest:?}");
        let again = url.host_str().unwrap().trim_end_matches('.').to_owned();
        assert_eq!(Host::from_argument(&again), Ok(host.clone()), "{rest:?}");
        // What was normalised once stays as it is.
        assert_eq!(Host::from_argument(&host.to_string()), Ok(host));
        compared += 1;
    }
    assert!(compared > 1_000, "{compared}");
}

#[test]
fn parents_are_what_follows_each_dot() {
    let mut random = Random(5);
    for _ in 0..10_000 {
        let Ok(host) = Host::from_argument(&random.join(&["a", "b-c", "com", "."], 9)) else {
            continue;
        };
        let name = host.to_string();
        let expect: Vec<&str> = name
            .match_indices('.')
            .map(|(at, _)| &name[at + 1..])
            .collect();
        assert_eq!(parents(&host).collect::<Vec<_>>(), expect);
    }
}

#[test]
fn a_path_is_normal_and_within_its_root_by_components() {
    let mut random = Random(6);
    let base = NormalPath::from_argument("/data").unwrap();
    let roots = [base.clone()];
    let mut inside = 0;
    for _ in 0..200_000 {
        let argument = random.join(PATH_PIECES, 8);
        let Ok(path) = NormalPath::from_argument_in(&argument, &base) else {
            continue;
        };
        let text = path.as_str();
        let parts: Vec<&str> = text.split('/').skip(1).collect();
        assert!(text.starts_with('/'), "{argument:?}");
        assert!(
            !parts.iter().any(|part| matches!(*part, "." | "..")),
            "{argument:?}"
        );
        assert!(text == "/" || !parts.contains(&""), "{argument:?}");
        assert_eq!(path.within(&roots), parts[0] == "data", "{argument:?}");
        inside += usize::from(path.within(&roots));
        // Without links both ways of reading agree, and a normal path stays as it is.
        assert_eq!(
            NormalPath::resolve(&argument, Some(&base), |_| Link::No),
            Ok(path.clone())
        );
        assert_eq!(NormalPath::from_argument(text), Ok(path.clone()));
    }
    assert!(inside > 1_000, "{inside}");
}

#[test]
fn an_allowed_line_names_nothing_but_allowed_programs() {
    let mut random = Random(7);
    let bins = BTreeSet::from(["git".to_owned(), "a".to_owned()]);
    let patterns = ArgPatterns::default();
    let mut allowed = 0;
    for _ in 0..200_000 {
        let line = random.join(LINE_PIECES, 10);
        let command = Command::from_line(&line);
        if !command.allowed(&bins, &patterns) {
            continue;
        }
        allowed += 1;
        assert!(
            command.binaries().all(|binary| bins.contains(binary)),
            "{line:?}"
        );
    }
    assert!(allowed > 1_000, "{allowed}");
}

#[test]
fn very_long_input_is_answered() {
    for piece in [
        "a", "a.", "/", "../", "x.com:80", "%2e", "[", "{a: ", "- ", "'", "$x ", "a;", "\\", "é",
    ] {
        let long = piece.repeat((1 << 20) / piece.len());
        let _host = Host::from_argument(&long);
        let _pattern = HostPattern::parse(&long);
        let _path = NormalPath::from_argument(&long);
        let _line = Command::from_line(&long);
        let _name = is_sink(&long);
        assert!(Manifest::read(long.as_bytes()).is_err());
    }
}
