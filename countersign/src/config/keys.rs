//! What can be set.

/// Everything that can be set, by name.
pub(crate) const KEYS: &[Key] = &[
    key(
        "listen",
        Kind::Text,
        Some("127.0.0.1:7117"),
        "Where callers find the daemon",
    ),
    key("data", Kind::Text, None, "The data folder"),
    key("manifest", Kind::Text, None, "What agents may use"),
    key(
        "policy",
        Kind::List,
        None,
        "Rego that has a say beside the manifest",
    ),
    key(
        "shadow",
        Kind::List,
        None,
        "Rego whose verdicts are recorded only",
    ),
    key(
        "acs",
        Kind::Text,
        None,
        "An Agent Control manifest, which has a say beside them",
    ),
    key(
        "allow_host",
        Kind::List,
        None,
        "Names, other than this machine's own, that callers may use",
    ),
    key(
        "allow_origin",
        Kind::List,
        None,
        "Origins whose web pages may call",
    ),
    key(
        "no_auth",
        Kind::Flag,
        Some("false"),
        "Let everybody in as the operator",
    ),
    key(
        "durability",
        Kind::Text,
        Some("full"),
        "`full`, or `relaxed`: survives a crash, not a power cut",
    ),
    key(
        "max_connections",
        Kind::Count,
        Some("1024"),
        "The most connections",
    ),
    key(
        "threads",
        Kind::Count,
        Some("64"),
        "How many threads wait for the disk",
    ),
    key(
        "drain_seconds",
        Kind::Count,
        Some("10"),
        "How long running actions have when the daemon ends",
    ),
    key(
        "checkpoint.seconds",
        Kind::Count,
        Some("60"),
        "How often a checkpoint of what is new is signed; 0 is never",
    ),
    key(
        "checkpoint.name",
        Kind::Text,
        None,
        "The name of the log, given once with its first checkpoint",
    ),
    key(
        "checkpoint.out",
        Kind::Text,
        None,
        "A folder that checkpoints and tiles are written to",
    ),
    key(
        "rate.token_per_second",
        Kind::Count,
        Some("0"),
        "Requests of one token; 0 is no limit",
    ),
    key(
        "rate.tenant_per_second",
        Kind::Count,
        Some("0"),
        "Requests of one tenant; 0 is no limit",
    ),
    key(
        "rate.tool_per_second",
        Kind::Count,
        Some("0"),
        "Proposals of one tool in one tenant; 0 is no limit",
    ),
    key(
        "tls.cert",
        Kind::Text,
        None,
        "The certificate chain, in PEM",
    ),
    key(
        "tls.key",
        Kind::Text,
        None,
        "The file of the private key, in PEM",
    ),
    key(
        "tls.key_command",
        Kind::List,
        None,
        "A command that prints the private key, in PEM",
    ),
    key(
        "oidc.issuer",
        Kind::Text,
        None,
        "The issuer whose tokens are taken beside our own",
    ),
    key(
        "oidc.audience",
        Kind::Text,
        None,
        "Whom its tokens must be for",
    ),
    key(
        "oidc.jwks_file",
        Kind::Text,
        None,
        "The file of its keys (a JSON web key set)",
    ),
    key(
        "oidc.jwks_url",
        Kind::Text,
        None,
        "The address of its keys, read every ten minutes",
    ),
    key(
        "oidc.role_claim",
        Kind::Text,
        Some("countersign_role"),
        "The claim that names the role",
    ),
    key(
        "oidc.tenant_claim",
        Kind::Text,
        Some("countersign_tenant"),
        "The claim that names the tenant",
    ),
    key(
        "oidc.client_id",
        Kind::Text,
        None,
        "What this daemon is called there: people sign in at the issuer",
    ),
    key(
        "oidc.client_secret_file",
        Kind::Text,
        None,
        "The file of the secret of that client, if it has one",
    ),
    key(
        "oidc.scope",
        Kind::Text,
        Some("openid"),
        "What is asked of the issuer when somebody signs in",
    ),
    key(
        "oidc.public_url",
        Kind::Text,
        None,
        "How browsers reach this daemon, if that is not how they call it",
    ),
    key(
        "oidc.visit_minutes",
        Kind::Count,
        Some("480"),
        "How long somebody who signed in stays in, at most twelve hours",
    ),
    key(
        "tls.client_ca",
        Kind::Text,
        None,
        "Only clients with a certificate of these authorities are let in",
    ),
    key(
        "telemetry.disabled",
        Kind::Flag,
        Some("false"),
        "Export no spans, neither to the file nor to a collector",
    ),
    key(
        "telemetry.file",
        Kind::Text,
        None,
        "The file of spans; `telemetry/spans.ndjson` in the data folder if absent",
    ),
    key(
        "telemetry.file_max_mib",
        Kind::Count,
        Some("64"),
        "How large the file of spans grows; one older file is kept",
    ),
    key(
        "telemetry.content",
        Kind::Flag,
        Some("false"),
        "Tell arguments and results too, redacted and made general",
    ),
    key(
        "telemetry.otlp_endpoint",
        Kind::Text,
        None,
        "The collector that spans are sent to; none if absent",
    ),
    key(
        "telemetry.otlp_protocol",
        Kind::Text,
        Some("http/protobuf"),
        "`http/protobuf`, `http/json` or `grpc`",
    ),
    key(
        "telemetry.otlp_headers_file",
        Kind::Text,
        None,
        "A file of headers for the collector, one a line",
    ),
    key(
        "redact.secret_names",
        Kind::List,
        None,
        "Further names whose values are secret, in any spelling",
    ),
    key(
        "redact.secret_prefixes",
        Kind::List,
        None,
        "Further beginnings of tokens",
    ),
    key(
        "redact.keep_email",
        Kind::Flag,
        Some("false"),
        "Whether e-mail addresses may be told",
    ),
    key(
        "redact.keep_numbers",
        Kind::Flag,
        Some("false"),
        "Whether numbers of telephones, cards and social security may be told",
    ),
    key(
        "log.format",
        Kind::Text,
        Some("text"),
        "`text`, or `json` for programs",
    ),
    key(
        "log.level",
        Kind::Text,
        Some("info"),
        "`error`, `warn`, `info`, or `debug` for every request",
    ),
];

/// Something that can be set.
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(super) kind: Kind,
    pub(super) default: Option<&'static str>,
    pub(crate) about: &'static str,
}

/// What a value is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    List,
    Flag,
    Count,
}

impl Kind {
    pub(super) const fn takes(self) -> &'static str {
        match self {
            Self::Text => "a text: \"…\"",
            Self::List => "a list of texts: [\"…\"]",
            Self::Flag => "true or false",
            Self::Count => "a whole number",
        }
    }
}

const fn key(
    name: &'static str,
    kind: Kind,
    default: Option<&'static str>,
    about: &'static str,
) -> Key {
    Key {
        name,
        kind,
        default,
        about,
    }
}
