//! Whether two digests of state may be held against each other: yes, no, or under an assumption.

use super::coverage::{
    Basis, Browser, Coverage, Database, Files, GitTree, Kind, Lifetime, MixedPartition, Values,
    Vendor,
};
use super::digest::StateDigest;
use crate::word::words;

/// Exactly one of three answers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Comparability {
    /// Equal digests mean equal states, without further assumption.
    Comparable,
    /// Nothing follows from equal or different digests.
    NotComparable(Vec<Why>),
    /// Equal digests mean equal states, if these are accepted.
    Under(Vec<Assumption>),
}

/// Why two digests are not comparable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// A record that does not say what its digest covers.
    #[error("a digest without a coverage that can be read")]
    NoCoverage,
    /// Two kinds of state.
    #[error("`{}` and `{}` are different kinds", .0.as_str(), .1.as_str())]
    Kinds(Kind, Kind),
    /// Two algorithms.
    #[error("the digests are of different algorithms")]
    Algorithms,
    /// A field that has to match does not.
    #[error("{} `{member}` differs", .bucket.as_str())]
    Differs {
        /// Its bucket.
        bucket: Bucket,
        /// The field.
        member: String,
    },
    /// A field that has to match stands on one side only.
    #[error("{} `{member}` is on one side only", .bucket.as_str())]
    OneSided {
        /// Its bucket.
        bucket: Bucket,
        /// The field.
        member: String,
    },
    /// Values that stay and values that go, not told apart.
    #[error("mixed values without a partition")]
    Unpartitioned,
    /// Mixed values that were never meant to be compared.
    #[error("mixed values whose partition gives no basis for equality")]
    NoBasis,
    /// A vendor's kind for which the reader has no rule.
    #[error("`{0}` is a vendor's kind without a rule here")]
    NoVendorRule(String),
}

words! {
    /// Which of the four buckets a field is in.
    Bucket {
        /// What was observed.
        Identity = "identity",
        /// Which part of it.
        Selector = "selector",
        /// In which frame.
        Boundary = "boundary",
        /// Diagnostic.
        Observational = "observational",
        /// Nobody knows.
        Unknown = "unknown",
    }
}

words! {
    /// What has to be accepted for a comparison.
    Assumption {
        /// Rows were read without a snapshot.
        NoSnapshot = "best-effort, no snapshot",
        /// Values were read without a version.
        NoVersion = "best-effort, no version",
        /// Only what stays is compared.
        DurableSubset = "durable subset only",
        /// A vendor says that equal means equal.
        VendorDeclared = "vendor-declared equality",
    }
}

words! {
    /// Which two states are held against each other.
    Sides {
        /// The same side of two records: both before, or both after. Every field counts.
        Same = "same side",
        /// Before and after one action, which share one coverage. What differs between two moments by
        /// its nature does not count: the tree, the snapshot, the version, the time of a capture.
        BeforeAndAfter = "before and after",
    }
}

/// Compares the same side of two records; no vendor's kind has a rule.
pub fn compare(a: &StateDigest, b: &StateDigest) -> Comparability {
    compare_with(a, b, Sides::Same, &[])
}

/// Compares two digests. `vendors` are the namespaces with their versions for which the reader accepts
/// that a vendor declares equality.
pub fn compare_with(
    a: &StateDigest,
    b: &StateDigest,
    sides: Sides,
    vendors: &[(&str, &str)],
) -> Comparability {
    let (Some(left), Some(right)) = (&a.coverage, &b.coverage) else {
        return Comparability::NotComparable(vec![Why::NoCoverage]);
    };
    let mut comparison = Comparison {
        sides,
        why: Vec::new(),
        assumptions: Vec::new(),
    };
    match (left, right) {
        (Coverage::GitTree(a), Coverage::GitTree(b)) => comparison.git_tree(a, b),
        (Coverage::SandboxFs(a), Coverage::SandboxFs(b)) => comparison.files(a, b),
        (Coverage::DbRowset(a), Coverage::DbRowset(b)) => comparison.database(a, b),
        (Coverage::BrowserDom(a), Coverage::BrowserDom(b)) => comparison.browser(a, b),
        (Coverage::KvSnapshot(a), Coverage::KvSnapshot(b))
        | (Coverage::MemoryBag(a), Coverage::MemoryBag(b)) => comparison.values(a, b),
        (Coverage::Other(a), Coverage::Other(b)) => comparison.vendor(a, b, vendors),
        (a, b) => {
            let kinds = Why::Kinds(a.kind(), b.kind());
            return Comparability::NotComparable(vec![kinds]);
        }
    }
    comparison.unknown(a, b);
    if a.algorithm() != b.algorithm() {
        comparison.why.push(Why::Algorithms);
    }
    comparison.answer()
}

struct Comparison {
    sides: Sides,
    why: Vec<Why>,
    assumptions: Vec<Assumption>,
}

