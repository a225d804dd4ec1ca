//! Requests to a server, as they are written in a case.

use std::time::Duration;

use countersign_conformance::{Answer, Request, Trouble};

/// A client of one door.
#[derive(Clone)]
pub(super) struct Client {
    agent: ureq::Agent,
    /// Where the door is, without a stroke at its end.
    base: String,
}

impl Client {
    pub(super) fn new(base: &str) -> Self {
        Self::patient(base, PATIENCE)
    }

    /// A client that waits this long for an answer.
    pub(super) fn patient(base: &str, patience: Duration) -> Self {
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(patience))
            .max_redirects(0)
            .build();
        Self {
            agent: agent.into(),
            base: base.trim_end_matches('/').to_owned(),
        }
    }

    /// Sends a request with a token and some more headers; what came back, and a header of it.
    pub(super) fn send(
        &self,
        request: &Request,
        more: &[(&str, String)],
        wanted: &str,
    ) -> Result<(Answer, Option<String>), Trouble> {
        let failed = |error: &dyn ToString| Trouble::Failed(error.to_string());
        let mut built = ureq::http::Request::builder()
            .method(request.method.as_str())
            .uri(format!("{}{}", self.base, request.path));
        let says = |name: &str| {
            let mut headers = request.headers.iter();
            headers.any(|(known, _)| known.eq_ignore_ascii_case(name))
        };
        for (name, value) in more.iter().filter(|(name, _)| !says(name)) {
            built = built.header(*name, value);
        }
        for (name, value) in &request.headers {
            built = built.header(name, value);
        }
        let answer = match &request.body {
            None => self
                .agent
                .run(built.body(()).map_err(|error| failed(&error))?),
            Some(body) => {
                let mut built = built.header("content-type", "application/json");
                // Who refuses a large body says so before it comes.
                if body.len() > LARGE {
                    built = built.header("expect", "100-continue");
                }
                let built = built.body(body.clone()).map_err(|error| failed(&error))?;
                self.agent.run(built)
            }
        };
        let mut answer = answer.map_err(|error| failed(&error))?;
        let header = answer.headers().get(wanted);
        let header = header.and_then(|value| value.to_str().ok().map(str::to_owned));
        let status = answer.status().as_u16();
        let body = answer.body_mut().with_config().limit(MOST).read_to_vec();
        let body = body.map_err(|error| failed(&error))?;
        Ok((Answer { status, body }, header))
    }
}

const PATIENCE: Duration = Duration::from_secs(60);
const LARGE: usize = 1 << 20;
const MOST: u64 = 64 << 20;
