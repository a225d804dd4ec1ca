//! Where a call goes.

use countersign_canon::Json;

use super::places::Places;
use crate::matcher::Host;

/// The destinations that the arguments name, and why one of them could not be told.
///
/// Where nobody has declared the places, one of the usual ones could be a decoy for a tool that takes
/// its destination elsewhere. FAIL-CLOSED: every other URL among the arguments counts too, unless it
/// stands in what is sent.
pub(super) fn named(args: &Json, places: &Places) -> (Vec<Host>, Option<String>) {
    let declared = places.hosts.iter().filter_map(|place| place.resolve(args));
    let mut given: Vec<&Json> = declared.collect();
    // They only restrict: a destination in an unusual place is none that grants anything.
    if !places.hosts_declared && !given.is_empty() {
        given.extend(strays(args));
    }
    let mut hosts = Vec::new();
    let mut doubt = None;
    for given in given {
        let unclear = match given.as_str().map(Host::from_argument) {
            Some(Ok(host)) => {
                hosts.push(host);
                continue;
            }
            Some(Err(error)) => error.to_string(),
            None => "a destination is not text".to_owned(),
        };
        doubt = doubt.or(Some(unclear));
    }
    (hosts, doubt)
}

/// URLs beside the usual places, and the usual names in other letters.
fn strays(args: &Json) -> Vec<&Json> {
    let mut strays = Vec::new();
    for (name, value) in args.as_object().into_iter().flatten() {
        let lower = name.to_ascii_lowercase();
        let is_usual = Places::USUAL_HOSTS.contains(&lower.as_str());
        match value {
            // Read already.
            _ if is_usual && lower == name => {}
            _ if is_usual => strays.push(value),
            _ if SENT.contains(&lower.as_str()) => {}
            Json::String(text) if is_url(text) => strays.push(value),
            Json::Array(elements) => strays.extend(
                elements
                    .iter()
                    .filter(|element| element.as_str().is_some_and(is_url)),
            ),
            _ => {}
        }
    }
    strays
}

fn is_url(text: &str) -> bool {
    let scheme = text
        .trim_start()
        .split_once("://")
        .map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| {
        !scheme.is_empty()
            && scheme
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
    })
}

/// Members that hold what is sent, which may well speak of other places.
const SENT: &[&str] = &[
    "body", "content", "data", "headers", "json", "message", "params", "payload", "query", "text",
];

#[cfg(test)]
mod tests {
    use countersign_canon::Limits;

    use super::*;

    #[track_caller]
    fn check(args: &str, expect: Option<&[&str]>) {
        let args = Json::admit(args.as_bytes(), &Limits::event()).unwrap();
        let (hosts, doubt) = named(&args, &Places::of("net.get", None));
        let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
        let found = doubt.is_none().then_some(hosts);
        let expect = expect.map(|names| names.iter().map(ToString::to_string).collect());
        assert_eq!(found, expect, "{args:?}");
    }

    #[test]
    fn a_decoy_hides_no_other_destination() {
        check(r#"{"url":"https://x.com/a"}"#, Some(&["x.com"]));
        for decoy in [
            r#"{"domain":"x.com","target":"https://evil.com"}"#,
            r#"{"domain":"x.com","base_url":"HTTPS://evil.com"}"#,
            r#"{"domain":"x.com","urls":["https://evil.com"]}"#,
            r#"{"domain":"x.com","URL":"https://evil.com"}"#,
            r#"{"domain":"x.com","Host":"evil.com"}"#,
        ] {
            check(decoy, Some(&["x.com", "evil.com"]));
        }
        check(r#"{"Url":"https://x.com"}"#, Some(&[]));
        check(r#"{"target":"https://x.com"}"#, Some(&[]));
        check(r#"{"domain":"x.com","target":"file://evil.com"}"#, None);
        check(r#"{"domain":"x.com","target":" https://evil.com"}"#, None);
        check(r#"{"domain":"x.com","Urls":["a"],"HOST":["b"]}"#, None);
    }

    #[test]
    fn what_is_sent_may_speak_of_other_places() {
        check(
            r#"{"url":"https://x.com","body":"https://evil.com","query":"https://evil.com"}"#,
            Some(&["x.com"]),
        );
        check(
            r#"{"url":"https://x.com","note":"see https://evil.com","n":[1]}"#,
            Some(&["x.com"]),
        );
    }
}
