//! Tokens that name their maker by how they begin.

use super::{is_base64url, run_end, run_start};
use crate::span::{JWT, Span, TOKEN};

pub(super) fn find(text: &str, also: &[String], spans: &mut Vec<Span>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    // Where the run of such letters ends that was looked at last.
    let mut letters_end = 0;
    while at < bytes.len() {
        let found = jwt(bytes, at, &mut letters_end)
            .or_else(|| known(bytes, at))
            .or_else(|| dotted_parts(bytes, at))
            .or_else(|| in_the_middle(bytes, at))
            .or_else(|| added(bytes, at, also))
            .or_else(|| after_scheme(bytes, at));
        match found {
            Some(span) => {
                at = span.end;
                spans.push(span);
            }
            None => at += 1,
        }
    }
}

/// Two or three parts in base64url, the first of which is an object.
fn jwt(bytes: &[u8], start: usize, letters_end: &mut usize) -> Option<Span> {
    if !starts_with(bytes, start, b"eyJ") {
        return None;
    }
    if start >= *letters_end {
        *letters_end = run_end(bytes, start, is_base64url);
    }
    if bytes.get(*letters_end) != Some(&b'.') || *letters_end - start < SHORTEST_PART {
        return None;
    }
    let end = run_end(bytes, *letters_end, |byte| {
        is_base64url(byte) || byte == b'.'
    });
    Some(Span {
        start,
        end,
        mark: JWT,
    })
}

fn known(bytes: &[u8], start: usize) -> Option<Span> {
    let first = bytes.get(start)?;
    if !*FIRSTS.get(usize::from(*first))? {
        return None;
    }
    let prefixes = PREFIXES.iter();
    let prefix = prefixes
        .filter(|prefix| prefix.text.as_bytes().first() == Some(first))
        .find(|prefix| {
            starts_with(bytes, start, prefix.text.as_bytes())
                && has_run(
                    bytes,
                    start + prefix.text.len(),
                    prefix.letters,
                    prefix.shortest,
                )
        })?;
    let end = run_end(bytes, start + prefix.text.len(), prefix.letters);
    Some(Span {
        start,
        end,
        mark: TOKEN,
    })
}

/// Three parts of the lengths that bots of Discord have.
fn dotted_parts(bytes: &[u8], start: usize) -> Option<Span> {
    let before = start.checked_sub(1).and_then(|at| bytes.get(at));
    if before.is_some_and(|byte| dotted(*byte)) {
        return None;
    }
    let mut end = start;
    for lengths in [23..=28, 6..=7, 27..=40] {
        let part = run_end(bytes, end, is_base64url);
        if !lengths.contains(&(part - end)) {
            return None;
        }
        let is_last = *lengths.end() == 40;
        if !is_last && bytes.get(part) != Some(&b'.') {
            return None;
        }
        end = part + usize::from(!is_last);
    }
    Some(Span {
        start,
        end,
        mark: TOKEN,
    })
}

/// Tokens that are known by what stands behind their beginning: `abc8Q~…` of Azure, `123456789:AA…` of Telegram.
fn in_the_middle(bytes: &[u8], at: usize) -> Option<Span> {
    let (start, end) = if starts_with(bytes, at, b"Q~") {
        (
            run_start(bytes, at, 4, is_base64url),
            run_end(bytes, at + 2, tilded),
        )
    } else if starts_with(bytes, at, b":AA") {
        (
            run_start(bytes, at, 10, digit),
            run_end(bytes, at + 1, is_base64url),
        )
    } else {
        return None;
    };
    (at - start >= 4 && end - at >= 24).then_some(Span {
        start,
        end,
        mark: TOKEN,
    })
}

fn digit(byte: u8) -> bool {
    byte.is_ascii_digit()
}

fn tilded(byte: u8) -> bool {
    dotted(byte) || byte == b'~'
}

fn added(bytes: &[u8], start: usize, also: &[String]) -> Option<Span> {
    let mut also = also.iter();
    let prefix = also.find(|prefix| starts_with(bytes, start, prefix.as_bytes()))?;
    let end = run_end(bytes, start + prefix.len(), is_base64url);
    Some(Span {
        start,
        end,
        mark: TOKEN,
    })
}

