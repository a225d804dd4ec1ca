//! What a server asks the client's model or human by a result, and what comes back with the next call.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

mod scene;

use countersign_event::EventType;
use scene::{Scene, error};

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"sampling":{},"elicitation":{},"roots":{}}}"#;
const MODEL: &str = r#"{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"think"}}],"maxTokens":5}}"#;
const HUMAN: &str = r#"{ "method":"elicitation/create","params":{"message":"who?","requestedSchema":{"type":"object"}}}"#;
const ROOTS: &str = r#"{"method":"roots/list"}"#;
const THOUGHT: &str = r#"{"role":"assistant","content":{"type":"text","text":"x"},"model":"m"}"#;
const SAID: &str = r#"{"action":"accept","content":{"n":1.0}}"#;

/// A server that is told what to answer, whose tools are known.
fn scene() -> Scene {
    let mut scene = Scene::new();
    scene.list();
    scene.answers = false;
    scene
}

fn call(id: u32, more: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"write","arguments":{{"n":1}}{more},{META}}}}}"#
    )
}

fn asks(id: u32, questions: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"input_required","inputRequests":{questions} ,"requestState":"o"}}}}"#
    )
}

fn answers(of: &str) -> String {
    format!(r#","requestState":"o","inputResponses":{of}"#)
}

/// What was asked and answered, by the events of it.
fn rounds(scene: &Scene) -> Vec<String> {
    let events = scene.events().into_iter();
    let told = events.filter_map(|(event, payload)| {
        let text = |key: &str| Some(payload.get(key)?.as_str()?.to_owned());
        match event {
            EventType::ModelCallStarted | EventType::ModelCallFinished => {
                Some(format!("{event} {}", text("call_id")?))
            }
            EventType::MemoryRead | EventType::MemoryWrite => {
                let key = text("memory_key").filter(|key| !key.starts_with("mcp/"))?;
                Some(format!("{event} {key}"))
            }
            _ => None,
        }
    });
    told.collect()
}

#[test]
fn what_a_result_asks_and_the_next_call_brings_is_recorded_like_requests_of_a_server() {
    let mut scene = scene();
    scene.send(call(1, ""));
    let asked = asks(1, &format!(r#"{{"s":{MODEL},"e":{HUMAN},"r":{ROOTS}}}"#));
    assert_eq!(scene.serve(&asked), [asked.as_str()]);
    let asked = [
        "MODEL_CALL_STARTED server:1/s",
        "MEMORY_READ elicitation/create",
    ];
    assert_eq!(rounds(&scene), asked);
    let given = answers(&format!(
        r#"{{"s":{THOUGHT},"e":{SAID},"r":{{"roots":[]}}}}"#
    ));
    scene.send(call(2, &given));
    assert_eq!(scene.server.last().unwrap(), &call(2, &given));
    let both = [
        &asked[..],
        &[
            "MODEL_CALL_FINISHED server:1/s",
            "MEMORY_WRITE elicitation/create",
        ],
    ]
    .concat();
    assert_eq!(rounds(&scene), both);
    // Each time it comes it is looked at: what a policy has changed once is changed again.
    scene.send(call(3, &given));
    let again = [
        "MEMORY_WRITE sampling/createMessage",
        "MEMORY_WRITE elicitation/create",
    ];
    let more = [&both[..], &again].concat();
    assert_eq!(rounds(&scene), more);
    scene.send(call(4, &answers(&format!(r#"{{"s":{SAID}}}"#))));
    assert_eq!(rounds(&scene), [&more[..], &again[..1]].concat());
    scene.verify();
}

#[test]
fn an_answer_is_seen_by_all_whom_its_name_was_ever_used_to_ask() {
    for (first, then, seen) in [
        (ROOTS, HUMAN, "MEMORY_WRITE elicitation/create"),
        (HUMAN, ROOTS, "MEMORY_WRITE elicitation/create"),
        (ROOTS, MODEL, "MODEL_CALL_FINISHED server:2/q"),
        (MODEL, ROOTS, "MODEL_CALL_FINISHED server:1/q"),
    ] {
        let mut scene = scene();
        for (id, question) in [(1, first), (2, then)] {
            scene.send(call(id, &format!(r#","more":{id}"#)));
            scene.serve(asks(id, &format!(r#"{{"q":{question}}}"#)));
        }
        let before = rounds(&scene).len();
        scene.send(call(3, &answers(&format!(r#"{{"q":{SAID}}}"#))));
        assert_eq!(rounds(&scene)[before..], [seen], "{first} {then}");
        scene.verify();
    }
    // A model's answer to what a human was asked, too.
    let mut scene = scene();
    for (id, question) in [(1, HUMAN), (2, MODEL)] {
        scene.send(call(id, &format!(r#","more":{id}"#)));
        scene.serve(asks(id, &format!(r#"{{"q":{question}}}"#)));
    }
    scene.send(call(3, &answers(&format!(r#"{{"q":{THOUGHT}}}"#))));
    let seen = [
        "MEMORY_WRITE elicitation/create",
        "MODEL_CALL_FINISHED server:2/q",
    ];
    assert!(rounds(&scene).ends_with(&seen.map(str::to_owned)));
    scene.verify();
}

#[test]
fn what_is_answered_without_a_question_that_is_known_is_recorded_by_what_it_looks_like() {
    let mut scene = scene();
    let given = format!(r#"{{"a":{THOUGHT},"b":{SAID},"c":{{"roots":[]}},"d":"dana"}}"#);
    scene.send(call(1, &answers(&given)));
    scene.send(call(2, r#","inputResponses":null"#));
    scene.send(call(3, r#","inputResponses":"dana""#));
    let wanted = [
        "MEMORY_WRITE sampling/createMessage",
        "MEMORY_WRITE elicitation/create",
        "MEMORY_WRITE elicitation/create",
        "MEMORY_WRITE elicitation/create",
    ];
    assert_eq!(rounds(&scene), wanted);
    assert_eq!(scene.effects, 3);
    scene.verify();
}

#[test]
fn a_result_that_asks_what_nobody_understands_does_not_reach_the_client() {
    let many: Vec<String> = (0..65)
        .map(|n| format!(r#""{n}":{{"method":"roots/list"}}"#))
        .collect();
    let many = format!("{{{}}}", many.join(","));
    let unfit = [
        "[]",
        r#""secret""#,
        r#"{"q":"secret"}"#,
        r#"{"q":{"params":{"message":"secret"}}}"#,
        r#"{"q":{"method":"tools/call","params":{"name":"secret"}}}"#,
        r#"{"q":{"method":"elicitation/Create","params":{"message":"secret"}}}"#,
        r#"{"q":{"method":"elicitation/create","Params":{"message":"secret"}}}"#,
        r#"{"q":{"method":"elicitation/create","params":["secret"]}}"#,
        r#"{"q":{"method":"ping"}}"#,
        &many,
    ];
    let mut scene = scene();
    for (id, questions) in (1..).zip(unfit) {
        scene.send(call(id, &format!(r#","n":{id}"#)));
        let got = scene.serve(asks(id, questions));
        let reason = (-32000, "INPUT_REQUEST_REFUSED".to_owned());
        assert_eq!(error(&got[0]), reason, "{questions}");
        assert!(!got[0].contains("secret"), "{got:?}");
    }
    // Some clients take this key for the one of the protocol.
    scene.send(call(90, ""));
    let posing = asks(90, &format!(r#"{{"e":{HUMAN}}}"#)).replace("inputRequests", "InputRequests");
    assert_eq!(error(&scene.serve(posing)[0]).1, "INPUT_REQUEST_REFUSED");
    assert!(rounds(&scene).is_empty());
    // There is nothing to look at here.
    for (id, nothing) in [(91, "{}"), (92, "null")] {
        scene.send(call(id, &format!(r#","n":{id}"#)));
        let asked = asks(id, nothing);
        assert_eq!(scene.serve(&asked), [asked.as_str()]);
    }
    scene.verify();
}

#[test]
fn what_is_fetched_can_ask_and_what_is_no_call_cannot() {
    let mut scene = scene();
    for (id, request) in [
        (1, r#""method":"resources/read","params":{"uri":"x:y""#),
        (2, r#""method":"prompts/get","params":{"name":"p""#),
    ] {
        let ask = |id: u32, more: &str| {
            format!(r#"{{"jsonrpc":"2.0","id":{id},{request}{more},{META}}}}}"#)
        };
        scene.send(ask(id, ""));
        let asked = asks(id, &format!(r#"{{"s":{MODEL}}}"#));
        assert_eq!(scene.serve(&asked), [asked.as_str()]);
        let brought = ask(id + 10, &answers(&format!(r#"{{"s":{THOUGHT}}}"#)));
        scene.send(&brought);
        assert_eq!(scene.server.last(), Some(&brought));
    }
    let wanted = [
        "MODEL_CALL_STARTED server:1/s",
        "MODEL_CALL_FINISHED server:1/s",
        "MODEL_CALL_STARTED server:2/s",
        "MODEL_CALL_FINISHED server:2/s",
    ];
    assert_eq!(rounds(&scene), wanted);
    for (id, method) in [
        (3, "tools/list"),
        (4, "resources/list"),
        (5, "server/discover"),
    ] {
        scene.send(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{META}}}}}"#
        ));
        let got = scene.serve(asks(id, &format!(r#"{{"e":{HUMAN}}}"#)));
        assert_eq!(error(&got[0]).1, "INPUT_REQUEST_REFUSED", "{method}");
    }
    assert_eq!(rounds(&scene).len(), 4);
    scene.verify();
}

#[test]
fn what_a_task_asks_is_recorded_once_however_often_it_is_told() {
    let mut scene = scene();
    scene.send(call(1, ""));
    scene.serve(r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"task","taskId":"t"}}"#);
    let about = |id: u32, method: &str, more: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tasks/{method}","params":{{"taskId":"t"{more},{META}}}}}"#
        )
    };
    let stands =
        format!(r#""taskId":"t","status":"input_required","inputRequests":{{"s":{MODEL}}}"#);
    for id in [2, 3] {
        scene.send(about(id, "get", ""));
        let told = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete",{stands}}}}}"#
        );
        assert_eq!(scene.serve(&told), [told.as_str()]);
    }
    let told =
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/tasks","params":{{{stands}}}}}"#);
    assert_eq!(scene.serve(&told), [told.as_str()]);
    let brought = about(
        4,
        "update",
        &format!(r#","inputResponses":{{"s":{THOUGHT}}}"#),
    );
    scene.send(&brought);
    assert_eq!(scene.server.last(), Some(&brought));
    let of_models: Vec<String> = rounds(&scene)
        .into_iter()
        .filter(|it| it.contains("MODEL"))
        .collect();
    let wanted = [
        r#"MODEL_CALL_STARTED server:task "t"/s"#,
        r#"MODEL_CALL_FINISHED server:task "t"/s"#,
    ];
    assert_eq!(of_models, wanted);
    // What is over can ask no more than what is not.
    scene.send(about(5, "get", ""));
    let late = r#"{"jsonrpc":"2.0","id":5,"result":{"taskId":"t","status":"completed","result":{"inputRequests":{"q":{"method":"secret"}}}}}"#;
    let got = scene.serve(late);
    assert_eq!(error(&got[0]).1, "INPUT_REQUEST_REFUSED");
    let told = told.replace("sampling/createMessage", "secret");
    assert!(scene.serve(told).is_empty());
    scene.verify();
}

const LINK: &str =
    r#"{ "mode":"url","elicitationId":"l","url":"https://example.com/","message":"sign in"}"#;

fn links(id: u32, code: &str, links: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"first this","data":{{"elicitations":{links} }}}}}}"#
    )
}

#[test]
fn links_of_an_error_are_recorded_like_questions_to_a_human() {
    let mut scene = scene();
    let mut recorded = 0;
    for (id, request, known, code) in [
        (1, call(1, ""), 1, "-32042"),
        // Readers differ in what they take for this code.
        (2, call(2, r#","n":2"#), 2, r#""-32042 ""#),
        (3, call(3, r#","n":3"#), 0, "-32042"),
        (
            4,
            r#"{"jsonrpc":"2.0","id":4,"method":"tools/list"}"#.to_owned(),
            1,
            "-32042.0",
        ),
        (
            5,
            r#"{"jsonrpc":"2.0","id":5,"method":"completion/complete"}"#.to_owned(),
            1,
            "-32042",
        ),
    ] {
        scene.send(request);
        let told = links(id, code, &format!("[{}]", vec![LINK; known].join(", ")));
        assert_eq!(scene.serve(&told), [told.as_str()]);
        recorded += known;
        assert_eq!(
            rounds(&scene),
            vec!["MEMORY_READ elicitation/create"; recorded]
        );
    }
    // Other errors bring none.
    for (id, error) in [
        (6, r#"{"code":-32042,"message":"nothing"}"#),
        (7, r#"{"code":-32042,"message":"","data":["x"]}"#),
        (8, r#"{"code":-1,"message":"","data":{"more":[]}}"#),
        (9, r#""broken""#),
    ] {
        scene.send(call(id, &format!(r#","n":{id}"#)));
        let told = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#);
        assert_eq!(scene.serve(&told), [told.as_str()]);
    }
    assert_eq!(rounds(&scene).len(), recorded);
    scene.verify();
}

/// Also where an error stands in something else: in what is said about a task, or in an answer to nobody.
#[test]
fn links_of_an_error_are_questions_wherever_it_stands() {
    let failed = |links: &str| {
        format!(
            r#""taskId":"t","status":"failed","error":{{"code":-32042,"message":"m","data":{{"elicitations":{links}}}}}"#
        )
    };
    let [known, unknown] = [&format!("[{LINK}]"), r#"["secret"]"#].map(failed);
    let about = |id: u32, method: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tasks/{method}","params":{{"taskId":"t",{META}}}}}"#
        )
    };
    let link = "MEMORY_READ elicitation/create".to_owned();
    let mut scene = scene();
    scene.send(call(1, ""));
    scene.serve(r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"task","taskId":"t"}}"#);
    for (id, method) in (2..).step_by(2).zip(["get", "update", "cancel", "result"]) {
        scene.send(about(id, method));
        let told = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{{known}}}}}"#);
        assert_eq!(scene.serve(&told), [told.as_str()], "{method}");
        assert_eq!(rounds(&scene).pop().as_ref(), Some(&link), "{method}");
        scene.send(about(id + 1, method));
        let told = format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{{{unknown}}}}}"#,
            id + 1
        );
        let got = scene.serve(&told);
        assert_eq!(error(&got[0]).1, "INPUT_REQUEST_REFUSED", "{method}");
        assert!(!got[0].contains("secret"), "{method}");
    }
    let told =
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/tasks","params":{{{known}}}}}"#);
    assert_eq!(scene.serve(&told), [told.as_str()]);
    assert_eq!(rounds(&scene).pop().as_ref(), Some(&link));
    // In the answer to a call, as a task that has failed at once.
    scene.send(call(20, r#","n":20"#));
    let told = format!(r#"{{"jsonrpc":"2.0","id":20,"result":{{"task":{{{known}}}}}}}"#);
    assert_eq!(scene.serve(&told), [told.as_str()]);
    assert_eq!(rounds(&scene).pop().as_ref(), Some(&link));
    scene.verify();
}

#[test]
fn an_error_that_answers_nobody_is_recorded_and_looked_at() {
    let mut scene = scene();
    for id in [r#""id":null,"#, ""] {
        let told = links(1, "-32042", &format!("[{LINK}]")).replace(r#""id":1,"#, id);
        assert_eq!(scene.serve(&told), [told.as_str()]);
        let of_it = ["MEMORY_READ error", "MEMORY_READ elicitation/create"];
        assert_eq!(rounds(&scene).split_off(rounds(&scene).len() - 2), of_it);
        let secret = links(1, "-32042", r#"["secret"]"#).replace(r#""id":1,"#, id);
        assert!(scene.serve(&secret).is_empty());
    }
    let before = rounds(&scene).len();
    let plain = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"what?"}}"#;
    // Who says so all the time does not fill the log, and is not heard.
    let heard = (0..200).filter(|_| !scene.serve(plain).is_empty()).count();
    assert_eq!(heard, 96);
    assert_eq!(rounds(&scene).len(), before + heard);
    scene.verify();
}

#[test]
fn links_that_nobody_understands_do_not_reach_the_client() {
    let many = format!("[{}]", ["{}"; 65].join(","));
    let mut scene = scene();
    for (id, unfit) in (1..).zip([r#"{"a":"secret"}"#, r#"["secret"]"#, r#""secret""#, &many]) {
        for (id, request) in [
            (id, call(id, &format!(r#","n":{id}"#))),
            (
                id + 100,
                format!(r#"{{"jsonrpc":"2.0","id":{},"method":"ping"}}"#, id + 100),
            ),
        ] {
            scene.send(request);
            let got = scene.serve(links(id, "-32042", unfit));
            assert_eq!(error(&got[0]).1, "INPUT_REQUEST_REFUSED", "{unfit}");
            assert!(!got[0].contains("secret"), "{got:?}");
        }
    }
    for (id, (key, posing)) in (50..).zip([("data", "Data"), ("elicitations", "eLicitations")]) {
        scene.send(call(id, &format!(r#","n":{id}"#)));
        let told = links(id, "-32042", &format!("[{LINK}]")).replace(key, posing);
        assert_eq!(error(&scene.serve(told)[0]).1, "INPUT_REQUEST_REFUSED");
    }
    assert!(rounds(&scene).is_empty());
    scene.verify();
}