impl Comparison {
    fn answer(self) -> Comparability {
        match (self.why.is_empty(), self.assumptions.is_empty()) {
            (false, _) => Comparability::NotComparable(self.why),
            (true, true) => Comparability::Comparable,
            (true, false) => Comparability::Under(self.assumptions),
        }
    }

    fn git_tree(&mut self, a: &GitTree, b: &GitTree) {
        if self.sides == Sides::Same {
            self.identity("tree_sha", &a.identity.tree_sha, &b.identity.tree_sha);
        }
        self.identity("tree_root", &a.identity.tree_root, &b.identity.tree_root);
        let (one, other) = (&a.selector, &b.selector);
        self.optional(
            Bucket::Selector,
            "path_predicate",
            one.path_predicate.as_ref(),
            other.path_predicate.as_ref(),
        );
        // No list excludes what an empty list excludes.
        let (one, other) = (one.excludes.as_deref(), other.excludes.as_deref());
        self.set(
            "excludes",
            one.unwrap_or_default(),
            other.unwrap_or_default(),
        );
    }

    fn files(&mut self, a: &Files, b: &Files) {
        let (one, other) = (&a.identity, &b.identity);
        self.identity(
            "base_image_digest",
            &one.base_image_digest,
            &other.base_image_digest,
        );
        self.identity("sandbox_root", &one.sandbox_root, &other.sandbox_root);
        let (one, other) = (&a.selector, &b.selector);
        self.set(
            "include_predicates",
            &one.include_predicates,
            &other.include_predicates,
        );
        self.set(
            "exclude_predicates",
            &one.exclude_predicates,
            &other.exclude_predicates,
        );
        let (one, other) = (&a.boundary, &b.boundary);
        self.boundary("symlink_policy", &one.symlink_policy, &other.symlink_policy);
        self.boundary(
            "generated_paths_included",
            &one.generated_paths_included,
            &other.generated_paths_included,
        );
    }

    /// The hash of the predicate counts, not how the predicate is written.
    fn database(&mut self, a: &Database, b: &Database) {
        let (one, other) = (&a.identity, &b.identity);
        self.identity("database_id", &one.database_id, &other.database_id);
        self.identity("schema", &one.schema, &other.schema);
        self.identity("table", &one.table, &other.table);
        let (one, other) = (&a.selector.query_hash, &b.selector.query_hash);
        self.same(Bucket::Selector, "query_hash", one, other);
        let (one, other) = (&a.boundary, &b.boundary);
        let snapshots = (one.snapshot_id.as_ref(), other.snapshot_id.as_ref());
        if self.sides == Sides::Same {
            self.optional(Bucket::Boundary, "snapshot_id", snapshots.0, snapshots.1);
        }
        if snapshots.0.is_none() && snapshots.1.is_none() {
            self.assumptions.push(Assumption::NoSnapshot);
        }
        self.optional(
            Bucket::Boundary,
            "isolation_level",
            one.isolation_level.as_ref(),
            other.isolation_level.as_ref(),
        );
    }

    fn browser(&mut self, a: &Browser, b: &Browser) {
        let (one, other) = (&a.identity, &b.identity);
        self.identity("origin", &one.origin, &other.origin);
        self.identity("route_path", &one.route_path, &other.route_path);
        self.identity("frame_path", &one.frame_path, &other.frame_path);
        let (one, other) = (&a.selector, &b.selector);
        self.same(
            Bucket::Selector,
            "selector_root",
            &one.selector_root,
            &other.selector_root,
        );
        self.same(
            Bucket::Selector,
            "selector_kind",
            &one.selector_kind,
            &other.selector_kind,
        );
        let (one, other) = (&a.boundary, &b.boundary);
        self.boundary("capture_phase", &one.capture_phase, &other.capture_phase);
        if self.sides == Sides::Same {
            self.optional(
                Bucket::Boundary,
                "capture_timestamp_ms",
                one.capture_timestamp_ms.as_ref(),
                other.capture_timestamp_ms.as_ref(),
            );
        }
        self.boundary(
            "attribute_order",
            &one.attribute_order,
            &other.attribute_order,
        );
        self.boundary(
            "whitespace_policy",
            &one.whitespace_policy,
            &other.whitespace_policy,
        );
        // It is listed as diagnostic, but it changes what is digested: text against a whole page can
        // never be equal for a reason that means something.
        let (one, other) = (a.observed.text_only, b.observed.text_only);
        self.same(
            Bucket::Observational,
            "text_only",
            &one.unwrap_or_default(),
            &other.unwrap_or_default(),
        );
    }

