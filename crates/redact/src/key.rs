//! Names that say that what they name is secret.

use crate::span::holds_mark;

/// Whether a name says so, in any case and spelling: `apiKey`, `API-KEY`, `x_api_key`, `db.password`.
pub(crate) fn is_secret(name: &str, also: &[String]) -> bool {
    if name.is_empty() || name.len() > LONGEST || holds_mark(name) {
        return false;
    }
    let joined = joined(name);
    let last = last_word(name);
    ANYWHERE.iter().any(|part| joined.contains(part)) && !is_harmless(&joined)
        || LAST.contains(&last.as_str())
        || ALONE.contains(&joined.as_str())
        || also.contains(&joined)
}

/// Whether a name counts tokens of a model rather than holding one.
pub(crate) fn counts(name: &str) -> bool {
    let joined = joined(name);
    ["tokens", "tokencount", "tokenlimit", "tokenbudget"]
        .iter()
        .any(|part| joined.contains(part))
}

/// Whether everything up to the end of its line belongs to the name, as in a header.
pub(crate) fn takes_the_line(name: &str) -> bool {
    let joined = joined(name);
    joined.contains("authorization") || joined.ends_with("cookie")
}

/// A name without case, separators and look-alikes of ASCII letters.
pub(crate) fn joined(name: &str) -> String {
    let letters = name.chars().map(plain).filter(char::is_ascii_alphanumeric);
    letters.collect::<String>().to_ascii_lowercase()
}

/// The last word of a name: `x-auth` and `basicAuth` end with `auth`, `author` does not.
fn last_word(name: &str) -> String {
    let mut word = String::new();
    let mut before_upper = false;
    for letter in name
        .chars()
        .map(plain)
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
    {
        if !letter.is_ascii_alphanumeric() || before_upper && letter.is_ascii_lowercase() {
            break;
        }
        before_upper = letter.is_ascii_uppercase();
        word.insert(0, letter.to_ascii_lowercase());
    }
    word
}

/// Full-width forms and the Cyrillic and Greek letters that look like Latin ones.
fn plain(letter: char) -> char {
    match letter {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(letter) - 0xfee0).unwrap_or(letter),
        'а' | 'α' => 'a',
        'с' | 'ϲ' => 'c',
        'е' | 'ε' => 'e',
        'һ' => 'h',
        'і' | 'ι' => 'i',
        'к' | 'κ' => 'k',
        'о' | 'ο' => 'o',
        'р' | 'ρ' => 'p',
        'ѕ' => 's',
        'т' | 'τ' => 't',
        'у' | 'υ' => 'y',
        'ԝ' | 'ω' => 'w',
        other => other,
    }
}

fn is_harmless(joined: &str) -> bool {
    HARMLESS.iter().any(|word| joined.contains(word))
}

/// Parts that make a name secret wherever they stand.
const ANYWHERE: &[&str] = &[
    "accesskey",
    "accountkey",
    "apikey",
    "authkey",
    "authorization",
    "bankaccount",
    "cardnumber",
    "clientsecret",
    "connectionstring",
    "connstr",
    "consumerkey",
    "credential",
    "creditcard",
    "encryptionkey",
    "masterkey",
    "passcode",
    "passphrase",
    "passwd",
    "password",
    "passwort",
    "privatekey",
    "recoverycode",
    "secret",
    "seedphrase",
    "sessionkey",
    "sharedkey",
    "signingkey",
    "socialsecurity",
    "sshkey",
    "subscriptionkey",
    "token",
];

/// Words that make a name secret at its end.
const LAST: &[&str] = &[
    "auth", "cookie", "cookies", "creds", "cvc", "cvv", "iban", "jwt", "mnemonic", "otp", "pass",
    "pwd", "ssn",
];

/// Names that are secret by themselves only.
const ALONE: &[&str] = &["bearer", "pin", "sas", "sid", "sig", "xcsrf"];

const HARMLESS: &[&str] = &[
    "secretary",
    "secretariat",
    "tokeniz",
    "tokenis",
    "tokentype",
];

const LONGEST: usize = 256;
