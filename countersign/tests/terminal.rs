//! Deciding in a real terminal: what is asked, what counts as an answer, and what was typed before.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at once")]

#[path = "../../tests/replayed.rs"]
mod replayed;

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

const MANIFEST: &str = "\
schema: countersign/manifest/v1
name: releases
version: \"1.0.0\"
publisher: acme
permissions:
  tools:
    deploy: {side_effect: mutate-external, approval: required}
    drop: {side_effect: mutate-external, approval: required, irreversible: true}
";

/// A data folder with one approver.
struct Scene(replayed::Kept);

impl Scene {
    fn new() -> Self {
        let scene = Self(replayed::folder());
        fs::write(scene.0.path().join("m.yaml"), MANIFEST).unwrap();
        scene.run(&["approver", "init", "--name", "dana"]);
        scene
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
        command
            .args(arguments)
            .current_dir(self.0.path())
            .env_clear()
            .env("TERM", "xterm")
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.0.path())
            .env("COUNTERSIGN_DATA", self.0.path().join("data"));
        command
    }

    fn run(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// Asks for approval; returns the id.
    fn hold(&self, tool: &str) -> String {
        let run = [
            "action",
            "run",
            "--manifest",
            "m.yaml",
            "--session",
            "s",
            "--person",
            "root",
        ];
        let tool = ["--tool", tool, "--", "true"];
        let id = self.run(&[run.as_slice(), &tool].concat());
        id.trim().to_owned()
    }

    fn state(&self, id: &str) -> String {
        let shown = self.run(&["approval", "show", id]);
        shown.split(' ').next().unwrap().to_owned()
    }

    fn code(&self, id: &str) -> String {
        let shown = self.run(&["approval", "show", id, "--full"]);
        let line = shown
            .lines()
            .find(|line| line.starts_with("code "))
            .unwrap();
        line.split_whitespace().nth(1).unwrap().to_owned()
    }

    fn terminal(&self, arguments: &[&str], typed_ahead: &str) -> Terminal {
        Terminal::start(self.command(arguments), typed_ahead)
    }
}

/// A program in a terminal.
struct Terminal {
    child: Child,
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    seen: String,
}

