//! A small issuer: discovery, keys, a page that signs everybody in as dana, and codes for tokens. It keeps
//! to the rules itself (codes once, PKCE, the client's secret) and can be told to sign something wrong.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ed25519_dalek::{Signer as _, SigningKey};
use sha2::{Digest as _, Sha256};
use url::Url;

/// What is wrong with the next tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Twist {
    Nothing,
    Nonce,
    NoNonce,
    Audience,
    ManyAudiences,
    Party,
    Expired,
    NoEnd,
    NotYet,
    Issuer,
    Role,
    NoTenant,
    OtherKey,
    Unsigned,
    NoToken,
    NoJson,
    /// Nothing is wrong, but the key is new.
    NewKey,
}

pub(crate) struct Issuer {
    state: Arc<State>,
    secret_file: PathBuf,
}

struct State {
    place: String,
    twist: Mutex<Twist>,
    codes: Mutex<HashMap<String, Asked>>,
}

struct Asked {
    challenge: String,
    nonce: String,
    back: String,
}

impl Issuer {
    pub(crate) fn start(folder: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let state = Arc::new(State {
            place: format!("http://{}", listener.local_addr().unwrap()),
            twist: Mutex::new(Twist::Nothing),
            codes: Mutex::default(),
        });
        let secret_file = folder.join("client-secret");
        std::fs::write(&secret_file, format!("{SECRET}\n")).unwrap();
        let answering = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                answering.answer(stream.unwrap());
            }
        });
        Self { state, secret_file }
    }

    pub(crate) fn place(&self) -> &str {
        &self.state.place
    }

    pub(crate) fn secret_file(&self) -> &Path {
        &self.secret_file
    }

    pub(crate) fn twist(&self, twist: Twist) {
        *self.state.twist.lock().unwrap() = twist;
    }
}

impl State {
    fn answer(&self, mut stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap() <= 2 {
                break;
            }
            head.push(line.trim_end().to_owned());
        }
        let header = |name: &str| {
            let lines = head.iter().filter_map(|line| line.split_once(": "));
            let mut found = lines.filter(|(known, _)| known.eq_ignore_ascii_case(name));
            found.next().map(|(_, value)| value.to_owned())
        };
        let length = header("content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let path = head[0].split(' ').nth(1).unwrap();
        let address = Url::parse(&format!("{}{path}", self.place)).unwrap();
        let (status, more, text) = match address.path() {
            "/.well-known/openid-configuration" => (200, String::new(), self.description()),
            "/jwks" => (200, String::new(), self.jwks()),
            "/authorize" => self.authorize(&address),
            "/token" => self.token(&body, header("authorization")),
            _ => (404, String::new(), "{}".to_owned()),
        };
        let answer = format!(
            "HTTP/1.1 {status} Said\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n{more}\r\n{text}",
            text.len()
        );
        // Whoever asked may be gone.
        let _ = stream.write_all(answer.as_bytes());
    }

    fn description(&self) -> String {
        let place = &self.place;
        format!(
            r#"{{"issuer":"{place}","authorization_endpoint":"{place}/authorize","token_endpoint":"{place}/token","jwks_uri":"{place}/jwks"}}"#
        )
    }

