//! Lists of tools: pages, lists at the same time, and lists that never come.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

mod scene;

use std::time::Duration;

use scene::{Scene, error};

/// A server that is told what to answer.
fn silent() -> Scene {
    let mut scene = Scene::new();
    scene.answers = false;
    scene
}

fn ask(scene: &mut Scene, id: usize, cursor: Option<&str>) {
    let cursor = cursor.map_or_else(String::new, |cursor| format!(r#""cursor":"{cursor}""#));
    scene.send(format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list","params":{{{cursor}}}}}"#
    ));
}

fn answer(scene: &mut Scene, id: &str, tools: &str, next: Option<&str>) {
    let next = next.map_or_else(String::new, |next| format!(r#","nextCursor":"{next}""#));
    scene.serve(format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":[{tools}]{next}}}}}"#
    ));
}

/// The server works on a call from now on.
fn runs(scene: &mut Scene, id: usize, tool: &str) {
    let before = scene.effects;
    let got = call(scene, id, tool);
    assert_eq!(scene.effects, before + 1, "{got:?}");
}

fn refused(scene: &mut Scene, id: usize, tool: &str, reason: &str) {
    let got = call(scene, id, tool);
    assert_eq!(error(&got[0]), (-32000, reason.to_owned()));
}

fn call(scene: &mut Scene, id: usize, tool: &str) -> Vec<String> {
    scene.call(&id.to_string(), tool, &format!(r#"{{"n":{id}}}"#))
}

fn own(number: usize) -> String {
    format!(r#""countersign-n0nce-{number}""#)
}

fn lists(scene: &Scene) -> usize {
    let asked = scene.server.iter();
    asked.filter(|frame| frame.contains("tools/list")).count()
}

const READ: &str = r#"{"name":"read","annotations":{"readOnlyHint":true}}"#;
const WRITE: &str = r#"{"name":"write"}"#;

#[test]
fn a_page_is_part_of_the_list_whose_cursor_it_has() {
    let mut scene = silent();
    ask(&mut scene, 1, None);
    ask(&mut scene, 2, None);
    for id in ["1", "2"] {
        answer(&mut scene, id, READ, Some("p2"));
    }
    ask(&mut scene, 3, Some("p2"));
    ask(&mut scene, 4, Some("p2"));
    for id in ["3", "4"] {
        answer(&mut scene, id, WRITE, None);
    }
    runs(&mut scene, 5, "read");
    // The last page once more, written in another way.
    ask(&mut scene, 6, Some("\\u00702"));
    answer(&mut scene, "6", WRITE, None);
    runs(&mut scene, 7, "read");
    runs(&mut scene, 8, "write");
    // A page of a list that nobody has begun takes nothing away.
    ask(&mut scene, 9, Some("p9"));
    answer(&mut scene, "9", "", None);
    runs(&mut scene, 10, "read");
    assert_eq!(lists(&scene), 6, "we had no need to ask");
}

#[test]
fn what_the_client_is_shown_counts_at_once() {
    let mut scene = silent();
    scene.list();
    answer(&mut scene, "\"list\"", &format!("{READ},{WRITE}"), None);
    runs(&mut scene, 1, "write");
    // The first page of a list that never ends, or one that belongs to none.
    let changed = r#"{"name":"write","description":"do this first"}"#;
    ask(&mut scene, 2, None);
    answer(&mut scene, "2", changed, Some("p2"));
    refused(&mut scene, 3, "write", "TOOL_CHANGED");
    runs(&mut scene, 4, "read");
    ask(&mut scene, 5, Some("p7"));
    answer(&mut scene, "5", WRITE, Some("p8"));
    // A page of a list that nobody has begun may be one of the last: there it is twice.
    refused(&mut scene, 6, "write", "TOOL_AMBIGUOUS");
    ask(&mut scene, 7, None);
    answer(&mut scene, "7", WRITE, Some("p2"));
    runs(&mut scene, 8, "write");
}

const CHANGED: &str = r#"{"name":"write","description":"do this first"}"#;
const LIST_CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;

/// The client knows `write` as it is accepted.
fn accepted() -> Scene {
    let mut scene = silent();
    scene.list();
    answer(&mut scene, "\"list\"", &format!("{READ},{WRITE}"), None);
    runs(&mut scene, 1, "write");
    scene
}

/// What is listed when we ask is what was accepted.
fn lists_well(scene: &mut Scene, id: usize, number: usize) -> Vec<String> {
    call(scene, id, "write");
    answer(scene, &own(number), &format!("{READ},{WRITE}"), None);
    scene.client.clone()
}

#[test]
fn what_the_client_is_shown_counts_also_when_we_are_shown_something_else() {
    // In a list that does not end, in one that is over at once, and beside what it was before.
    let pages: [&dyn Fn(&mut Scene); 3] = [
        &|scene| {
            scene.serve(LIST_CHANGED);
            ask(scene, 2, None);
            answer(scene, "2", CHANGED, Some("p2"));
        },
        &|scene| {
            ask(scene, 2, None);
            answer(scene, "2", CHANGED, None);
            scene.serve(LIST_CHANGED);
        },
        &|scene| {
            scene.serve(LIST_CHANGED);
            ask(scene, 2, None);
            answer(scene, "2", CHANGED, Some("p2"));
            ask(scene, 3, Some("p2"));
            answer(scene, "3", WRITE, Some("p3"));
        },
    ];
    for show in pages {
        let mut scene = accepted();
        show(&mut scene);
        scene.client.clear();
        let got = lists_well(&mut scene, 4, 1);
        let refused_with = error(got.last().unwrap());
        assert_eq!(refused_with, (-32000, "TOOL_AMBIGUOUS".to_owned()));
        assert_eq!(scene.effects, 1);
        // People see what the client was shown.
        assert!(scene.book.proposed().contains_key("write"));
        // Until the client is shown what was accepted.
        ask(&mut scene, 5, None);
        answer(&mut scene, "5", &format!("{READ},{WRITE}"), None);
        runs(&mut scene, 6, "write");
    }
}

#[test]
fn what_was_accepted_when_the_client_was_shown_it_is_no_second_definition() {
    let mut scene = accepted();
    scene.serve(LIST_CHANGED);
    call(&mut scene, 2, "write");
    answer(&mut scene, &own(1), CHANGED, None);
    let got = error(scene.client.last().unwrap());
    assert_eq!(got, (-32000, "TOOL_CHANGED".to_owned()));
}

#[test]
fn nothing_is_shown_that_cannot_be_held_against_the_book() {
    let large = format!(
        r#"{{"name":"write","description":"{}"}}"#,
        "x".repeat(1 << 20)
    );
    let twins = [
        r#"{"name":"write","maximum":1e999}"#,
        r#"{"Name":"write"}"#,
        large.as_str(),
    ];
    for twin in twins {
        let mut scene = silent();
        ask(&mut scene, 1, None);
        scene.client.clear();
        answer(&mut scene, "1", &format!("{WRITE},{twin}"), None);
        let shown = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{WRITE}]}}}}"#);
        assert_eq!(scene.client, [shown]);
        assert_eq!(scene.faults(), ["tools_left_out"]);
        runs(&mut scene, 2, "write");
    }
}

