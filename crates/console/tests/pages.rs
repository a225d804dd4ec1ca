//! Pages: nothing that somebody else wrote becomes markup, and plans are shown one-to-one.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may stop at once"
)]

use countersign_canon::{Json, Limits};
use countersign_console::{
    CSP, Card, Door, Frame, Health, Html, Inbox, Lease, Link, LogPage, PolicyPage, Reach,
    SessionPage, SessionsPage, Tab, View, Who, asset, el,
};
use countersign_display::{Rendering, View as Full};
use proptest::prelude::*;
use scraper::{Html as Document, Selector};

fn who() -> Who {
    Who {
        name: "dana".to_owned(),
        role: "operator",
        tabs: Tab::ALL.to_vec(),
        decides: true,
        changes: true,
        csrf: "0123456789abcdef".to_owned(),
    }
}

fn frame(who: &Who) -> Frame<'_> {
    Frame {
        who: Some(who),
        here: Some(Tab::Inbox),
        now_unix_ms: 1_794_762_902_472,
        waiting: Some(2),
        follows: Some(""),
    }
}

fn json(text: &str) -> Json {
    Json::admit(text.as_bytes(), &Limits::plan()).unwrap()
}

/// A value in which every text is this one.
fn filled(shape: &str, text: &str) -> Json {
    fn fill(value: Json, text: &str) -> Json {
        match value {
            Json::String(name) if name == "*" => Json::from(text),
            Json::Array(values) => {
                Json::Array(values.into_iter().map(|one| fill(one, text)).collect())
            }
            Json::Object(members) => Json::Object(
                members
                    .iter()
                    .map(|(name, value)| {
                        let name = if name == "*" { text } else { name };
                        (name.to_owned(), fill(value.clone(), text))
                    })
                    .collect(),
            ),
            other => other,
        }
    }
    fill(json(shape), text)
}

/// The elements of a document, without their text.
fn skeleton(html: &Html) -> Vec<String> {
    let document = Document::parse_document(html.as_str());
    let all = Selector::parse("*").unwrap();
    document
        .select(&all)
        .map(|element| {
            let mut names: Vec<&str> = element.value().attrs().map(|(name, _)| name).collect();
            names.sort_unstable();
            format!("{} {}", element.value().name(), names.join(" "))
        })
        .collect()
}

