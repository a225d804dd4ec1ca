use super::*;

/// The host in an argument, or why there is none.
fn check(text: &str, expect: Result<&str, HostError>) {
    let host = Host::from_argument(text).map(|host| host.to_string());
    assert_eq!(host, expect.map(str::to_owned), "{text:?}");
}

#[test]
fn names_and_urls() {
    check("x.com", Ok("x.com"));
    check("API.X.com", Ok("api.x.com"));
    check("x.com.", Ok("x.com"));
    check("x.com:8443", Ok("x.com"));
    check("x.com.:443", Ok("x.com"));
    check("localhost", Ok("localhost"));
    check("_service.x.com", Ok("_service.x.com"));
    check("https://x.com", Ok("x.com"));
    check("HTTPS://X.COM/", Ok("x.com"));
    check("https://x.com:8443/a?b=c@d#e", Ok("x.com"));
    check("https://x.com?b=c", Ok("x.com"));
    check("https://x.com#.y.com", Ok("x.com"));
    check("https://x.com/@y.com", Ok("x.com"));
    check("https://x.com/https://y.com", Ok("x.com"));
    check("ws://x.com", Ok("x.com"));
    check("wss://x.com/socket", Ok("x.com"));
    check("ftp://x.com/file", Ok("x.com"));
    check("https://x.com./", Ok("x.com"));
    check("https://x.com/%2e%2e/%00", Ok("x.com"));
}

#[test]
fn text_that_only_looks_like_a_host() {
    check("", Err(HostError::Empty));
    check(".", Err(HostError::Label));
    check("..", Err(HostError::Label));
    check(".x.com", Err(HostError::Label));
    check("x..com", Err(HostError::Label));
    check("x.com..", Err(HostError::Label));
    check("-x.com", Err(HostError::Label));
    check("x-.com", Err(HostError::Label));
    check("*.x.com", Err(HostError::Label));
    check("a,b.com", Err(HostError::Label));
    check("x.com\"", Err(HostError::Label));
    check("{x}.com", Err(HostError::Label));
    check("$(id).x.com", Err(HostError::Label));
    check("evil.com#.x.com", Err(HostError::Malformed));
    check("evil.com/.x.com", Err(HostError::Malformed));
    check("evil.com?.x.com", Err(HostError::Malformed));
    check("//x.com", Err(HostError::Malformed));
    check("/x.com", Err(HostError::Malformed));
    check("x.com:", Err(HostError::Port));
    check("x.com:0x50", Err(HostError::Port));
    check("x.com:+80", Err(HostError::Port));
    check("x.com:65536", Err(HostError::Port));
    check("x.com:80:80", Err(HostError::Port));
    check("x.com::80", Err(HostError::Port));
    check("x.com:80.evil.com", Err(HostError::Port));
    check("https:x.com", Err(HostError::Port));
    check("javascript:alert", Err(HostError::Port));
}

#[test]
fn user_names() {
    check("user@x.com", Err(HostError::UserInfo));
    check("https://user@x.com", Err(HostError::UserInfo));
    check("https://x.com@evil.com", Err(HostError::UserInfo));
    check("https://x.com:443@evil.com/", Err(HostError::UserInfo));
    check("https://@x.com", Err(HostError::UserInfo));
    check("https://x.com#@evil.com/", Err(HostError::UserInfo));
    check("https://x.com?@evil.com/", Err(HostError::UserInfo));
    check("https://x.com&@evil.com", Err(HostError::UserInfo));
}

#[test]
fn characters_that_readers_skip_or_turn() {
    for text in [
        " x.com",
        "x.com ",
        "x.com\n",
        "x\t.com",
        "x.com\0",
        "x.com\0.evil.com",
        "x.com\r\nhost: evil.com",
        "x.com\\.evil.com",
        "https://x.com\\@evil.com",
        "https:\\\\x.com",
        "https://evil.com\\.x.com",
        "https://x.com/\n",
        "x.com\u{a0}",
        "x\u{3000}.com",
        "x.com\u{85}",
        "x.com\u{7f}",
    ] {
        check(text, Err(HostError::Character));
    }
    check("x.com%00", Err(HostError::Percent));
    check("x.com%2f.evil.com", Err(HostError::Percent));
    check("evil.com%23.x.com", Err(HostError::Percent));
    check("https://%78.com", Err(HostError::Percent));
    check("https://x%2ecom", Err(HostError::Percent));
    check("https://evil.com%40x.com", Err(HostError::Percent));
    check("[fe80::1%25eth0]", Err(HostError::Percent));
}

