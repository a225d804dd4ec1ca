//! The three answers: every pair of kinds, and every difference of a field.

use std::collections::BTreeSet;

use countersign_canon::{Json, Object};
use countersign_evidence::state::{
    Assumption, Comparability, Kind, Sides, StateDigest, compare, compare_with,
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

/// `corpus/state/pairs.json`: pairs with one thing different each, judged by the text of the format.
#[test]
fn each_pair_has_the_answer_of_the_text() {
    let pairs = json("state/pairs.json");
    let pairs = pairs.as_array().unwrap();
    assert!(pairs.len() > 40);
    let mut wrong = Vec::new();
    for pair in pairs {
        let sides = match pair.get("sides") {
            None => Sides::Same,
            Some(_) => Sides::BeforeAndAfter,
        };
        let (a, b) = (state(pair.get("a").unwrap()), state(pair.get("b").unwrap()));
        for found in [
            compare_with(&a, &b, sides, &[]),
            compare_with(&b, &a, sides, &[]),
        ] {
            let found = match found {
                Comparability::Comparable => "comparable",
                Comparability::NotComparable(_) => "not",
                Comparability::Under(_) => "under",
            };
            if pair.get("expect").and_then(Json::as_str) != Some(found) {
                wrong.push(format!("{:?}: {found}", pair.get("id")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A table with a gap would hold as well, so that it has none is a test of its own.
#[test]
fn the_table_has_every_pair_of_kinds_and_every_member_of_each() {
    let cases = json("state/compare.json");
    let cases = cases.as_array().unwrap();
    let kind = |case: &Json, side: &str| {
        let kind = case.get(side).unwrap().get("kind");
        kind.and_then(Json::as_str).map(str::to_owned)
    };
    let pairs: BTreeSet<_> = cases
        .iter()
        .map(|it| (kind(it, "a"), kind(it, "b")))
        .collect();
    let kinds = Kind::ALL.iter().map(|kind| kind.as_str().to_owned());
    let kinds: Vec<String> = kinds.collect();
    for (one, other) in kinds
        .iter()
        .flat_map(|one| kinds.iter().map(move |it| (one, it)))
    {
        assert!(
            pairs.contains(&(Some(one.clone()), Some(other.clone()))),
            "{one} and {other}"
        );
    }
    let told: BTreeSet<(String, String)> = cases.iter().filter_map(difference).collect();
    let mut all = 0;
    for case in cases.iter().filter(|case| kind(case, "a").is_some()) {
        let members = coverage(case, "a").iter().map(|(name, _)| name.to_owned());
        for member in members.filter(|member| member != "x") {
            let member = (kind(case, "a").unwrap(), member);
            assert!(
                told.contains(&member),
                "nothing differs in {member:?} alone"
            );
            all += 1;
        }
    }
    assert!(all > 1000, "{all}");
}

fn coverage<'a>(case: &'a Json, side: &str) -> &'a Object {
    static NOTHING: Object = Object::new();
    let coverage = case.get(side).and_then(|state| state.get("coverage"));
    coverage.and_then(Json::as_object).unwrap_or(&NOTHING)
}

/// The kind and the one member in which the coverages of a case differ, if it is one.
fn difference(case: &Json) -> Option<(String, String)> {
    let (a, b) = (coverage(case, "a"), coverage(case, "b"));
    let names: BTreeSet<&str> = a.iter().chain(b.iter()).map(|(name, _)| name).collect();
    let mut differ = names.into_iter().filter(|name| a.get(name) != b.get(name));
    let first = differ.next()?;
    let kind = case.get("a")?.get("kind")?.as_str()?;
    let same_kind = case.get("b")?.get("kind")?.as_str()? == kind;
    (same_kind && differ.next().is_none()).then(|| (kind.to_owned(), first.to_owned()))
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