/// Every page, with one text in every place where somebody else's text can be.
fn pages(text: &str) -> Vec<(&'static str, Html)> {
    let who = Who {
        name: text.to_owned(),
        csrf: text.to_owned(),
        ..who()
    };
    let frame = frame(&who);
    let plan = Json::object([("args", Json::object([("note", Json::from(text))]))]);
    let rendering = Rendering::of(&plan.to_sorted_ascii(), Full::Full).unwrap();
    let envelope = filled(
        r#"{"agent_says":"*","lineage":["*","*"],"plan":{"scope":{"workspace_root":"*","trust":"*"},
            "preconditions":[{"kind":"*","subject":"*"},
                {"kind":"resource","subject":"command","fingerprint":"*"}],
            "tool_calls":[{"tool_name":"*","server":"*","side_effect_class":"*","args":{"a":"*"}}]},
            "quorum":{"deny":"*","roster":["*"]},"supersedes":"*","parent_action_id":"*"}"#,
        text,
    );
    let mut card = filled(
        r#"{"approval_id":"*","state":"pending","plan_hash":"*","short_code":"*","tools":["*"],
            "requester":"*","tenant_id":"*","session_id":"*","issued_at_ms":5,"decide_by_ms":9,
            "why":"*","display_sha256":"*","required":1,
            "votes":[{"approver":"*","approved":true,"reason":"*","at_ms":7}]}"#,
        text,
    );
    let envelope = String::from_utf8(envelope.to_sorted_ascii()).unwrap();
    card.as_object_mut()
        .unwrap()
        .insert("envelope".to_owned(), Json::from(envelope));
    let event = filled(
        r#"{"id":3,"seq":2,"ts_unix_ms":9,"hash":"*","prev_hash":"*","tenant_id":"*","session_id":"*",
            "event_type":"*","payload":{"call_id":"*","tool_name":"*","server":"*","outcome":"*",
            "reason":"*","policy_ref":"*","reason_codes":["*"],"side_effect":"*","policy_digest":"*",
            "memory_key":"*","more":{"a":"*"},"sealed":{"commitments":{"*":"*"}}}}"#,
        text,
    );
    let snapshot = filled(
        r#"{"state":{"steps_consumed":1,"tool_calls_consumed":1},
            "snapshot":{"taint":[{"label":"*","name":"*","first_seq":1,"count":2}]}}"#,
        text,
    );
    let people = filled(r#"[{"key_id":"*","person":"*"}]"#, text);
    let report = filled(
        r#"{"valid":false,"events":1,"error":"*","first_bad_seq":1,"checked":["*"],"not_checked":["*"]}"#,
        text,
    );
    let session = filled(
        r#"{"tenant_id":"*","session_id":"*","events":3,"head":"*","first_unix_ms":1,"last_unix_ms":9}"#,
        text,
    );
    let proof = filled(
        r#"{"event":"*","index":1,"size":3,"root":"*","path":["*","*"],"checkpoint":"*","proof":"*"}"#,
        text,
    );
    let policies = filled(
        r#"{"digest":"*","manifest_digest":"*","kept_in":"files","policies":[{"name":"*","mode":"*","digest":"*"}]}"#,
        text,
    );
    let manifest = filled(r#"{"*":{"name":"*","list":["*"]}}"#, text);
    let tests = filled(
        r#"{"passed":1,"failed":1,"tests":[{"place":"*","name":"*","failure":"*"},{"place":"*","name":"*","failure":null}],
            "files":[{"name":"*","covered":1,"lines":2,"missed":[4]}]}"#,
        text,
    );
    let backtest = filled(
        r#"{"name":"*","actions":3,"same":1,"sessions":1,"unread_sessions":1,"interrupted":true,
            "changes":[{"from":"*","to":"*","count":2}],"tools":[{"tool":"*","count":2}]}"#,
        text,
    );
    let replays = [
        filled(
            r#"{"tenant_id":"*","session_id":"*","state":"done","report":{"identical":false,"diffs":[{}],"decisions_replayed":1}}"#,
            text,
        ),
        filled(
            r#"{"tenant_id":"*","session_id":"*","state":"*","error":"*"}"#,
            text,
        ),
    ];
    let doors = [Door {
        name: text.to_owned(),
        reach: Reach::BestEffort,
        why: text.to_owned(),
        actions: 1,
        newest_unix_ms: Some(4),
    }];
    let tools = filled(
        r#"{"tools":[{"server":"*","tool":"*","state":"waiting","digest":"*","flags":["*"],
            "changes":[{"pointer":"*","before":"*","after":"*"}]}]}"#,
        text,
    );
    let events = [event.clone(), event.clone()];
    let opened = || Card {
        json: &card,
        sheet: rendering.sheet(),
        code: text,
        decision: Some(&event),
        before: &events,
        snapshot: Some(&snapshot),
        people: &people,
        trouble: Some(text),
    };
    let rows = [card.clone()];
    let page = |view| SessionPage {
        session: &session,
        events: &events,
        view,
        cursor: (Some(text), Some(text)),
        snapshot: Some(&snapshot),
        budgets: None,
        verified: Some(&report),
        covered: Some(1),
        has_pack: true,
    };
    let owned = text.to_owned();
    let found = [countersign_console::Found {
        what: "session",
        name: owned.clone(),
        link: Link::to(&["sessions", text]),
    }];
    let past = [(owned.clone(), Some(owned.clone())), (owned.clone(), None)];
    let asked = [("arguments".to_owned(), owned.clone())];
    let shadow = [(owned.clone(), owned.clone(), owned.clone(), 3)];
    let terms = [owned.clone()];
    use countersign_console as console;
    vec![
        (
            "login",
            console::login(&frame, Some(text), Some(text), Some(text)),
        ),
        (
            "came_in",
            console::came_in(&frame, text, &console::Link::to(&[text])),
        ),
        ("trouble", console::trouble(&frame, text, text, text)),
        (
            "inbox",
            console::inbox(
                &frame,
                &Inbox {
                    waiting: &rows,
                    decided: &rows,
                    card: Some(opened()),
                },
            ),
        ),
        (
            "lease",
            console::lease(
                &frame,
                &Lease {
                    json: &card,
                    text: Some(text),
                    terms: &terms,
                    past: &past,
                    trouble: Some(text),
                    asked: &asked,
                    people: &people,
                },
            ),
        ),
        (
            "sessions",
            console::sessions(
                &frame,
                &SessionsPage {
                    sessions: std::slice::from_ref(&session),
                    query: text,
                    trouble: Some(text),
                    looked_at: Some(3),
                    next: Some(text),
                },
            ),
        ),
        ("compact", console::session(&frame, &page(View::Compact))),
        ("timeline", console::session(&frame, &page(View::Timeline))),
        ("raw", console::session(&frame, &page(View::Raw))),
        (
            "event",
            console::event(&frame, &event, Ok(&proof), Some(text)),
        ),
        ("unproven", console::event(&frame, &event, Err(text), None)),
        (
            "log",
            console::log(
                &frame,
                &LogPage {
                    query: text,
                    trouble: Some(text),
                    events: &events,
                    looked_at: Some(9),
                    found: &found,
                    checkpoint: Some((3, owned.clone())),
                },
            ),
        ),
        (
            "policy",
            console::policy(
                &frame,
                &PolicyPage {
                    in_force: &policies,
                    manifest: Some(&manifest),
                    tests: Some(&tests),
                    shadow: &shadow,
                    decisions: 3,
                    backtests: std::slice::from_ref(&backtest),
                    replays: &replays,
                    tools: Some(&tools),
                    trouble: Some(text),
                },
            ),
        ),
        (
            "health",
            console::health(
                &frame,
                &Health {
                    metrics: Some(text),
                    doors: &doors,
                    ..Health::default()
                },
            ),
        ),
    ]
}