#[test]
fn schemes() {
    for text in [
        "file:///etc/passwd",
        "file://x.com/",
        "gopher://x.com",
        "javascript://x.com",
        "data://x.com",
        "://x.com",
        "http+unix://x.com",
        "https ://x.com".trim(),
    ] {
        assert!(Host::from_argument(text).is_err(), "{text}");
    }
    check("gopher://x.com", Err(HostError::Scheme));
    check("://x.com", Err(HostError::Scheme));
    check("https://", Err(HostError::Empty));
    check("https:///x.com", Err(HostError::Empty));
    check("https:////x.com", Err(HostError::Empty));
    check("https://:80", Err(HostError::Empty));
    check("https://x.com:", Err(HostError::Port));
    check("https://x.com:99999", Err(HostError::Port));
}

#[test]
fn an_address_has_one_form() {
    for text in [
        "127.0.0.1",
        "127.0.0.1.",
        "http://127.0.0.1:8080/",
        "[::ffff:127.0.0.1]",
        "::ffff:127.0.0.1",
        "::ffff:7f00:1",
        "[::ffff:7f00:1]:443",
        "https://[::ffff:127.0.0.1]/",
    ] {
        check(text, Ok("127.0.0.1"));
    }
    for text in [
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "127.0.0.01",
        "010.0.0.1",
        "017700000001",
        "http://2130706433/",
        "http://0x7f.0.0.1:8080",
        "１２７.0.0.1",
        "127。0。0。1",
        "0",
    ] {
        check(text, Err(HostError::Number));
    }
    check("[::1]", Ok("::1"));
    check("::1", Ok("::1"));
    check("[::1]:443", Ok("::1"));
    check("https://[0:0::1]:443/x", Ok("::1"));
    check("[::1", Err(HostError::Port));
    check("[::1]x", Err(HostError::Malformed));
    check("[::1]:", Err(HostError::Port));
    check("[x.com]", Err(HostError::Malformed));
    check("256.256.256.256", Err(HostError::Malformed));
    check("1.2.3.4.5", Err(HostError::Malformed));
    check("x.0x", Err(HostError::Malformed));
}

#[test]
fn international_names() {
    check("bücher.de", Ok("xn--bcher-kva.de"));
    check("BÜCHER.de", Ok("xn--bcher-kva.de"));
    check("xn--bcher-kva.de", Ok("xn--bcher-kva.de"));
    check("https://BÜCHER.de.:443/", Ok("xn--bcher-kva.de"));
    // Other full stops, wide letters, ligatures, and characters that vanish: not every client maps them.
    for text in [
        "x。com",
        "x．com",
        "x｡com",
        "ｘ.com",
        "oﬃce.com",
        "x\u{200b}.com",
        "x\u{2060}.com",
        "x\u{feff}.com",
        "x\u{ad}.com",
        "x\u{fe0f}.com",
        "x\u{34f}.com",
        "x\u{180b}.com",
        "https://x\u{200b}.com/",
        "bu\u{308}cher.de",
        "bücher\u{200b}.de",
    ] {
        check(text, Err(HostError::Ambiguous));
    }
    // A Cyrillic letter is another name.
    check("аpple.com", Ok("xn--pple-43d.com"));
    // Characters that turn into separators.
    check("evil.com／.x.com", Err(HostError::Malformed));
    check("evil.com＃.x.com", Err(HostError::Malformed));
    check("evil.com＠x.com", Err(HostError::Malformed));
    check("evil.com℀.x.com", Err(HostError::Malformed));
    check("evil.com％2f.x.com", Err(HostError::Malformed));
    check("x.com：80", Err(HostError::Malformed));
    // Characters that old and new rules read differently.
    check("faß.de", Err(HostError::Ambiguous));
    check("https://faẞ.de/", Err(HostError::Ambiguous));
    check("βόλος.com", Err(HostError::Ambiguous));
    check("a\u{200d}b.com", Err(HostError::Ambiguous));
    check("xn--fa-hia.de", Ok("xn--fa-hia.de"));
    check("xn--a.com", Err(HostError::Malformed));
    check("\u{202e}moc.x", Err(HostError::Malformed));
}

#[test]
fn length() {
    let label = "a".repeat(63);
    check(&format!("{label}.com"), Ok(&format!("{label}.com")));
    check(&format!("a{label}.com"), Err(HostError::Label));
    let name = [label.as_str(); 3].join(".");
    check(
        &format!("{name}.{}", "a".repeat(61)),
        Ok(&format!("{name}.{}", "a".repeat(61))),
    );
    check(&format!("{name}.{}", "a".repeat(62)), Err(HostError::Label));
    check(&"a".repeat(1 << 20), Err(HostError::TooLong));
    check(
        &format!("https://x.com/{}", "a".repeat(1 << 12)),
        Ok("x.com"),
    );
    check(
        &format!("https://x.com/{}", "a".repeat(1 << 14)),
        Err(HostError::TooLong),
    );
}

