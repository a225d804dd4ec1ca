//! Failures as people see them: a code, what happened, and what to do next.

use std::error::Error;
use std::fmt::Write as _;
use std::io;

use countersign_engine as engine;
use countersign_event::{IdError, PayloadError};
use countersign_policy::LoadError;
use countersign_policy::manifest::signature::SignatureError;
use countersign_replay as replay;
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
    Hash = "C0109", Invalid, "a hash has 64 hexadecimal digits in lower case; `log show` and `prove` take at least its first 8";
    Query = "C0110", Invalid, "a query is words like `decision:deny tool:mcp.* since:1h`, with spaces between them";
    Checkpoint = "C0111", Invalid, "a checkpoint is what `countersign checkpoint show` prints, from its first line to its last signature";
    Trust = "C0112", Invalid, "one key a line: `name+hint+key` for a log or a witness, as `countersign checkpoint show` prints it, and `ed25519:<hex> <name>` for a person";
    Length = "C0113", Invalid, "write a length of time as 90s, 30m, 2h or 7d";
    Conflict = "C0201", Failed, "somebody else appended first: read the new head with `countersign session show` and decide again";
    Order = "C0202", Invalid, "append the missing event first, or use another call id";
    Erased = "C0203", Failed, "erasing cannot be undone; the chain can still be verified, and new events go to a new session";
    NoSession = "C0204", Invalid, "`countersign session list` shows the sessions; check --tenant and --data";
    NoLog = "C0205", Invalid, "check --data; a log begins with the first `countersign mcp -- COMMAND`, or with `countersign log append`";
    Damaged = "C0206", Unverified, "run `countersign verify --data DIR` and restore the log from a backup; other sessions are not affected";
    NoEvent = "C0207", Invalid, "`countersign log list` shows the events";
    Unpublished = "C0208", Invalid, "`countersign checkpoint publish` signs a checkpoint of everything that is recorded";
    Reserved = "C0209", Invalid, "choose another session; this one tells who may decide or which policies are in force, and its content stays";
    Keys = "C0301", Failed, "the master key file must be there, belong to this log, and be readable by its owner only (chmod 600)";
    Sealed = "C0302", Failed, "the session key or the ciphertext does not belong to this log; run `countersign verify --data DIR`";
    Confirm = "C0303", Usage, "this cannot be undone: run it in a terminal, or add --yes";
    LogName = "C0304", Invalid, "the name of a log is given once and has no spaces and no plus: an address without its scheme, such as example.com/agents";
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
    Untrusted = "C0504", Unverified, "`countersign manifest verify FILE --trust prod --publishers LIST` says what is missing; nothing was put in force";
    LogChanged = "C0505", Unverified, "nothing was signed; keep the log as it is, and compare it with the newest backup and with the checkpoints that others kept";
    Cosigned = "C0506", Unverified, "a witness must have signed a checkpoint of this very log: `countersign checkpoint show --size N` prints them";
    PackUnverified = "C0507", Unverified, "do not rely on this pack; ask for a new one, and for the key of the log if you do not have it from elsewhere";
    NoneOfThose = "C0508", Unverified, "check --session and --tenant: `countersign session list` shows the sessions of a log; if this one was there before, keep the log as it is and compare it with a backup";
    Record = "C0511", Unverified, "`--format json` lists every reason with its place; do not rely on what the record says until you know who changed it";
    RecordKey = "C0512", Invalid, "a key is KEY_ID=HEX: the name that the records use, and the Ed25519 public key in 64 hexadecimal digits";
    SideDocument = "C0513", Invalid, "write --lease LEASE=UNIX_MS, --policy DIGEST=NAME@VERSION and --input DIMENSION=0.9";
    Bundle = "C0514", Invalid, "export another session, or its events with `--format cloudevents`";
    Endpoint = "C0515", Invalid, "an endpoint needs an https address, or an http address of this machine";
    Push = "C0516", Failed, "nothing is lost: run it again, and it goes on with the event that was not taken";
    State = "C0517", Invalid, "nothing was digested; `countersign evidence state --help` tells what each kind needs";
    PackGiven = "C0518", Invalid, "`countersign verify FILE` checks a pack, and the records in it";
    Unknown = "C0601", Invalid, "`countersign explain` lists the codes";
    Usage = "C0602", Usage, "`--help` behind the command says what each option is for";
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
    AgentControlCases = "C0724", Invalid, "a case is an object with `id`, `manifest_yaml`, `intervention_point`, `snapshot`, `policy_response` and `expected`; `countersign acs test --help` tells more";
    AgentControlTests = "C0725", Unverified, "each failure says what was expected and what was found; `countersign acs explain` shows how a manifest decides";
    Approval = "C0801", Failed, "`countersign approval list --all` shows where each approval is";
    NoApproval = "C0802", Invalid, "`countersign approval list --all` shows the approvals; an id may be shortened as long as it is the only one that begins so";
    Unconfirmed = "C0803", Failed, "nothing was decided; look at it with `countersign approval show ID --full`, then approve with the code that it shows";
    ApproverKey = "C0804", Failed, "`countersign approver list` shows the keys; `countersign approver init` makes one and registers it";
    Approvers = "C0805", Invalid, "`countersign approver list` shows who may decide, and how many must agree";
    Terminal = "C0806", Invalid, "run it in a terminal, or use `countersign approval list` and `countersign approval approve ID --code CODE`";
    Command = "C0807", Failed, "the action was allowed and begun; what it did is for the command itself to tell";
    Hook = "C0808", Invalid, "a web-hook needs an https address (or http on this machine) and a secret of at least 32 bytes in a file";
    Lease = "C0809", Failed, "`countersign lease list --all` shows the leases; `countersign lease preview` what one would cover";
    NoLease = "C0810", Invalid, "`countersign lease list --all` shows the leases; an id may be shortened as long as it is the only one that begins so";
    Server = "C0811", Failed, "check the command behind `--`; run it alone to see what it says";
    Book = "C0812", Invalid, "somebody changed the file of accepted tools: restore it, or move it away to accept the tools anew";
    NoTool = "C0813", Invalid, "`countersign tools list` shows what there is, and `countersign tools review` what waits; `countersign mcp` prints the digest of a command that waits";
    Listen = "C0814", Failed, "choose another address with --listen; `127.0.0.1:0` takes any free port";
    Config = "C0815", Invalid, "the servers of a door are described in docs/mcp.md; secrets come from a `file` or a `command`";
    Unwatched = "C0816", Invalid, "run it in a terminal; scripts use `countersign tools accept SERVER TOOL DIGEST`";
    OpenDoor = "C0817", Usage, "give --token-file FILE, or listen on 127.0.0.1; --no-auth lets in whoever reaches the address";
    ClientFile = "C0821", Invalid, "nothing was written; mend the file (no comments, no duplicate keys), or put `countersign mcp --` in front of the server's command by hand";
    NoClient = "C0822", Invalid, "check the client, --project, --config and --server; a client writes its file when it gets its first server";
    Unwritten = "C0823", Invalid, "nothing was written; read the difference, then answer in a terminal, or add --yes";
    Undo = "C0824", Failed, "`--undo --server NAME` takes one server back out and leaves the rest of the file; or compare the file with its backup and move it back by hand";
    Raced = "C0825", Failed, "close the client, which may write its file too, and run the command again";
    Declined = "C0827", Invalid, "nothing was written; run the command again to be asked again";
    Replay = "C0831", Unverified, "the session cannot be proved: keep the `policies` folder with the log, and run `countersign verify --data DIR`";
    Changes = "C0832", Invalid, "look at the sessions that are named, then raise --max-changes or mend the policies";
    Interrupted = "C0833", Failed, "run it again";
    Pack = "C0834", Invalid, "a pack is YAML with `schema: countersign/conformance/v1`, or a `name` and `tests` of single questions; docs/conformance.md has both";
    Effects = "C0835", Invalid, "nothing was called; add --allow-effects if the server may do it all again";
    Promotion = "C0836", Failed, "`countersign policy promote --help` says what is needed; nothing has changed";
    Unauthenticated = "C0901", Failed, "make a token with `countersign token create`, and send it as `Authorization: Bearer TOKEN`";
    Forbidden = "C0902", Failed, "use a token whose role allows it; `countersign token create --help` says what each role may do";
    NoPlace = "C0903", Invalid, "`/docs` of the daemon lists what there is";
    Method = "C0904", Invalid, "`/docs` of the daemon lists what there is";
    RateLimited = "C0905", Failed, "wait as long as `Retry-After` says; the operator sets the limits";
    Overloaded = "C0906", Failed, "wait a moment and try again; nothing was done";
    Parameter = "C0907", Invalid, "`/docs` of the daemon lists the parameters";
    Host = "C0908", Invalid, "call the daemon by a name of its machine, or allow the name with --allow-host and the page with --allow-origin";
    Csrf = "C0909", Failed, "a page sends the `csrf_token` of /v1/me in the header `countersign-csrf`";
    EngineOnly = "C0910", Invalid, "propose the call; the engine records what it decides";
    NoAction = "C0911", Invalid, "an action is known until its result was told, or the daemon has ended; propose it again";
    Permit = "C0912", Failed, "a permit works once, for the action that it was given for; propose the action again";
    Idempotency = "C0913", Invalid, "use a new `Idempotency-Key` for another request";
    Slow = "C0914", Failed, "send the body at once";
    Broken = "C0915", Failed, "send the whole body";
    InFiles = "C0916", Failed, "change the files that `countersign serve` was started with, then send it SIGHUP";
    Changed = "C0917", Failed, "read it again, then decide again";
    InProgress = "C0918", Failed, "wait for the answer to the first request with this key";
    Token = "C0921", Invalid, "`countersign token create --help` says what each role may do, and what it needs";
    NoToken = "C0922", Invalid, "`countersign token list` shows the tokens";
    NoAuth = "C0923", Usage, "listen on 127.0.0.1 or [::1], or leave --no-auth away";
    Settings = "C0924", Invalid, "`countersign config show --origin` lists the keys, their values and what set them";
    NoDaemon = "C0925", Unreachable, "start it with `countersign serve`, or check the address";
    Doctor = "C0926", Failed, "mend what is marked, then run `countersign doctor` again";
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

    /// What it is.
    pub(crate) const fn code(&self) -> Code {
        self.code
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

impl From<replay::Error> for Failure {
    fn from(error: replay::Error) -> Self {
        let code = match error {
            replay::Error::Store(error) => return error.into(),
            replay::Error::NoSession(_) => Code::NoSession,
            replay::Error::Interrupted => Code::Interrupted,
            replay::Error::Fold { .. }
            | replay::Error::NotKept { .. }
            | replay::Error::Unusable { .. }
            | replay::Error::Incomplete { .. } => Code::Replay,
        };
        Self::new(code, error.to_string())
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
            E::Denied { .. } => Code::Input,
            E::Approval(_) => Code::Approval,
            E::Audit(_) => Code::Audit,
            E::NotIntegrated | E::NothingToPublish => Code::Unpublished,
            E::Inconsistent(_) => Code::LogChanged,
            E::Cosignature(_) => Code::Cosigned,
            E::LogKey(_) | E::Renamed(_) => Code::LogName,
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
            "runtime_error:disk_full" => Code::Full,
            "runtime_error:read_only" => Code::ReadOnly,
            "runtime_error:busy" => Code::Busy,
            "runtime_error:conflict" => Code::Conflict,
            "runtime_error:order" => Code::Order,
            _ => Code::Database,
        };
        Self::new(code, refusal.message())
    }
}

