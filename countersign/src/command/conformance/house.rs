//! A server of our own, in a folder that is gone when we are.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use countersign_approval::SigningKey;
use countersign_canon::{Json, Limits};
use countersign_engine::Approvers;
use countersign_event::Scope;
use countersign_store::{Filter, Folder, Reader};

use super::sign::Person;
use crate::child::{Process, ours};
use crate::errors::{Code, Failure};
use crate::folder::{Extent, Scratch, walk};

/// A daemon, and an MCP door if a pack needs one, on one data folder.
pub(super) struct House {
    scratch: Scratch,
    daemon: Option<Process>,
    door: Option<Process>,
    /// Programs that stand before the doors.
    before: Vec<Process>,
    through: Option<String>,
    /// Where the daemon itself is.
    listen: String,
    /// Where cases find the API.
    pub(super) api: String,
    /// Where cases find the MCP door.
    pub(super) mcp: Option<String>,
    /// The operator's token.
    pub(super) token: String,
    /// How many effects there were when the case began.
    seen: usize,
    /// The Agent Control manifest, and the manifest of what may be used.
    governed: Option<(PathBuf, PathBuf)>,
}

impl House {
    /// Starts a daemon, and a door for the manifest of a pack. With `through`, a program of this name
    /// stands before each.
    pub(super) fn open(door: Option<&Json>, through: Option<&str>) -> Result<Self, Failure> {
        let scratch = Scratch::new("conformance")?;
        let mut house = Self {
            scratch,
            daemon: None,
            door: None,
            before: Vec::new(),
            through: through.map(str::to_owned),
            listen: "127.0.0.1:0".to_owned(),
            api: String::new(),
            mcp: None,
            token: String::new(),
            seen: 0,
            governed: None,
        };
        house.register()?;
        house.start()?;
        house.api = house.reached(&format!("http://{}", house.listen))?;
        if let Some(manifest) = door {
            house.open_door(manifest)?;
        }
        Ok(house)
    }

    /// The person whom the server knows.
    pub(super) fn person(&self) -> Result<Person, Failure> {
        let secret = countersign_vault::open_or_create_secret(&self.path("approver.key"))?;
        Person::new(PERSON, SigningKey::from_bytes(&secret)).map_err(|error| failed(&error))
    }

    /// Ends the daemon as an operator would, and starts it again in the same place.
    pub(super) fn restart(&mut self) -> Result<(), Failure> {
        self.stop()?;
        self.start()
    }

    /// Puts an Agent Control manifest in force, beside the manifest of what may be used.
    pub(super) fn govern(&mut self, agent_control: &Json, manifest: &Json) -> Result<(), Failure> {
        let files = (self.path("agent.json"), self.path("manifest.json"));
        std::fs::write(&files.0, agent_control.to_sorted())?;
        std::fs::write(&files.1, manifest.to_sorted())?;
        self.governed = Some(files);
        self.restart()
    }

    /// Changes a byte of a stored event while nobody looks.
    pub(super) fn tamper(&mut self, session: &str, seq: u64) -> Result<(), Failure> {
        self.stop()?;
        let changed = self.change(session, seq);
        self.start()?;
        match changed.map_err(|error| failed(&error))? {
            1 => Ok(()),
            _ => Err(failed(&"there is no such event to change")),
        }
    }

    /// What keeps rows as they are keeps honest programs honest; whoever has the file takes it away.
    fn change(&self, session: &str, seq: u64) -> rusqlite::Result<usize> {
        let database = rusqlite::Connection::open(Folder::new(self.data()).database())?;
        database.execute_batch("DROP TRIGGER events_keep_content")?;
        database.execute(
            "UPDATE events SET line = replace(line, '\"ts_unix_ms\":1', '\"ts_unix_ms\":2')
             WHERE seq = ?2 AND session = (SELECT id FROM sessions WHERE session_id = ?1)",
            rusqlite::params![session, i64::try_from(seq).unwrap_or(-1)],
        )
    }

    /// What the server behind the door did since the case began.
    pub(super) fn effects(&self) -> Vec<String> {
        let all = self.all_effects();
        all.get(self.seen..).unwrap_or_default().to_vec()
    }

    /// A new case begins.
    pub(super) fn begin(&mut self) {
        self.seen = self.all_effects().len();
    }

    /// Which of these words lie in a file of the server.
    pub(super) fn search(&self, words: &[String]) -> Result<Vec<String>, Failure> {
        let data = self.data();
        let mut found = Vec::new();
        for file in walk(&data, Extent::Whole)?.files {
            let content = std::fs::read(data.join(file))?;
            for word in words.iter().filter(|word| !word.is_empty()) {
                let is_there = content
                    .windows(word.len())
                    .any(|part| part == word.as_bytes());
                if is_there && !found.contains(word) {
                    found.push(word.clone());
                }
            }
        }
        Ok(found)
    }

