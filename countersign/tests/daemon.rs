//! The daemon as a process: first start, signals, and what it refuses to do.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may stop at once"
)]

#[path = "../../tests/replayed.rs"]
mod replayed;
#[path = "daemon/tools.rs"]
mod tools;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

struct Daemon {
    child: Child,
    address: String,
    token: Option<String>,
    link: Option<String>,
    said: BufReader<std::process::ChildStderr>,
}

impl Daemon {
    fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_countersign"))
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(folder)
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let (mut address, mut link) = (String::new(), None);
        while address.is_empty() {
            let mut line = String::new();
            assert!(
                said.read_line(&mut line).unwrap() > 0,
                "the daemon did not start"
            );
            if let Some(rest) = line.strip_prefix("countersign: http://") {
                address = rest.split(' ').next().unwrap().to_owned();
            }
        }
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        if let Some((_, found)) = line.split_once("http://") {
            link = found
                .trim_end()
                .split_once('/')
                .map(|(_, path)| format!("/{path}"));
        }
        Self {
            child,
            address,
            token: None,
            link,
            said,
        }
    }

    fn first_token(&mut self) -> String {
        let mut line = String::new();
        let mut out = BufReader::new(self.child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        let token = line.trim_end().rsplit(' ').next().unwrap().to_owned();
        self.token = Some(token.clone());
        token
    }

    fn ask(&self, head: &str) -> String {
        self.send(head, "")
    }

    /// What a page sends.
    fn submit(&self, path: &str, form: &str) -> String {
        let head = format!(
            "POST {path} HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}",
            form.len()
        );
        self.send(&head, form)
    }

    fn send(&self, head: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        let text = format!(
            "{head}\r\nHost: {}\r\nConnection: close\r\n\r\n{body}",
            self.address
        );
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    fn end(mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.child.wait().unwrap()
    }
}

#[test]
fn the_first_start_makes_a_token_that_works_and_is_kept_as_a_hash() {
    let folder = replayed::folder();
    let mut daemon = Daemon::start(folder.path(), &[]);
    let token = daemon.first_token();
    assert!(token.starts_with("cst_"), "{token}");
    let me = daemon.ask(&format!(
        "GET /v1/me HTTP/1.1\r\nAuthorization: Bearer {token}"
    ));
    assert!(me.contains("\"role\":\"operator\""), "{me}");
    assert!(
        daemon
            .ask("GET /v1/me HTTP/1.1")
            .starts_with("HTTP/1.1 401")
    );
    let link = daemon.link.clone().unwrap();
    assert!(
        daemon
            .ask(&format!("GET {link} HTTP/1.1"))
            .starts_with("HTTP/1.1 303")
    );
    assert!(
        daemon
            .ask(&format!("GET {link} HTTP/1.1"))
            .starts_with("HTTP/1.1 401")
    );
    assert!(daemon.end().success());
    let secret = token.rsplit('_').next().unwrap();
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let content = std::fs::read(&path).unwrap();
            let found = content
                .windows(secret.len())
                .any(|part| part == secret.as_bytes());
            assert!(!found, "{} has the secret", path.display());
        }
    }
    // The second start makes no other.
    let mut again = Daemon::start(folder.path(), &[]);
    let me = again.ask(&format!(
        "GET /v1/me HTTP/1.1\r\nAuthorization: Bearer {token}"
    ));
    assert!(me.starts_with("HTTP/1.1 200"), "{me}");
    let mut rest = String::new();
    let mut out = again.child.stdout.take().unwrap();
    assert!(again.end().success());
    out.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
}

#[test]
fn a_hangup_reads_the_policies_again_and_bad_ones_do_not_count() {
    let folder = replayed::folder();
    let manifest = folder.path().join("manifest.json");
    let declare = |tool: &str| {
        let text = format!(
            r#"{{"schema":"countersign/manifest/v1","name":"n","version":"1.0.0","publisher":"p","permissions":{{"tools":{{"{tool}":{{"side_effect":"read"}}}}}}}}"#
        );
        std::fs::write(&manifest, text).unwrap();
    };
    declare("read_file");
    let data = folder.path().join("data");
    let path = manifest.to_str().unwrap();
    let mut daemon = Daemon::start(&data, &["--no-auth", "--manifest", path]);
    let decide = |daemon: &Daemon| {
        let body = r#"{"event":{"event_type":"TOOL_CALL_PROPOSED","payload":{"tool_name":"other_tool","args":{}}},"snapshot":{}}"#;
        let mut stream = TcpStream::connect(&daemon.address).unwrap();
        let text = format!(
            "POST /v1/policy/decide HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let next = |daemon: &mut Daemon| {
        daemon.signal(Signal::HUP);
        let mut line = String::new();
        daemon.said.read_line(&mut line).unwrap();
        line
    };
    assert!(decide(&daemon).contains("PERMISSION_UNDECLARED"));
    declare("other_tool");
    assert!(next(&mut daemon).contains("in force"));
    assert!(decide(&daemon).contains("\"allow\""));
    std::fs::write(&manifest, "{").unwrap();
    assert!(next(&mut daemon).starts_with("error[C0701]"));
    assert!(decide(&daemon).contains("\"allow\""));
    assert!(daemon.end().success());
}

#[test]
fn without_authentication_only_this_machine_is_served() {
    let folder = replayed::folder();
    let refused = Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(["serve", "--listen", "0.0.0.0:0", "--no-auth", "--data"])
        .arg(folder.path())
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(64));
    assert!(String::from_utf8_lossy(&refused.stderr).starts_with("error[C0923]"));
}