    fn values(&mut self, a: &Values, b: &Values) {
        self.identity("namespace", &a.identity.namespace, &b.identity.namespace);
        let (one, other) = (&a.selector, &b.selector);
        self.optional(
            Bucket::Selector,
            "key_predicate",
            one.key_predicate.as_ref(),
            other.key_predicate.as_ref(),
        );
        let (one, other) = (&a.boundary, &b.boundary);
        if self.sides == Sides::Same {
            self.optional(
                Bucket::Boundary,
                "vector_clock",
                one.vector_clock.as_ref(),
                other.vector_clock.as_ref(),
            );
            self.optional(
                Bucket::Boundary,
                "read_timestamp_ms",
                one.read_timestamp_ms.as_ref(),
                other.read_timestamp_ms.as_ref(),
            );
            self.optional(
                Bucket::Boundary,
                "generation_number",
                one.generation_number.as_ref(),
                other.generation_number.as_ref(),
            );
        }
        let versioned = |values: &Values| {
            let boundary = &values.boundary;
            boundary.vector_clock.is_some()
                || boundary.read_timestamp_ms.is_some()
                || boundary.generation_number.is_some()
        };
        if !versioned(a) && !versioned(b) {
            self.assumptions.push(Assumption::NoVersion);
        }
        self.boundary(
            "redaction_profile",
            &one.redaction_profile,
            &other.redaction_profile,
        );
        self.boundary(
            "durable_vs_scratch",
            &one.durable_vs_scratch,
            &other.durable_vs_scratch,
        );
        if one.durable_vs_scratch == Lifetime::Mixed && other.durable_vs_scratch == Lifetime::Mixed
        {
            self.mixed(one.mixed_partition.as_ref(), other.mixed_partition.as_ref());
        }
    }

    fn mixed(&mut self, a: Option<&MixedPartition>, b: Option<&MixedPartition>) {
        let (Some(a), Some(b)) = (a, b) else {
            self.why.push(Why::Unpartitioned);
            return;
        };
        self.key_set("durable_keys", &a.durable_keys, &b.durable_keys);
        self.key_set("scratch_keys", &a.scratch_keys, &b.scratch_keys);
        self.boundary(
            "mixed_partition/audit_equality_basis",
            &a.audit_equality_basis,
            &b.audit_equality_basis,
        );
        match (a.audit_equality_basis, b.audit_equality_basis) {
            (Basis::DurableOnly, Basis::DurableOnly) => {
                self.assumptions.push(Assumption::DurableSubset);
            }
            (Basis::None, Basis::None) => self.why.push(Why::NoBasis),
            _ => {}
        }
    }

    fn vendor(&mut self, a: &Vendor, b: &Vendor, vendors: &[(&str, &str)]) {
        let (one, other) = (&a.identity.other_kind, &b.identity.other_kind);
        self.identity("other_kind", one, other);
        let versions = (
            &a.selector.coverage_schema_version,
            &b.selector.coverage_schema_version,
        );
        self.same(
            Bucket::Selector,
            "coverage_schema_version",
            versions.0,
            versions.1,
        );
        match vendors.contains(&(one.as_str(), versions.0.as_str())) {
            true => self.assumptions.push(Assumption::VendorDeclared),
            false => self.why.push(Why::NoVendorRule(one.clone())),
        }
    }

    /// FAIL-CLOSED: what nobody knows might be a boundary.
    fn unknown(&mut self, a: &StateDigest, b: &StateDigest) {
        let names = a.unknown.iter().chain(b.unknown.iter());
        let mut names: Vec<&str> = names.map(|(name, _)| name).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let (one, other) = (a.unknown.get(name), b.unknown.get(name));
            self.optional(Bucket::Unknown, name, one, other);
        }
    }

    fn identity(&mut self, member: &str, a: &str, b: &str) {
        self.same(Bucket::Identity, member, a, b);
    }

    fn boundary<T: PartialEq + ?Sized>(&mut self, member: &str, a: &T, b: &T) {
        self.same(Bucket::Boundary, member, a, b);
    }

    fn same<T: PartialEq + ?Sized>(&mut self, bucket: Bucket, member: &str, a: &T, b: &T) {
        if a != b {
            self.why.push(Why::Differs {
                bucket,
                member: member.to_owned(),
            });
        }
    }

    fn optional<T: PartialEq>(
        &mut self,
        bucket: Bucket,
        member: &str,
        a: Option<&T>,
        b: Option<&T>,
    ) {
        match (a, b) {
            (None, None) => {}
            (Some(a), Some(b)) => self.same(bucket, member, a, b),
            _ => self.why.push(Why::OneSided {
                bucket,
                member: member.to_owned(),
            }),
        }
    }

    /// Predicates select the same in any order.
    fn set(&mut self, member: &str, a: &[String], b: &[String]) {
        self.same(Bucket::Selector, member, &sorted(a), &sorted(b));
    }

    fn key_set(&mut self, member: &str, a: &[String], b: &[String]) {
        let member = format!("mixed_partition/{member}");
        self.same(Bucket::Boundary, &member, &sorted(a), &sorted(b));
    }
}

fn sorted(list: &[String]) -> Vec<&String> {
    let mut list: Vec<&String> = list.iter().collect();
    list.sort_unstable();
    list.dedup();
    list
}
