//! Secrets in many shapes, in every place where they turn up: none survives.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at once")]

#[path = "../../../tests/secrets.rs"]
mod shapes;

use countersign_canon::{Json, Limits};
use countersign_redact::{Public, Record, Redactor, Rules, Sensitive};
use shapes::ALONE;

/// What stands in the place of each must not hold any of these pieces of it.
fn pieces(secret: &str) -> Vec<String> {
    let words = secret.split(|letter: char| letter.is_whitespace() || "@:/".contains(letter));
    let long = words.filter(|word| word.len() >= 6 && !HARMLESS.contains(word));
    long.map(str::to_owned).collect()
}

const HARMLESS: &[&str] = &[
    "postgres",
    "https",
    "amqps",
    "db.internal",
    "mq.internal",
    "sentry.internal",
    "services",
    "hooks.slack.com",
    "PRIVATE",
    "-----BEGIN",
    "KEY-----",
    "OPENSSH",
    "-----END",
];

/// Names whose values are secret whatever they look like.
const NAMES: &[&str] = &[
    "password",
    "Password",
    "PASSWORD",
    "passwd",
    "pwd",
    "db_password",
    "dbPassword",
    "user.password",
    "pass-word",
    "passphrase",
    "secret",
    "client_secret",
    "clientSecret",
    "CLIENT-SECRET",
    "token",
    "accessToken",
    "refresh_token",
    "session_token",
    "id-token",
    "x-auth-token",
    "api_key",
    "apikey",
    "apiKey",
    "API_KEY",
    "X-API-Key",
    "x api key",
    "authorization",
    "Authorization",
    "Proxy-Authorization",
    "auth",
    "basicAuth",
    "credential",
    "credentials",
    "aws_secret_access_key",
    "private_key",
    "privateKey",
    "signing-key",
    "cookie",
    "Set-Cookie",
    "ssn",
    "credit_card",
    "cardNumber",
    "cvv",
    "pin",
    "connectionString",
    "pаssword",
    "ｐａｓｓｗｏｒｄ",
];

fn json(text: &str) -> Json {
    Json::admit(text.as_bytes(), &Limits::event()).unwrap()
}

fn quoted(text: &str) -> String {
    String::from_utf8(Json::from(text).to_sorted_ascii()).unwrap()
}

