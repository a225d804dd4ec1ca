//! `countersign serve`

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use countersign_api::{Api, Door, PolicyBook, Settings};
use countersign_engine::{Engine, PolicyFiles, SystemClock};
use countersign_store::{Options, Store};

use crate::cli::DataFolder;
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::output;

#[derive(Args)]
#[command(after_help = "\
The first start makes the data folder, its keys and a token for the operator, which is printed once.
Every start prints a link that lets one browser in, once.

SIGHUP reads the manifest and the policies again; if anything is wrong with them, those in force stay.

Examples:
  countersign serve
  countersign serve --listen 127.0.0.1:8080 --manifest manifest.yaml --policy policies/")]
pub(crate) struct Serve {
    /// Where callers find it
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7117")]
    listen: SocketAddr,
    #[command(flatten)]
    data: DataFolder,
    /// What agents may use
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
    /// Rego that has a say beside the manifest: a file, or a folder of files
    #[arg(long, value_name = "FILE|DIR")]
    policy: Vec<PathBuf>,
    /// Rego whose verdicts are recorded only
    #[arg(long, value_name = "FILE|DIR")]
    shadow: Vec<PathBuf>,
    /// A name, other than this machine's own, that callers may use
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// An origin whose web pages may call this
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    /// Let everybody in as the operator; only on this machine
    #[arg(long)]
    no_auth: bool,
}

impl Serve {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        if self.no_auth && !self.listen.ip().is_loopback() {
            let text = format!("`{}` can be reached from elsewhere", self.listen);
            return Err(Failure::new(Code::NoAuth, text));
        }
        let files = PolicyFiles {
            manifest: self.manifest.clone(),
            enforced: self.policy.clone(),
            shadow: self.shadow.clone(),
        };
        let settings = self.settings();
        let folder = self.data.folder()?;
        let book = match files == PolicyFiles::default() {
            true => PolicyBook::in_folder(folder.path()),
            false => PolicyBook::Files,
        };
        let kept = book
            .current()
            .map_err(|problem| invalid(&problem.detail()))?;
        let policies = match kept {
            Some(policies) => policies,
            None => files.load().map_err(|error| invalid(&error))?,
        };
        let has_manifest = policies.capability().manifest().is_some();
        let options = Options {
            observer: Some(settings.wake.observer()),
            ..Options::default()
        };
        let store = Store::open(&folder, options)?;
        let engine = Arc::new(Engine::new(store, policies, SystemClock));
        let api = Api::new(Arc::clone(&engine), book, settings);
        let listen = self.listen;
        let failed = |error| Failure::new(Code::Listen, format!("`{listen}`: {error}"));
        let listener = TcpListener::bind(listen).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let in_files = files != PolicyFiles::default();
        self.greet(&api, address, has_manifest)?;
        let again = move || match in_files {
            true => engine.reload(&files),
            false => Ok(false),
        };
        let reload = move || match again() {
            Ok(true) => {
                output::stderr("countersign: the policies were read again and are in force")
            }
            Ok(false) => output::stderr("countersign: the policies have not changed"),
            // FAIL-CLOSED: those in force stay.
            Err(error) => drop(invalid(&error).report()),
        };
        Door::new(api).run(listener, reload).map_err(failed)?;
        Ok(Exit::Done)
    }

    fn settings(&self) -> Settings {
        let mut settings = Settings {
            no_auth: self.no_auth,
            ..Settings::default()
        };
        for host in &self.allow_host {
            settings.access = settings.access.with_host(host);
        }
        for origin in &self.allow_origin {
            settings.access = settings.access.with_origin(origin);
        }
        settings
    }

    fn greet(&self, api: &Api, address: SocketAddr, has_manifest: bool) -> Result<(), Failure> {
        let problem = |problem: countersign_api::Problem| {
            Failure::new(Code::Database, problem.detail().to_owned())
        };
        if let Some(token) = api.first_token().map_err(problem)? {
            // SECURITY: standard output, so that whoever starts it decides where it goes.
            output::text(&format!("operator token (shown once): {token}"))?;
        }
        let mut lines = vec![format!("countersign: http://{address} is open")];
        if self.no_auth {
            lines.push("countersign: --no-auth: whoever reaches it is the operator".to_owned());
        } else if let Some(path) = api.login_path() {
            lines.push(format!(
                "countersign: this link works once: http://{address}{path}"
            ));
        }
        if !has_manifest {
            lines.push("countersign: no manifest, so every call is refused".to_owned());
        }
        output::stderr(&lines.join("\n"));
        Ok(())
    }
}

fn invalid(error: &dyn ToString) -> Failure {
    Failure::new(Code::Policy, error.to_string())
}
