//! `countersign mcp serve` as a process, before a server that it starts for each session.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

mod wrapped;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use wrapped::{Place, RESOURCES, read};

struct Door {
    child: Child,
    stderr: BufReader<ChildStderr>,
    address: String,
}

impl Door {
    fn open(scene: &Place, more: &[&str]) -> Self {
        let mut command = Self::command(scene);
        command.arg("--manifest").arg(scene.path("manifest.json"));
        Self::start(command.args(more).arg("--").args(scene.server()))
    }

    fn command(scene: &Place) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
        command.args(["mcp", "serve", "--listen", "127.0.0.1:0", "--data"]);
        command.arg(scene.path("data"));
        command
    }

    fn start(command: &mut Command) -> Self {
        let piped = command.stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = piped.spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("http://") {
            line.clear();
            assert_ne!(stderr.read_line(&mut line).unwrap(), 0, "it does not open");
        }
        let address = line.split("http://").nth(1).expect(&line);
        let address = address.split('/').next().unwrap().to_owned();
        Self {
            child,
            stderr,
            address,
        }
    }

    /// Ends as it should, with everything written.
    fn close(mut self) {
        let id = self.child.id().to_string();
        let told = Command::new("kill").args(["-TERM", &id]).status().unwrap();
        assert!(told.success());
        let mut rest = String::new();
        self.stderr.read_to_string(&mut rest).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0), "{rest}");
    }

    fn client(&self) -> Client {
        Client {
            stream: BufReader::new(TcpStream::connect(&self.address).unwrap()),
            address: self.address.clone(),
            path: "/mcp".to_owned(),
            more: String::new(),
            session: None,
        }
    }
}

struct Client {
    stream: BufReader<TcpStream>,
    address: String,
    path: String,
    /// More headers.
    more: String,
    session: Option<String>,
}

impl Client {
    fn send(&mut self, verb: &str, body: &str) {
        let session = self.session.as_ref();
        let session =
            session.map_or_else(String::new, |name| format!("mcp-session-id: {name}\r\n"));
        let request = format!(
            "{verb} {} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n{}{session}content-length: {}\r\n\r\n{body}",
            self.path,
            self.address,
            self.more,
            body.len()
        );
        let stream = self.stream.get_mut();
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        stream.write_all(request.as_bytes()).unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn head(&mut self) -> (u16, usize) {
        let status = self.line().split(' ').nth(1).unwrap().parse().unwrap();
        let mut length = 0;
        loop {
            let line = self.line();
            match line.split_once(": ") {
                Some(("content-length", value)) => length = value.parse().unwrap(),
                Some(("mcp-session-id", value)) => self.session = Some(value.to_owned()),
                Some(_) => {}
                None => return (status, length),
            }
        }
    }

    fn post(&mut self, body: &str) -> (u16, String) {
        self.send("POST", body);
        let (status, length) = self.head();
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).unwrap();
        (status, String::from_utf8(body).unwrap())
    }

    fn initialize(&mut self) -> String {
        let (status, body) = self.post(
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#,
        );
        assert_eq!(status, 200, "{body}");
        assert!(self.session.is_some());
        body
    }

    fn call(&mut self, id: usize, tool: &str) -> String {
        let body = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\n\"method\":\"tools/call\",\"params\":{{\"name\":\"{tool}\",\"arguments\":{{\"n\":{id}}}}}}}"
        );
        let (status, body) = self.post(&body);
        assert_eq!(status, 200, "{body}");
        body
    }
}

