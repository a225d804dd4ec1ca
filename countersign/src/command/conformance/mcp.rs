//! A client of an MCP door over HTTP, one request at a time.

use std::time::Duration;

use countersign_canon::Json;
use countersign_conformance::{Door, Request, Trouble};
use countersign_mcp::apart;
use countersign_replay::RecordedCall;

use super::client::Client;
use super::live::last_message;
use crate::command::rerun::ANSWER;

/// A session with a door.
pub(crate) struct Mcp {
    client: Client,
    session: Option<String>,
    calls: u64,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) struct McpError(String);

impl std::fmt::Display for McpError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl Mcp {
    /// Begins a session. Each answer is waited for this long.
    pub(crate) fn open(address: &str, patience: Duration) -> Result<Self, McpError> {
        let mut mcp = Self {
            client: Client::patient(address, patience),
            session: None,
            calls: 0,
        };
        let client = Json::object([
            ("name", Json::from("countersign")),
            ("version", Json::from(env!("CARGO_PKG_VERSION"))),
        ]);
        let params = Json::object([
            ("protocolVersion", Json::from("2025-11-25")),
            ("capabilities", Json::object::<&str>([])),
            ("clientInfo", client),
        ]);
        let answer = mcp.ask("initialize", params)?;
        match answer.get("result") {
            Some(_) => {
                // Servers may refuse calls before they hear that the client is ready.
                mcp.send("notifications/initialized", None, Json::object::<&str>([]))?;
                Ok(mcp)
            }
            None => Err(McpError("the server did not begin a session".to_owned())),
        }
    }

    /// Asks for what was asked for then; the whole answer.
    pub(crate) fn repeat(&mut self, call: &RecordedCall) -> Result<Json, McpError> {
        let params = apart(&call.tool, &call.args, call.fetches);
        match call.fetches {
            true => self.ask(&call.tool, params),
            false => self.ask("tools/call", params),
        }
    }

    fn ask(&mut self, method: &str, params: Json) -> Result<Json, McpError> {
        self.calls += 1;
        let answer = self.send(method, Some(self.calls), params)?;
        Json::admit(&answer, &ANSWER).map_err(|error| McpError(error.to_string()))
    }

    fn send(&mut self, method: &str, id: Option<u64>, params: Json) -> Result<Vec<u8>, McpError> {
        let mut message = vec![
            ("jsonrpc", Json::from("2.0")),
            ("method", Json::from(method)),
            ("params", params),
        ];
        message.extend(id.map(|id| ("id", Json::from(id))));
        let request = Request {
            door: Door::Mcp,
            method: "POST".to_owned(),
            path: String::new(),
            role: String::new(),
            headers: Vec::new(),
            body: Some(Json::object(message).to_sorted()),
        };
        let accepted = "application/json, text/event-stream".to_owned();
        let mut more = vec![("accept", accepted)];
        more.extend(self.session.clone().map(|name| ("mcp-session-id", name)));
        let sent = self.client.send(&request, &more, "mcp-session-id");
        let (answer, session) = sent.map_err(|trouble: Trouble| McpError(trouble.to_string()))?;
        self.session = session.or(self.session.take());
        Ok(last_message(&answer.body).unwrap_or(answer.body))
    }
}
