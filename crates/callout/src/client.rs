//! One JSON question, one JSON answer.

use std::time::Duration;

use countersign_canon::{BoundedReadError, Json, Limits, Object, read_bounded};
use ureq::Agent;
use url::{Host, Url};

/// Where a question goes, as the fields of a declaration say.
pub(crate) struct Target {
    url: Url,
    headers: Vec<(String, String)>,
    timeout: Duration,
}

/// Why there is no answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CallError {
    TimedOut(Duration),
    Failed(String),
}

impl Target {
    /// Reads `url`, `timeout_ms`, `api_key_env` and `api_key_header`.
    pub(crate) fn read(
        fields: &Object,
        secret: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, String> {
        let text = |name: &str| fields.get(name).and_then(Json::as_str);
        let url = text("url").or_else(|| text("endpoint"));
        let url = Url::parse(url.ok_or("it has no `url`")?).map_err(|error| error.to_string())?;
        // SECURITY: what is judged, and secrets, do not cross a network in clear.
        let is_near = match url.host() {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        };
        if url.scheme() != "https" && !(url.scheme() == "http" && is_near) {
            return Err("its `url` is not https, and not of this machine".to_owned());
        }
        let mut headers = Vec::new();
        if let Some(name) = fields.get("api_key_env") {
            let name = name.as_str().ok_or("`api_key_env` must be a string")?;
            let key = secret(name).ok_or_else(|| format!("`{name}` is not in the environment"))?;
            headers.push(match text("api_key_header") {
                Some(header) => (header.to_owned(), key),
                None => ("authorization".to_owned(), format!("Bearer {key}")),
            });
        }
        let timeout = match fields.get("timeout_ms") {
            None => TIMEOUT,
            Some(given) => given
                .as_u64()
                .filter(|given| (1..=LONGEST_MS).contains(given))
                .map(Duration::from_millis)
                .ok_or_else(|| format!("`timeout_ms` must be from 1 to {LONGEST_MS}"))?,
        };
        Ok(Self {
            url,
            headers,
            timeout,
        })
    }

    pub(crate) fn ask(&self, question: &Json) -> Result<Json, CallError> {
        let agent: Agent = Agent::config_builder()
            .timeout_global(Some(self.timeout))
            .http_status_as_error(false)
            // SECURITY: what is meant for one address goes to no other.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .build()
            .into();
        let mut request = agent
            .post(self.url.as_str())
            .header("content-type", "application/json")
            .header("accept", "application/json");
        for (name, value) in &self.headers {
            request = request.header(name.as_str(), value.as_str());
        }
        let response = request
            .send(&question.to_sorted()[..])
            .map_err(|error| self.failed(error))?;
        let status = response.status();
        if !status.is_success() {
            return Err(CallError::Failed(format!("it answers {status}")));
        }
        let reader = response.into_body().into_reader();
        let body = read_bounded(reader, ANSWER.max_bytes).map_err(|error| match error {
            BoundedReadError::Io(error) => match error.downcast::<ureq::Error>() {
                Ok(error) => self.failed(error),
                Err(error) => CallError::Failed(error.to_string()),
            },
            error => CallError::Failed(format!("its answer is {error}")),
        })?;
        Json::admit(&body, &ANSWER).map_err(|error| CallError::Failed(error.to_string()))
    }

    fn failed(&self, error: ureq::Error) -> CallError {
        match error {
            ureq::Error::Timeout(_) => CallError::TimedOut(self.timeout),
            error => CallError::Failed(error.to_string()),
        }
    }
}

const ANSWER: Limits = Limits {
    max_bytes: 1 << 20,
    max_depth: 64,
    ..Limits::plan()
};
const TIMEOUT: Duration = Duration::from_secs(10);
const LONGEST_MS: u64 = 60_000;