#[test]
fn every_code_of_the_api_can_be_explained() {
    for kind in countersign_api::problem::Kind::ALL {
        let explained = Command::new(env!("CARGO_BIN_EXE_countersign"))
            .args(["explain", kind.code()])
            .output()
            .unwrap();
        assert!(explained.status.success(), "{}", kind.code());
    }
}

#[test]
fn the_doctor_finds_what_is_wrong_and_a_forbidden_action_is_refused() {
    let folder = replayed::folder();
    let doctor = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_countersign"))
            .args(["doctor", "--data"])
            .arg(folder.path().join("data"))
            .args(arguments)
            .env("COUNTERSIGN_LISTEN", "127.0.0.1:0")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), text)
    };
    let (code, text) = doctor(&[]);
    assert_eq!(code, Some(0), "{text}");
    let refused = "refuses forbidden actions and callers without a token";
    assert!(text.contains(refused), "{text}");
    let refused = "refuses a forbidden call before the server sees it";
    assert_eq!(text.matches(refused).count(), 2, "{text}");
    let is_wide = |line: &&str| line.contains("canary") && line.chars().count() > 80;
    assert_eq!(text.lines().find(is_wide), None);
    let manifest = folder.path().join("manifest.json");
    std::fs::write(&manifest, "{").unwrap();
    let (code, text) = doctor(&["--manifest", manifest.to_str().unwrap()]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("BAD ✗  policies"), "{text}");
    assert!(text.contains("hint: "), "{text}");
    let untried = "not tried: no door opens with these policies";
    assert_eq!(text.matches(untried).count(), 3, "{text}");
    // Who only asks leaves nothing behind.
    assert!(!folder.path().join("data").exists());
}

#[test]
fn settings_that_cannot_be_honoured_keep_the_daemon_from_starting() {
    let folder = replayed::folder();
    let file = folder.path().join("countersign.toml");
    for (text, expect) in [
        ("[tls]\ncert = \"missing.pem\"\n", "there is no `tls.key`"),
        ("[tls]\nclient_ca = \"ca.pem\"\n", "there is no `tls.cert`"),
        (
            "[tls]\ncert = \"missing.pem\"\nkey = \"missing.pem\"\n",
            "missing.pem",
        ),
        ("durability = \"some\"\n", "neither `full` nor `relaxed`"),
        ("listen = \"here\"\n", "expected an address and a port"),
        ("manifest = \"missing.yaml\"\n", "missing.yaml"),
    ] {
        std::fs::write(&file, text).unwrap();
        let refused = Command::new(env!("CARGO_BIN_EXE_countersign"))
            .args(["serve", "--data"])
            .arg(folder.path().join("data"))
            .arg("--config")
            .arg(&file)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(
            !refused.status.success() && said.contains(expect),
            "{text}: {said}"
        );
    }
}

