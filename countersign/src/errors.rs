//! Failures as people see them: a code, what happened, and what to do next.

use std::error::Error;
use std::fmt::Write as _;
use std::io;

use countersign_engine as engine;
use countersign_event::{IdError, PayloadError};
use countersign_policy::manifest::signature::SignatureError;
use countersign_store as store;
use countersign_vault::KeyringError;

use crate::exit::Exit;
use crate::output::visible;

macro_rules! codes {
    ($( $name:ident = $code:literal, $exit:ident, $hint:literal; )*) => {
        /// Every failure has a code that stays the same between versions.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Code { $( $name ),* }

        impl Code {
            pub(crate) const ALL: &'static [Self] = &[ $( Self::$name ),* ];

            pub(crate) const fn text(self) -> &'static str {
                match self { $( Self::$name => $code ),* }
            }

            pub(crate) const fn exit(self) -> Exit {
                match self { $( Self::$name => Exit::$exit ),* }
            }

            /// What to do next.
            pub(crate) const fn hint(self) -> &'static str {
                match self { $( Self::$name => $hint ),* }
            }
        }
    };
}

codes! {
    Json = "C0101", Invalid, "the input must be one strict JSON value: no duplicate keys, no numbers that a double cannot hold, at most 128 levels";
    Member = "C0102", Invalid, "`countersign log append --help` lists the event types; members that an event type does not declare may have any type";
    TooLarge = "C0103", Invalid, "put large content elsewhere and record its digest";
    EventType = "C0104", Invalid, "`countersign log append --help` lists the event types";
    Id = "C0105", Invalid, "use a non-empty id of at most 1024 characters";
    Input = "C0106", Invalid, "check the path and that you may read it";
    Cursor = "C0107", Invalid, "use the cursor that the previous page printed, with the same filters";
    Moment = "C0108", Invalid, "write a time as 2026-11-15T08:00:00Z, or how long ago as 90s, 30m, 2h or 7d";
    Hash = "C0109", Invalid, "a hash has 64 hexadecimal digits in lower case";
    Conflict = "C0201", Failed, "somebody else appended first: read the new head with `countersign session show` and decide again";
    Order = "C0202", Invalid, "append the missing event first, or use another call id";
    Erased = "C0203", Failed, "erasing cannot be undone; the chain can still be verified, and new events go to a new session";
    NoSession = "C0204", Invalid, "`countersign session list` shows the sessions; check --tenant and --data";
    NoLog = "C0205", Invalid, "check --data, or record a first event with `countersign log append`";
    Damaged = "C0206", Unverified, "run `countersign verify --data DIR` and restore the log from a backup; other sessions are not affected";
    NoEvent = "C0207", Invalid, "`countersign log list` shows the events";
    Keys = "C0301", Failed, "the master key file must be there, belong to this log, and be readable by its owner only (chmod 600)";
    Sealed = "C0302", Failed, "the session key or the ciphertext does not belong to this log; run `countersign verify --data DIR`";
    Confirm = "C0303", Usage, "this cannot be undone: run it in a terminal, or add --yes";
    Full = "C0401", Failed, "free some space and try again; what was acknowledged before is safe";
    ReadOnly = "C0402", Failed, "check the permissions of the data folder and whether its file system is mounted read-only";
    Busy = "C0403", Failed, "try again; if it stays busy, look for a process that holds the database";
    Foreign = "C0404", Invalid, "check --data; a log of a newer version needs a newer countersign";
    Folder = "C0405", Failed, "check that the folder exists and that you may write there";
    Database = "C0406", Failed, "nothing was acknowledged; check the disk, then run `countersign verify --data DIR`";
    Clock = "C0407", Failed, "set the system clock";
    Output = "C0408", Failed, "check where the output goes";
    Audit = "C0409", Failed, "nothing ran; check the audit folder and its disk, then try again";
    Unverified = "C0501", Unverified, "keep this log as it is and compare it with a backup or an earlier export";
    Integrity = "C0502", Unverified, "do not use what the manifest covers until you know who changed what; `countersign manifest sign` signs a change of your own";
    AuditUnverified = "C0503", Unverified, "keep the audit as it is and compare it with a backup; nothing in it says who changed it";
    Unknown = "C0601", Invalid, "`countersign explain` lists the codes";
    Manifest = "C0701", Invalid, "`countersign manifest validate FILE` lists every problem; `countersign manifest init DIR --print` shows a manifest that is valid";
    Policy = "C0702", Invalid, "mend the line that is named, then run `countersign policy check` again";
    Tests = "C0703", Invalid, "`countersign policy explain` shows which rule speaks and what it saw";
    Cases = "C0704", Invalid, "a case is {\"id\":…, \"request\":{\"event\":…, \"snapshot\":…, \"manifest\":…}, \"expect\":{\"outcome\":…, \"reason\":…}}";
    Snapshot = "C0705", Invalid, "a snapshot may have steps_consumed, tool_calls_consumed, model_calls_consumed, wall_time_ms, loop_violation, is_tainted, labels and sanitized_keys";
    Nothing = "C0706", Invalid, "give one object, an array, or one object a line: {\"event\":…, \"snapshot\":…, \"manifest\":…}";
    SigningKey = "C0707", Failed, "make a key with `countersign manifest sign --new-key FILE` and keep it readable by its owner only (chmod 600)";
    Publishers = "C0708", Invalid, "one publisher a line, as `countersign manifest sign` prints it: ed25519:<public key in hex> <name>";
    Exists = "C0709", Failed, "move the file away first, or choose another place; nothing was written";
    Demo = "C0710", Failed, "this should not happen; please report it with the output of `countersign demo --yes-demo`";
    AgentControl = "C0721", Invalid, "mend what is named; `countersign acs validate FILE` lists every problem of a manifest and of its policies";
    AgentControlPolicy = "C0722", Invalid, "mend the policy that is named; paths in a manifest lead from the folder of the manifest";
    Point = "C0723", Invalid, "use one of the eight points of an agent's life";
    Approval = "C0801", Failed, "`countersign approval list --all` shows where each approval is";
    NoApproval = "C0802", Invalid, "`countersign approval list --all` shows the approvals; an id may be shortened as long as it is the only one that begins so";
    Unconfirmed = "C0803", Failed, "nothing was decided; look at it with `countersign approval show ID --full`, then approve with the code that it shows";
    ApproverKey = "C0804", Failed, "`countersign approver list` shows the keys; `countersign approver init` makes one and registers it";
    Approvers = "C0805", Invalid, "`countersign approver list` shows who may decide, and how many must agree";
    Terminal = "C0806", Invalid, "run it in a terminal, or use `countersign approval list` and `countersign approval approve ID --code CODE`";
    Command = "C0807", Failed, "the action was allowed and begun; what it did is for the command itself to tell";
    Hook = "C0808", Invalid, "a web-hook needs an https address (or http on this machine) and a secret of at least 32 bytes in a file";
    Server = "C0811", Failed, "check the command behind `--`; run it alone to see what it says";
    Book = "C0812", Invalid, "somebody changed the file of accepted tools: restore it, or move it away to accept the tools anew";
    NoTool = "C0813", Invalid, "`countersign tools list` shows what waits; `countersign tools diff` shows it in full";
    Listen = "C0814", Failed, "choose another address with --listen; `127.0.0.1:0` takes any free port";
    ClientFile = "C0821", Invalid, "nothing was written; mend the file (no comments, no duplicate keys), or put `countersign mcp --` in front of the server's command by hand";
    NoClient = "C0822", Invalid, "check the client, --project, --config and --server; a client writes its file when it gets its first server";
    Unwritten = "C0823", Invalid, "nothing was written; read the difference, then answer in a terminal, or add --yes";
    Undo = "C0824", Failed, "`--undo --server NAME` takes one server back out and leaves the rest of the file; or compare the file with its backup and move it back by hand";
    Raced = "C0825", Failed, "close the client, which may write its file too, and run the command again";
}