#[test]
fn a_list_that_is_none_is_refused() {
    for result in [
        r#"{"Tools":[]}"#.to_owned(),
        format!(r#"{{"tools":[{WRITE}],"Tools":[{CHANGED}]}}"#),
        format!(r#"{{"tools":[{WRITE}],"next_cursor":"p2"}}"#),
        r#"{"tools":{"write":{}}}"#.to_owned(),
        "[]".to_owned(),
    ] {
        let mut scene = silent();
        ask(&mut scene, 1, None);
        scene.client.clear();
        scene.serve(format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#));
        let got = error(scene.client.last().unwrap());
        assert_eq!(got, (-32000, "SERVER_FRAME_REFUSED".to_owned()), "{result}");
        assert_eq!(scene.faults(), ["server_frame_refused"]);
        // Its id is free again.
        ask(&mut scene, 2, None);
        answer(&mut scene, "2", WRITE, None);
        runs(&mut scene, 3, "write");
    }
}

#[test]
fn a_list_without_tools_may_say_so_in_any_way() {
    for result in [
        r#"{"tools":null}"#.to_owned(),
        format!(r#"{{"tools":[{WRITE}],"nextCursor":null,"next_cursor":null}}"#),
    ] {
        let mut scene = silent();
        ask(&mut scene, 1, None);
        scene.client.clear();
        let answer = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
        assert_eq!(scene.serve(&answer), [answer]);
    }
}

#[test]
fn a_list_that_is_refused_is_answered_however_its_id_is_written() {
    let mut scene = silent();
    ask(&mut scene, 1, None);
    scene.client.clear();
    scene.serve(r#"{"jsonrpc":"2.0","\u0069d":1,"result":{"Tools":[]}}"#);
    let got = error(scene.client.last().unwrap());
    assert_eq!(got, (-32000, "SERVER_FRAME_REFUSED".to_owned()));
}

#[test]
fn of_one_name_only_so_many_are_shown() {
    let mut scene = accepted();
    let twins = (0..20).map(|n| format!(r#"{{"name":"write","description":"{n}"}}"#));
    let twins: Vec<String> = twins.collect();
    ask(&mut scene, 2, Some("p9"));
    scene.client.clear();
    answer(&mut scene, "2", &twins.join(","), None);
    assert_eq!(scene.client[0].matches("description").count(), 7);
    refused(&mut scene, 3, "write", "TOOL_AMBIGUOUS");
}

#[test]
fn what_is_shown_while_a_list_is_judged_counts_before_any_call_that_waits() {
    let mut scene = accepted();
    scene.hold_lists = true;
    ask(&mut scene, 2, None);
    answer(&mut scene, "2", &format!("{READ},{WRITE}"), None);
    scene.serve(LIST_CHANGED);
    ask(&mut scene, 3, None);
    answer(&mut scene, "3", CHANGED, Some("p2"));
    call(&mut scene, 4, "write");
    scene.hold_lists = false;
    let list = scene.lists.pop_front().unwrap();
    scene.judge(&list);
    assert_eq!(scene.effects, 1);
    answer(&mut scene, &own(1), &format!("{READ},{WRITE}"), None);
    let got = error(scene.client.last().unwrap());
    assert_eq!(got, (-32000, "TOOL_AMBIGUOUS".to_owned()));
}

#[test]
fn a_list_from_before_a_change_does_not_go_on() {
    let mut scene = silent();
    ask(&mut scene, 1, None);
    answer(&mut scene, "1", READ, Some("p2"));
    scene.serve(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    ask(&mut scene, 2, Some("p2"));
    answer(&mut scene, "2", WRITE, None);
    // So we ask.
    call(&mut scene, 3, "write");
    assert_eq!((scene.effects, lists(&scene)), (0, 3));
    answer(&mut scene, &own(1), WRITE, None);
    assert_eq!(scene.effects, 1);
    refused(&mut scene, 4, "read", "TOOL_UNLISTED");
    scene.terminate();
}

#[test]
fn a_list_that_the_client_gave_up_keeps_no_call_waiting() {
    let mut scene = silent();
    ask(&mut scene, 1, None);
    call(&mut scene, 2, "write");
    assert_eq!(
        lists(&scene),
        1,
        "the call waits for the list of the client"
    );
    scene.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    assert_eq!(lists(&scene), 2);
    answer(&mut scene, &own(1), WRITE, None);
    assert_eq!(scene.effects, 1);
    // One that it leaves after the first page, or that fails.
    scene.serve(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    ask(&mut scene, 3, None);
    call(&mut scene, 4, "write");
    answer(&mut scene, "3", READ, Some("p2"));
    answer(&mut scene, &own(2), WRITE, None);
    assert_eq!(scene.effects, 2);
    scene.serve(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    ask(&mut scene, 5, None);
    call(&mut scene, 6, "write");
    scene.serve(r#"{"jsonrpc":"2.0","id":5,"error":{"code":-1,"message":"no"}}"#);
    answer(&mut scene, &own(3), WRITE, None);
    assert_eq!(scene.effects, 3);
}

#[test]
fn a_list_that_did_not_come_is_asked_for_again() {
    let mut scene = silent();
    call(&mut scene, 1, "write");
    scene.pass(Duration::from_secs(6));
    call(&mut scene, 2, "write");
    assert_eq!(lists(&scene), 1);
    // The first has waited long enough; the second has more time, and for another list.
    let got = scene.pass(Duration::from_secs(5));
    assert_eq!(error(&got[0]), (-32000, "TOOL_UNLISTED".to_owned()));
    assert_eq!((got.len(), lists(&scene)), (1, 2));
    answer(&mut scene, &own(2), WRITE, None);
    assert_eq!(scene.effects, 1);
    // One that comes after all counts too.
    answer(&mut scene, &own(1), &format!("{READ},{WRITE}"), None);
    runs(&mut scene, 3, "read");
    assert_eq!(scene.faults(), ["tools_not_listed"]);
    // Nor does a call wait for ever on one of the client.
    scene.serve(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    ask(&mut scene, 4, None);
    call(&mut scene, 5, "write");
    let got = scene.pass(Duration::from_secs(11));
    assert_eq!(error(&got[0]), (-32000, "TOOL_UNLISTED".to_owned()));
    call(&mut scene, 6, "write");
    answer(&mut scene, &own(3), WRITE, None);
    assert_eq!(scene.effects, 3);
}

#[test]
fn pages_are_counted_in_each_list() {
    let mut scene = silent();
    let mut count = 0;
    let mut pages = |scene: &mut Scene, number: usize| {
        for page in 0..number {
            count += 1;
            let next = (page + 1 < number).then_some("more");
            answer(scene, &own(count), WRITE.trim_end(), next);
        }
    };
    for round in 1..=2 {
        call(&mut scene, round, "other");
        pages(&mut scene, 600);
        scene.serve(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    }
    call(&mut scene, 3, "read");
    pages(&mut scene, 1);
    assert_eq!(lists(&scene), 1201);
    // A list without an end is none.
    scene.serve(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    call(&mut scene, 4, "write");
    pages(&mut scene, 1001);
    assert_eq!((lists(&scene), scene.effects), (2201, 0));
}

#[test]
fn what_there_is_no_room_for_is_not_known_and_the_log_says_so() {
    let mut scene = silent();
    scene.list();
    let long = "x".repeat(900_000);
    let tools = (0..10).map(|n| format!(r#"{{"name":"t{n}","description":"{long}"}}"#));
    let tools: Vec<String> = tools.chain([WRITE.to_owned()]).collect();
    answer(&mut scene, "\"list\"", &tools.join(","), None);
    assert_eq!(scene.book.pins().len(), 10);
    assert_eq!(scene.faults(), ["tools_left_out"]);
    refused(&mut scene, 1, "t9", "TOOL_UNLISTED");
    runs(&mut scene, 2, "write");
}

#[test]
fn a_result_that_is_too_large_or_late_passes_where_calls_are_only_observed() {
    let mut scene = Scene::observing();
    scene.list();
    scene.answers = false;
    scene.call("1", "write", "{}");
    // The manifest gives it a second and 2000 bytes.
    assert!(scene.pass(Duration::from_secs(30)).is_empty());
    assert!(scene.pass(Duration::from_secs(30)).is_empty());
    let large = "x".repeat(3000);
    let answer = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":"{large}"}}}}"#);
    assert_eq!(scene.serve(&answer), [answer]);
    assert_eq!(scene.faults(), ["TIMEOUT", "OUTPUT_TOO_LARGE"]);
    // A server that hangs is given up like where nobody says how long a call may take.
    scene.call("2", "write", r#"{"n":2}"#);
    let got = scene.pass(Duration::from_secs(600));
    assert_eq!(error(&got[0]).1, "TIMEOUT");
    scene.verify();
}

#[test]
fn what_comes_of_a_task_may_be_larger_where_calls_are_only_observed() {
    let mut scene = Scene::observing();
    scene.list();
    scene.answers = false;
    scene.call("1", "write", "{}");
    scene.serve(r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"task","taskId":"t"}}"#);
    let ask = r#"{"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{"taskId":"t"}}"#;
    scene.send(ask);
    let large = "x".repeat(3000);
    let answer = format!(
        r#"{{"jsonrpc":"2.0","id":2,"result":{{"status":"completed","result":{{"content":"{large}"}}}}}}"#
    );
    assert_eq!(scene.serve(&answer), [answer]);
    assert_eq!(scene.faults(), ["OUTPUT_TOO_LARGE"]);
    scene.verify();
}

#[test]
fn a_tool_that_changed_passes_where_calls_are_only_observed() {
    let mut scene = Scene::observing();
    scene.list();
    scene.tools = r#"{"name":"write","description":"now sends mail"}"#.to_owned();
    scene.serve(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    assert!(scene.call("1", "write", "{}")[0].contains("done"));
    assert!(scene.call("2", "nowhere", "{}")[0].contains("done"));
    assert_eq!(scene.effects, 2);
    assert_eq!(scene.faults(), ["TOOL_CHANGED", "TOOL_UNLISTED"]);
    scene.verify();
}

#[test]
fn the_list_that_we_ask_for_brings_along_only_who_the_client_is() {
    let asked = |meta: &str| {
        let mut scene = silent();
        scene.send(format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"secret","_meta":{{{meta}}}}}}}"#
        ));
        scene.server.pop().unwrap()
    };
    let id = own(1);
    let told = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{ "name":"c" },"io.modelcontextprotocol/clientCapabilities":{}"#;
    let listed = |params: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list","params":{{{params}}}}}"#)
    };
    assert_eq!(asked(told), listed(&format!(r#""_meta":{{{told}}}"#)));
    // Nobody has decided about the call yet, so what else it says stays here.
    let foreign = r#""progressToken":"t","traceparent":"00-a-b-01","acme/x":"mine","io.modelcontextprotocol/logLevel":"debug""#;
    assert_eq!(
        asked(&format!("{foreign},{told}")),
        listed(&format!(r#""_meta":{{{told}}}"#))
    );
    assert_eq!(asked(foreign), listed(""));
    let unfit = r#""io.modelcontextprotocol/protocolVersion":["mine"],"io.modelcontextprotocol/clientInfo":"mine""#;
    assert_eq!(asked(unfit), listed(""));
}
