//! Reading a host out of an argument.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Form, Host, HostError};

pub(super) fn argument(text: &str) -> Result<Host, HostError> {
    check_text(text)?;
    match text.split_once("://") {
        Some((scheme, rest)) => url(text, scheme, rest),
        None if text.contains(['/', '?', '#']) => Err(HostError::Malformed),
        None => authority(text),
    }
}

/// A host without scheme, port or path, as patterns have it.
pub(super) fn plain(text: &str) -> Result<Host, HostError> {
    check_text(text)?;
    if text.contains(['/', '?', '#', '@']) {
        return Err(HostError::Malformed);
    }
    match text.parse::<Ipv6Addr>() {
        Ok(address) => Ok(Host::address(IpAddr::V6(address))),
        Err(_) if text.contains(':') && !text.starts_with('[') => Err(HostError::Port),
        Err(_) => name_or_address(text),
    }
}

/// SECURITY: URL readers skip tabs, line breaks and outer spaces and turn backslashes into slashes,
/// so none of them may stand anywhere, not only in the host.
fn check_text(text: &str) -> Result<(), HostError> {
    if text.len() > LONGEST_ARGUMENT {
        return Err(HostError::TooLong);
    }
    let is_bad = |c: char| c.is_control() || c.is_whitespace() || c == '\\';
    match text.contains(is_bad) {
        true => Err(HostError::Character),
        false => Ok(()),
    }
}

fn url(text: &str, scheme: &str, rest: &str) -> Result<Host, HostError> {
    let mut known = SCHEMES.iter();
    if !known.any(|known| scheme.eq_ignore_ascii_case(known)) {
        return Err(HostError::Scheme);
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (inner, tail) = rest.split_at(end);
    // SECURITY: in `//x.com#@evil.com` and `//x.com?@evil.com` some readers look for the `@` first.
    if !tail.starts_with('/') && tail.contains('@') {
        return Err(HostError::UserInfo);
    }
    let host = authority(inner)?;
    let parsed = url::Url::parse(text).map_err(|_| HostError::Malformed)?;
    // FAIL-CLOSED: both readings have to agree.
    match parsed.host().map(|host| normal(host.to_owned())) {
        Some(Ok(again)) if again == host => Ok(host),
        _ => Err(HostError::Malformed),
    }
}

fn authority(text: &str) -> Result<Host, HostError> {
    if text.contains('@') {
        return Err(HostError::UserInfo);
    }
    if let Ok(address) = text.parse::<Ipv6Addr>() {
        return Ok(Host::address(IpAddr::V6(address)));
    }
    name_or_address(without_port(text)?)
}

fn without_port(text: &str) -> Result<&str, HostError> {
    let from = text.rfind(']').unwrap_or(0);
    let Some(colon) = text.get(from..).and_then(|rest| rest.find(':')) else {
        return Ok(text);
    };
    let (host, port) = text.split_at(from + colon);
    match is_port(port.trim_start_matches(':')) && !port.starts_with("::") {
        true => Ok(host),
        false => Err(HostError::Port),
    }
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok()
}

fn name_or_address(text: &str) -> Result<Host, HostError> {
    if text.is_empty() {
        return Err(HostError::Empty);
    }
    if text.contains('%') {
        return Err(HostError::Percent);
    }
    if text.contains(DEVIATIONS) {
        return Err(HostError::Ambiguous);
    }
    let host = url::Host::parse(text).map_err(|_| HostError::Malformed)?;
    match &host {
        url::Host::Domain(name) if !text.is_ascii() && !is_spelt(name, text) => {
            Err(HostError::Ambiguous)
        }
        url::Host::Ipv4(address) if !is_dotted(*address, text) => Err(HostError::Number),
        _ => normal(host),
    }
}

/// SECURITY: clients map international names by different rules, or not at all. A text that is not yet
/// what it is mapped to (characters that vanish, wide letters, other full stops) may be another host for
/// them, so only capital letters may differ.
fn is_spelt(name: &str, text: &str) -> bool {
    let (shown, valid) = idna::domain_to_unicode(name);
    valid.is_ok() && shown == text.to_lowercase()
}

/// SECURITY: `010.0.0.1` is 8.0.0.1 for some clients and 10.0.0.1 for others; short and hexadecimal forms
/// are names for a third kind.
fn is_dotted(address: Ipv4Addr, text: &str) -> bool {
    text.strip_suffix('.').unwrap_or(text) == address.to_string()
}

fn normal(host: url::Host) -> Result<Host, HostError> {
    match host {
        url::Host::Domain(name) => name_host(&name),
        url::Host::Ipv4(address) => Ok(Host::address(IpAddr::V4(address))),
        url::Host::Ipv6(address) => Ok(Host::address(IpAddr::V6(address))),
    }
}

fn name_host(name: &str) -> Result<Host, HostError> {
    let name = name.strip_suffix('.').unwrap_or(name);
    match name.len() <= LONGEST_NAME && name.split('.').all(is_label) {
        true => Ok(Host(Form::Name(name.to_owned()))),
        false => Err(HostError::Label),
    }
}

fn is_label(label: &str) -> bool {
    let is_plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
    (1..=LONGEST_LABEL).contains(&label.len())
        && label.bytes().all(is_plain)
        && !label.starts_with('-')
        && !label.ends_with('-')
}

/// The schemes whose host a URL reader normalises and whose host is where the request goes.
const SCHEMES: &[&str] = &["http", "https", "ws", "wss", "ftp"];

/// SECURITY: IDNA 2003 maps these (`ß` to `ss`), IDNA 2008 keeps them: one text, two hosts.
const DEVIATIONS: [char; 5] = ['ß', 'ẞ', 'ς', '\u{200c}', '\u{200d}'];

const LONGEST_ARGUMENT: usize = 8192;
const LONGEST_NAME: usize = 253;
const LONGEST_LABEL: usize = 63;