    /// Writes evidence of a session, and lets a verifier judge it that has nothing else.
    pub(super) fn evidence(&self, session: &str, damage: bool) -> Result<Json, Failure> {
        let pack = self.path(&format!("{}.pack", self.packs()?));
        let data = self.data().display().to_string();
        self.program(&["checkpoint", "publish", "--data", &data])?;
        let out = pack.display().to_string();
        self.program(&[
            "evidence",
            "export",
            "--session",
            session,
            "--out",
            &out,
            "--data",
            &data,
        ])?;
        if damage {
            let mut bytes = std::fs::read(&pack)?;
            let middle = bytes.len() / 2;
            if let Some(byte) = bytes.get_mut(middle) {
                *byte ^= 1;
            }
            std::fs::write(&pack, bytes)?;
        }
        let checked = self.program(&["verify", &out, "--format", "json"]);
        let scope = Scope::new("default", session)?;
        let reader = Reader::open(&Folder::new(self.data()))?;
        let stored = reader
            .page(&Filter::session(&scope), None, 1000)?
            .events
            .len();
        let events = checked
            .as_ref()
            .ok()
            .and_then(|report| report.get("events")?.as_u64());
        Ok(Json::object([
            ("valid", Json::from(checked.is_ok())),
            ("events", Json::from(events.unwrap_or(0))),
            ("stored", Json::from(stored as u64)),
        ]))
    }

    fn packs(&self) -> Result<usize, Failure> {
        let walked = walk(self.scratch.path(), Extent::Flat)?;
        Ok(walked.files.len())
    }

    /// Runs this very program; what it printed, if it said that all is well.
    fn program(&self, arguments: &[&str]) -> Result<Json, Failure> {
        let output = ours()?.args(arguments).stdin(Stdio::null()).output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(failed(&said));
        }
        Ok(Json::admit(&output.stdout, &Limits::event()).unwrap_or(Json::Null))
    }

    fn all_effects(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.path("effects")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Somebody who may decide.
    fn register(&self) -> Result<(), Failure> {
        let data = self.data();
        std::fs::create_dir_all(&data)?;
        let secret = countersign_vault::open_or_create_secret(&self.path("approver.key"))?;
        let key = SigningKey::from_bytes(&secret).verifying_key();
        let person = countersign_approval::Human::new(PERSON).map_err(|error| failed(&error))?;
        let mut approvers = Approvers::load(&data).map_err(|error| failed(&error))?;
        let added = approvers
            .add(person, &key)
            .and_then(|_| approvers.save(&data));
        added.map_err(|error| failed(&error))
    }

    fn start(&mut self) -> Result<(), Failure> {
        let mut command = ours()?;
        command.args(["serve", "--listen", &self.listen, "--data"]);
        command.arg(self.data());
        if let Some((acs, manifest)) = &self.governed {
            command.arg("--acs").arg(acs);
            command.arg("--manifest").arg(manifest);
        }
        let mut daemon = Process::start(command)?;
        let first = self.token.is_empty();
        if first {
            let line = daemon.out()?;
            self.token = line.rsplit(' ').next().unwrap_or_default().to_owned();
        }
        let line = daemon.said("countersign: http")?;
        let address = line
            .split("://")
            .nth(1)
            .and_then(|rest| rest.split(' ').next());
        self.listen = address.unwrap_or_default().to_owned();
        daemon.listen_no_more();
        self.daemon = Some(daemon);
        Ok(())
    }

    fn stop(&mut self) -> Result<(), Failure> {
        match self.daemon.take() {
            Some(daemon) => daemon.end(),
            None => Ok(()),
        }
    }

    fn open_door(&mut self, manifest: &Json) -> Result<(), Failure> {
        let file = self.path("door.json");
        std::fs::write(&file, manifest.to_sorted())?;
        let mut command = ours()?;
        command.args([
            "mcp",
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--hold-wait",
            "0",
            "--data",
        ]);
        command
            .arg(self.data())
            .arg("--manifest")
            .arg(file)
            .arg("--");
        command.arg(std::env::current_exe()?).arg("demo-server");
        command.arg(self.path("effects"));
        let mut door = Process::start(command)?;
        let line = door.said("countersign: http")?;
        door.listen_no_more();
        self.door = Some(door);
        let place = line.split(' ').nth(1).unwrap_or_default().to_owned();
        let (base, path) = match place.rfind("/mcp") {
            Some(at) => place.split_at(at),
            None => (place.as_str(), "/mcp"),
        };
        self.mcp = Some(format!("{}{path}", self.reached(base)?));
        Ok(())
    }

    /// Where a door is found: itself, or the program that stands before it.
    fn reached(&mut self, base: &str) -> Result<String, Failure> {
        let Some(through) = &self.through else {
            return Ok(base.to_owned());
        };
        let mut words = through.split_whitespace();
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).arg(base).arg(self.scratch.path());
        let mut program = Process::start(command)?;
        let place = program.out()?;
        self.before.push(program);
        Ok(place)
    }

    fn data(&self) -> PathBuf {
        self.path("data")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }
}

impl Drop for House {
    fn drop(&mut self) {
        // Those before first: they hold connections to those behind.
        self.before.clear();
        self.door = None;
        self.daemon = None;
    }
}

fn failed(error: &dyn ToString) -> Failure {
    Failure::new(Code::NoDaemon, error.to_string())
}

const PERSON: &str = "conformance";
