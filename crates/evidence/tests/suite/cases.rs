//! Each rule with a record that keeps it and one that breaks it.

use std::collections::BTreeSet;

use countersign_canon::Json;
use countersign_evidence::aep::{Judged, Keys, Record, check};

use crate::corpus::{json, remove, set};

#[test]
fn each_case_is_judged_as_it_says() {
    let corpus = json("aep/cases.json");
    let cases = corpus.get("cases").and_then(Json::as_array).unwrap();
    assert!(cases.len() > 200);
    let mut wrong = Vec::new();
    for case in cases {
        let id = case.get("id").and_then(Json::as_str).unwrap();
        let record = record(case, corpus.get("bases").unwrap());
        let text = record.to_jcs().unwrap();
        let checked = check(&[Record::read(&text)], &Keys::default());
        let report = &checked.records[0];
        let semantics = report.semantics.as_ref().unwrap();
        let found = report.structure.against.iter().chain(&semantics.against);
        let codes: BTreeSet<&str> = found.map(|finding| finding.code.as_str()).collect();
        let got = (word(&report.structure), word(semantics), codes);
        let expect = case.get("expect").unwrap();
        let text = |name| expect.get(name).and_then(Json::as_str).unwrap();
        let codes = expect.get("codes").and_then(Json::as_array).unwrap();
        let codes = codes.iter().map(|code| code.as_str().unwrap()).collect();
        let expect = (text("structural"), text("semantic"), codes);
        if got != expect {
            wrong.push(format!("{id}: {got:?}, expected {expect:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The case as a record: a base with some members set and some taken out.
fn record(case: &Json, bases: &Json) -> Json {
    let base = case.get("base").and_then(Json::as_str).unwrap();
    let mut record = bases.get(base).unwrap().clone();
    for pointer in case
        .get("remove")
        .and_then(Json::as_array)
        .unwrap_or_default()
    {
        remove(&mut record, pointer.as_str().unwrap());
    }
    if let Some(members) = case.get("set").and_then(Json::as_object) {
        for (pointer, value) in members.iter() {
            set(&mut record, pointer, value.clone());
        }
    }
    record
}

fn word(judged: &Judged) -> &'static str {
    if judged.holds() { "pass" } else { "fail" }
}