#[test]
fn a_held_call_is_answered_when_the_daemon_ends() {
    let folder = replayed::folder();
    let manifest = folder.path().join("manifest.json");
    let text = r#"{"schema":"countersign/manifest/v1","name":"n","version":"1.0.0","publisher":"p","permissions":{"tools":{"read_file":{"side_effect":"read"}}}}"#;
    std::fs::write(&manifest, text).unwrap();
    let data = folder.path().join("data");
    let mut daemon = Daemon::start(&data, &["--manifest", manifest.to_str().unwrap()]);
    let token = daemon.first_token();
    let head = format!("Authorization: Bearer {token}");
    let post = |path: &str, body: &str| {
        let mut stream = TcpStream::connect(&daemon.address).unwrap();
        let text = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\n{head}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let body = r#"{"session_id":"s1","tool_name":"read_file","args":{}}"#;
    let running = post("/v1/actions", body);
    let member = |name: &str| {
        let (_, rest) = running.split_once(&format!("\"{name}\":\"")).unwrap();
        rest.split('"').next().unwrap().to_owned()
    };
    daemon.signal(Signal::TERM);
    // Nothing new is begun, but what runs can still be told.
    let until = std::time::Instant::now() + Duration::from_secs(9);
    while !post("/v1/actions", body).starts_with("HTTP/1.1 503") {
        assert!(std::time::Instant::now() < until, "the door stays open");
    }
    let path = format!("/v1/actions/{}/result", member("action_id"));
    let told = post(
        &path,
        &format!(r#"{{"permit":"{}","content":1}}"#, member("permit")),
    );
    assert!(told.starts_with("HTTP/1.1 201"), "{told}");
    assert!(daemon.child.wait().unwrap().success());
}

#[test]
fn a_socket_of_systemd_is_used_and_systemd_is_told() {
    let folder = replayed::folder();
    let notices = folder.path().join("notify");
    let heard = std::os::unix::net::UnixDatagram::bind(&notices).unwrap();
    heard
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    // Opens a socket, hands it over as systemd does, and becomes the daemon.
    let launcher = "import os,socket,sys\n\
        s=socket.socket(); s.bind(('127.0.0.1',0)); s.listen()\n\
        os.dup2(s.fileno(),3); os.set_inheritable(3,True)\n\
        os.environ['LISTEN_FDS']='1'; os.environ['LISTEN_PID']=str(os.getpid())\n\
        print(s.getsockname()[1],flush=True)\n\
        os.execv(sys.argv[1],sys.argv[1:])";
    let mut child = Command::new("python3")
        .args(["-c", launcher, env!("CARGO_BIN_EXE_countersign")])
        .args(["serve", "--no-auth", "--data"])
        .arg(folder.path().join("data"))
        .env("NOTIFY_SOCKET", &notices)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut port = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut port).unwrap();
    let mut notice = [0; 64];
    let length = heard.recv(&mut notice).unwrap();
    assert_eq!(notice.get(..length), Some(&b"READY=1"[..]));
    let mut stream = TcpStream::connect(format!("127.0.0.1:{}", port.trim())).unwrap();
    stream
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// What was recorded is covered by a signed checkpoint when the daemon has ended, unless nobody wants one.
#[test]
fn checkpoints_are_published_without_being_asked_for() {
    let parent = replayed::folder();
    for (every, name) in [("3600", "with"), ("0", "without")] {
        let folder = parent.path().join(name);
        let out = parent.path().join(format!("{name}-public"));
        let config = parent.path().join("config.toml");
        let text =
            format!("[checkpoint]\nseconds = {every}\nname = \"example.com/log\"\nout = {out:?}\n");
        std::fs::write(&config, text).unwrap();
        let mut daemon = Daemon::start(&folder, &["--config", config.to_str().unwrap()]);
        let token = daemon.first_token();
        let event =
            r#"{"session_id":"s","event_type":"MEMORY_WRITE","payload":{},"tenant_id":"default"}"#;
        let recorded = daemon.ask(&format!(
            "POST /v1/events HTTP/1.1\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nHost: {}\r\nConnection: close\r\n\r\n{event}",
            event.len(),
            daemon.address
        ));
        assert!(recorded.starts_with("HTTP/1.1 201"), "{recorded}");
        assert!(daemon.end().success());
        let published = std::fs::read_to_string(out.join("checkpoint"));
        match every {
            "0" => assert!(published.is_err()),
            _ => {
                let note = published.unwrap();
                assert!(note.starts_with("example.com/log\n1\n"), "{note}");
                assert!(out.join("tile/entries/000.p/1").exists());
            }
        }
    }
}

/// Answers every request with one body, once for each of `times`.
fn serve_once(body: String, times: usize) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for _ in 0..times {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = [0; 4096];
            let _ = stream.read(&mut head).unwrap();
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    format!("http://{address}/jwks.json")
}

#[test]
fn tokens_of_an_issuer_are_taken_by_the_keys_at_its_address() {
    use countersign_canon::{Json, Limits};
    let vectors = include_bytes!("../../corpus/oidc/rs256.json");
    let vectors = Json::admit(vectors, &Limits::event()).unwrap();
    let text = |name: &str| vectors.get(name).and_then(Json::as_str).unwrap().to_owned();
    let jwks = String::from_utf8(vectors.get("jwks").unwrap().to_sorted_ascii()).unwrap();
    let address = serve_once(jwks, 1);
    let folder = replayed::folder();
    let file = folder.path().join("countersign.toml");
    let config = format!(
        "[oidc]\nissuer = \"https://issuer.example\"\naudience = \"countersign\"\njwks_url = \"{address}\"\n"
    );
    std::fs::write(&file, config).unwrap();
    let data = folder.path().join("data");
    let daemon = Daemon::start(&data, &["--config", file.to_str().unwrap()]);
    let ask = |token: &str| {
        daemon.ask(&format!(
            "GET /v1/me HTTP/1.1\r\nAuthorization: Bearer {token}"
        ))
    };
    let me = ask(&text("token"));
    assert!(
        me.contains("\"role\":\"auditor\"") && me.contains("dana"),
        "{me}"
    );
    // Another signature, another time, another audience, other words under the same signature.
    let token = text("token");
    let last = if token.ends_with('A') { "B" } else { "A" };
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let (head, _) = signed.split_once('.').unwrap();
    let other = text("expired");
    let claims = other.split('.').nth(1).unwrap();
    for wrong in [
        format!("{}{last}", &token[..token.len() - 5]),
        text("expired"),
        text("other_audience"),
        format!("{head}.{claims}.{signature}"),
    ] {
        assert!(ask(&wrong).starts_with("HTTP/1.1 401"), "{wrong}");
    }
    assert!(daemon.end().success());
}

#[test]
fn relaxed_durability_survives_a_killed_process_and_is_told() {
    let folder = replayed::folder();
    let file = folder.path().join("countersign.toml");
    std::fs::write(&file, "durability = \"relaxed\"\n").unwrap();
    let data = folder.path().join("data");
    let arguments = ["--no-auth", "--config", file.to_str().unwrap()];
    let mut daemon = Daemon::start(&data, &arguments);
    let event = r#"{"tenant_id":"acme","session_id":"s1","event_type":"MEMORY_WRITE","payload":{"memory_key":"k"}}"#;
    for _ in 0..20 {
        let mut stream = TcpStream::connect(&daemon.address).unwrap();
        let text = format!(
            "POST /v1/events HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{event}",
            daemon.address,
            event.len()
        );
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    }
    daemon.signal(Signal::KILL);
    daemon.child.wait().unwrap();
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_countersign"))
            .args(arguments)
            .arg("--data")
            .arg(&data)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let verified = run(&["verify"]);
    assert!(verified.contains("20 event"), "{verified}");
    // Also a checkpoint that a program with full durability makes says how its events were kept.
    run(&["checkpoint", "publish"]);
    let shown = run(&["checkpoint", "show"]);
    assert!(shown.contains("durability relaxed"), "{shown}");
    // So does a pack, to whoever verifies it.
    let pack = folder.path().join("s1.pack");
    let pack = pack.to_str().unwrap();
    run(&[
        "evidence",
        "export",
        "--session",
        "s1",
        "--tenant",
        "acme",
        "--out",
        pack,
    ]);
    let told = run(&["verify", pack, "--format", "json"]);
    assert!(told.contains(r#""durability":"relaxed""#), "{told}");
    assert!(told.contains("(durability `relaxed`)"), "{told}");
}

/// What a server does not let us try is not violated.
#[test]
fn packs_that_cannot_be_prepared_are_skipped_and_a_wrong_token_is_one_error() {
    let folder = replayed::folder();
    let data = folder.path().join("data");
    let manifest = folder.path().join("manifest.json");
    let text = r#"{"schema":"countersign/manifest/v1","name":"ours","version":"1.0.0","publisher":"us",
        "permissions":{"tools":{"read_file":{"side_effect":"read"}}}}"#;
    std::fs::write(&manifest, text).unwrap();
    let mut daemon = Daemon::start(&data, &["--manifest", manifest.to_str().unwrap()]);
    let token = daemon.first_token();
    let target = format!("http://{}", daemon.address);
    let run = |token: Option<&str>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
        command.args([
            "conformance",
            "run",
            "--pack",
            "capability",
            "--target",
            &target,
        ]);
        command.args(token.map(|token| format!("--token={token}")));
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let complained = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said, complained)
    };
    let (code, said, _) = run(Some(&token));
    // Nothing is shown to hold either.
    assert_eq!(code, Some(5), "{said}");
    assert!(said.starts_with("UNTRIED –  capability"), "{said}");
    assert!(
        said.contains("0 passed, 0 failed, 0 known to fail, 14 skipped"),
        "{said}"
    );
    assert!(
        said.contains("could not be prepared") && said.contains("409"),
        "{said}"
    );
    assert!(!said.contains("violated"), "{said}");
    for wrong in [Some("cst_operator_0_0"), None] {
        let (code, said, complained) = run(wrong);
        assert_eq!((code, said.as_str()), (Some(1), ""), "{complained}");
        assert!(complained.starts_with("error[C0901]"), "{complained}");
    }
    let made = Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args([
            "token", "create", "--role", "auditor", "--name", "a", "--format", "json", "--data",
        ])
        .arg(&data)
        .output()
        .unwrap();
    let made = String::from_utf8_lossy(&made.stdout).into_owned();
    let auditor = made
        .split('"')
        .find(|part| part.starts_with("cst_"))
        .unwrap();
    let (code, _, complained) = run(Some(auditor));
    assert_eq!(code, Some(1), "{complained}");
    assert!(complained.starts_with("error[C0902]"), "{complained}");
    assert!(daemon.end().success());
}