/// What follows `Bearer` or `Basic`, if it looks like a token and not like a word.
fn after_scheme(bytes: &[u8], at: usize) -> Option<Span> {
    let scheme = SCHEMES
        .iter()
        .find(|scheme| starts_with_any_case(bytes, at, scheme.as_bytes()))?;
    let start = run_end(bytes, at + scheme.len(), |byte| byte == b' ');
    let end = run_end(bytes, start, |byte| {
        is_base64url(byte) || matches!(byte, b'.' | b'~' | b'+' | b'/' | b'=')
    });
    let token = bytes.get(start..end)?;
    let is_word = token
        .iter()
        .skip(1)
        .all(|byte| byte.is_ascii_lowercase() || *byte == b'.');
    (token.len() >= SHORTEST_PART && !is_word).then_some(Span {
        start,
        end,
        mark: TOKEN,
    })
}

fn starts_with(bytes: &[u8], at: usize, what: &[u8]) -> bool {
    bytes.get(at..).is_some_and(|rest| rest.starts_with(what))
}

fn starts_with_any_case(bytes: &[u8], at: usize, what: &[u8]) -> bool {
    bytes
        .get(at..at + what.len())
        .is_some_and(|part| part.eq_ignore_ascii_case(what))
}

fn has_run(bytes: &[u8], from: usize, letters: fn(u8) -> bool, shortest: usize) -> bool {
    bytes
        .get(from..from + shortest)
        .is_some_and(|run| run.iter().all(|byte| letters(*byte)))
}

struct Prefix {
    text: &'static str,
    letters: fn(u8) -> bool,
    shortest: usize,
}

const fn prefix(text: &'static str, letters: fn(u8) -> bool, shortest: usize) -> Prefix {
    Prefix {
        text,
        letters,
        shortest,
    }
}

fn alnum(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn upper(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

fn hex(byte: u8) -> bool {
    byte.is_ascii_hexdigit()
}

fn dotted(byte: u8) -> bool {
    is_base64url(byte) || byte == b'.'
}

/// What hashes of passwords are written with.
fn crypt(byte: u8) -> bool {
    is_base64url(byte) || matches!(byte, b'.' | b'/' | b'+' | b'=' | b'$' | b',')
}

fn path(byte: u8) -> bool {
    is_base64url(byte) || matches!(byte, b'/' | b':' | b'.')
}

/// Whether a prefix begins with this byte.
#[expect(
    clippy::indexing_slicing,
    reason = "a byte is an index below 256; checked when compiling"
)]
const FIRSTS: [bool; 256] = {
    let mut firsts = [false; 256];
    let mut rest = PREFIXES;
    while let [prefix, others @ ..] = rest {
        if let [first, ..] = prefix.text.as_bytes() {
            firsts[*first as usize] = true;
        }
        rest = others;
    }
    firsts
};

const SCHEMES: &[&str] = &["bearer ", "basic ", "apikey ", "negotiate "];
const SHORTEST_PART: usize = 8;