/// Whatever a text is, a page has the same elements and attributes as with a harmless one.
fn check(text: &str) {
    for ((name, harmless), (_, page)) in pages("word").iter().zip(pages(text)) {
        let rows = |html: &Html| {
            // How many pieces a plan has depends on its lines, and marks stand where they are needed.
            let mut all = skeleton(html);
            all.retain(|element| !element.starts_with("i class"));
            all.retain(|element| element != "span class");
            all
        };
        let (before, after) = (rows(harmless), rows(&page));
        let differs = before
            .iter()
            .zip(&after)
            .position(|(one, other)| one != other);
        assert_eq!(differs, None, "{name}: {text:?}");
        assert_eq!(before.len(), after.len(), "{name}: {text:?}");
        let document = Document::parse_document(page.as_str());
        let all = Selector::parse("*").unwrap();
        for element in document.select(&all) {
            for (attribute, value) in element.value().attrs() {
                assert!(
                    !attribute.starts_with("on") && attribute != "style",
                    "{name}"
                );
                if matches!(attribute, "href" | "src" | "action") {
                    let local = value.starts_with('/') && !value.starts_with("//");
                    assert!(local || value == "#main", "{name}: {value}");
                }
            }
        }
        let hidden = |c: &char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{1b}' | '\u{200b}' | '\u{0}');
        assert_eq!(page.as_str().chars().find(hidden), None, "{name}");
    }
}

