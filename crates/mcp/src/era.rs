//! The revisions of the protocol, and what differs between them, as data.

/// A revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Era {
    /// Its name on the wire.
    pub version: &'static str,
    /// Whether the peers begin with `initialize`; otherwise each request says its version.
    pub handshake: bool,
    /// Whether one frame may hold several messages.
    pub batches: bool,
    /// Whether the transport knows sessions (`Mcp-Session-Id`).
    pub sessions: bool,
    /// Whether a server may send requests.
    pub server_requests: bool,
    /// Whether requests carry `MCP-Protocol-Version`.
    pub version_header: bool,
    /// Whether requests repeat their method and name in headers (`Mcp-Method`, `Mcp-Name`).
    pub mirrored_headers: bool,
    /// Whether every result says its kind (`resultType`).
    pub result_type: bool,
}

impl Era {
    /// Every revision, the oldest first.
    pub const ALL: &'static [Self] = &[
        LEGACY,
        Self {
            version: "2025-03-26",
            batches: true,
            ..LEGACY
        },
        Self {
            version: "2025-06-18",
            version_header: true,
            ..LEGACY
        },
        Self {
            version: "2025-11-25",
            version_header: true,
            ..LEGACY
        },
        Self {
            version: "2026-07-28",
            handshake: false,
            batches: false,
            sessions: false,
            server_requests: false,
            version_header: true,
            mirrored_headers: true,
            result_type: true,
        },
    ];

    /// The revision of this name.
    pub fn of(version: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|era| era.version == version)
    }

    /// Where a request of a revision without a handshake says its version.
    pub const VERSION_KEY: &'static str = "io.modelcontextprotocol/protocolVersion";
    /// Where it says who the client is.
    pub(crate) const CLIENT_KEY: &'static str = "io.modelcontextprotocol/clientInfo";
    /// Where it says what the client can do.
    pub(crate) const CAPABILITIES_KEY: &'static str = "io.modelcontextprotocol/clientCapabilities";
}

const LEGACY: Era = Era {
    version: "2024-11-05",
    handshake: true,
    batches: false,
    sessions: true,
    server_requests: true,
    version_header: false,
    mirrored_headers: false,
    result_type: false,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions_are_in_order_and_found_by_name() {
        let versions: Vec<_> = Era::ALL.iter().map(|era| era.version).collect();
        assert!(versions.is_sorted());
        for era in Era::ALL {
            assert_eq!(Era::of(era.version), Some(era));
            assert_eq!(era.handshake, era.server_requests, "{}", era.version);
            assert_eq!(era.batches, era.version == "2025-03-26");
        }
        assert_eq!(Era::of("2026-07-29"), None);
        assert_eq!(Era::of(""), None);
    }
}
