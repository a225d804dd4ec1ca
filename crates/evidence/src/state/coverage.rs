//! What a digest of state covers, by kind.

use countersign_canon::{Json, Object};

use super::members::{CoverageFault, CoverageProblem, Members};
use crate::word::words;

words! {
    /// What was digested.
    Kind {
        /// A tree of git objects.
        GitTree = "git-tree",
        /// Files of a sandbox.
        SandboxFs = "sandbox-fs",
        /// Rows of a table.
        DbRowset = "db-rowset",
        /// A part of a page in a browser.
        BrowserDom = "browser-dom",
        /// Values that an operator keeps.
        KvSnapshot = "kv-snapshot",
        /// Values that an agent keeps.
        MemoryBag = "memory-bag",
        /// Something that a vendor describes.
        Other = "other",
    }
}

words! {
    /// What became of symbolic links.
    SymlinkPolicy {
        /// What they lead to was digested.
        Follow = "follow",
        /// They were digested as links.
        NoFollow = "no-follow",
        /// There were none, or there would be no digest.
        Reject = "reject",
    }
}

words! {
    /// In which language a selector is written.
    SelectorKind {
        /// CSS
        Css = "css",
        /// XPath
        Xpath = "xpath",
    }
}

words! {
    /// When a page was captured.
    CapturePhase {
        /// Before its scripts took over.
        PreHydration = "pre-hydration",
        /// After they did.
        PostHydration = "post-hydration",
        /// After a tool answered.
        PostToolResult = "post-tool-result",
        /// When nothing changed any more.
        StableQuiescent = "stable-quiescent",
    }
}

words! {
    /// In which order attributes were digested.
    AttributeOrder {
        /// As they stand.
        AsIs = "as-is",
        /// By name.
        SortedAsc = "sorted-asc",
    }
}

words! {
    /// What became of white space.
    WhitespacePolicy {
        /// It was kept.
        Preserve = "preserve",
        /// A run of it counts as one space.
        Collapse = "collapse",
    }
}

words! {
    /// How long the values live.
    Lifetime {
        /// They stay.
        DurableOnly = "durable-only",
        /// They go with the run.
        ScratchOnly = "scratch-only",
        /// Both.
        Mixed = "mixed",
    }
}

words! {
    /// On which part of mixed values equality rests.
    Basis {
        /// On those that stay.
        DurableOnly = "durable-only",
        /// On none.
        None = "none",
    }
}

/// The four buckets of a coverage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts<I, S, B, O> {
    /// What was observed.
    pub identity: I,
    /// Which part of it.
    pub selector: S,
    /// In which frame.
    pub boundary: B,
    /// What is diagnostic only.
    pub observed: O,
}

/// A bucket without fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nothing;