/// A pattern as it is understood, or why it is none.
fn check_pattern(text: &str, expect: Result<&str, HostPatternError>) {
    let pattern = HostPattern::parse(text).map(|pattern| pattern.to_string());
    assert_eq!(pattern, expect.map(str::to_owned), "{text:?}");
}

#[test]
fn patterns() {
    check_pattern("x.com", Ok("x.com"));
    check_pattern("X.com.", Ok("x.com"));
    check_pattern("*.X.com", Ok("*.x.com"));
    check_pattern("*.bücher.de", Ok("*.xn--bcher-kva.de"));
    check_pattern("10.0.0.1", Ok("10.0.0.1"));
    check_pattern("::1", Ok("::1"));
    check_pattern("[::1]", Ok("::1"));
    for text in [
        "*",
        "*com",
        "*x.com",
        "*.*.com",
        "a.*.com",
        "x.*",
        "**.x.com",
        "*.1",
        "*.10.0.0.1",
    ] {
        check_pattern(text, Err(HostPatternError::Wildcard));
    }
    let host = |error| Err(HostPatternError::Host(error));
    check_pattern("", host(HostError::Empty));
    check_pattern("*.", host(HostError::Empty));
    check_pattern("*..com", host(HostError::Label));
    check_pattern("https://x.com", host(HostError::Malformed));
    check_pattern("x.com/path", host(HostError::Malformed));
    check_pattern("*.x.com/path", host(HostError::Malformed));
    check_pattern("a@x.com", host(HostError::Malformed));
    check_pattern("x.com:443", host(HostError::Port));
    check_pattern("[::1]:443", host(HostError::Malformed));
    check_pattern("x .com", host(HostError::Character));
    check_pattern("faß.de", host(HostError::Ambiguous));
}

/// Whether a host falls under a pattern, by the pattern and by rules that hold it.
fn check_cover(host: &str, pattern: &str, expect: bool) {
    let host = Host::from_argument(host).unwrap();
    let pattern = HostPattern::parse(pattern).unwrap();
    assert_eq!(pattern.covers(&host), expect, "{host} {pattern}");
    let rules = HostRules::from_iter([pattern]);
    assert_eq!(rules.covers(&host), expect, "{host} in rules");
}

#[test]
fn cover() {
    check_cover("x.com", "x.com", true);
    check_cover("X.COM.", "x.com", true);
    check_cover("api.x.com", "x.com", false);
    check_cover("api.x.com", "*.x.com", true);
    check_cover("a.b.c.x.com", "*.x.com", true);
    check_cover("x.com", "*.x.com", false);
    check_cover("evilx.com", "*.x.com", false);
    check_cover("x.com.evil.com", "*.x.com", false);
    check_cover("https://evil.com#.x.com", "*.x.com", false);
    check_cover("https://evil.com/.x.com", "*.x.com", false);
    check_cover("[::ffff:127.0.0.1]", "127.0.0.1", true);
    check_cover("127.0.0.1", "::ffff:127.0.0.1", true);
    check_cover("127.0.0.2", "127.0.0.1", false);
    check_cover("anything.com", "*.com", true);
}

#[test]
fn rules_know_all_their_patterns() {
    let texts = ["b.com", "*.x.com", "::1", "*.a.b"];
    let rules: HostRules = texts
        .iter()
        .map(|text| HostPattern::parse(text).unwrap())
        .collect();
    let mut shown: Vec<String> = rules
        .patterns()
        .map(|pattern| pattern.to_string())
        .collect();
    shown.sort();
    assert_eq!(shown, ["*.a.b", "*.x.com", "::1", "b.com"]);
    assert!(!rules.is_empty());
    assert!(HostRules::default().is_empty());
    assert!(!HostRules::default().covers(&Host::from_argument("x.com").unwrap()));
}

#[test]
fn parents_of_a_name() {
    let all = |text: &str| -> Vec<String> {
        let host = Host::from_argument(text).unwrap();
        parents(&host).map(str::to_owned).collect()
    };
    assert_eq!(all("a.b.x.com"), ["b.x.com", "x.com", "com"]);
    assert_eq!(all("localhost"), [""; 0]);
    assert_eq!(all("10.0.0.1"), [""; 0]);
}