#[test]
fn a_program_serves_http_clients_each_its_own() {
    let scene = Place::new();
    let door = Door::open(&scene, &[]);
    let (mut first, mut second) = (door.client(), door.client());
    // Each session has a server of its own: the toy says which process it is.
    assert_ne!(first.initialize(), second.initialize());
    assert_ne!(first.session, second.session);
    for id in 1..5 {
        assert!(first.call(id, "echo").contains(&format!("\"id\":{id}")));
        assert!(second.call(id, "echo").contains("result"));
    }
    assert!(first.call(9, "undeclared").contains("-32000"));
    assert_eq!(scene.lines("effects").len(), 8);
    // One server dies; the other session does not notice.
    let died = first.call(10, "die");
    assert!(
        died.contains("\"id\":10") && died.contains("SERVER_GONE"),
        "{died}"
    );
    assert!(first.call(11, "echo").contains("SERVER_GONE"));
    assert!(second.call(12, "echo").contains("result"));
    second.send("DELETE", "");
    assert_eq!(second.head().0, 200);
    let (status, _) = second.post(r#"{"jsonrpc":"2.0","id":13,"method":"ping"}"#);
    assert_eq!(status, 404);
    drop((first, second));
    door.close();
    scene.verify();
    assert_eq!(
        scene.count("TOOL_CALL_EXECUTED"),
        scene.lines("effects").len()
    );
    assert_eq!(scene.count("TERMINATION"), 2);
}

#[test]
fn without_a_manifest_nobody_counts_or_measures_what_is_read() {
    let scene = Place::new();
    let mut command = Door::command(&scene);
    let door = Door::start(command.args(["--", "python3", "-c", RESOURCES]));
    let mut client = door.client();
    client.initialize();
    for id in 1..10 {
        let (_, got) = client.post(&read(id, "toy:x"));
        assert!(got.contains("found"), "{got}");
    }
    let (_, got) = client.post(&read(10, "toy:big"));
    assert!(got.len() > 2_000_000, "{got}");
    drop(client);
    door.close();
    scene.verify();
}

#[test]
fn an_address_that_is_taken_is_an_error_with_a_hint() {
    let scene = Place::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(["mcp", "serve", "--listen", &address, "--data"])
        .arg(scene.path("data"))
        .args(["--upstream", "http://127.0.0.1:1/mcp"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("error[C0814]"));
}

#[test]
fn servers_of_a_file_have_paths_rules_and_secrets_of_their_own() {
    let scene = Place::new();
    let toy: Vec<String> = scene
        .server()
        .into_iter()
        .map(|word| word.into_string().unwrap())
        .collect();
    let env = scene.path("env");
    let script = format!("printenv LEVEL KEY > {}; exec \"$@\"", env.display());
    std::fs::write(scene.path("key"), "hunter2\n").unwrap();
    std::fs::write(scene.path("door.token"), "open-sesame-and-more\n").unwrap();
    let config = format!(
        r#"
        token_file = "door.token"
        [servers.strict]
        command = ["sh", "-c", {script:?}, "sh", {}]
        env = {{ LEVEL = "debug" }}
        secrets = {{ KEY = {{ file = "key" }} }}
        manifest = "manifest.json"
        refusals = "result"
        hide_undeclared = true
        [servers.open]
        command = [{}]
        mode = "observe"
        "#,
        toy.iter()
            .map(|word| format!("{word:?}"))
            .collect::<Vec<_>>()
            .join(", "),
        toy.iter()
            .map(|word| format!("{word:?}"))
            .collect::<Vec<_>>()
            .join(", "),
    );
    std::fs::write(scene.path("servers.toml"), config).unwrap();
    let mut command = Door::command(&scene);
    let door = Door::start(command.arg("--config").arg(scene.path("servers.toml")));
    let client = |name: &str| Client {
        path: format!("/mcp/{name}"),
        more: "authorization: Bearer open-sesame-and-more\r\n".to_owned(),
        ..door.client()
    };
    // Without the token nobody gets in, and nothing is started.
    let (status, body) = Client {
        more: String::new(),
        ..client("strict")
    }
    .post("{}");
    assert_eq!(
        (status, body.contains("UNAUTHORIZED")),
        (401, true),
        "{body}"
    );
    assert!(!env.exists());
    let (mut strict, mut open) = (client("strict"), client("open"));
    strict.initialize();
    open.initialize();
    assert_eq!(std::fs::read_to_string(&env).unwrap(), "debug\nhunter2\n");
    assert!(open.call(1, "echo").contains("result"));
    let refused = strict.call(1, "undeclared");
    assert!(refused.contains("\"isError\":true"), "{refused}");
    // The tools of the other server were there first, also for a session that was open before.
    assert!(strict.call(2, "echo").contains("TOOL_SHADOWED"));
    assert_eq!(client("nobody").post("{}").0, 404);
    drop((strict, open));
    door.close();
    scene.verify();
    // Secrets are in no log.
    let bytes = std::fs::read(scene.path("data").join("log.db")).unwrap_or_default();
    assert!(!bytes.windows(7).any(|part| part == b"hunter2"));
}

#[test]
fn a_file_that_is_not_understood_opens_no_door() {
    let scene = Place::new();
    std::fs::write(
        scene.path("servers.toml"),
        "[servers.a]\ncomand = [\"x\"]\n",
    )
    .unwrap();
    let output = Door::command(&scene)
        .arg("--config")
        .arg(scene.path("servers.toml"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("error[C0815]")
            && said
                .contains("line 2: unknown key `comand` in [servers.a], did you mean `command`?"),
        "{said}"
    );
}