/// A failure on its way to the person at the terminal.
#[derive(Debug)]
pub(crate) struct Failure {
    code: Code,
    message: String,
    /// The other end of a pipe went away: there is nobody to tell.
    silent: bool,
}

impl Failure {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            silent: false,
        }
    }

    /// What happened.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// For commands that have done something: the reader may be gone, but the work is not all done
    /// or not all told.
    pub(crate) fn loud(mut self) -> Self {
        self.silent = false;
        self
    }

    /// Says which line of the input it is about.
    pub(crate) fn at_line(mut self, number: u64) -> Self {
        self.message = format!("line {number}: {}", self.message);
        self
    }

    /// Prints the failure and says how to exit.
    pub(crate) fn report(&self) -> Exit {
        if self.silent {
            return Exit::Done;
        }
        crate::output::stderr(&format!(
            "error[{}]: {}\n\nhint: {}",
            self.code.text(),
            // A message may have several lines of its own; none of them starts where ours do.
            visible(&self.message).replace('\n', "\n  "),
            self.code.hint()
        ));
        self.code.exit()
    }
}

impl From<store::Error> for Failure {
    fn from(error: store::Error) -> Self {
        use store::Error as E;
        let code = match error.root() {
            E::Conflict(_) | E::Rotated => Code::Conflict,
            E::Order(_) => Code::Order,
            E::Seal(_) | E::Envelope(_) => Code::Json,
            E::Erased => Code::Erased,
            E::NoSession(_) => Code::NoSession,
            E::NoLog(_) => Code::NoLog,
            E::Damaged { .. } | E::Unreadable(_) => Code::Damaged,
            E::Keyring(_) | E::KeyFileMissing(_) => Code::Keys,
            E::Open(_) => Code::Sealed,
            E::Full => Code::Full,
            E::ReadOnly(_) => Code::ReadOnly,
            E::Busy => Code::Busy,
            E::Foreign { .. } => Code::Foreign,
            E::Folder { .. } => Code::Folder,
            E::Approval(_) => Code::Approval,
            E::Audit(_) => Code::Audit,
            E::Database(_) | E::Shared(_) | E::Stopped => Code::Database,
        };
        Self::new(code, chain(error.root()))
    }
}

