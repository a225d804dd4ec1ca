//! Who speaks to the server.

use countersign_canon::Json;

/// Whatever stands between the cases and a server.
pub trait Peer {
    /// Sends a request and waits for the answer.
    fn ask(&mut self, request: &Request) -> Result<Answer, Trouble>;

    /// Does what no request can do.
    fn perform(&mut self, deed: &Deed) -> Result<Json, Trouble>;

    /// A name that nothing else on the server has.
    fn fresh(&mut self) -> String;

    /// Whether the server is somebody else's, who need not let us prepare it.
    fn is_foreign(&self) -> bool {
        false
    }
}

/// A request.
#[derive(Debug, Clone)]
pub struct Request {
    /// Which door of the server.
    pub door: Door,
    /// The method.
    pub method: String,
    /// The path, with what stands behind it.
    pub path: String,
    /// Who asks: `operator`, `agent`, `nobody`, …
    pub role: String,
    /// More headers.
    pub headers: Vec<(String, String)>,
    /// The body, byte for byte.
    pub body: Option<Vec<u8>>,
}

/// A door of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// The HTTP API.
    Api,
    /// The MCP proxy, Streamable HTTP.
    Mcp,
}

/// What came back.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

/// Something that only a neighbour of the server can do.
#[derive(Debug, Clone)]
pub enum Deed {
    /// Ends the server and starts it again on the same data.
    Restart,
    /// Puts an Agent Control manifest in force, beside the manifest of what may be used.
    Govern {
        /// The Agent Control manifest.
        agent_control: Json,
        /// What may be used.
        manifest: Json,
    },
    /// Signs a decision about what `card` shows, as a person whose key the server knows, or as a
    /// stranger. Gives `{"vote": TEXT}`.
    Sign {
        /// What `GET /v1/approvals/ID` answered.
        card: Json,
        /// `approved` or `denied`.
        decision: String,
        /// Whether the key is one that nobody registered.
        stranger: bool,
    },
    /// Changes a stored event behind the server's back.
    Tamper {
        /// The session.
        session: String,
        /// The event.
        seq: u64,
    },
    /// Tells what the server behind the MCP door was made to do: `{"effects": [TOOL, …]}`.
    Effects,
    /// Looks for words in everything that the server keeps: `{"found": [WORD, …]}`.
    Search(Vec<String>),
    /// Asks for evidence about a session and lets an offline verifier judge it: `{"valid": …}`. With
    /// `damage`, the evidence is changed on the way.
    Evidence {
        /// The session.
        session: String,
        /// Whether a byte is changed before the verifier sees it.
        damage: bool,
    },
    /// Sends the same requests at the same time: `{"statuses": [N, …], "bodies": [...]}`.
    Together(Vec<Request>),
}

impl Deed {
    /// What it is called in a report.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Restart => "restart",
            Self::Govern { .. } => "agent_control",
            Self::Sign { .. } => "sign",
            Self::Tamper { .. } => "tamper",
            Self::Effects => "effects",
            Self::Search(_) => "search",
            Self::Evidence { .. } => "evidence",
            Self::Together(_) => "together",
        }
    }
}

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// This peer has no way to do it; the case is skipped, and says why.
    #[error("{0}")]
    Cannot(String),
    /// It went wrong.
    #[error("{0}")]
    Failed(String),
}