    fn jwks(&self) -> String {
        let id = self.key().1;
        let x = encode(self.key().0.verifying_key().as_bytes());
        format!(r#"{{"keys":[{{"kty":"OKP","crv":"Ed25519","kid":"{id}","x":"{x}"}}]}}"#)
    }

    /// The key that signs, and its name.
    fn key(&self) -> (SigningKey, &'static str) {
        match *self.twist.lock().unwrap() {
            Twist::NewKey => (SigningKey::from_bytes(&[9; 32]), "second"),
            _ => (SigningKey::from_bytes(&[8; 32]), "first"),
        }
    }

    fn authorize(&self, address: &Url) -> (u16, String, String) {
        let asked: HashMap<String, String> = address.query_pairs().into_owned().collect();
        let text = |name: &str| asked.get(name).cloned().unwrap_or_default();
        let back = text("redirect_uri");
        let is_right = text("client_id") == CLIENT
            && text("response_type") == "code"
            && text("scope") == "openid"
            && text("code_challenge_method") == "S256"
            && back.starts_with("http://127.0.0.1:")
            && back.ends_with("/login/back");
        if !is_right {
            return (400, String::new(), format!("{asked:?}"));
        }
        let mut codes = self.codes.lock().unwrap();
        let code = format!("code{}-{}", codes.len(), text("nonce").get(..8).unwrap());
        let kept = Asked {
            challenge: text("code_challenge"),
            nonce: text("nonce"),
            back: back.clone(),
        };
        codes.insert(code.clone(), kept);
        // Issuers add words of their own.
        let place = format!(
            "{back}?code={code}&state={}&session_state=abc",
            text("state")
        );
        (302, format!("Location: {place}\r\n"), String::new())
    }

    fn token(&self, body: &[u8], authorization: Option<String>) -> (u16, String, String) {
        let refused = |error: &str| (400, String::new(), format!(r#"{{"error":"{error}"}}"#));
        let form: HashMap<String, String> =
            url::form_urlencoded::parse(body).into_owned().collect();
        let text = |name: &str| form.get(name).cloned().unwrap_or_default();
        let expected = format!("Basic {}", STANDARD.encode(format!("{CLIENT}:{SECRET}")));
        if authorization != Some(expected) {
            return refused("invalid_client");
        }
        let asked = {
            let mut codes = self.codes.lock().unwrap();
            // The place of a used code stays taken, so that no other gets its name.
            let used = Asked {
                challenge: String::new(),
                nonce: String::new(),
                back: String::new(),
            };
            codes
                .get_mut(&text("code"))
                .map(|asked| std::mem::replace(asked, used))
        };
        let verifier = encode(Sha256::digest(text("code_verifier").as_bytes()));
        match asked {
            Some(asked)
                if asked.challenge == verifier
                    && asked.back == text("redirect_uri")
                    && text("grant_type") == "authorization_code" =>
            {
                (200, String::new(), self.granted(&asked.nonce))
            }
            _ => refused("invalid_grant"),
        }
    }

    fn granted(&self, nonce: &str) -> String {
        let twist = *self.twist.lock().unwrap();
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_secs();
        let pick = |wanted: Twist, wrong: String, right: String| match twist == wanted {
            true => wrong,
            false => right,
        };
        let quoted = |text: &str| format!("\"{text}\"");
        let mut claims = vec![
            ("sub", quoted("dana")),
            (
                "iss",
                pick(
                    Twist::Issuer,
                    quoted("http://elsewhere"),
                    quoted(&self.place),
                ),
            ),
            (
                "aud",
                match twist {
                    Twist::Audience => quoted("programs"),
                    Twist::ManyAudiences => format!("[\"{CLIENT}\",\"other\"]"),
                    _ => quoted(CLIENT),
                },
            ),
            ("nonce", pick(Twist::Nonce, quoted("0000"), quoted(nonce))),
            (
                "iat",
                pick(Twist::NotYet, (now + 900).to_string(), now.to_string()),
            ),
            (
                "exp",
                pick(
                    Twist::Expired,
                    (now - 90).to_string(),
                    (now + 300).to_string(),
                ),
            ),
            (
                "countersign_role",
                pick(Twist::Role, quoted("king"), quoted("approver")),
            ),
            ("countersign_tenant", quoted("acme")),
        ];
        claims.retain(|(name, _)| match twist {
            Twist::NoNonce => *name != "nonce",
            Twist::NoEnd => *name != "exp",
            Twist::NoTenant => *name != "countersign_tenant",
            _ => true,
        });
        if twist == Twist::Party {
            claims.push(("azp", quoted("other")));
        }
        let claims: Vec<String> = claims
            .iter()
            .map(|(name, value)| format!("\"{name}\":{value}"))
            .collect();
        let (key, id) = self.key();
        let algorithm = pick(Twist::Unsigned, "none".to_owned(), "EdDSA".to_owned());
        let header = format!(r#"{{"alg":"{algorithm}","kid":"{id}"}}"#);
        let signed = format!(
            "{}.{}",
            encode(header),
            encode(format!("{{{}}}", claims.join(",")))
        );
        let key = match twist {
            Twist::OtherKey => SigningKey::from_bytes(&[1; 32]),
            _ => key,
        };
        let signature = encode(key.sign(signed.as_bytes()).to_bytes());
        match twist {
            Twist::NoToken => r#"{"access_token":"x","token_type":"Bearer"}"#.to_owned(),
            Twist::NoJson => "sorry".to_owned(),
            _ => format!(
                r#"{{"access_token":"x","token_type":"Bearer","expires_in":300,"id_token":"{signed}.{signature}"}}"#
            ),
        }
    }
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

const CLIENT: &str = "console";
const SECRET: &str = "s3cret-of-the-client";
