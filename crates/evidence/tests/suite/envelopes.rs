//! The decision envelope: golden materialisations.

use countersign_canon::Json;
use countersign_evidence::envelope::{SideDocuments, envelopes};

use crate::corpus::json;

#[test]
fn each_record_materialises_as_it_says() {
    let cases = json("aep/envelopes.json");
    let cases = cases.as_array().unwrap();
    assert!(cases.len() > 25);
    for case in cases {
        let documents = documents(case.get("documents").unwrap());
        let found = envelopes(case.get("record").unwrap(), &documents);
        let expect = case.get("expect").unwrap();
        assert_eq!(found, std::slice::from_ref(expect), "{:?}", case.get("id"));
    }
}

fn documents(json: &Json) -> SideDocuments {
    let mut documents = SideDocuments::default();
    let members = |name| json.get(name).and_then(Json::as_object);
    for (lease, time) in members("leases").into_iter().flat_map(|it| it.iter()) {
        documents
            .leases
            .insert(lease.to_owned(), time.as_u64().unwrap());
    }
    for (digest, policy) in members("policies").into_iter().flat_map(|it| it.iter()) {
        let part = |at: usize| policy.as_array().unwrap()[at].as_str().unwrap().to_owned();
        documents
            .policies
            .insert(digest.to_owned(), (part(0), part(1)));
    }
    documents
}