impl Terminal {
    fn start(mut command: Command, typed_ahead: &str) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let size = Winsize {
            ws_row: 50,
            ws_col: 100,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&master, size).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY;
        let end = || File::from(open(name.as_c_str(), flags, Mode::empty()).unwrap());
        let mut keyboard = File::from(master);
        keyboard.write_all(typed_ahead.as_bytes()).unwrap();
        let mut display = keyboard.try_clone().unwrap();
        let child = command
            .stdin(Stdio::from(end()))
            .stdout(Stdio::from(end()))
            .stderr(Stdio::from(end()))
            .spawn()
            .unwrap();
        drop(command);
        let (sender, screen) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = display.read(&mut buffer) {
                let part = buffer.get(..read).unwrap_or_default().to_vec();
                if sender.send(part).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            keyboard,
            screen,
            seen: String::new(),
        }
    }

    /// Waits until this is on the screen, after what was waited for before.
    fn expect(&mut self, text: &str) {
        let started = Instant::now();
        while !self.seen.contains(text) {
            assert!(
                started.elapsed() < PATIENCE,
                "no {text:?} in\n{}",
                self.seen
            );
            if let Ok(part) = self.screen.recv_timeout(Duration::from_millis(100)) {
                self.seen.push_str(&String::from_utf8_lossy(&part));
            }
        }
        let at = self.seen.find(text).unwrap() + text.len();
        self.seen.drain(..at);
    }

    fn types(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    fn end(mut self) -> ExitStatus {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(
                started.elapsed() < PATIENCE,
                "it does not end:\n{}",
                self.seen
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn p01_enter_alone_approves_nothing_and_the_word_does() {
    let scene = Scene::new();
    let id = scene.hold("deploy");
    for answer in ["\n", "y\n", "\u{4}"] {
        let mut terminal = scene.terminal(&["approval", "approve", &id], "");
        terminal.expect("to approve, anything else leaves it: ");
        terminal.types(answer);
        assert_eq!(terminal.end().code(), Some(1), "{answer:?}");
        assert_eq!(scene.state(&id), "HOLD");
    }
    let mut terminal = scene.terminal(&["approval", "approve", &id], "");
    terminal.expect("tool_name: «deploy»");
    terminal.expect("to approve, anything else leaves it: ");
    terminal.types("approve\n");
    terminal.expect("APPROVED ✓");
    assert_eq!(terminal.end().code(), Some(0));
    assert_eq!(scene.state(&id), "APPROVED");
}

#[test]
fn p02_what_was_typed_before_the_question_is_dropped() {
    let scene = Scene::new();
    let id = scene.hold("deploy");
    let mut terminal = scene.terminal(&["approval", "approve", &id], "approve\n");
    terminal.expect("to approve, anything else leaves it: ");
    terminal.types("\n");
    assert_eq!(terminal.end().code(), Some(1));
    assert_eq!(scene.state(&id), "HOLD");
}

#[test]
fn p03_what_cannot_be_undone_needs_its_long_code() {
    let scene = Scene::new();
    let id = scene.hold("drop");
    let code = scene.code(&id);
    assert_eq!(code.len(), 16);
    let short: String = code.chars().take(8).collect();
    for answer in ["approve\n", &format!("{short}\n")] {
        let mut terminal = scene.terminal(&["approval", "approve", &id], "");
        terminal.expect("type its code to approve: ");
        terminal.types(answer);
        assert_eq!(terminal.end().code(), Some(1), "{answer:?}");
    }
    let refused = scene.command(&["approval", "approve", &id, "--code", &short]);
    assert_eq!({ refused }.status().unwrap().code(), Some(1));
    let mut terminal = scene.terminal(&["approval", "approve", &id], "");
    terminal.expect("type its code to approve: ");
    terminal.types(&format!("{code}\n"));
    assert_eq!(terminal.end().code(), Some(0));
    assert_eq!(scene.state(&id), "APPROVED");
}

#[test]
fn j04_a_process_that_is_killed_at_the_question_has_not_approved() {
    let scene = Scene::new();
    let id = scene.hold("deploy");
    let mut terminal = scene.terminal(&["approval", "approve", &id], "");
    terminal.expect("to approve, anything else leaves it: ");
    terminal.child.kill().unwrap();
    assert_eq!(terminal.end().code(), None);
    assert_eq!(scene.state(&id), "HOLD");
}

#[test]
fn the_inbox_decides_shows_what_others_decide_and_leaves_the_terminal_as_it_was() {
    let scene = Scene::new();
    let (first, second) = (scene.hold("deploy"), scene.hold("drop"));
    let mut terminal = scene.terminal(&["approval", "watch"], "");
    terminal.expect("2 held, for dana");
    // What cannot be undone stands first; down and open the other.
    settle();
    terminal.types("j");
    settle();
    terminal.types("\r");
    terminal.expect("lines 1");
    settle();
    terminal.types("a");
    terminal.expect("type its code to approve");
    settle();
    terminal.types(&scene.code(&first));
    terminal.expect("APPROVED ✓");
    terminal.expect("human:dana");
    assert_eq!(scene.state(&first), "APPROVED");

    settle();
    terminal.types("\u{1b}");
    // Only what changes on the screen is written, so these are beginnings.
    terminal.expect("1 held, for");
    scene.run(&["approval", "deny", &second, "--reason", "no"]);
    terminal.expect("nothing");
    terminal.types("q");
    // The screen that was there before comes back.
    terminal.expect("\u{1b}[?1049l");
    assert_eq!(terminal.end().code(), Some(0));
    assert_eq!(scene.state(&second), "DENIED");
}

#[test]
fn whoever_ends_the_inbox_from_outside_gets_the_terminal_back() {
    let scene = Scene::new();
    scene.hold("deploy");
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        let mut terminal = scene.terminal(&["approval", "watch"], "");
        terminal.expect("1 held, for dana");
        let inside = tcgetattr(&terminal.keyboard).unwrap();
        assert!(!inside.local_modes.contains(LocalModes::ICANON));
        let child = Pid::from_child(&terminal.child);
        kill_process(child, signal).unwrap();
        terminal.expect("\u{1b}[?1049l");
        let keyboard = terminal.keyboard.try_clone().unwrap();
        assert_eq!(terminal.end().code(), Some(code));
        let after = tcgetattr(&keyboard).unwrap();
        assert!(
            after
                .local_modes
                .contains(LocalModes::ICANON | LocalModes::ECHO)
        );
    }
}

#[test]
fn without_a_terminal_there_is_no_inbox() {
    let scene = Scene::new();
    let mut command = scene.command(&["approval", "watch"]);
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(3));
    assert!(Path::new(&scene.0.path().join("data")).exists());
}

/// Longer than the time in which keys do nothing.
/// Whoever goes through the tools says of each what it is; the log has every answer.
#[test]
fn tools_are_gone_through_one_after_the_other() {
    let scene = Scene::new();
    let tools: Vec<String> = ["a", "b", "c", "d"]
        .map(|name| format!(r#"{{\"name\":\"{name}\"}}"#))
        .to_vec();
    let server = format!(
        r#"while read -r line; do echo "{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"tools\":[{}]}}}}"; done"#,
        tools.join(",")
    );
    let mut child = scene
        .command(&["mcp", "--server", "files", "--", "sh", "-c", &server])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let list = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n";
    child.stdin.take().unwrap().write_all(list).unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
    let mut terminal = scene.terminal(&["tools", "review", "files"], "");
    for (tool, word) in [("a", "r"), ("b", "w"), ("c", "")] {
        terminal.expect(&format!("{tool} of files"));
        terminal.expect("[q] stop");
        // What is no answer is asked again.
        terminal.types("what\n");
        terminal.expect("[q] stop");
        terminal.types(&format!("{word}\n"));
    }
    terminal.expect("d of files");
    terminal.types("q\n");
    terminal.expect("accepted 2 of 4, 1 of them as tools that only read");
    assert!(terminal.end().success());
    let listed = scene.run(&["tools", "list"]);
    let states = listed
        .lines()
        .skip(1)
        .map(|row| row[14..35].trim_end().to_owned());
    let states: Vec<String> = states.collect();
    assert_eq!(
        states,
        [
            "accepted, only reads",
            "accepted",
            "first-sight",
            "first-sight"
        ]
    );
    let log = scene.run(&["log", "list", "--type", "MEMORY_WRITE"]);
    assert_eq!(log.matches("memory_key=mcp/accepted/").count(), 2);
    // Without anybody at a terminal nothing is asked.
    let output = scene
        .command(&["tools", "review"])
        .stdin(Stdio::null())
        .output();
    let output = output.unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("C0816"));
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn a_pack_is_not_written_to_a_terminal() {
    let scene = Scene::new();
    scene.hold("deploy");
    let export = ["evidence", "export", "--session", "s", "--out", "-"];
    let mut terminal = scene.terminal(&export, "");
    terminal.expect("give --out FILE");
    assert_eq!(terminal.end().code(), Some(64));
}

fn settle() {
    std::thread::sleep(Duration::from_millis(600));
}

const PATIENCE: Duration = Duration::from_secs(60);
