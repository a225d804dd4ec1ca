use super::*;

fn about(members: &[(Key, &str)]) -> About {
    let mut about = About {
        ts_unix_ms: 10_000_000,
        ..About::default()
    };
    for (key, text) in members {
        about.set(*key, Some((*text).to_owned()));
    }
    about
}

#[test]
fn words_of_one_key_are_alternatives_and_keys_add_up() {
    let denied = about(&[
        (Key::Decision, "deny"),
        (Key::Tool, "mcp.https.post"),
        (Key::Session, "s 1"),
    ]);
    let check = |query: &str, fits: bool| {
        let asked = query.parse::<Query>().unwrap().at(10_000_000);
        assert_eq!(asked.fits(&denied), fits, "{query}");
    };
    check("", true);
    check("decision:deny", true);
    check("decision:allow", false);
    check("decision:allow decision:deny", true);
    check("decision:deny tool:mcp.*", true);
    check("decision:deny tool:mcp", false);
    check("tool:*.https.*", true);
    check("tool:*post", true);
    check("tool:mcp*post*x", false);
    check("-tool:mcp.*", false);
    check("-tool:fs.*", true);
    check("tool:mcp.* -tool:*.post", false);
    check("session:\"s 1\"", true);
    check("server:x", false);
    check("-server:x", true);
    check("since:1s", true);
    check("since:1970-01-01T02:46:40Z", true);
    check("since:1970-01-01T02:46:40.001Z", false);
    check("until:1s", false);
    check("since:1h until:0s", false);
}

#[test]
fn what_cannot_be_read_is_named() {
    let check = |query: &str, error: QueryError| {
        assert_eq!(query.parse::<Query>().unwrap_err(), error, "{query}");
    };
    check("deny", QueryError::NoKey("deny".to_owned()));
    check(
        "\"decision:deny\"",
        QueryError::NoKey("decision:deny".to_owned()),
    );
    check("tols:x", QueryError::UnknownKey("tols".to_owned()));
    check("tool:", QueryError::NoValue("tool"));
    check("tool:\"x", QueryError::OpenQuote);
    check("tool:\"x\\", QueryError::OpenQuote);
    check("since:soon", QueryError::Time("soon".to_owned()));
    check("since:1h since:2h", QueryError::Twice("since"));
    check("-until:1h", QueryError::Twice("until"));
    check("decision:maybe", QueryError::Decision("maybe".to_owned()));
    check("type:NOTHING*", QueryError::Type("NOTHING*".to_owned()));
    check(&"tool:x ".repeat(65), QueryError::TooLong);
    check(&"x".repeat(3000), QueryError::TooLong);
    let unknown = "tols:x".parse::<Query>().unwrap_err().to_string();
    assert!(!unknown.contains("`tool`?"), "{unknown}");
    let unknown = "tools:x".parse::<Query>().unwrap_err().to_string();
    assert!(unknown.contains("(`tool`?)"), "{unknown}");
}

#[test]
fn a_query_reads_back_as_it_is_written() {
    for text in [
        "decision:deny tool:mcp.* since:3600s",
        "-session:\"a b\\\"c\\\\\" type:TOOL_*",
        "tenant:a:b",
        "until:2026-11-15T08:00:00Z",
    ] {
        let query: Query = text.parse().unwrap();
        assert_eq!(query.to_string(), text);
        assert_eq!(query.to_string().parse::<Query>().unwrap(), query);
    }
}
