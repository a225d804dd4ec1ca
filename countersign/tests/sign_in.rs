//! Signing in at an issuer: the daemon as a process, a real issuer, and browsers that are not honest.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

#[path = "../../tests/replayed.rs"]
mod replayed;

#[path = "sign_in/issuer.rs"]
mod issuer;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use issuer::{Issuer, Twist};

struct Daemon {
    child: Child,
    address: String,
}

impl Daemon {
    fn start(folder: &Path, config: &str) -> Self {
        let file = folder.join("countersign.toml");
        std::fs::write(&file, config).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_countersign"))
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(folder.join("data"))
            .arg("--config")
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut address = String::new();
        while address.is_empty() {
            let mut line = String::new();
            let read = said.read_line(&mut line).unwrap();
            assert!(read > 0, "the daemon did not start");
            if let Some(rest) = line.strip_prefix("countersign: http://") {
                address = rest.split(' ').next().unwrap().to_owned();
            }
        }
        // Whatever else it says has a reader as long as it runs.
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        Self { child, address }
    }

    fn end(mut self) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

/// Keeps cookies by host, as browsers do, and follows nothing by itself.
#[derive(Default, Clone)]
struct Browser {
    cookies: BTreeMap<String, String>,
}

struct Page {
    status: u16,
    headers: Vec<(String, String)>,
    text: String,
}

impl Browser {
    /// Asks for an address on this machine.
    fn go(&mut self, address: &str) -> Page {
        let rest = address.strip_prefix("http://").unwrap();
        let (host, path) = rest.split_once('/').unwrap();
        let cookies: Vec<String> = self
            .cookies
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let mut stream = TcpStream::connect(host).unwrap();
        let patience = Some(Duration::from_secs(60));
        stream.set_read_timeout(patience).unwrap();
        let head = format!(
            "GET /{path} HTTP/1.1\r\nHost: {host}\r\nAccept: text/html\r\nConnection: close\r\nCookie: {}\r\n\r\n",
            cookies.join("; ")
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, text) = answer.split_once("\r\n\r\n").unwrap();
        let headers = head
            .lines()
            .skip(1)
            .filter_map(|line| line.split_once(": "));
        let headers: Vec<(String, String)> = headers
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        for (_, value) in headers.iter().filter(|(name, _)| name == "set-cookie") {
            let (name, rest) = value.split_once('=').unwrap();
            let value = rest.split(';').next().unwrap();
            match rest.contains("Max-Age=0") {
                true => self.cookies.remove(name),
                false => self.cookies.insert(name.to_owned(), value.to_owned()),
            };
        }
        Page {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            headers,
            text: text.to_owned(),
        }
    }

    /// Goes to the issuer and signs in there; gives the address that leads back, and does not follow it.
    fn signed_in(&mut self, daemon: &Daemon) -> String {
        let asked = self.go(&format!(
            "http://{}/login/issuer?next=/inbox",
            daemon.address
        ));
        assert_eq!(asked.status, 303, "{}", asked.text);
        let back = self.go(asked.header("location"));
        assert_eq!(back.status, 302, "{}", back.text);
        back.header("location").to_owned()
    }

    fn me(&mut self, daemon: &Daemon) -> Page {
        self.go(&format!("http://{}/v1/me", daemon.address))
    }
}

impl Page {
    fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }
}

fn config(issuer: &Issuer) -> String {
    let place = issuer.place();
    format!(
        "[oidc]\nissuer = \"{place}\"\naudience = \"programs\"\njwks_url = \"{place}/jwks\"\n\
         client_id = \"console\"\nclient_secret_file = \"{}\"\n",
        issuer.secret_file().display()
    )
}

