//! The text of a lease, and the signature of the person who grants it.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use countersign_canon::{Json, Limits};
use countersign_event::Scope as Chain;
use ed25519_dalek::{Signature, Signer as _};

use super::{
    Budget, Constraint, Holder, HostSet, IntegerRange, Lease, LeaseError, PathRoot, SafePrefix,
    Term, Terms, Validity, check,
};
use crate::call::{Tool, digest_json};
use crate::form::{self, Fields, FormError, wrong};
use crate::key::{KeyId, Keyring, SigningKey};
use crate::principal::Lineage;
use crate::time::UnixMs;

/// A lease with the signature of the person who grants it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedLease {
    lease: Lease,
    key: KeyId,
    signature: Signature,
}

/// Proof that a person signed for a lease with a key that may still decide. Only
/// [`SignedLease::verify`] makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proven<'a>(&'a Lease);

impl<'a> Proven<'a> {
    /// The lease.
    pub const fn lease(&self) -> &'a Lease {
        self.0
    }
}

impl Lease {
    /// Signs the lease with the key of the person who grants it.
    pub fn sign(self, key: &SigningKey) -> SignedLease {
        let id = KeyId::of(&key.verifying_key());
        SignedLease {
            signature: key.sign(&signed_text(&self, id)),
            lease: self,
            key: id,
        }
    }

    /// The exact bytes that a signature with this key covers.
    pub fn signed_text(&self, key: KeyId) -> Vec<u8> {
        signed_text(self, key)
    }

    /// The canonical text: what is stored.
    pub fn to_text(&self) -> Vec<u8> {
        Json::object(members(self)).to_sorted_ascii()
    }

    /// Reads a lease back from its canonical text. Whether it is within its parent is checked again
    /// at each use.
    pub fn read(text: &[u8]) -> Result<Self, LeaseError> {
        let mut fields = Fields::of("lease", form::canonical(text, &Limits::plan())?)?;
        let lease = take(&mut fields)?;
        fields.end()?;
        match lease.to_text() == text {
            true => Ok(lease),
            false => Err(FormError::NotCanonical.into()),
        }
    }
}

impl SignedLease {
    /// The lease, if the person who grants it has signed it with a key that may still decide.
    pub fn verify(&self, keys: &Keyring) -> Result<Proven<'_>, LeaseError> {
        let key = keys.deciding(self.key, &self.lease.terms.granted_by);
        let key = key.map_err(|_| LeaseError::Signature)?;
        // SECURITY: strict, so that weak keys and the other encodings of a signature are refused.
        let text = signed_text(&self.lease, self.key);
        match key.verify_strict(&text, &self.signature) {
            Ok(()) => Ok(Proven(&self.lease)),
            Err(_) => Err(LeaseError::Signature),
        }
    }

    /// What it says, if its signature holds.
    pub const fn claims(&self) -> &Lease {
        &self.lease
    }

    /// The key it claims to be signed with.
    pub const fn key_id(&self) -> KeyId {
        self.key
    }

    /// The text that is stored.
    pub fn to_text(&self) -> Vec<u8> {
        let signature = base16ct::lower::encode_string(&self.signature.to_bytes());
        let signed = [
            ("key_id", Json::from(self.key.to_string())),
            ("signature", Json::from(signature)),
        ];
        Json::object(members(&self.lease).into_iter().chain(signed)).to_sorted_ascii()
    }

    /// Reads the stored text. Nobody has checked the signature yet.
    pub fn read(text: &[u8]) -> Result<Self, LeaseError> {
        let mut fields = Fields::of("lease", form::canonical(text, &Limits::plan())?)?;
        let lease = take(&mut fields)?;
        let key = fields.parsed("key_id")?;
        let signature = base16ct::lower::decode_vec(fields.text("signature")?).ok();
        let signature: Option<[u8; 64]> = signature.and_then(|bytes| bytes.try_into().ok());
        let signature = signature.ok_or(wrong("signature", "128 lower-case hex digits"))?;
        fields.end()?;
        let signed = Self {
            lease,
            key,
            signature: Signature::from_bytes(&signature),
        };
        match signed.to_text() == text {
            true => Ok(signed),
            false => Err(FormError::NotCanonical.into()),
        }
    }
}

fn signed_text(lease: &Lease, key: KeyId) -> Vec<u8> {
    let signed = [("key_id", Json::from(key.to_string()))];
    Json::object(members(lease).into_iter().chain(signed)).to_sorted_ascii()
}

fn members(lease: &Lease) -> Vec<(&'static str, Json)> {
    let Terms {
        id,
        tool,
        arguments,
        max_uses,
        budget,
        valid,
        holder,
        least_trust,
        policy,
        granted_by,
    } = &lease.terms;
    let arguments = arguments
        .iter()
        .map(|(name, term)| (name.as_str(), term_json(term)));
    let budget = budget.as_ref().map(|budget| {
        Json::object([
            ("argument", Json::from(budget.argument.as_str())),
            ("limit", Json::from(budget.limit)),
        ])
    });
    vec![
        ("arguments", Json::object(arguments)),
        ("budget", Json::from(budget)),
        ("children", Json::from(holder.children)),
        ("ctx", Json::from(CONTEXT)),
        ("definition_digest", digest_json(tool.definition)),
        ("expires_at_ms", Json::from(valid.expires_at)),
        ("granted_at_ms", Json::from(valid.granted_at)),
        ("granted_by", Json::from(granted_by.to_string())),
        ("lease_id", Json::from(id.to_string())),
        ("least_trust", Json::from(least_trust.as_str())),
        ("lineage", holder.lineage.to_json()),
        ("max_uses", Json::from(max_uses.get())),
        (
            "parent_lease_id",
            Json::from(lease.parent.map(|id| id.to_string())),
        ),
        ("policy_digest", Json::from(policy.to_string())),
        ("server", Json::from(tool.server.clone())),
        ("session_id", Json::from(holder.chain.session.as_str())),
        ("tenant_id", Json::from(holder.chain.tenant.as_str())),
        ("tool_name", Json::from(tool.name.as_str())),
        ("work_item_id", Json::from(holder.work_item.as_str())),
    ]
}