/// The places where a secret turns up.
fn places(secret: &str) -> Vec<Json> {
    let q = quoted(secret);
    let inner = format!(r#"{{"note":{q}}}"#);
    let innermost = format!(r#"[{}]"#, quoted(&inner));
    [
        q.clone(),
        format!(r#"{{"note":{q}}}"#),
        format!(r#"{{"a":[{{"b":[{q}]}}]}}"#),
        format!(
            r#"{{"note":{}}}"#,
            quoted(&format!("it is {secret} indeed"))
        ),
        format!(r#"{{"note":{}}}"#, quoted(&format!("({secret})"))),
        format!(r#"{{"body":{}}}"#, quoted(&inner)),
        format!(r#"{{"body":{}}}"#, quoted(&innermost)),
        format!(r#"{{{q}:1}}"#),
        format!(r#"{{"url":{}}}"#, quoted(&format!("see {secret} ?x=1"))),
    ]
    .iter()
    .map(|text| json(text))
    .collect()
}

#[test]
fn what_is_recognised_by_itself_is_found_everywhere() {
    let redactor = Redactor::default();
    let mut shapes = 0;
    for secret in ALONE {
        for place in places(secret) {
            let redacted = redactor.json(&place).to_string();
            for piece in pieces(secret).iter().map(|piece| quoted(piece)) {
                let piece = piece.trim_matches('"');
                assert!(!redacted.contains(piece), "{piece} is still in {redacted}");
            }
            shapes += 1;
        }
    }
    assert!(shapes >= 200);
}

#[test]
fn a_name_hides_its_value_in_every_spelling_and_place() {
    let redactor = Redactor::default();
    for name in NAMES {
        let q = quoted(name);
        for place in [
            format!(r#"{{{q}:"hunter2"}}"#),
            format!(r#"{{{q}:["hunter2",{{"x":"hunter2"}}]}}"#),
            format!(r#"{{"headers":[{{"name":{q},"value":"hunter2"}}]}}"#),
            format!(r#"{{"headers":[[{q},"hunter2"]]}}"#),
            format!(r#"{{"body":{}}}"#, quoted(&format!(r#"{{{q}:"hunter2"}}"#))),
        ] {
            let redacted = redactor.json(&json(&place)).to_string();
            assert!(!redacted.contains("hunter2"), "{place} gives {redacted}");
        }
        if name.contains(' ') {
            continue;
        }
        for text in [
            format!("{name}=hunter2"),
            format!("x {name}: hunter2"),
            format!("{name} = 'hunter2'"),
            format!("{{\"{name}\": \"hunter2\", oops"),
            format!("{{\\\"{name}\\\":\\\"hunter2\\\", oops"),
            format!("https://x.example/?a=b&{name}=hunter2&c=d"),
            format!("https://x.example/?q=a%26{name}%3Dhunter2"),
            format!("tool --{name} hunter2"),
        ] {
            let redacted = redactor.text(&text);
            assert!(
                !redacted.as_str().contains("hunter2"),
                "{text} gives {redacted}"
            );
        }
    }
}

/// Texts and values of other kinds (`corpus/redact/shapes.json`): split, encoded, in the syntax of others.
#[test]
fn no_shape_of_the_corpus_survives() {
    let redactor = Redactor::default();
    let shapes = json(include_str!("../../../corpus/redact/shapes.json"));
    let shapes = shapes.as_array().unwrap();
    let mut leaks = Vec::new();
    for shape in shapes {
        let what = shape.get("what").unwrap();
        let value = shape.get("value").unwrap();
        let redacted = redactor.json(value).into_inner();
        assert_eq!(
            redactor.json(&redacted).as_json(),
            &redacted,
            "{what:?}: twice"
        );
        let text = String::from_utf8(redacted.to_sorted_ascii()).unwrap();
        for secret in shape.get("secret").unwrap().as_array().unwrap() {
            let piece = quoted(secret.as_str().unwrap());
            if text.contains(piece.trim_matches('"')) {
                leaks.push(format!("{what:?}: {text}"));
            }
        }
    }
    assert!(shapes.len() >= 90);
    assert!(leaks.is_empty(), "{}", leaks.join("\n"));
}

#[test]
fn headers_hide_all_of_their_line() {
    let redactor = Redactor::default();
    for line in [
        "Authorization: Bearer abc123def456",
        "authorization: Basic dXNlcjpodW50ZXIy",
        "Authorization: Digest username=\"bob\", response=\"6629fae4\"",
        "Cookie: sid=31d4d96e; theme=dark",
        "curl -H 'Authorization: token abcdef123456' x",
    ] {
        let redacted = redactor.text(line);
        for piece in ["abc123", "dXNlcj", "6629fae4", "31d4d96e", "abcdef12"] {
            assert!(!redacted.as_str().contains(piece), "{redacted}");
        }
    }
    assert_eq!(
        redactor.text("Bearer abc123def456.x").as_str(),
        "Bearer [TOKEN]"
    );
}

#[test]
fn marks_are_those_of_the_documentation() {
    let redactor = Redactor::default();
    for (text, expected) in [
        ("mail bob@example.com now", "mail [EMAIL] now"),
        ("call (415) 555-1234 now", "call [PHONE] now"),
        ("0123456789abcdef0123456789abcdef", "[TOKEN]"),
        ("4111 1111 1111 1111", "[CARD]"),
        ("postgres://u:p@h/db", "postgres://[CREDENTIALS]@h/db"),
        ("a=1 password=x b=2", "a=1 password=[REDACTED] b=2"),
        ("eyJhbGciOiJIUzI1NiJ9.e30.x", "[JWT]"),
    ] {
        assert_eq!(redactor.text(text).as_str(), expected);
    }
}

#[test]
fn what_is_no_secret_stays() {
    let redactor = Redactor::default();
    for text in [
        "the quick brown fox reads /usr/share/doc/README.md",
        "order 1234567890 of 2024-01-31 10:20:30",
        "host 192.168.100.200 port 8080",
        "version 1.2.3-rc.4, took 12345.678 ms",
        "AbstractSingletonProxyFactoryBean2 in src/main/java/Beans.java",
        "the secretary tokenizes the author's basic understanding",
        "max_tokens=4096 and input_tokens: 12",
        "https://example.com/a/b?page=2#top",
        "550e8400-e29b-41d4-a716-446655440000",
        "ses_01jd8x act_7 TOOL_CALL_PROPOSED",
        "usage:\n  input_tokens: 12\n  max_tokens: 4096\n",
        "usage: tool <token> <file>",
        "the password is wrong, and the token was not sent",
        "docker run -u 1000:1000 -p 8080:80 image",
        "ssh -p 22 host; mkdir -p a/b; tar -u f",
        "id,name,price\n1,chair,20\n2,table,40\n",
        "https://example.com:8080/a/b and //cdn.example.com/x.js",
        "100%25 of the caf&eacute;s &amp; bars, \\u00e9t\\u00e9",
        "<p class=\"key\">the name of the key is below</p>",
        "user: bob\nnote: |\n  many\n  lines\n",
    ] {
        assert_eq!(redactor.text(text).as_str(), text);
    }
    let usage =
        json(r#"{"usage":{"input_tokens":12,"max_tokens":4096},"token":null,"author":"me"}"#);
    assert_eq!(redactor.json(&usage).as_json(), &usage);
}

#[test]
fn redacting_twice_changes_nothing() {
    let redactor = Redactor::default();
    for secret in ALONE {
        for place in places(secret) {
            let once = redactor.json(&place).into_inner();
            assert_eq!(redactor.json(&once).as_json(), &once);
        }
    }
    for name in NAMES {
        let once = redactor
            .text(&format!("{name}: Bearer hunter2abc"))
            .into_inner();
        assert_eq!(redactor.text(&once).as_str(), once);
    }
}

#[test]
fn members_whose_names_become_alike_both_stay() {
    let redactor = Redactor::default();
    let value = json(r#"{"a@example.com":1,"b@example.com":2}"#);
    assert_eq!(
        redactor.json(&value).to_string(),
        r#"{"[EMAIL]":1,"[EMAIL]#2":2}"#
    );
}

#[test]
fn operators_add_names_and_prefixes() {
    let rules = Rules {
        secret_names: vec!["Badge-No".to_owned()],
        secret_prefixes: vec!["corp-".to_owned()],
        keep_email: true,
        ..Rules::default()
    };
    let redactor = Redactor::new(rules).unwrap();
    let value = json(r#"{"badgeNo":"77","text":"corp-abc by bob@example.com"}"#);
    assert_eq!(
        redactor.json(&value).to_string(),
        r#"{"badgeNo":"[REDACTED]","text":"[TOKEN] by bob@example.com"}"#
    );
    for rules in [
        Rules {
            secret_names: vec!["--".to_owned()],
            ..Rules::default()
        },
        Rules {
            secret_prefixes: vec!["a".to_owned()],
            ..Rules::default()
        },
    ] {
        assert!(Redactor::new(rules).is_err());
    }
}

#[test]
fn paths_and_command_lines_become_general() {
    let redactor = Redactor::default();
    let path = |path: &str| Record::default().sensitive("p", Sensitive::path(path, &redactor));
    for (given, expected) in [
        ("/Users/name/file", "~/**/file"),
        ("/home/name/a/b/c.txt", "~/**/c.txt"),
        ("C:\\Users\\name\\file", "~/**/file"),
        ("/root/.ssh/id_rsa", "~/**/id_rsa"),
        ("/etc/ssl/cert.pem", "/**/cert.pem"),
        ("/etc", "/etc"),
        ("src/lib.rs", "**/lib.rs"),
        ("Makefile", "Makefile"),
        ("/", "/"),
    ] {
        let expected = format!(r#"{{"p":{}}}"#, quoted(expected));
        assert_eq!(path(given).into_json().to_string(), expected);
    }
    let line = "TOKEN=abc tool --token=xyz --password hunter2 -v /Users/name/file bob@example.com";
    let record = Record::default().sensitive("c", Sensitive::command_line(line, &redactor));
    let expected = "TOKEN=*** tool --token=*** --password *** -v ~/**/file [EMAIL]";
    assert_eq!(
        record.into_json().to_string(),
        format!(r#"{{"c":"{expected}"}}"#)
    );
}

#[test]
fn forbidden_fields_leave_only_their_names() {
    let redactor = Redactor::default();
    let record = Record::default()
        .public("tool", Public::name("read_file", &redactor))
        .public("count", Public::count(3))
        .forbidden("authorization");
    assert_eq!(record.dropped(), ["authorization"]);
    assert_eq!(
        record.into_json().to_string(),
        r#"{"count":3,"tool":"read_file"}"#
    );
}

/// Texts that make a careless detector go over the same letters again and again.
#[test]
fn no_text_makes_it_go_back_far() {
    let redactor = Redactor::default();
    for unit in [
        "eyJ",
        "eyJAKIA0000000000000000",
        "a@",
        "@",
        "sk-",
        "1 ",
        "://a@",
        "-----BEGIN ",
        "password",
        "=",
        "password=",
        "--token ",
        "aA1",
        "+1(",
        "{\"a\":",
        "[",
        "\\\"",
        "<a ",
        "<key>",
        "<token>x",
        "name=\"",
        "//a:b",
        "@tcp(",
        "%253D",
        "&#61;",
        "token,",
        "token:\n ",
        "token: |\n",
        "token=\"\"\"\n",
        "token='\\'",
        "password '",
        "-u a:b ",
        "Private-Lines: ",
        "1234:AAa",
        "abc8Q~",
        "cGFzc3dvcmQ9",
    ] {
        let text = unit.repeat(100_000 / unit.len());
        let redacted = redactor.text(&text);
        assert!(redacted.as_str().len() <= 4 * text.len());
    }
}

#[test]
fn paths_and_command_lines_inside_values_are_made_general() {
    let value = Json::admit(
        br#"{"path":"/home/bob/a.txt","command":"cat /root/x --token abc","n":[1,"/etc/passwd"],"text":"a /b"}"#,
        &Limits::event(),
    )
    .unwrap();
    let record =
        Record::default().sensitive("args", Sensitive::general(&value, &Redactor::default()));
    let json = record.into_json().into_inner();
    let text = String::from_utf8(json.to_jcs().unwrap()).unwrap();
    assert_eq!(
        text,
        r#"{"args":{"command":"cat ~/**/x --token ***","n":[1,"/**/passwd"],"path":"~/**/a.txt","text":"a /b"}}"#
    );
}

#[test]
fn only_ids_that_we_made_are_public() {
    assert!(Public::id("apr_0123456789abcdef0123456789abcdef").is_some());
    for other in [
        "ghp_0123456789abcdefghijklmnopqrstuvwxyz",
        "apr_0123",
        "APR_0123456789abcdef0123456789abcdef",
    ] {
        assert!(Public::id(other).is_none(), "{other}");
    }
}
