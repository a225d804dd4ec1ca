//! `countersign connect` on real files, in a home folder of its own.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

#[path = "../../tests/replayed.rs"]
mod replayed;

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

struct Home(replayed::Kept);

impl Home {
    fn new(files: &[(&str, &str)]) -> Self {
        let home = Self(replayed::folder());
        for (name, text) in files {
            let path = home.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
        command
            .arg("connect")
            .args(arguments)
            .env_clear()
            .env("HOME", self.0.path())
            .current_dir(self.0.path())
            .stdin(Stdio::null());
        command
    }

    /// The exit code, and what was said.
    fn connect(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.command(arguments).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (
            output.status.code().unwrap(),
            String::from_utf8(text).unwrap(),
        )
    }

    /// The exit code of a line that was printed to be pasted.
    fn shell(&self, line: &str) -> Option<i32> {
        let program = Path::new(env!("CARGO_BIN_EXE_countersign"));
        let status = Command::new("/bin/sh")
            .args(["-c", line])
            .env_clear()
            .env("HOME", self.0.path())
            .env("PATH", program.parent().unwrap())
            .current_dir(self.0.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status();
        status.unwrap().code()
    }

    /// Every file, so that nothing is left behind unseen.
    fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        let mut open = vec![self.0.path().to_owned()];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => open.push(path),
                    false => {
                        let name = path.strip_prefix(self.0.path()).unwrap();
                        names.push(name.to_str().unwrap().to_owned());
                    }
                }
            }
        }
        names.sort();
        names
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

const CURSOR: &str = ".cursor/mcp.json";
const BACKUP: &str = ".cursor/mcp.json.countersign-backup";
const SERVERS: &str =
    "{\"mcpServers\": {\"a\": {\"command\": \"true\", \"env\": {\"K\": \"s3cret\"}}}}\n";

#[test]
fn a_file_is_changed_kept_and_brought_back() {
    let home = Home::new(&[(CURSOR, SERVERS)]);
    fs::set_permissions(home.path(CURSOR), Permissions::from_mode(0o640)).unwrap();
    let (code, said) = home.connect(&["cursor", "--yes"]);
    assert_eq!(code, 0, "{said}");
    assert!(!said.contains("s3cret"), "{said}");
    let exe = env!("CARGO_BIN_EXE_countersign");
    let expect = SERVERS.replace(
        "\"true\"",
        &format!("\"{exe}\", \"args\": [\"mcp\", \"--server=a\", \"--\", \"true\"]"),
    );
    assert_eq!(home.text(CURSOR), expect);
    assert_eq!(home.text(BACKUP), SERVERS);
    assert_eq!(mode(&home.path(CURSOR)), 0o640);
    assert_eq!(mode(&home.path(BACKUP)), 0o640);
    let (code, said) = home.connect(&["cursor", "--yes"]);
    assert!(
        code == 0 && said.contains("a: through countersign already"),
        "{said}"
    );
    assert_eq!(home.text(CURSOR), expect);
    let (code, said) = home.connect(&["cursor", "--undo", "--dry-run"]);
    assert!(code == 0 && said.contains("nothing was written"), "{said}");
    assert_eq!(home.text(CURSOR), expect);
    let (code, said) = home.connect(&["cursor", "--undo", "--yes"]);
    assert_eq!(code, 0, "{said}");
    assert!(!said.contains("s3cret"), "{said}");
    assert_eq!(home.text(CURSOR), SERVERS);
    assert_eq!(mode(&home.path(CURSOR)), 0o640);
    assert_eq!(home.names(), [CURSOR]);
    let (code, said) = home.connect(&["cursor", "--undo", "--yes"]);
    assert!(code == 0 && said.contains("nothing to undo"), "{said}");
}

