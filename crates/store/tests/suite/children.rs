//! Tests that run parts of themselves in processes of their own.
//!
//! The part is an ignored test of the same binary. It says what it did by lines that start with
//! `> `, each written at once, so that whatever was said before a kill is heard.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};

use countersign_canon::Hash;
use countersign_event::Line;
use countersign_store::{Filter, Folder, Reader, Recorded, Stored};

use crate::scene::{SessionKeys, all};

/// The command that runs an ignored test of this binary on a folder.
pub(crate) fn command(test: &str, folder: &Folder) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([
            "--exact",
            test,
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(FOLDER, folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// The folder that the parent gave; `None` when somebody runs the ignored tests by hand.
pub(crate) fn given_folder() -> Option<Folder> {
    std::env::var_os(FOLDER).map(Folder::new)
}

pub(crate) fn given_number(variable: &str) -> u64 {
    std::env::var(variable).unwrap().parse().unwrap()
}

/// One line to the parent.
pub(crate) fn say(line: &str) {
    let text = format!("\n> {line}\n");
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).unwrap();
    out.flush().unwrap();
}

/// Kills this process as the kernel would: no destructor runs, no buffer is written.
pub(crate) fn die() -> ! {
    let kill = format!("kill -9 {}", std::process::id());
    let _ = Command::new("sh").args(["-c", &kill]).status();
    loop {
        std::thread::park();
    }
}

/// What a child has said so far.
pub(crate) struct Heard {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Heard {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self { child, out }
    }

    /// The next line that the child says; `None` at its end.
    pub(crate) fn next(&mut self) -> Option<String> {
        loop {
            let mut line = String::new();
            if self.out.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            // A line that a kill has cut was not said.
            if let Some(said) = line
                .strip_prefix("> ")
                .and_then(|said| said.strip_suffix('\n'))
            {
                return Some(said.to_owned());
            }
        }
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
    }

    /// Everything else that it says, and how it ended.
    pub(crate) fn end(mut self) -> End {
        let said = std::iter::from_fn(|| self.next()).collect();
        let mut stderr = String::new();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut stderr)
            .unwrap();
        End {
            said,
            status: self.child.wait().unwrap(),
            stderr,
        }
    }
}

/// How a child ended.
pub(crate) struct End {
    pub(crate) said: Vec<String>,
    pub(crate) status: std::process::ExitStatus,
    pub(crate) stderr: String,
}

impl End {
    pub(crate) fn assert_success(&self) {
        assert!(
            self.status.success(),
            "{}\n{}\n{}",
            self.status,
            self.said.join("\n"),
            self.stderr
        );
    }

    pub(crate) fn was_killed(&self) -> bool {
        use std::os::unix::process::ExitStatusExt as _;
        self.status.signal() == Some(9)
    }

    pub(crate) fn acknowledged(&self) -> Vec<Acknowledged> {
        self.said
            .iter()
            .filter_map(|line| Acknowledged::heard(line))
            .collect()
    }
}

/// An event that the store has acknowledged with [`Recorded`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Acknowledged {
    pub(crate) session: String,
    pub(crate) seq: u64,
    pub(crate) hash: Hash,
    pub(crate) content: String,
}

impl Acknowledged {
    /// Tells the parent about a note. Neither the session nor the content may have spaces.
    pub(crate) fn say(session: &str, recorded: &Recorded, content: &str) {
        say(&format!(
            "ack {session} {} {} {content}",
            recorded.seq(),
            recorded.hash()
        ));
    }

    pub(crate) fn heard(line: &str) -> Option<Self> {
        let mut words = line.strip_prefix("ack ")?.split(' ');
        Some(Self {
            session: words.next()?.to_owned(),
            seq: words.next()?.parse().ok()?,
            hash: words.next()?.parse().ok()?,
            content: words.next()?.to_owned(),
        })
    }
}

/// Every note that is stored and not erased, opened.
pub(crate) fn stored_notes(reader: &Reader) -> Vec<Acknowledged> {
    let keys = SessionKeys::new(reader);
    let note = |event: &Stored| {
        let line = Line::read(&event.line).unwrap();
        Some(Acknowledged {
            session: line.session_id.into_owned(),
            seq: line.seq,
            hash: line.hash,
            content: keys.note(event)?,
        })
    };
    all(&Filter::default(), reader)
        .iter()
        .filter_map(note)
        .collect()
}

/// Every acknowledged note must be stored as it was acknowledged, and open.
pub(crate) fn assert_present(acknowledged: &[Acknowledged], reader: &Reader) {
    let stored: std::collections::BTreeSet<_> = stored_notes(reader).into_iter().collect();
    for note in acknowledged {
        assert!(
            stored.contains(note),
            "acknowledged, but not stored: {note:?}"
        );
    }
}

const FOLDER: &str = "COUNTERSIGN_TEST_FOLDER";