/// Something failed on the way to a decision, so there is none.
impl From<engine::Refusal> for Failure {
    fn from(refusal: engine::Refusal) -> Self {
        let code = match refusal.reason() {
            "runtime_error:audit_write_failed" => Code::Audit,
            "runtime_error:clock" => Code::Clock,
            "runtime_error:approval" => Code::Approval,
            "runtime_error:erased" => Code::Erased,
            "runtime_error:history" => Code::Damaged,
            _ => Code::Database,
        };
        Self::new(code, refusal.message())
    }
}

impl From<engine::NotCounted> for Failure {
    fn from(error: engine::NotCounted) -> Self {
        let code = match &error {
            engine::NotCounted::Refused(_) => Code::Approval,
            engine::NotCounted::Failed(_) => Code::Database,
        };
        Self::new(code, error.to_string())
    }
}

impl From<engine::NotChanged> for Failure {
    fn from(error: engine::NotChanged) -> Self {
        let code = match &error {
            engine::NotChanged::List(_) => Code::Approvers,
            engine::NotChanged::NotRecorded(_) => Code::Database,
        };
        Self::new(code, error.to_string())
    }
}

impl From<store::PageError> for Failure {
    fn from(error: store::PageError) -> Self {
        match error {
            store::PageError::Cursor(error) => error.into(),
            store::PageError::Store(error) => error.into(),
        }
    }
}

impl From<store::CursorError> for Failure {
    fn from(error: store::CursorError) -> Self {
        Self::new(Code::Cursor, error.to_string())
    }
}

impl From<KeyringError> for Failure {
    fn from(error: KeyringError) -> Self {
        Self::new(Code::Keys, chain(&error))
    }
}

impl From<SignatureError> for Failure {
    fn from(error: SignatureError) -> Self {
        Self::new(Code::Manifest, error.to_string())
    }
}

impl From<IdError> for Failure {
    fn from(error: IdError) -> Self {
        Self::new(Code::Id, error.to_string())
    }
}

impl From<PayloadError> for Failure {
    fn from(error: PayloadError) -> Self {
        Self::new(Code::Member, error.to_string())
    }
}

impl From<countersign_canon::Error> for Failure {
    fn from(error: countersign_canon::Error) -> Self {
        Self::new(Code::Json, error.to_string())
    }
}

/// An error while writing to stdout.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self {
            code: Code::Output,
            message: format!("cannot write the output: {error}"),
            silent: error.kind() == io::ErrorKind::BrokenPipe,
        }
    }
}

/// The message of an error and of what caused it.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        // Writing to a string does not fail.
        let _ = write!(text, ": {cause}");
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_sorted() {
        assert!(
            Code::ALL
                .windows(2)
                .all(|pair| pair[0].text() < pair[1].text())
        );
    }
}
