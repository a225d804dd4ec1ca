//! Faults of the operating system, by a preloaded library (`faults/shim.c`).

use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

/// The compiled library and its control file.
pub(crate) struct Shim {
    place: TempDir,
}

impl Shim {
    pub(crate) fn compile() -> Self {
        let place = tempfile::tempdir().unwrap();
        let source = place.path().join("shim.c");
        std::fs::write(&source, include_str!("../faults/shim.c")).unwrap();
        // The C compiler that built SQLite is there.
        let cc = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let built = Command::new(cc)
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"])
            .arg(place.path().join(LIBRARY))
            .arg(source)
            .output()
            .unwrap();
        assert!(
            built.status.success(),
            "{}",
            String::from_utf8_lossy(&built.stderr)
        );
        let shim = Self { place };
        Faults::new(shim.control()).none();
        shim
    }

    /// Puts the library under a command; no fault is on yet.
    pub(crate) fn under(&self, command: &mut Command) {
        command
            .env("LD_PRELOAD", self.place.path().join(LIBRARY))
            .env(CONTROL, self.control());
    }

    /// The faults that commands under this library see.
    pub(crate) fn faults(&self) -> Faults {
        Faults::new(self.control())
    }

    fn control(&self) -> PathBuf {
        self.place.path().join("faults")
    }
}

/// The switch, from either side.
#[derive(Clone)]
pub(crate) struct Faults(PathBuf);

impl Faults {
    fn new(control: PathBuf) -> Self {
        Self(control)
    }

    /// The switch that the parent gave; `None` when somebody runs the ignored tests by hand.
    pub(crate) fn given() -> Option<Self> {
        std::env::var_os(CONTROL).map(|control| Self::new(control.into()))
    }

    /// Makes one kind of system call fail on files whose path has this part.
    pub(crate) fn fail(&self, call: &str, part: &str, error: &str) {
        self.set(&format!("{call} {part} {error} 0\n"));
    }

    /// Kills the process right before it changes a file for the `skip + 1`st time.
    pub(crate) fn kill_after(&self, skip: u64, part: &str) {
        self.set(&format!("any {part} KILL {skip}\n"));
    }

    pub(crate) fn none(&self) {
        self.set("");
    }

    /// Replaces the control file as a whole, so that no call reads half of it.
    fn set(&self, text: &str) {
        let new = self.0.with_extension("new");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(&new, &self.0).unwrap();
    }
}

const LIBRARY: &str = "shim.so";
const CONTROL: &str = "COUNTERSIGN_TEST_FAULTS";
