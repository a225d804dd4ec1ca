//! The three answers: every pair of kinds, and every difference of a field.

use countersign_canon::Json;
use countersign_evidence::state::{
    Assumption, Comparability, Sides, StateDigest, compare, compare_with,
};

use crate::corpus::json;

fn state(json: &Json) -> StateDigest {
    let digest = json.get("digest").and_then(Json::as_str).unwrap();
    StateDigest::read(digest, json.get("kind"), json.get("coverage")).0
}

fn answer(found: Comparability) -> Json {
    let texts = |texts: Vec<String>| Json::Array(texts.into_iter().map(Json::from).collect());
    match found {
        Comparability::Comparable => Json::object([("comparable", Json::Bool(true))]),
        Comparability::NotComparable(why) => {
            let why = why.iter().map(ToString::to_string).collect();
            Json::object([("not", texts(why))])
        }
        Comparability::Under(assumptions) => {
            let assumptions = assumptions.iter().map(ToString::to_string).collect();
            Json::object([("under", texts(assumptions))])
        }
    }
}

#[test]
fn each_pair_has_the_answer_of_the_table_whichever_comes_first() {
    let cases = json("state/compare.json");
    let cases = cases.as_array().unwrap();
    assert!(cases.len() > 200);
    let mut wrong = Vec::new();
    for case in cases {
        let id = case.get("id").and_then(Json::as_str).unwrap();
        let sides = match case.get("sides") {
            None => Sides::Same,
            Some(_) => Sides::BeforeAndAfter,
        };
        let (a, b) = (state(case.get("a").unwrap()), state(case.get("b").unwrap()));
        let found = compare_with(&a, &b, sides, &[]);
        let back = compare_with(&b, &a, sides, &[]);
        // The two kinds, or a vendor's name, stand in the order of the question.
        let turned = std::mem::discriminant(&found) == std::mem::discriminant(&back);
        let expect = case.get("expect").unwrap();
        let found = answer(found);
        if found != *expect || !turned {
            wrong.push(format!("{id}: {found:?}, expected {expect:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_vendor_that_the_reader_knows_may_declare_equality() {
    let cases = json("state/compare.json");
    let cases = cases.as_array().unwrap();
    let case = cases
        .iter()
        .find(|case| case.get("id").and_then(Json::as_str) == Some("other and other"));
    let a = state(case.unwrap().get("a").unwrap());
    let known = [("com.example.timestream", "1.2.0")];
    let found = compare_with(&a, &a, Sides::Same, &known);
    assert_eq!(
        found,
        Comparability::Under(vec![Assumption::VendorDeclared])
    );
    let older = [("com.example.timestream", "1.1.0")];
    let found = compare_with(&a, &a, Sides::Same, &older);
    assert!(matches!(found, Comparability::NotComparable(_)));
    assert!(matches!(compare(&a, &a), Comparability::NotComparable(_)));
}