#[rustfmt::skip]
const PREFIXES: &[Prefix] = &[
    // Amazon
    prefix("AKIA", upper, 16), prefix("ASIA", upper, 16), prefix("ABIA", upper, 16), prefix("ACCA", upper, 16),
    prefix("AGPA", upper, 16), prefix("AIDA", upper, 16), prefix("AROA", upper, 16), prefix("ANPA", upper, 16),
    // Git
    prefix("ghp_", alnum, 16), prefix("gho_", alnum, 16), prefix("ghu_", alnum, 16), prefix("ghs_", alnum, 16),
    prefix("ghr_", alnum, 16), prefix("github_pat_", is_base64url, 16), prefix("glpat-", dotted, 16),
    prefix("gldt-", is_base64url, 16), prefix("glrt-", dotted, 16), prefix("glptt-", is_base64url, 16),
    prefix("glcbt-", is_base64url, 16), prefix("glsoat-", is_base64url, 16), prefix("ATBB", alnum, 24),
    // Clouds
    prefix("AIza", is_base64url, 30), prefix("ya29.", dotted, 16), prefix("GOCSPX-", is_base64url, 16),
    prefix("1//0", is_base64url, 24), prefix("dop_v1_", hex, 32), prefix("doo_v1_", hex, 32), prefix("dor_v1_", hex, 32),
    prefix("hvs.", is_base64url, 20), prefix("hvb.", is_base64url, 20), prefix("dapi", hex, 32),
    prefix("pscale_", is_base64url, 16), prefix("sbp_", hex, 32), prefix("AGE-SECRET-KEY-1", upper, 16),
    prefix("tfe.atlasv1.", is_base64url, 16), prefix("dp.pt.", alnum, 20), prefix("dp.st.", dotted, 20),
    // Models
    prefix("sk-", is_base64url, 16), prefix("hf_", alnum, 16), prefix("r8_", alnum, 24), prefix("gsk_", alnum, 24),
    prefix("xai-", is_base64url, 24), prefix("pplx-", alnum, 24),
    // Payment
    prefix("sk_live_", alnum, 10), prefix("sk_test_", alnum, 10), prefix("rk_live_", alnum, 10), prefix("rk_test_", alnum, 10),
    prefix("pk_live_", alnum, 10), prefix("pk_test_", alnum, 10), prefix("whsec_", alnum, 16), prefix("sq0atp-", is_base64url, 16),
    prefix("sq0csp-", is_base64url, 16), prefix("shpat_", hex, 24), prefix("shpca_", hex, 24), prefix("shppa_", hex, 24),
    prefix("shpss_", hex, 24),
    // Talk and mail
    prefix("xoxb-", is_base64url, 10), prefix("xoxp-", is_base64url, 10), prefix("xoxa-", is_base64url, 10),
    prefix("xoxr-", is_base64url, 10), prefix("xoxs-", is_base64url, 10), prefix("xoxe-", is_base64url, 10),
    prefix("xoxe.", dotted, 10), prefix("xapp-", is_base64url, 10), prefix("SG.", dotted, 24),
    prefix("hooks.slack.com/services/", path, 8), prefix("discord.com/api/webhooks/", path, 8),
    prefix("discordapp.com/api/webhooks/", path, 8), prefix("api.telegram.org/bot", path, 8), prefix("key-", hex, 32),
    prefix("AC", hex, 32), prefix("SK", hex, 32),
    // Packages, and the rest
    prefix("npm_", alnum, 24), prefix("pypi-", is_base64url, 16), prefix("rubygems_", hex, 32), prefix("dckr_pat_", is_base64url, 16),
    prefix("cio", alnum, 32), prefix("lin_api_", alnum, 24), prefix("figd_", is_base64url, 24), prefix("PMAK-", is_base64url, 24),
    prefix("NRAK-", upper, 20), prefix("glsa_", is_base64url, 20), prefix("glc_", is_base64url, 24), prefix("ntn_", alnum, 24),
    prefix("secret_", alnum, 32), prefix("ATATT3", is_base64url, 24), prefix("EAAC", alnum, 32), prefix("sl.", is_base64url, 48),
    prefix("xkeysib-", is_base64url, 24), prefix("phc_", alnum, 24), prefix("sntrys_", is_base64url, 24), prefix("tskey-", is_base64url, 16),
    prefix("LTAI", alnum, 12), prefix("AKID", alnum, 24), prefix("nfp_", alnum, 24), prefix("sb_secret_", is_base64url, 16),
    prefix("fm1_", dotted, 16), prefix("fm2_", dotted, 16), prefix("HRKU-", is_base64url, 24), prefix("pat-na1-", is_base64url, 24),
    prefix("pat-eu1-", is_base64url, 24), prefix("dt0c01.", dotted, 24), prefix("AKCp", alnum, 24), prefix("ops_eyJ", is_base64url, 16),
    prefix("access-sandbox-", is_base64url, 24), prefix("access-production-", is_base64url, 24),
    prefix("access_token$", crypt, 16), prefix("APA91b", is_base64url, 40), prefix("bkua_", alnum, 24), prefix("FLWSECK", is_base64url, 20),
    prefix("4/0A", is_base64url, 20), prefix("rnd_", alnum, 24), prefix("phx_", alnum, 24), prefix("CFPAT-", is_base64url, 24),
    prefix("CCIPAT_", is_base64url, 24), prefix("ATCTT3", is_base64url, 24), prefix("EZAK", alnum, 32), prefix("sntryu_", is_base64url, 24),
    prefix("dp.ct.", alnum, 20), prefix("dp.sa.", alnum, 20), prefix("NRII-", is_base64url, 20), prefix("duffel_live_", is_base64url, 16),
    // Hashes of passwords
    prefix("$1$", crypt, 8), prefix("$5$", crypt, 8), prefix("$6$", crypt, 8), prefix("$7$", crypt, 8), prefix("$y$", crypt, 8),
    prefix("$2a$", crypt, 8), prefix("$2b$", crypt, 8), prefix("$2x$", crypt, 8), prefix("$2y$", crypt, 8), prefix("$argon2", crypt, 8),
    prefix("$scrypt$", crypt, 8), prefix("$pbkdf2", crypt, 8),
];