impl From<engine::folder::Unreadable> for Failure {
    fn from(error: engine::folder::Unreadable) -> Self {
        Self::new(Code::Input, error.to_string())
    }
}

/// Policies that are not put in force.
impl From<engine::PolicyFilesError> for Failure {
    fn from(error: engine::PolicyFilesError) -> Self {
        use engine::PolicyFilesError as E;
        let code = match &error {
            E::Unreadable(_) => Code::Input,
            E::Manifest { path, error } => {
                let problems = error.to_string().replace('\n', "\n  ");
                let path = path.display();
                let message = format!("`{path}` is not a valid manifest:\n  {problems}");
                return Self::new(Code::Manifest, message);
            }
            E::Publishers { .. } => Code::Publishers,
            E::Untrusted { .. } | E::NoManifest => Code::Untrusted,
            E::Altered { .. } => Code::Integrity,
            E::Load(LoadError::Test { .. }) => Code::Tests,
            E::Beside { .. } => Code::AgentControl,
            E::Nothing { .. } | E::TwoRules { .. } | E::Load(_) => Code::Policy,
        };
        Self::new(code, error.to_string())
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

impl From<engine::NotEdited> for Failure {
    fn from(error: engine::NotEdited) -> Self {
        let code = match &error {
            engine::NotEdited::Refused(_) | engine::NotEdited::Denied(_) => Code::Approval,
            engine::NotEdited::Arguments(_) => Code::Json,
            engine::NotEdited::Unaskable(_) => Code::Approvers,
            engine::NotEdited::Failed(_) => Code::Database,
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