fn take(fields: &mut Fields) -> Result<Lease, LeaseError> {
    if fields.text("ctx")? != CONTEXT {
        return Err(wrong("ctx", "the context of a lease").into());
    }
    let terms = Terms {
        id: fields.parsed("lease_id")?,
        tool: Tool::take(fields)?,
        arguments: read_terms(fields.take("arguments")?)?,
        max_uses: NonZeroU64::new(fields.count("max_uses")?)
            .ok_or(wrong("max_uses", "at least one"))?,
        budget: read_budget(fields.take("budget")?)?,
        valid: Validity {
            granted_at: read_time(fields, "granted_at_ms")?,
            expires_at: read_time(fields, "expires_at_ms")?,
        },
        holder: Holder {
            chain: Chain {
                tenant: fields.parsed("tenant_id")?,
                session: fields.parsed("session_id")?,
            },
            work_item: fields.parsed("work_item_id")?,
            lineage: Lineage::read("lineage", fields.list("lineage")?)?,
            children: fields.flag("children")?,
        },
        least_trust: fields.parsed("least_trust")?,
        policy: fields.parsed("policy_digest")?,
        granted_by: fields.parsed("granted_by")?,
    };
    check(&terms)?;
    let parent = fields.nullable("parent_lease_id")?;
    Ok(Lease { terms, parent })
}

/// A time that is written as it is read.
fn read_time(fields: &mut Fields, member: &'static str) -> Result<UnixMs, FormError> {
    let ms = fields.count(member)?;
    let time = UnixMs::new(ms);
    match time.get() == ms {
        true => Ok(time),
        false => Err(wrong(member, "a time before the year 10000")),
    }
}

fn read_budget(json: Json) -> Result<Option<Budget>, FormError> {
    if json.is_null() {
        return Ok(None);
    }
    let mut fields = Fields::of("budget", json)?;
    let budget = Budget {
        argument: fields.text("argument")?,
        limit: fields.count("limit")?,
    };
    fields.end()?;
    Ok(Some(budget))
}

fn read_terms(json: Json) -> Result<BTreeMap<String, Term>, FormError> {
    let object = json.into_object().ok_or(wrong("arguments", "an object"))?;
    let terms = object.into_iter().map(|(name, json)| {
        let mut fields = Fields::of("arguments", json)?;
        let constraint = read_constraint(fields.text("kind")?.as_str(), fields.take("value")?)?;
        let may_be_absent = fields.flag("may_be_absent")?;
        fields.end()?;
        let term = Term {
            constraint,
            may_be_absent,
        };
        Ok((name, term))
    });
    terms.collect()
}

fn term_json(term: &Term) -> Json {
    let list = |texts: Vec<&str>| Json::Array(texts.into_iter().map(Json::from).collect());
    let (kind, value) = match &term.constraint {
        Constraint::Exact(value) => (EXACT, value.clone()),
        Constraint::OneOf(values) => (ONE_OF, Json::Array(values.clone())),
        Constraint::PathUnder(root) => (PATH_UNDER, Json::from(root.as_str())),
        Constraint::HostIn(hosts) => (HOST_IN, list(hosts.iter().collect())),
        Constraint::Range(range) => {
            let ends = [range.min(), range.max()];
            (RANGE, Json::Array(ends.map(Json::from).to_vec()))
        }
        Constraint::Prefix(prefix) => (PREFIX, Json::from(prefix.as_str())),
    };
    Json::object([
        ("kind", Json::from(kind)),
        ("may_be_absent", Json::from(term.may_be_absent)),
        ("value", value),
    ])
}

fn read_constraint(kind: &str, value: Json) -> Result<Constraint, FormError> {
    let refused = |error| FormError::refused("value", error);
    let text = |value: Json| value.into_string().ok_or(wrong("value", "a text"));
    let list = |value: Json| value.into_array().ok_or(wrong("value", "a list"));
    Ok(match kind {
        EXACT => Constraint::Exact(value),
        ONE_OF => Constraint::OneOf(list(value)?),
        PATH_UNDER => Constraint::PathUnder(PathRoot::new(text(value)?).map_err(refused)?),
        HOST_IN => {
            let hosts: Result<Vec<_>, _> = list(value)?.into_iter().map(text).collect();
            Constraint::HostIn(HostSet::new(hosts?).map_err(refused)?)
        }
        RANGE => match list(value)?.as_slice() {
            [min, max] => {
                let ends = min.as_i64().zip(max.as_i64());
                let (min, max) = ends.ok_or(wrong("value", "two whole numbers"))?;
                Constraint::Range(IntegerRange::new(min, max).map_err(refused)?)
            }
            _ => return Err(wrong("value", "two whole numbers")),
        },
        PREFIX => Constraint::Prefix(SafePrefix::new(text(value)?).map_err(refused)?),
        _ => return Err(wrong("kind", "a kind of constraint that is known")),
    })
}

/// Keeps signatures of leases apart from all others by the same key.
const CONTEXT: &str = "countersign.lease.v1";

const EXACT: &str = "exact";
const ONE_OF: &str = "one_of";
const PATH_UNDER: &str = "path_under";
const HOST_IN: &str = "host_in";
const RANGE: &str = "range";
const PREFIX: &str = "prefix";
