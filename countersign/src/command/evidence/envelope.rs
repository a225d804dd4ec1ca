//! `countersign evidence envelope`

use std::io::Write as _;

use clap::Args;
use countersign_evidence::aep::Record;
use countersign_evidence::envelope::{SideDocuments, envelopes};

use super::check::{MAX_FILE, records};
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::{input, output};

#[derive(Args)]
#[command(after_help = "\
One envelope a line, one for each action: action_class, target_boundary, principal_id, run_id, policy_id,
policy_version, approval_or_lease_id, payload_digest, expiry_ms, observed_result. What a record does not
hold is null, and `unresolved` says why; --lease and --policy bring what it only refers to. Nothing is
checked here: see `countersign evidence check`.

Examples:
  countersign evidence envelope records.jsonl
  countersign evidence aep --session s1 | countersign evidence envelope - --policy sha256:…=shop@3")]
pub(crate) struct Envelope {
    /// The files, or - for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// Until when a lease is good
    #[arg(long = "lease", value_name = "LEASE=UNIX_MS")]
    leases: Vec<String>,
    /// Which policy has a digest
    #[arg(long = "policy", value_name = "DIGEST=NAME@VERSION")]
    policies: Vec<String>,
}

impl Envelope {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let documents = self.documents()?;
        let mut out = output::stdout();
        for file in &self.files {
            let text = input::file(file, MAX_FILE)?;
            for (index, record) in records(file, &text).iter().enumerate() {
                let unreadable = || {
                    let message = format!("record {index} of `{file}` cannot be read");
                    Failure::new(Code::Record, message)
                };
                let record = Record::json(record).ok_or_else(unreadable)?;
                for envelope in envelopes(record, &documents) {
                    let mut line = envelope.to_jcs()?;
                    line.push(b'\n');
                    out.write_all(&line)?;
                }
            }
        }
        out.flush()?;
        Ok(Exit::Done)
    }

    fn documents(&self) -> Result<SideDocuments, Failure> {
        let mut documents = SideDocuments::default();
        for argument in &self.leases {
            let (lease, time) = argument.rsplit_once('=').unwrap_or_default();
            let time = time.parse().map_err(|_| wrong(argument))?;
            documents.leases.insert(lease.to_owned(), time);
        }
        for argument in &self.policies {
            let (digest, policy) = argument.split_once('=').unwrap_or_default();
            let (name, version) = policy.rsplit_once('@').ok_or_else(|| wrong(argument))?;
            let policy = (name.to_owned(), version.to_owned());
            documents.policies.insert(digest.to_owned(), policy);
        }
        Ok(documents)
    }
}

pub(super) fn wrong(argument: &str) -> Failure {
    Failure::new(Code::SideDocument, format!("cannot use `{argument}`"))
}