#[test]
fn hostile_texts_stay_texts() {
    for text in [
        "<script>alert(1)</script>",
        "\"><img src=x onerror=alert(1)>",
        "'; alert(1); '",
        "</textarea></pre></title><script>",
        "javascript:alert(1)",
        "//evil.example/",
        "../../etc",
        "{{7*7}} ${7*7} <%= 7 %>",
        "&lt;b&gt; &#x3c;",
        "a\u{202e}b\u{2066}c\u{200b}d",
        "\u{1b}[31mred\u{1b}[0m \r\n\t\u{0}",
        "<!--",
        "]]>",
        " ",
    ] {
        check(text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_text_stays_text(text in "\\PC{1,40}|[<>&\"'/ =a-z\\u{0}-\\u{20}]{1,40}") {
        check(&text);
    }

    #[test]
    fn text_is_read_back_by_a_browser(text in any::<String>()) {
        let page = el("p").attr("title", &text).text(&text).html();
        let document = Document::parse_fragment(page.as_str());
        let paragraph = Selector::parse("p").unwrap();
        let read = document.select(&paragraph).next().unwrap();
        let shown: String = read.text().collect();
        prop_assert_eq!(Some(shown.as_str()), read.value().attr("title"));
        // What shows as itself stands there as itself.
        let plain: String = text.chars().filter(|c| matches!(c, ' '..='~')).collect();
        let kept: String = text.chars().filter(|c| shown.contains(*c) && matches!(c, ' '..='~')).collect();
        prop_assert_eq!(plain, kept);
    }

    #[test]
    fn links_lead_nowhere_else(parts in prop::collection::vec(any::<String>(), 0..4), value in any::<String>()) {
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let link = Link::to(&parts).with("q", &value);
        let text = link.as_str();
        prop_assert!(text.starts_with('/') && !text.starts_with("//"));
        prop_assert!(text.bytes().all(|b| b.is_ascii_graphic() && !b"\"'<>\\#".contains(&b)));
        prop_assert!(!text.split(['/', '?']).any(|part| part == "." || part == ".."));
    }

    /// The text of the page is the text whose hash an approver signs.
    #[test]
    fn a_plan_is_on_the_page_one_to_one(texts in prop::collection::vec(any::<String>(), 0..6), lines in 0_usize..300) {
        let mut members: Vec<(String, Json)> = texts
            .iter()
            .enumerate()
            .map(|(at, text)| (format!("{at}{text}"), Json::from(text.as_str())))
            .collect();
        members.push(("lines".to_owned(), Json::from("<b>&\n".repeat(lines))));
        let plan = Json::object(members).to_sorted_ascii();
        let rendering = Rendering::of(&plan, Full::Full).unwrap();
        let card = json(r#"{"approval_id":"apr_1","state":"pending","envelope":"{}"}"#);
        let people = json("[]");
        let who = who();
        let card = Card {
            json: &card,
            sheet: rendering.sheet(),
            code: "c",
            decision: None,
            before: &[],
            snapshot: None,
            people: &people,
            trouble: None,
        };
        let inbox = Inbox { waiting: &[], decided: &[], card: Some(card) };
        let page = countersign_console::inbox(&frame(&who), &inbox);
        let document = Document::parse_document(page.as_str());
        let selector = Selector::parse("#plan").unwrap();
        let shown: String = document.select(&selector).next().unwrap().text().collect();
        prop_assert_eq!(shown, rendering.text());
    }
}

#[test]
fn pages_weigh_little_without_data() {
    let assets: usize = ["console.css", "console.js", "sign.js", "icon.svg"]
        .iter()
        .map(|name| asset(name).unwrap().text.len())
        .sum();
    for (name, page) in pages("word") {
        let weight = page.as_str().len() + assets;
        assert!(weight <= 150 << 10, "{name}: {weight} bytes");
    }
}

#[test]
fn pages_load_nothing_from_elsewhere_and_have_no_script_of_their_own() {
    for (name, page) in pages("word") {
        let document = Document::parse_document(page.as_str());
        let scripts = Selector::parse("script").unwrap();
        for script in document.select(&scripts) {
            assert!(script.value().attr("src").is_some(), "{name}");
            assert_eq!(script.text().collect::<String>(), "", "{name}");
        }
        assert_eq!(
            document.select(&Selector::parse("style").unwrap()).count(),
            0
        );
    }
    for name in ["console.css", "console.js", "sign.js"] {
        let text = asset(name).unwrap().text;
        for foreign in [
            "http://",
            "https://",
            "@import",
            "eval(",
            "innerHTML",
            "url(",
        ] {
            assert!(!text.contains(foreign), "{name}: {foreign}");
        }
    }
    for needed in [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "frame-ancestors 'none'",
    ] {
        assert!(CSP.contains(needed));
    }
    assert!(!CSP.contains("unsafe"));
}

#[test]
fn an_auditor_finds_nothing_to_decide_or_to_change() {
    let mut auditor = who();
    (auditor.decides, auditor.changes) = (false, false);
    let all = pages("word");
    let count = |html: &Html, what: &str| {
        let document = Document::parse_document(html.as_str());
        document.select(&Selector::parse(what).unwrap()).count()
    };
    let forms = "#approve, #deny, #edit, #lease, form[action=\"/policy/tools\"], form[action=\"/policy/backtest\"]";
    let seen: usize = all.iter().map(|(_, page)| count(page, forms)).sum();
    assert!(seen >= 6, "{seen}");
    let card = json(r#"{"approval_id":"apr_1","state":"pending","envelope":"{}"}"#);
    let people = json("[]");
    let plan = Rendering::of(b"{}", Full::Full).unwrap();
    let card = Card {
        json: &card,
        sheet: plan.sheet(),
        code: "c",
        decision: None,
        before: &[],
        snapshot: None,
        people: &people,
        trouble: None,
    };
    let inbox = Inbox {
        waiting: &[],
        decided: &[],
        card: Some(card),
    };
    let page = countersign_console::inbox(&frame(&auditor), &inbox);
    assert_eq!(count(&page, forms), 0);
    assert!(page.as_str().contains("may look at this"));
}

#[test]
fn a_chart_shows_what_a_backtest_found_in_shapes_and_in_words() {
    let run = filled(
        r#"{"name":"n","actions":10,"same":5,"sessions":2,"changes":[{"from":"allow","to":"deny","count":4},
            {"from":"deny","to":"allow","count":1}],"tools":[{"tool":"t","count":5}]}"#,
        "",
    );
    let policies = filled("{}", "");
    let page = countersign_console::policy(
        &Frame {
            who: None,
            here: None,
            now_unix_ms: 0,
            waiting: None,
            follows: None,
        },
        &PolicyPage {
            in_force: &policies,
            manifest: None,
            tests: None,
            shadow: &[],
            decisions: 0,
            backtests: std::slice::from_ref(&run),
            replays: &[],
            tools: None,
            trouble: None,
        },
    );
    let page = page.as_str();
    // Half of the bar is the same, four tenths are stricter, one tenth lets more through.
    for part in [
        r#"class="share same" x="0" y="0" width="500""#,
        r#"class="share stricter" x="500" y="0" width="400""#,
        r#"class="share looser" x="900" y="0" width="100""#,
        "Of 10 actions 5 are decided the same, 4 stricter, 1 less strictly",
        "▲ stricter 4 (40 %)",
        "▼ lets more through 1 (10 %)",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
}