#[test]
fn nothing_is_written_unasked() {
    let home = Home::new(&[(CURSOR, SERVERS)]);
    let (code, said) = home.connect(&["cursor"]);
    assert!(code == 3 && said.contains("error[C0823]"), "{said}");
    assert!(said.contains("+++ "), "{said}");
    let (code, said) = home.connect(&["cursor", "--dry-run"]);
    assert!(code == 0 && said.contains("nothing was written"), "{said}");
    let (code, said) = home.connect(&["cursor", "--format", "json"]);
    assert!(code == 3 && !said.contains("+++ "), "{said}");
    let (code, said) = home.connect(&["cursor", "--format", "json", "--dry-run"]);
    assert!(code == 0 && said.contains(r#""written":false"#), "{said}");
    assert!(
        said.contains(r#""args":["mcp","--server=a","--","true"]"#),
        "{said}"
    );
    assert_eq!(home.text(CURSOR), SERVERS);
    assert_eq!(home.names(), [CURSOR]);
}

#[test]
fn links_are_followed_and_stay_links() {
    let home = Home::new(&[("dotfiles/cursor.json", SERVERS)]);
    fs::create_dir(home.path(".cursor")).unwrap();
    symlink("../dotfiles/cursor.json", home.path(CURSOR)).unwrap();
    let (code, said) = home.connect(&["cursor", "--yes"]);
    assert_eq!(code, 0, "{said}");
    assert!(home.path(CURSOR).symlink_metadata().unwrap().is_symlink());
    assert!(home.text("dotfiles/cursor.json").contains("--server=a"));
    assert_eq!(home.connect(&["cursor", "--undo", "--yes"]).0, 0);
    assert!(home.path(CURSOR).symlink_metadata().unwrap().is_symlink());
    assert_eq!(home.text("dotfiles/cursor.json"), SERVERS);
}

#[test]
fn what_somebody_has_changed_since_stays_when_it_is_undone() {
    for by_name in [false, true] {
        let home = Home::new(&[(CURSOR, SERVERS)]);
        assert_eq!(home.connect(&["cursor", "--yes"]).0, 0);
        let edited = home.text(CURSOR).replace('\n', " \n");
        fs::write(home.path(CURSOR), &edited).unwrap();
        let (code, said) = home.connect(&["cursor", "--undo", "--dry-run"]);
        assert!(code == 0 && said.contains("+++ "), "{said}");
        assert_eq!(home.text(CURSOR), edited);
        let undo: &[&str] = match by_name {
            true => &["cursor", "--undo", "--server", "a", "--yes"],
            false => &["cursor", "--undo", "--yes"],
        };
        let (code, said) = home.connect(undo);
        assert_eq!(code, 0, "{said}");
        let released = home.text(CURSOR);
        assert_eq!(
            released.replace(", \"args\": []", ""),
            SERVERS.replace('\n', " \n")
        );
        // Nothing is left to undo, and what the file was before is not lost.
        assert_eq!(home.names(), [CURSOR, &format!("{BACKUP}.1")]);
        assert_eq!(home.text(&format!("{BACKUP}.1")), SERVERS);
        let (code, said) = home.connect(&["cursor", "--undo", "--yes"]);
        assert!(code == 0 && said.contains("nothing to undo"), "{said}");
        assert_eq!(home.text(CURSOR), released);
    }
}

#[test]
fn a_file_that_is_gone_is_not_undone() {
    let home = Home::new(&[(CURSOR, SERVERS)]);
    assert_eq!(home.connect(&["cursor", "--yes"]).0, 0);
    fs::remove_file(home.path(CURSOR)).unwrap();
    let (code, said) = home.connect(&["cursor", "--undo", "--yes"]);
    assert!(code == 1 && said.contains("is gone"), "{said}");
}

/// Claude Code writes its own file all the time, and never the one of the project.
#[test]
fn a_file_that_the_client_writes_stands_in_the_way_of_no_other() {
    let project = r#"{"mcpServers":{"p":{"command":"x"}}}"#;
    let user = r#"{"numStartups":1,"mcpServers":{"g":{"command":"y"},"h":{"command":"z"}},"projects":{"/q":{"mcpServers":{"g":{"command":"w"}}}}}"#;
    let home = Home::new(&[("p/.mcp.json", project), (".claude.json", user)]);
    let connect = |more: &[&str]| {
        let words = ["claude-code", "--project", "p", "--yes"];
        home.connect(&[&words[..], more].concat())
    };
    assert_eq!(connect(&[]).0, 0);
    let by_hand = r#""n":{"command":"countersign","args":["mcp","--","v"]}"#;
    let written = home
        .text(".claude.json")
        .replace("\"numStartups\":1", "\"numStartups\":2")
        .replace("\"h\":", &format!("{by_hand},\"h\":"));
    fs::write(home.path(".claude.json"), &written).unwrap();
    assert_eq!(connect(&["--undo", "--server", "h"]).0, 0);
    assert_eq!(home.text(".claude.json").matches("--server=").count(), 2);
    let (code, said) = connect(&["--undo"]);
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains("restored") && said.contains("changed since"),
        "{said}"
    );
    assert_eq!(home.text("p/.mcp.json"), project);
    let text = home.text(".claude.json");
    assert!(
        text.contains("\"numStartups\":2") && text.contains(by_hand),
        "{text}"
    );
    assert!(!text.contains("--server="), "{text}");
    let (code, said) = connect(&["--undo"]);
    assert!(code == 0 && said.contains("nothing to undo"), "{said}");
    assert_eq!(home.text(".claude.json"), text);
}

#[test]
fn what_cannot_be_taken_out_is_not_called_undone() {
    let home = Home::new(&[(CURSOR, SERVERS)]);
    assert_eq!(home.connect(&["cursor", "--yes"]).0, 0);
    let edited = home.text(CURSOR).replace(", \"true\"", "");
    fs::write(home.path(CURSOR), &edited).unwrap();
    let (code, said) = home.connect(&["cursor", "--undo", "--yes"]);
    assert!(code == 1 && said.contains("error[C0824]"), "{said}");
    assert!(said.contains("countersign-backup"), "{said}");
    assert_eq!(home.text(CURSOR), edited);
    assert_eq!(home.text(BACKUP), SERVERS);
}

#[test]
fn a_changed_backup_is_not_brought_back() {
    let home = Home::new(&[(CURSOR, SERVERS)]);
    assert_eq!(home.connect(&["cursor", "--yes"]).0, 0);
    let connected = home.text(CURSOR);
    fs::write(home.path(BACKUP), "{}").unwrap();
    let (code, said) = home.connect(&["cursor", "--undo", "--yes"]);
    assert!(
        code == 1 && said.contains("the backup was changed"),
        "{said}"
    );
    fs::write(home.path(BACKUP), SERVERS).unwrap();
    fs::remove_file(home.path(&format!("{BACKUP}.json"))).unwrap();
    let (code, said) = home.connect(&["cursor", "--undo", "--yes"]);
    assert!(code == 1 && said.contains("is gone"), "{said}");
    assert_eq!(home.text(CURSOR), connected);
}

#[test]
fn one_server_after_the_other_is_undone_at_once() {
    let two = r#"{"mcpServers":{"a":{"command":"x"},"b":{"command":"y"},"c":{"command":"z"}}}"#;
    let home = Home::new(&[(CURSOR, two)]);
    for server in ["a", "b"] {
        let (code, said) = home.connect(&["cursor", "--server", server, "--yes"]);
        assert_eq!(code, 0, "{said}");
    }
    assert!(home.text(CURSOR).contains(r#""c":{"command":"z"}"#));
    // Taking one back does not stand in the way of undoing all.
    assert_eq!(
        home.connect(&["cursor", "--undo", "--server", "a", "--yes"])
            .0,
        0
    );
    assert_eq!(home.text(CURSOR).matches("--server=").count(), 1);
    let (code, said) = home.connect(&["cursor", "--server", "d", "--yes"]);
    assert!(code == 3 && said.contains("no server `d`"), "{said}");
    assert_eq!(home.connect(&["cursor", "--undo", "--yes"]).0, 0);
    assert_eq!(home.text(CURSOR), two);
    assert_eq!(home.names(), [CURSOR]);
}

#[test]
fn an_older_backup_is_never_lost() {
    let home = Home::new(&[(CURSOR, SERVERS)]);
    assert_eq!(home.connect(&["cursor", "--yes"]).0, 0);
    let edited = home
        .text(CURSOR)
        .replace("\"a\":", "\"b\": {\"command\": \"z\"}, \"a\":");
    fs::write(home.path(CURSOR), &edited).unwrap();
    assert_eq!(home.connect(&["cursor", "--yes"]).0, 0);
    assert_eq!(home.text(&format!("{BACKUP}.1")), SERVERS);
    // What was there before us, and what the client has added since.
    let added = SERVERS.replace("\"a\":", "\"b\": {\"command\": \"z\"}, \"a\":");
    let without_us = added.replace("\"true\"", "\"true\", \"args\": []");
    assert_eq!(home.text(BACKUP), without_us);
    assert_eq!(home.connect(&["cursor", "--undo", "--yes"]).0, 0);
    assert_eq!(home.text(CURSOR), without_us);
}

#[test]
fn only_this_program_guards_a_server() {
    let evil = r#"{"mcpServers":{"a":{"command":"./evil/countersign","args":["mcp","--","x"]}}}"#;
    let home = Home::new(&[(CURSOR, evil), ("evil/countersign", "")]);
    let (code, said) = home.connect(&["cursor", "--yes"]);
    assert!(code == 1 && said.contains("✗ a"), "{said}");
    // Whoever may say where names are looked up may say what this one means.
    let looked_up = r#"{"mcpServers":{"a":{"command":"countersign","args":["mcp","--","x"],"env":{"PATH":"evil"}}}}"#;
    let home = Home::new(&[(CURSOR, looked_up)]);
    let (code, said) = home.connect(&["cursor", "--yes"]);
    assert!(code == 1 && said.contains("✗ a"), "{said}");
    let program = env!("CARGO_BIN_EXE_countersign");
    for (options, mark, expect) in [("", "✓ a", 0), (r#""--mode","observe","#, "✗ a", 1)] {
        let ours = format!(
            r#"{{"mcpServers":{{"a":{{"command":"{program}","args":["mcp",{options}"--","x"]}}}}}}"#
        );
        let home = Home::new(&[(CURSOR, &ours)]);
        let (code, said) = home.connect(&["cursor", "--yes"]);
        assert!(code == expect && said.contains(mark), "{said}");
        assert_eq!(home.text(CURSOR), ours);
    }
}

#[test]
fn what_is_guarded_otherwise_is_called_so_and_the_next_commands_run() {
    let server = "-x it's";
    let two = SERVERS.replace("\"a\"", &format!("\"{server}\""));
    let manifest = "schema: countersign/manifest/v1\nname: m\nversion: 1.0.0\npublisher: p\n";
    let home = Home::new(&[(CURSOR, &two), ("m1.yaml", manifest), ("m2.yaml", manifest)]);
    let again = ["cursor", "--manifest", "m2.yaml", "--yes"];
    for first in [
        &["cursor", "--yes"][..],
        &["cursor", "--manifest", "m1.yaml", "--yes"],
    ] {
        assert_eq!(home.connect(first).0, 0);
        let (code, said) = home.connect(&again);
        assert_eq!(code, 1, "{said}");
        assert!(
            said.contains("through countersign otherwise, with"),
            "{said}"
        );
        assert!(!said.contains("not guarded"), "{said}");
        let (_, next) = said.split_once("then connect again\n").unwrap();
        assert_eq!(
            home.shell(&format!("{} --yes", next.trim())),
            Some(0),
            "{next}"
        );
        let (code, said) = home.connect(&again);
        assert_eq!(code, 0, "{said}");
        assert_eq!(home.connect(&["cursor", "--undo", "--yes"]).0, 0);
    }
}

/// The places at which a run can be killed, as it would leave them behind.
#[test]
fn a_run_that_was_killed_can_be_repeated_or_undone() {
    let note = format!("{BACKUP}.json");
    for repeat in [false, true] {
        for killed_after in ["backup", "note", "second note"] {
            let home = Home::new(&[(CURSOR, SERVERS)]);
            assert_eq!(home.connect(&["cursor", "--yes"]).0, 0);
            let connected = home.text(CURSOR);
            match killed_after {
                "backup" => {
                    fs::remove_file(home.path(&note)).unwrap();
                    fs::write(home.path(CURSOR), SERVERS).unwrap();
                }
                "note" => fs::write(home.path(CURSOR), SERVERS).unwrap(),
                // A second run has named what it was about to write.
                _ => {
                    let text = home.text(&note);
                    let zeros = "0".repeat(64);
                    let text = text.replace("]}", &format!(",\"sha256:{zeros}\"]}}"));
                    fs::write(home.path(&note), text).unwrap();
                }
            }
            if repeat {
                let (code, said) = home.connect(&["cursor", "--yes"]);
                assert_eq!(code, 0, "{killed_after}: {said}");
                assert_eq!(home.text(CURSOR), connected, "{killed_after}");
            }
            let (code, said) = home.connect(&["cursor", "--undo", "--yes"]);
            assert_eq!(code, 0, "{killed_after}: {said}");
            assert_eq!(home.text(CURSOR), SERVERS, "{killed_after}");
            assert_eq!(home.names(), [CURSOR], "{killed_after}");
        }
    }
}

#[test]
fn one_bad_file_stops_all_of_them() {
    let project = r#"{"mcpServers":{"a":{"command":"x"}}}"#;
    let user = "{ // mine\n}";
    let home = Home::new(&[("p/.mcp.json", project), (".claude.json", user)]);
    let (code, said) = home.connect(&["claude-code", "--project", "p", "--yes"]);
    assert!(
        code == 3 && said.contains("line 1, column 3: a comment"),
        "{said}"
    );
    assert_eq!(home.names(), [".claude.json", "p/.mcp.json"]);
    assert_eq!(home.text("p/.mcp.json"), project);
    fs::write(home.path(".claude.json"), [b'{', 0xff, b'}']).unwrap();
    let (code, said) = home.connect(&["claude-code", "--project", "p", "--yes"]);
    assert!(code == 3 && said.contains("not UTF-8 at byte 1"), "{said}");
    assert_eq!(home.text("p/.mcp.json"), project);
}

#[test]
fn every_client_is_found_where_it_lives() {
    let json = r#"{"mcpServers":{"a":{"command":"x"}},"servers":{"a":{"command":"x"}}}"#;
    let toml = "[mcp_servers.a]\ncommand = \"x\"\n";
    for (client, file, text) in [
        ("claude-code", ".claude.json", json),
        ("claude-code", ".mcp.json", json),
        ("cursor", ".cursor/mcp.json", json),
        ("vscode", ".vscode/mcp.json", json),
        ("codex", ".codex/config.toml", toml),
        #[cfg(target_os = "linux")]
        (
            "claude-desktop",
            ".config/Claude/claude_desktop_config.json",
            json,
        ),
        #[cfg(target_os = "linux")]
        ("vscode", ".config/Code/User/mcp.json", json),
    ] {
        let home = Home::new(&[(file, text)]);
        let (code, said) = home.connect(&[client, "--yes"]);
        assert_eq!(code, 0, "{said}");
        assert_eq!(home.text(file).matches("--server=a").count(), 1, "{client}");
        assert_eq!(home.connect(&[client, "--undo", "--yes"]).0, 0);
        assert_eq!(home.text(file), text);
        // And anywhere else, if somebody says so.
        fs::rename(home.path(file), home.path("elsewhere")).unwrap();
        let (code, said) = home.connect(&[client, "--yes"]);
        assert!(code == 3 && said.contains("error[C0822]"), "{said}");
        assert_eq!(
            home.connect(&[client, "--config", "elsewhere", "--yes"]).0,
            0
        );
        assert!(home.text("elsewhere").contains("--server=a"));
    }
}

#[test]
fn paths_are_written_in_full() {
    let home = Home::new(&[(CURSOR, SERVERS), ("bad.yaml", "no: manifest")]);
    let (code, said) = home.connect(&["cursor", "--manifest", "bad.yaml", "--yes"]);
    assert!(code == 3 && said.contains("error[C0701]"), "{said}");
    assert_eq!(home.text(CURSOR), SERVERS);
    let (code, said) = home.connect(&["cursor", "--data", "d", "--yes"]);
    assert_eq!(code, 0, "{said}");
    let expect = format!("--data={}", home.path("d").display());
    assert!(home.text(CURSOR).contains(&expect), "{}", home.text(CURSOR));
    assert!(!home.path("d").exists());
}

#[test]
fn a_file_that_may_not_be_written_is_not_written() {
    let home = Home::new(&[(CURSOR, SERVERS)]);
    fs::set_permissions(home.path(CURSOR), Permissions::from_mode(0o400)).unwrap();
    let (code, said) = home.connect(&["cursor", "--yes"]);
    assert!(code == 1 && said.contains("read-only"), "{said}");
    assert_eq!(home.text(CURSOR), SERVERS);
    assert_eq!(home.names(), [CURSOR]);
}

/// The line that was written starts the server, with its arguments and its environment.
#[test]
fn what_was_written_starts_the_server() {
    let server = r#"printf '%s\n' "$1 $K" > started"#;
    let text = format!(
        r#"{{"mcpServers":{{"a":{{"command":"/bin/sh","args":["-c",{},"sh","two words"]}}}}}}"#,
        format_args!("\"{}\"", server.replace('\\', "\\\\").replace('"', "\\\""))
    );
    let home = Home::new(&[(CURSOR, &text)]);
    let (code, said) = home.connect(&["cursor", "--yes", "--format", "json"]);
    assert_eq!(code, 0, "{said}");
    let json = countersign_canon::Json::admit(
        said.trim_end().as_bytes(),
        &countersign_canon::Limits::event(),
    );
    let json = json.unwrap();
    let file = &json.get("files").unwrap().as_array().unwrap()[0];
    let change = &file.get("changes").unwrap().as_array().unwrap()[0];
    let args = change.get("args").unwrap().as_array().unwrap();
    let args: Vec<&str> = args.iter().map(|word| word.as_str().unwrap()).collect();
    let status = Command::new(change.get("command").unwrap().as_str().unwrap())
        .args(args)
        .env("HOME", home.0.path())
        .env("K", "v")
        .current_dir(home.0.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(status.status.success(), "{status:?}");
    assert_eq!(home.text("started"), "two words v\n");
}

#[test]
fn whoever_sits_at_a_terminal_is_asked_once() {
    for (answer, code, changed) in [("y", 0, true), ("n", 3, false), ("", 3, false)] {
        let home = Home::new(&[(CURSOR, SERVERS)]);
        let (seen, said) = at_a_terminal(&home, answer, "");
        assert_eq!((seen, said.contains("C0827")), (code, !changed), "{said}");
        assert_eq!(said.matches("Write this? [y/N]").count(), 1, "{said}");
        assert_eq!(home.text(CURSOR) != SERVERS, changed, "{answer}");
    }
}

#[test]
fn what_changes_while_somebody_thinks_is_not_overwritten() {
    let home = Home::new(&[(CURSOR, SERVERS)]);
    let (code, said) = at_a_terminal(&home, "y", CURSOR);
    assert!(code == 1 && said.contains("error[C0825]"), "{said}");
    assert_eq!(home.text(CURSOR), format!("{SERVERS} "));
    assert_eq!(home.names(), [CURSOR]);
}

#[test]
fn whenever_it_is_killed_the_file_is_whole_and_can_be_brought_back() {
    let home = Home::new(&[(CURSOR, SERVERS)]);
    assert_eq!(home.connect(&["cursor", "--yes"]).0, 0);
    let connected = home.text(CURSOR);
    assert_eq!(home.connect(&["cursor", "--undo", "--yes"]).0, 0);
    for round in 0..60 {
        let mut child = home
            .command(&["cursor", "--yes"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_micros(round * 200));
        // It may have ended already.
        let _ = child.kill();
        child.wait().unwrap();
        let text = home.text(CURSOR);
        assert!(
            text == SERVERS || text == connected,
            "round {round}: {text}"
        );
        let (code, said) = home.connect(&["cursor", "--undo", "--yes"]);
        assert_eq!(code, 0, "round {round}: {said}");
        assert_eq!(home.text(CURSOR), SERVERS, "round {round}");
    }
}

/// Runs `connect cursor` in a terminal and answers its question; `touched` is changed before that.
fn at_a_terminal(home: &Home, answer: &str, touched: &str) -> (i32, String) {
    let output = Command::new("python3")
        .args(["-c", TERMINAL, answer, touched])
        .args([env!("CARGO_BIN_EXE_countersign"), "connect", "cursor"])
        .env("HOME", home.0.path())
        .env_remove("COUNTERSIGN_DATA")
        .current_dir(home.0.path())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    (output.status.code().unwrap(), said)
}

const TERMINAL: &str = "
import os, pty, sys
answer, touched, *command = sys.argv[1:]
pid, terminal = pty.fork()
if pid == 0:
    os.execv(command[0], command)
said, asked = b'', False
try:
    while more := os.read(terminal, 4096):
        said += more
        if b'[y/N]' in said and not asked:
            asked = True
            if touched:
                open(touched, 'a').write(' ')
            os.write(terminal, answer.encode() + b'\\n')
except OSError:
    pass
os.write(1, said)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
";
