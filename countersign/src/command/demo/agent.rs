//! The scripted agent: an MCP client that talks to the proxy as any client would.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use countersign_canon::{Json, Limits};

use crate::errors::{Code, Failure};

/// A client with the proxy, and the server behind it, as its child.
pub(super) struct Agent {
    proxy: Child,
    to_proxy: Option<ChildStdin>,
    from_proxy: BufReader<ChildStdout>,
    next_id: u64,
}

/// What came back from a call.
pub(super) enum Answer {
    /// The text of a result.
    Result(String),
    /// The reason of a refusal.
    Refused(String),
}

impl Agent {
    /// `countersign mcp --data … --manifest … -- countersign demo-server …`
    pub(super) fn start(data: &Path, manifest: &Path, effects: &Path) -> Result<Self, Failure> {
        let program = std::env::current_exe()?;
        let mut proxy = Command::new(&program)
            .arg("mcp")
            .arg("--data")
            .arg(data)
            .arg("--manifest")
            .arg(manifest)
            .args(["--server", "shop", "--"])
            .arg(&program)
            .arg("demo-server")
            .arg(effects)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(to_proxy), Some(from_proxy)) = (proxy.stdin.take(), proxy.stdout.take()) else {
            return Err(broken("the proxy has no pipes"));
        };
        let mut agent = Self {
            proxy,
            to_proxy: Some(to_proxy),
            from_proxy: BufReader::new(from_proxy),
            next_id: 0,
        };
        let hello = Json::object([
            ("protocolVersion", Json::from("2025-06-18")),
            ("capabilities", Json::object::<&str>([])),
            (
                "clientInfo",
                Json::object([("name", Json::from("demo")), ("version", Json::from("1"))]),
            ),
        ]);
        agent.ask("initialize", hello)?;
        agent.answer()?;
        agent.ask("tools/list", Json::object::<&str>([]))?;
        agent.answer()?;
        Ok(agent)
    }

    /// Calls a tool and waits for what comes back.
    pub(super) fn call(&mut self, tool: &str, args: Json) -> Result<Answer, Failure> {
        self.begin(tool, args, None)?;
        self.finish()
    }

    /// Calls a tool, on an approval if it is told one; [`Agent::finish`] waits.
    pub(super) fn begin(
        &mut self,
        tool: &str,
        args: Json,
        approval: Option<&str>,
    ) -> Result<(), Failure> {
        let mut params = vec![("name", Json::from(tool)), ("arguments", args)];
        params.extend(approval.map(|approval| {
            let meta = Json::object([("countersign/approval", Json::from(approval))]);
            ("_meta", meta)
        }));
        self.ask("tools/call", Json::object(params))
    }

    pub(super) fn finish(&mut self) -> Result<Answer, Failure> {
        let answer = self.answer()?;
        let refused = answer.get("error").and_then(|error| error.get("data"));
        if let Some(reason) = refused.and_then(|data| data.get("reason")?.as_str()) {
            return Ok(Answer::Refused(reason.to_owned()));
        }
        let content = answer
            .get("result")
            .and_then(|result| result.get("content"));
        let first = content.and_then(|content| content.as_array()?.first());
        match first.and_then(|first| first.get("text")?.as_str()) {
            Some(text) => Ok(Answer::Result(text.to_owned())),
            None => Err(broken("an answer that is neither a result nor a refusal")),
        }
    }

    /// Leaves; the proxy ends its server and the session.
    pub(super) fn leave(mut self) -> Result<(), Failure> {
        drop(self.to_proxy.take());
        self.proxy.wait()?;
        Ok(())
    }

    fn ask(&mut self, method: &str, params: Json) -> Result<(), Failure> {
        self.next_id += 1;
        let message = Json::object([
            ("jsonrpc", Json::from("2.0")),
            ("id", Json::from(self.next_id)),
            ("method", Json::from(method)),
            ("params", params),
        ]);
        let mut line = message.to_jcs()?;
        line.push(b'\n');
        let pipe = self.to_proxy.as_mut();
        pipe.ok_or_else(|| broken("the proxy is gone"))?
            .write_all(&line)?;
        Ok(())
    }

    /// The answer to the last question; what else comes is not for us.
    fn answer(&mut self) -> Result<Json, Failure> {
        loop {
            let mut line = String::new();
            if self.from_proxy.read_line(&mut line)? == 0 {
                return Err(broken("the proxy has ended"));
            }
            let message = Json::admit(line.as_bytes(), &Limits::event())?;
            if message.get("id").and_then(Json::as_u64) == Some(self.next_id) {
                return Ok(message);
            }
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        drop(self.to_proxy.take());
        // Already gone, or going.
        let _ = self.proxy.wait();
    }
}

fn broken(problem: &str) -> Failure {
    Failure::new(Code::Server, problem)
}