macro_rules! bucket {
    ($( $(#[$doc:meta])* $name:ident { $( $member:ident: $type:ty, )+ } )+) => { $(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the names are those of the format")]
        pub struct $name { $( pub $member: $type, )+ }
    )+ };
}

bucket! {
    /// Which tree.
    GitIdentity { tree_sha: String, tree_root: String, }
    /// Which part of the tree.
    GitSelector { path_predicate: Option<String>, excludes: Option<Vec<String>>, }
    /// Which table.
    DatabaseIdentity { database_id: String, schema: String, table: String, }
    /// Which rows.
    DatabaseSelector { rows_predicate: String, query_hash: String, }
    /// At which moment of the database.
    DatabaseBoundary { snapshot_id: Option<String>, isolation_level: Option<String>, }
    /// How many rows there were.
    DatabaseObserved { row_count: Option<u64>, }
    /// Which sandbox.
    FilesIdentity { base_image_digest: String, sandbox_root: String, }
    /// Which files.
    FilesSelector { include_predicates: Vec<String>, exclude_predicates: Vec<String>, }
    /// How files were read.
    FilesBoundary { symlink_policy: SymlinkPolicy, generated_paths_included: bool, }
    /// How many files there were.
    FilesObserved { file_count: Option<u64>, }
    /// Which page.
    BrowserIdentity { origin: String, route_path: String, frame_path: String, }
    /// Which part of the page.
    BrowserSelector { selector_root: String, selector_kind: SelectorKind, }
    /// When, and how it was normalised.
    BrowserBoundary {
        capture_phase: CapturePhase,
        capture_timestamp_ms: Option<u64>,
        attribute_order: AttributeOrder,
        whitespace_policy: WhitespacePolicy,
    }
    /// Whether only text was digested.
    BrowserObserved { text_only: Option<bool>, }
    /// Whose values.
    ValuesIdentity { namespace: String, }
    /// Which of them.
    ValuesSelector { key_predicate: Option<String>, }
    /// At which version, and which of them stay.
    ValuesBoundary {
        vector_clock: Option<Object>,
        read_timestamp_ms: Option<u64>,
        generation_number: Option<u64>,
        redaction_profile: String,
        durable_vs_scratch: Lifetime,
        mixed_partition: Option<MixedPartition>,
    }
    /// Which values stay and which go.
    MixedPartition {
        durable_keys: Vec<String>,
        scratch_keys: Vec<String>,
        audit_equality_basis: Basis,
    }
    /// A vendor's kind.
    VendorIdentity { other_kind: String, }
    /// Which version of the vendor's description.
    VendorSelector { coverage_schema_version: String, description: String, }
}

/// A tree of git objects.
pub type GitTree = Parts<GitIdentity, GitSelector, Nothing, Nothing>;
/// Rows of a table.
pub type Database = Parts<DatabaseIdentity, DatabaseSelector, DatabaseBoundary, DatabaseObserved>;
/// Files of a sandbox.
pub type Files = Parts<FilesIdentity, FilesSelector, FilesBoundary, FilesObserved>;
/// A part of a page.
pub type Browser = Parts<BrowserIdentity, BrowserSelector, BrowserBoundary, BrowserObserved>;
/// Values by key.
pub type Values = Parts<ValuesIdentity, ValuesSelector, ValuesBoundary, Nothing>;
/// What a vendor describes.
pub type Vendor = Parts<VendorIdentity, VendorSelector, Nothing, Nothing>;

/// What a digest covers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of the kinds")]
pub enum Coverage {
    GitTree(GitTree),
    SandboxFs(Files),
    DbRowset(Database),
    BrowserDom(Browser),
    KvSnapshot(Values),
    MemoryBag(Values),
    Other(Vendor),
}

impl Coverage {
    /// Reads the coverage of a digest of this kind; gives the members that it does not know beside.
    pub fn read(kind: Kind, coverage: &Object) -> Result<(Self, Object), Vec<CoverageProblem>> {
        let mut problems = Vec::new();
        let mut members = Members::new(coverage, "", &mut problems);
        let read = match kind {
            Kind::GitTree => Self::GitTree(git_tree(&mut members)),
            Kind::SandboxFs => Self::SandboxFs(files(&mut members)),
            Kind::DbRowset => Self::DbRowset(database(&mut members)),
            Kind::BrowserDom => Self::BrowserDom(browser(&mut members)),
            Kind::KvSnapshot => Self::KvSnapshot(values(&mut members)),
            Kind::MemoryBag => Self::MemoryBag(values(&mut members)),
            Kind::Other => Self::Other(vendor(&mut members)),
        };
        let rest = members.rest();
        match problems.is_empty() {
            true => Ok((read, rest)),
            false => Err(problems),
        }
    }

    /// What kind of state it is about.
    pub fn kind(&self) -> Kind {
        match self {
            Self::GitTree(_) => Kind::GitTree,
            Self::SandboxFs(_) => Kind::SandboxFs,
            Self::DbRowset(_) => Kind::DbRowset,
            Self::BrowserDom(_) => Kind::BrowserDom,
            Self::KvSnapshot(_) => Kind::KvSnapshot,
            Self::MemoryBag(_) => Kind::MemoryBag,
            Self::Other(_) => Kind::Other,
        }
    }

    /// The flat form of the format. What is absent has no member.
    pub fn to_json(&self) -> Json {
        let members: Vec<(&str, Json)> = match self {
            Self::GitTree(tree) => vec![
                ("tree_sha", text(&tree.identity.tree_sha)),
                ("tree_root", text(&tree.identity.tree_root)),
                (
                    "path_predicate",
                    tree.selector.path_predicate.clone().into(),
                ),
                ("excludes", optional_list(tree.selector.excludes.as_deref())),
            ],
            Self::SandboxFs(files) => vec![
                ("base_image_digest", text(&files.identity.base_image_digest)),
                ("sandbox_root", text(&files.identity.sandbox_root)),
                (
                    "include_predicates",
                    list(&files.selector.include_predicates),
                ),
                (
                    "exclude_predicates",
                    list(&files.selector.exclude_predicates),
                ),
                (
                    "symlink_policy",
                    files.boundary.symlink_policy.as_str().into(),
                ),
                (
                    "generated_paths_included",
                    files.boundary.generated_paths_included.into(),
                ),
                ("file_count", files.observed.file_count.into()),
            ],
            Self::DbRowset(rows) => vec![
                ("database_id", text(&rows.identity.database_id)),
                ("schema", text(&rows.identity.schema)),
                ("table", text(&rows.identity.table)),
                ("rows_predicate", text(&rows.selector.rows_predicate)),
                ("query_hash", text(&rows.selector.query_hash)),
                ("snapshot_id", rows.boundary.snapshot_id.clone().into()),
                (
                    "isolation_level",
                    rows.boundary.isolation_level.clone().into(),
                ),
                ("row_count", rows.observed.row_count.into()),
            ],
            Self::BrowserDom(page) => vec![
                ("origin", text(&page.identity.origin)),
                ("route_path", text(&page.identity.route_path)),
                ("frame_path", text(&page.identity.frame_path)),
                ("selector_root", text(&page.selector.selector_root)),
                ("selector_kind", page.selector.selector_kind.as_str().into()),
                ("capture_phase", page.boundary.capture_phase.as_str().into()),
                (
                    "capture_timestamp_ms",
                    page.boundary.capture_timestamp_ms.into(),
                ),
                (
                    "attribute_order",
                    page.boundary.attribute_order.as_str().into(),
                ),
                (
                    "whitespace_policy",
                    page.boundary.whitespace_policy.as_str().into(),
                ),
                ("text_only", page.observed.text_only.into()),
            ],
            Self::KvSnapshot(values) | Self::MemoryBag(values) => values_members(values),
            Self::Other(vendor) => vec![
                ("other_kind", text(&vendor.identity.other_kind)),
                (
                    "coverage_schema_version",
                    text(&vendor.selector.coverage_schema_version),
                ),
                ("description", text(&vendor.selector.description)),
            ],
        };
        Json::object(members.into_iter().filter(|(_, value)| !value.is_null()))
    }
}

fn git_tree(members: &mut Members<'_>) -> GitTree {
    GitTree {
        identity: GitIdentity {
            tree_sha: members.name("tree_sha"),
            tree_root: members.text("tree_root"),
        },
        selector: GitSelector {
            path_predicate: members.optional_text("path_predicate"),
            excludes: members.optional_list("excludes"),
        },
        boundary: Nothing,
        observed: Nothing,
    }
}

fn files(members: &mut Members<'_>) -> Files {
    Files {
        identity: FilesIdentity {
            base_image_digest: members.name("base_image_digest"),
            sandbox_root: members.text("sandbox_root"),
        },
        selector: FilesSelector {
            include_predicates: members.list("include_predicates"),
            exclude_predicates: members.list("exclude_predicates"),
        },
        boundary: FilesBoundary {
            symlink_policy: members.word("symlink_policy", SymlinkPolicy::Reject),
            generated_paths_included: members.flag("generated_paths_included"),
        },
        observed: FilesObserved {
            file_count: members.count("file_count"),
        },
    }
}

fn database(members: &mut Members<'_>) -> Database {
    let identity = DatabaseIdentity {
        database_id: members.name("database_id"),
        schema: members.text("schema"),
        table: members.name("table"),
    };
    // SECURITY: a connection string holds credentials, and another replica has another one.
    if is_connection_string(&identity.database_id) {
        members.problem(
            "database_id",
            CoverageFault::Form("a label: it is a connection string"),
        );
    }
    Database {
        identity,
        selector: DatabaseSelector {
            rows_predicate: members.text("rows_predicate"),
            query_hash: members.name("query_hash"),
        },
        boundary: DatabaseBoundary {
            snapshot_id: members.optional_text("snapshot_id"),
            isolation_level: members.optional_text("isolation_level"),
        },
        observed: DatabaseObserved {
            row_count: members.count("row_count"),
        },
    }
}

fn browser(members: &mut Members<'_>) -> Browser {
    let identity = BrowserIdentity {
        origin: members.name("origin"),
        route_path: members.text("route_path"),
        frame_path: members.text("frame_path"),
    };
    if names_one_thing(&identity.route_path) {
        members.problem(
            "route_path",
            CoverageFault::Form("a template: it names one thing, as in `/orders/12345/lines`"),
        );
    }
    Browser {
        identity,
        selector: BrowserSelector {
            selector_root: members.text("selector_root"),
            selector_kind: members.word("selector_kind", SelectorKind::Css),
        },
        boundary: BrowserBoundary {
            capture_phase: members.word("capture_phase", CapturePhase::PreHydration),
            capture_timestamp_ms: members.count("capture_timestamp_ms"),
            attribute_order: members.word("attribute_order", AttributeOrder::AsIs),
            whitespace_policy: members.word("whitespace_policy", WhitespacePolicy::Preserve),
        },
        observed: BrowserObserved {
            text_only: members.optional_flag("text_only"),
        },
    }
}

fn values(members: &mut Members<'_>) -> Values {
    let vector_clock = members.object("vector_clock");
    if let Some(clock) = &vector_clock
        && !clock.iter().all(|(_, time)| time.as_number().is_some())
    {
        members.problem("vector_clock", CoverageFault::NotA("an object of numbers"));
    }
    let partition = members.object("mixed_partition");
    Values {
        identity: ValuesIdentity {
            namespace: members.name("namespace"),
        },
        selector: ValuesSelector {
            key_predicate: members.optional_text("key_predicate"),
        },
        boundary: ValuesBoundary {
            vector_clock,
            read_timestamp_ms: members.count("read_timestamp_ms"),
            generation_number: members.count("generation_number"),
            redaction_profile: members.text("redaction_profile"),
            durable_vs_scratch: members.word("durable_vs_scratch", Lifetime::Mixed),
            mixed_partition: partition.map(|partition| mixed(&partition, members)),
        },
        observed: Nothing,
    }
}

fn mixed(partition: &Object, members: &mut Members<'_>) -> MixedPartition {
    let mut problems = Vec::new();
    let mut inner = Members::new(partition, "mixed_partition/", &mut problems);
    let read = MixedPartition {
        durable_keys: keys(&mut inner, "durable_keys"),
        scratch_keys: keys(&mut inner, "scratch_keys"),
        audit_equality_basis: inner.word("audit_equality_basis", Basis::None),
    };
    for problem in problems {
        members.problem(&problem.member, problem.fault);
    }
    read
}

/// A list of keys, or one predicate that stands for them.
fn keys(members: &mut Members<'_>, name: &str) -> Vec<String> {
    match members.is_text(name) {
        true => vec![members.text(name)],
        false => members.list(name),
    }
}

fn vendor(members: &mut Members<'_>) -> Vendor {
    let identity = VendorIdentity {
        other_kind: members.name("other_kind"),
    };
    let selector = VendorSelector {
        coverage_schema_version: members.name("coverage_schema_version"),
        description: members.text("description"),
    };
    if !identity.other_kind.is_empty() && !is_namespace(&identity.other_kind) {
        members.problem(
            "other_kind",
            CoverageFault::Form("a namespace in the style of DNS, as `com.example.thing`"),
        );
    }
    let version = &selector.coverage_schema_version;
    if !version.is_empty() && !is_semantic_version(version) {
        members.problem(
            "coverage_schema_version",
            CoverageFault::Form("a semantic version, as `1.2.0`"),
        );
    }
    Vendor {
        identity,
        selector,
        boundary: Nothing,
        observed: Nothing,
    }
}

fn values_members(values: &Values) -> Vec<(&'static str, Json)> {
    let boundary = &values.boundary;
    let partition = boundary.mixed_partition.as_ref().map(|partition| {
        Json::object([
            ("durable_keys", list(&partition.durable_keys)),
            ("scratch_keys", list(&partition.scratch_keys)),
            (
                "audit_equality_basis",
                partition.audit_equality_basis.as_str().into(),
            ),
        ])
    });
    vec![
        ("namespace", text(&values.identity.namespace)),
        (
            "key_predicate",
            values.selector.key_predicate.clone().into(),
        ),
        ("vector_clock", boundary.vector_clock.clone().into()),
        ("read_timestamp_ms", boundary.read_timestamp_ms.into()),
        ("generation_number", boundary.generation_number.into()),
        ("redaction_profile", text(&boundary.redaction_profile)),
        (
            "durable_vs_scratch",
            boundary.durable_vs_scratch.as_str().into(),
        ),
        ("mixed_partition", partition.into()),
    ]
}

fn text(text: &str) -> Json {
    Json::from(text)
}

fn list(list: &[String]) -> Json {
    Json::Array(list.iter().map(|text| Json::from(text.as_str())).collect())
}

fn optional_list(texts: Option<&[String]>) -> Json {
    texts.map_or(Json::Null, list)
}

fn is_connection_string(label: &str) -> bool {
    let lower = label.to_ascii_lowercase();
    lower.contains("://") || lower.contains("password=") || lower.contains("pwd=")
}

/// Whether a segment of a route is a number of its own or a UUID, where a template has `{id}`.
fn names_one_thing(route: &str) -> bool {
    route.split('/').any(|segment| {
        let digits = segment.bytes().all(|byte| byte.is_ascii_digit());
        let uuid = segment.len() == 36
            && segment
                .bytes()
                .all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        digits && segment.len() > 2 || uuid
    })
}

fn is_namespace(name: &str) -> bool {
    let labels: Vec<&str> = name.split('.').collect();
    labels.len() > 1
        && labels.iter().all(|label| {
            !label.is_empty()
                && label.len() <= 63
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        })
}

fn is_semantic_version(version: &str) -> bool {
    let core = version.split(['-', '+']).next().unwrap_or_default();
    let numbers: Vec<&str> = core.split('.').collect();
    numbers.len() == 3
        && numbers.iter().all(|number| {
            !number.is_empty()
                && number.bytes().all(|byte| byte.is_ascii_digit())
                && (*number == "0" || !number.starts_with('0'))
        })
        && version.is_ascii()
}
