//! A state of a kind that a vendor describes, as the vendor's own tool exports it.

use clap::Args;
use countersign_canon::Digest;
use countersign_evidence::state::{
    Coverage, Nothing, StateDigest, Vendor as Parts, VendorIdentity, VendorSelector,
};

use crate::errors::Failure;
use crate::input;

#[derive(Args)]
#[command(after_help = "\
The digest is SHA-256 over the bytes of the file. What they are, and when two of them are equal, the
vendor says under the namespace and the version; a reader who accepts that names both
(`countersign evidence compare --vendor`).

Example:
  countersign evidence state other export.bin --kind com.example.timestream --schema-version 1.2.0 \\
    --description 'points of the last hour'")]
pub(crate) struct Other {
    /// What the vendor's tool exported, or - for standard input
    file: String,
    /// The vendor's name for the kind, in the style of DNS
    #[arg(long, value_name = "NAMESPACE")]
    kind: String,
    /// The version of the vendor's description
    #[arg(long, value_name = "SEMVER")]
    schema_version: String,
    /// What was digested, for people
    #[arg(long, value_name = "TEXT")]
    description: String,
}

impl Other {
    pub(super) fn digest(self) -> Result<StateDigest, Failure> {
        let bytes = input::file(&self.file, MAX_FILE)?;
        let coverage = Coverage::Other(Parts {
            identity: VendorIdentity {
                other_kind: self.kind,
            },
            selector: VendorSelector {
                coverage_schema_version: self.schema_version,
                description: self.description,
            },
            boundary: Nothing,
            observed: Nothing,
        });
        Ok(StateDigest::new(Digest::of(&bytes).to_string(), coverage))
    }
}

const MAX_FILE: usize = 256 << 20;