#[test]
fn whoever_the_issuer_names_is_in_and_nobody_else() {
    let folder = replayed::folder();
    let issuer = Issuer::start(folder.path());
    let daemon = Daemon::start(folder.path(), &config(&issuer));
    let mut dana = Browser::default();
    let door = dana.go(&format!("http://{}/inbox", daemon.address));
    assert_eq!(door.status, 401);
    assert!(door.text.contains("href=\"/login/issuer?next=%2Finbox\""));

    let back = dana.signed_in(&daemon);
    let page = dana.go(&back);
    assert_eq!(page.status, 200, "{}", page.text);
    assert_eq!(page.header("refresh"), "0; url=/inbox");
    let cookies: Vec<&(String, String)> = page
        .headers
        .iter()
        .filter(|(name, _)| name == "set-cookie")
        .collect();
    assert!(
        cookies[0]
            .1
            .contains("HttpOnly; SameSite=Strict; Max-Age=43200")
    );
    let me = dana.me(&daemon);
    assert!(
        me.text.contains("\"role\":\"approver\"") && me.text.contains("\"name\":\"dana\""),
        "{}",
        me.text
    );
    let inbox = dana.go(&format!("http://{}/inbox", daemon.address));
    assert_eq!(inbox.status, 200);
    // What it may not see as an approver it does not see.
    assert_eq!(
        dana.go(&format!("http://{}/policy", daemon.address)).status,
        403
    );

    let refused = |page: Page, why: &str| {
        assert_eq!(page.status, 401, "{why}: {}", page.text);
        assert!(page.text.contains(why), "{why}: {}", page.text);
        assert!(page.headers.iter().all(|(name, _)| name != "set-cookie"));
    };
    // The same link again, in the same browser and in another one.
    refused(dana.go(&back), "has not begun to sign in");
    refused(Browser::default().go(&back), "has not begun to sign in");

    // Another state: the errand is over then, with the right one too.
    let mut lee = Browser::default();
    let back = lee.signed_in(&daemon);
    let other = back.replace("state=", "state=0");
    refused(lee.go(&other), "for another browser");
    refused(lee.go(&back), "has not begun to sign in");

    // Somebody hands their own answer to another browser that has begun as well.
    let (mut mallory, mut victim) = (Browser::default(), Browser::default());
    let theirs = mallory.signed_in(&daemon);
    victim.signed_in(&daemon);
    refused(victim.go(&theirs), "for another browser");
    assert_eq!(victim.me(&daemon).status, 401);

    // A code that was used, and one that was made for another question.
    let code = |link: &str| {
        let (_, rest) = link.split_once("code=").unwrap();
        rest.split('&').next().unwrap().to_owned()
    };
    let with_code = |link: &str, new: &str| link.replace(&code(link), new);
    let mut again = Browser::default();
    let own = again.signed_in(&daemon);
    refused(again.go(&with_code(&own, &code(&back))), "invalid_grant");
    let stolen = code(&mallory.signed_in(&daemon));
    let own = again.signed_in(&daemon);
    refused(again.go(&with_code(&own, &stolen)), "invalid_grant");
    let used = code(&{
        let link = dana.signed_in(&daemon);
        assert_eq!(dana.go(&link).status, 200);
        link
    });
    let own = again.signed_in(&daemon);
    refused(again.go(&with_code(&own, &used)), "invalid_grant");

    // What the issuer itself says no to, and what only looks as if it came from there.
    let own = again.signed_in(&daemon);
    let no = own.replace("code=", "error=%3Cscript%3Edenied&x=");
    refused(again.go(&no), "&lt;script&gt;denied");
    let own = again.signed_in(&daemon);
    refused(
        again.go(&format!("{own}&iss=http%3A%2F%2Felsewhere")),
        "another issuer",
    );
    assert_eq!(again.me(&daemon).status, 401);
    daemon.end();
}

#[test]
fn a_token_that_says_something_else_lets_nobody_in() {
    let folder = replayed::folder();
    let issuer = Issuer::start(folder.path());
    let daemon = Daemon::start(folder.path(), &config(&issuer));
    for (twist, why) in [
        (Twist::Nonce, "`nonce`"),
        (Twist::NoNonce, "`nonce`"),
        (Twist::Audience, "`aud`"),
        (Twist::ManyAudiences, "`azp`"),
        (Twist::Party, "`azp`"),
        (Twist::Expired, "`exp`"),
        (Twist::NoEnd, "`exp`"),
        (Twist::NotYet, "`iat`"),
        (Twist::Issuer, "`iss`"),
        (Twist::Role, "`countersign_role`"),
        (Twist::NoTenant, "`countersign_tenant`"),
        (Twist::OtherKey, "the signature does not hold"),
        (Twist::Unsigned, "RS256, ES256 or EdDSA"),
        (Twist::NoToken, "no `id_token`"),
        (Twist::NoJson, "cannot be read"),
    ] {
        issuer.twist(twist);
        let mut browser = Browser::default();
        let back = browser.signed_in(&daemon);
        let page = browser.go(&back);
        assert_eq!(page.status, 401, "{why}: {}", page.text);
        assert!(page.text.contains(why), "{why}: {}", page.text);
        assert_eq!(browser.me(&daemon).status, 401, "{why}");
    }
    // Keys that came after the daemon had read them are read again.
    issuer.twist(Twist::NewKey);
    let mut browser = Browser::default();
    let back = browser.signed_in(&daemon);
    let page = browser.go(&back);
    assert_eq!(page.status, 200, "{}", page.text);
    assert_eq!(browser.me(&daemon).status, 200);
    daemon.end();
}

#[test]
fn half_a_client_does_not_start() {
    let folder = replayed::folder();
    let issuer = Issuer::start(folder.path());
    let whole = config(&issuer);
    for (change, told) in [
        (
            whole.replace("client_id = \"console\"\n", ""),
            "there is no `oidc.client_id`",
        ),
        (
            format!("{whole}scope = \"profile\"\n"),
            "`openid` is not in it",
        ),
        (
            format!("{whole}public_url = \"http://console.example\"\n"),
            "expected an https address",
        ),
    ] {
        let file = folder.path().join("wrong.toml");
        std::fs::write(&file, change).unwrap();
        let ran = Command::new(env!("CARGO_BIN_EXE_countersign"))
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(folder.path().join("data"))
            .arg("--config")
            .arg(&file)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(3), "{said}");
        assert!(said.contains(told), "{said}");
    }
}
