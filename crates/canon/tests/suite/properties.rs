//! What must hold for every text.

use countersign_canon::jcs::{self, Cursor};
use countersign_canon::{Error, Json, Limits, Object};

use crate::random::Random;

const EVENT: Limits = Limits::event();
const PLAN: Limits = Limits::plan();

fn admit(text: &[u8], limits: &Limits) -> Json {
    Json::admit(text, limits).unwrap()
}

fn canonical(random: &mut Random) -> Vec<u8> {
    random.event().1.to_jcs().unwrap()
}

#[test]
fn b11_canonicalisation_is_idempotent() {
    let mut random = Random::doubles(3);
    for _ in 0..100_000 {
        let (text, value) = random.event();
        let jcs = value.to_jcs().unwrap();
        assert_eq!(admit(&jcs, &EVENT).to_jcs().unwrap(), jcs, "{text}");
        let ascii = value.to_sorted_ascii();
        assert_eq!(admit(&ascii, &PLAN), value, "{text}");
        assert_eq!(admit(&ascii, &PLAN).to_sorted_ascii(), ascii, "{text}");
    }
}

/// Numbers of any size: either the canonical text keeps the value, or there is none.
#[test]
fn admission_and_writing_agree_on_which_numbers_fit() {
    let mut random = Random::exact(4);
    for _ in 0..50_000 {
        let text = random.text();
        let as_event = Json::admit(text.as_bytes(), &EVENT);
        let as_plan = admit(text.as_bytes(), &PLAN);
        if let Ok(value) = as_event {
            assert_eq!(value, as_plan, "{text}");
            assert!(value.to_jcs().is_ok(), "{text}");
        }
        if let Ok(jcs) = as_plan.to_jcs() {
            assert!(jcs::check(&jcs, &EVENT).is_ok(), "{text}");
        }
    }
}

#[test]
fn check_accepts_exactly_the_canonical_texts() {
    let mut random = Random::doubles(5);
    let mut accepted = 0;
    for _ in 0..20_000 {
        let text = canonical(&mut random);
        assert_eq!(jcs::check(&text, &EVENT), Ok(()));
        for _ in 0..5 {
            let edited = edit(&text, &mut random);
            let expect = is_canonical(&edited);
            accepted += usize::from(expect);
            let found = jcs::check(&edited, &EVENT).is_ok();
            assert_eq!(found, expect, "{}", String::from_utf8_lossy(&edited));
        }
    }
    assert!(accepted > 1000, "edits must give both kinds of text");
}

#[test]
fn source_texts_are_canonical_only_if_they_equal_their_canonical_form() {
    let mut random = Random::exact(6);
    for _ in 0..50_000 {
        let text = random.text();
        let found = jcs::check(text.as_bytes(), &EVENT).is_ok();
        assert_eq!(found, is_canonical(text.as_bytes()), "{text}");
    }
}

fn is_canonical(text: &[u8]) -> bool {
    match Json::admit(text, &EVENT) {
        Ok(value) => value.to_jcs().unwrap() == text,
        Err(_) => false,
    }
}

/// Replaces, inserts or removes one byte.
fn edit(text: &[u8], random: &mut Random) -> Vec<u8> {
    let mut edited = text.to_vec();
    let at = random.below(text.len());
    let byte = match random.below(3) {
        0 => random.next() as u8,
        _ => random.pick(b"\"\\{}[],:0123456789-+.eEutfn /abcdef \x00\x1f\x7f\x80\xc3\xee\xf0\xff"),
    };
    match random.below(3) {
        0 => edited[at] = byte,
        1 => edited.insert(at, byte),
        _ => drop(edited.remove(at)),
    }
    edited
}

#[test]
fn every_truncation_is_refused() {
    let mut random = Random::doubles(7);
    for _ in 0..400 {
        let text = format!("[{}]", random.text());
        for end in 0..text.len() {
            assert!(Json::admit(&text.as_bytes()[..end], &EVENT).is_err());
            assert!(jcs::check(&text.as_bytes()[..end], &EVENT).is_err());
        }
    }
}

#[test]
fn a_cursor_reads_what_admission_reads() {
    let mut random = Random::doubles(8);
    for _ in 0..20_000 {
        let text = canonical(&mut random);
        let mut cursor = Cursor::new(&text, 128).unwrap();
        let value = read(&mut cursor).unwrap();
        cursor.finish().unwrap();
        assert_eq!(value, admit(&text, &EVENT));
    }
}

fn read(cursor: &mut Cursor<'_>) -> Result<Json, Error> {
    Ok(match cursor.peek() {
        Some(b'{') => Json::Object(read_object(cursor)?),
        Some(b'"') => Json::from(cursor.string()?.into_owned()),
        Some(b'n') => Json::from(cursor.optional_string()?.map(String::from)),
        Some(b't' | b'f') => Json::from(cursor.bool()?),
        _ => match cursor.integer() {
            Ok(value) => Json::from(value),
            Err(_) => admit(cursor.value()?, &EVENT),
        },
    })
}

fn read_object(cursor: &mut Cursor<'_>) -> Result<Object, Error> {
    let mut object = Object::new();
    cursor.open_object()?;
    while let Some(raw) = cursor.next_key()? {
        let key = admit(format!("\"{raw}\"").as_bytes(), &EVENT);
        object.insert(key.into_string().unwrap(), read(cursor)?);
    }
    Ok(object)
}
