//! Signed records that somebody changed: every change of what they say is found, and none stops the
//! reader. `COUNTERSIGN_MUTATIONS` says how many.

use countersign_canon::{Json, Limits};
use countersign_evidence::aep::{Form, Record, check};

use crate::written::{keys, written};

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

#[test]
fn every_change_of_a_signed_record_is_found() {
    let count = std::env::var("COUNTERSIGN_MUTATIONS");
    let count: u64 = count.map_or(2_000, |count| count.parse().unwrap());
    let keys = keys();
    let mut texts = Vec::new();
    for form in [Form::Inline, Form::Dsse] {
        texts.extend(written(form).iter().map(|it| it.to_jcs().unwrap()));
    }
    let (mut changed, mut same) = (0u64, 0u64);
    let mut random = Random(11);
    while changed < count {
        let original = &texts[random.below(texts.len())];
        let mutated = mutate(original, &mut random);
        if says_the_same(original, &mutated) {
            same += 1;
            continue;
        }
        changed += 1;
        let checked = check(&[Record::read(&mutated)], &keys);
        assert!(checked.fails(), "{}", String::from_utf8_lossy(&mutated));
    }
    // White space and escapes change nothing of what is said; they are few.
    assert!(
        same < changed,
        "{same} of {changed} changes changed nothing"
    );
}

fn mutate(text: &[u8], random: &mut Random) -> Vec<u8> {
    let mut text = text.to_vec();
    let at = random.below(text.len());
    match random.below(7) {
        0 => text[at] ^= 1 << random.below(8),
        1 => text[at] = random.below(256) as u8,
        2 => text.insert(at, random.below(256) as u8),
        3 => drop(text.remove(at)),
        4 => text.truncate(at),
        5 => {
            let end = (at + 1 + random.below(40)).min(text.len());
            let part: Vec<u8> = text[at..end].to_vec();
            let to = random.below(text.len());
            text.splice(to..to, part);
        }
        _ => return member(&text, random),
    }
    text
}

/// Takes a member out, puts null in its place, gives it another name, or doubles an item.
fn member(text: &[u8], random: &mut Random) -> Vec<u8> {
    let mut record = Json::admit(text, &Limits::event()).unwrap();
    change(&mut record, random);
    record.to_jcs().unwrap()
}

fn change(value: &mut Json, random: &mut Random) {
    let deeper = random.below(3) > 0;
    match value {
        Json::Object(members) if !members.is_empty() => {
            let at = random.below(members.len());
            let name = members.iter().nth(at).unwrap().0.to_owned();
            match random.below(3) {
                _ if deeper => change(members.get_mut(&name).unwrap(), random),
                0 => drop(members.remove(&name)),
                1 => drop(members.insert(name, Json::Null)),
                _ => {
                    let value = members.remove(&name).unwrap();
                    members.insert(format!("{name}_"), value);
                }
            }
        }
        Json::Array(items) if !items.is_empty() => {
            let at = random.below(items.len());
            match deeper {
                true => change(&mut items[at], random),
                false => items.push(items[at].clone()),
            }
        }
        other => *other = Json::from(random.next() >> 12),
    }
}

fn says_the_same(a: &[u8], b: &[u8]) -> bool {
    let canonical = |text: &[u8]| Json::admit(text, &Limits::event()).ok()?.to_jcs().ok();
    canonical(a) == canonical(b)
}
