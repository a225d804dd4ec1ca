//! Values by key, from a file of JSON.

use clap::{Args, ValueEnum};
use countersign_canon::{Digest, Json, Limits, Object};
use countersign_evidence::state::{
    Basis, Coverage, Lifetime, MixedPartition, Nothing, StateDigest, Values as Parts,
    ValuesBoundary, ValuesIdentity, ValuesSelector,
};

use super::{failed, glob};
use crate::errors::Failure;
use crate::input;

#[derive(Args)]
#[command(after_help = "\
The file holds one JSON object. The digest is SHA-256 over the RFC 8785 text of its selected members; of
mixed values, over those that stay (--durable-key).

Examples:
  countersign evidence state kv-snapshot flags.json --namespace ops/flags --generation 7
  countersign evidence state memory-bag notes.json --namespace agent/notes --lifetime mixed --durable-key plan")]
pub(crate) struct Values {
    /// The file, or - for standard input
    file: String,
    /// Whose values
    #[arg(long, value_name = "NAMESPACE")]
    namespace: String,
    /// Select these keys [default: all]
    #[arg(long, value_name = "PREDICATE")]
    key: Option<String>,
    /// The generation that was read
    #[arg(long, value_name = "N")]
    generation: Option<u64>,
    /// When it was read
    #[arg(long, value_name = "UNIX_MS")]
    read_at: Option<u64>,
    /// How content was redacted before
    #[arg(long, value_name = "PROFILE", default_value = "none")]
    redaction_profile: String,
    /// How long the values live
    #[arg(long, value_enum, default_value = "durable-only")]
    lifetime: Lives,
    /// A key that stays, of mixed values
    #[arg(long = "durable-key", value_name = "KEY")]
    durable: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Lives {
    /// They stay
    DurableOnly,
    /// They go with the run
    ScratchOnly,
    /// Both
    Mixed,
}

/// Who keeps the values.
pub(super) enum Keeper {
    /// An operator.
    Operator,
    /// An agent.
    Agent,
}

impl Values {
    pub(super) fn digest(self, keeper: Keeper) -> Result<StateDigest, Failure> {
        let text = input::file(&self.file, MAX_FILE)?;
        let limits = Limits {
            max_bytes: MAX_FILE,
            ..Limits::event()
        };
        let values = Json::admit(&text, &limits)?;
        let values = values
            .as_object()
            .ok_or_else(|| failed("the file does not hold an object"))?;
        let selected: Object = values
            .iter()
            .filter(|(key, _)| self.key.as_ref().is_none_or(|it| glob::matches(it, key)))
            .map(|(key, value)| (key.to_owned(), value.clone()))
            .collect();
        let is_mixed = self.lifetime == Lives::Mixed;
        let (durable, scratch): (Vec<_>, Vec<_>) = selected
            .iter()
            .map(|(key, _)| key.to_owned())
            .partition(|key| self.durable.contains(key));
        let digested = selected.iter().filter(|(key, _)| {
            !is_mixed || durable.is_empty() || durable.iter().any(|stays| stays == key)
        });
        let digested = Json::object(digested.map(|(key, value)| (key, value.clone())));
        let digest = Digest::of(&digested.to_jcs()?);
        let partition = MixedPartition {
            audit_equality_basis: match durable.is_empty() {
                true => Basis::None,
                false => Basis::DurableOnly,
            },
            durable_keys: durable,
            scratch_keys: scratch,
        };
        let parts = Parts {
            identity: ValuesIdentity {
                namespace: self.namespace,
            },
            selector: ValuesSelector {
                key_predicate: self.key,
            },
            boundary: ValuesBoundary {
                vector_clock: None,
                read_timestamp_ms: self.read_at,
                generation_number: self.generation,
                redaction_profile: self.redaction_profile,
                durable_vs_scratch: match self.lifetime {
                    Lives::DurableOnly => Lifetime::DurableOnly,
                    Lives::ScratchOnly => Lifetime::ScratchOnly,
                    Lives::Mixed => Lifetime::Mixed,
                },
                mixed_partition: is_mixed.then_some(partition),
            },
            observed: Nothing,
        };
        let coverage = match keeper {
            Keeper::Operator => Coverage::KvSnapshot(parts),
            Keeper::Agent => Coverage::MemoryBag(parts),
        };
        Ok(StateDigest::new(digest.to_string(), coverage))
    }
}

const MAX_FILE: usize = 256 << 20;
