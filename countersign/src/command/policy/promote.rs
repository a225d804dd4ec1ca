//! `countersign policy promote`

use clap::Args;
use countersign_canon::{Json, Limits};

use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::input;
use crate::output::{self, Format, inline};

#[derive(Args)]
#[command(after_help = "\
A daemon that keeps versions of its policies lets those in the shadow decide from now on: one of them takes
the place of the policy that has its name, the others join. It is one step: each decision is taken by the
old set or by the new one, and the log says who promoted what before it decides anything. --undo goes back
to the version before.

Policies that are kept as files are promoted as files: move the file from the folder that --shadow names to
the one that --policy names; an open door reads them again and notes it in the log.

Examples:
  countersign policy promote --token-file operator.token
  countersign policy promote --token-file operator.token --undo")]
pub(crate) struct Promote {
    /// The daemon
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:7117")]
    server: String,
    /// The file that holds the operator's token
    #[arg(
        long,
        env = "COUNTERSIGN_TOKEN_FILE",
        hide_env_values = true,
        value_name = "FILE"
    )]
    token_file: Option<String>,
    /// Only if these policies are in force, by their digest
    #[arg(long, value_name = "DIGEST")]
    only_after: Option<String>,
    /// Put the version before in force again
    #[arg(long)]
    undo: bool,
}

impl Promote {
    pub(super) fn run(self, format: Format) -> Result<Exit, Failure> {
        let path = match self.undo {
            false => "/v1/policies/promote",
            true => "/v1/policies/rollback",
        };
        let now = self.post(path)?;
        match format {
            Format::Json => output::json(&now)?,
            Format::Text => {
                let text = |name: &str| now.get(name).and_then(Json::as_str).unwrap_or_default();
                let version = now.get("version").and_then(Json::as_u64).unwrap_or(0);
                let word = match self.undo {
                    false => "PROMOTED ✓",
                    true => "UNDONE ✓",
                };
                let mut lines = vec![format!(
                    "{word}  version {version} is in force, {}",
                    inline(text("digest"))
                )];
                let policies = now.get("policies").and_then(Json::as_array);
                for policy in policies.unwrap_or_default() {
                    let text = |name: &str| policy.get(name).and_then(Json::as_str);
                    let (name, mode) = (text("name"), text("mode"));
                    let (name, mode) = (name.unwrap_or_default(), mode.unwrap_or_default());
                    lines.push(format!("  {}  {}", inline(mode), inline(name)));
                }
                output::text(&lines.join("\n"))?;
            }
        }
        Ok(Exit::Done)
    }

    fn post(&self, path: &str) -> Result<Json, Failure> {
        let server = self.server.trim_end_matches('/');
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .build()
            .into();
        let mut request = agent
            .post(format!("{server}{path}"))
            .header("content-type", "application/json");
        if let Some(file) = &self.token_file {
            let token = input::file(file, MAX_TOKEN)?;
            let token = String::from_utf8_lossy(&token).trim().to_owned();
            request = request.header("authorization", format!("Bearer {token}"));
        }
        if let Some(digest) = &self.only_after {
            request = request.header("if-match", format!("\"{digest}\""));
        }
        let unreachable = |error| Failure::new(Code::NoDaemon, format!("`{server}`: {error}"));
        let mut answer = request.send("{}").map_err(unreachable)?;
        let body = answer.body_mut().read_to_vec().map_err(unreachable)?;
        let json = Json::admit(&body, &Limits::event()).unwrap_or(Json::Null);
        if answer.status() == 201 {
            return Ok(json);
        }
        let code = match answer.status().as_u16() {
            401 => Code::Unauthenticated,
            403 => Code::Forbidden,
            _ => Code::Promotion,
        };
        let detail = json.get("detail").and_then(Json::as_str);
        let detail = detail.unwrap_or("the daemon refused it");
        Err(Failure::new(code, format!("{}: {detail}", answer.status())))
    }
}

const MAX_TOKEN: usize = 4096;
