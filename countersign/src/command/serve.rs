//! `countersign serve`

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use countersign_api::{Api, Door, Oidc, PolicyBook, Rate, Settings};
use countersign_engine::{Engine, PolicyFiles, SystemClock};
use countersign_redact::{Public, Record, Redactor};
use countersign_store::{Folder, Options, Store};
use countersign_telemetry::{Level, Log, LogFormat};
use countersign_web::{NotAnOrigin, TlsAcceptor, acceptor};

use crate::config::Config;
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::{input, output};

mod house;
mod issuer;
mod publisher;
mod systemd;
mod telemetry;

pub(crate) use telemetry::{Telling, report};

#[derive(Args)]
#[command(after_help = "\
The first start makes the data folder, its keys and a token for the operator, which is printed once.
Every start prints a link that lets one browser in, once.

SIGHUP reads the manifest and the policies again; if anything is wrong with them, those in force stay.
SIGTERM lets nobody begin anything new, gives those who run something a moment to tell how it went, and
ends. A socket of systemd is used if there is one, and systemd is told when the daemon is ready.

Every flag can also stand in the file or in the environment: see `countersign config show --origin`.

Examples:
  countersign serve
  countersign serve --listen 127.0.0.1:8080 --manifest manifest.yaml --policy policies/
  countersign serve --config countersign.toml")]
pub(crate) struct Serve {
    /// The configuration, in TOML
    #[arg(
        long,
        env = "COUNTERSIGN_CONFIG",
        hide_env_values = true,
        value_name = "FILE"
    )]
    config: Option<PathBuf>,
    /// Where callers find it [default: 127.0.0.1:7117]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// The data folder [default: countersign in the user's data folder]
    #[arg(long, value_name = "DIR")]
    data: Option<String>,
    /// What agents may use
    #[arg(long, value_name = "FILE")]
    manifest: Option<String>,
    /// Rego that has a say beside the manifest: a file, or a folder of files
    #[arg(long, value_name = "FILE|DIR")]
    policy: Vec<String>,
    /// Rego whose verdicts are recorded only
    #[arg(long, value_name = "FILE|DIR")]
    shadow: Vec<String>,
    /// An Agent Control manifest, which has a say beside them
    #[arg(long, value_name = "FILE")]
    acs: Option<String>,
    /// A name, other than this machine's own, that callers may use
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// An origin whose web pages may call this
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    /// Let everybody in as the operator; only on this machine
    #[arg(long)]
    no_auth: bool,
    /// The certificate chain, in PEM: only encrypted connections are answered
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<String>,
    /// The private key of the certificate, in PEM
    #[arg(long, value_name = "FILE")]
    tls_key: Option<String>,
    /// Only clients with a certificate of these authorities are let in
    #[arg(long, value_name = "FILE")]
    tls_client_ca: Option<String>,
    /// Export no spans; what other programs export is left alone
    #[arg(long)]
    telemetry_disabled: bool,
    /// How lines on standard error look: text or json [default: text]
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,
}

impl Serve {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let plan = Plan::new(self.configured()?)?;
        plan.check_folder()?;
        let files = plan.files();
        let in_files = files != PolicyFiles::default();
        let book = match in_files {
            true => PolicyBook::Files,
            false => PolicyBook::in_folder(plan.folder.path()),
        };
        let kept = book
            .current()
            .map_err(|problem| invalid(&problem.detail()))?;
        let policies = match kept {
            Some(policies) => policies,
            None => files.load()?,
        };
        let has_manifest = policies.capability().manifest().is_some();
        let tls = plan.tls()?;
        let oidc = issuer::keys(&plan)?;
        let telling = Telling::new(&plan)?;
        let sign_in = issuer::sign_in(&plan, oidc.as_ref())?;
        let mut settings = plan.settings(tls.is_some(), oidc)?;
        settings.sign_in = sign_in;
        let options = Options {
            observer: Some(settings.wake.observer()),
            durability: plan.durability()?,
        };
        let store = Store::open(&plan.folder, options)?;
        let engine = Engine::new(store, policies, SystemClock).with_meter(telling.meter());
        let engine = Arc::new(engine);
        let watch = telling.start(&plan, &engine)?;
        settings.observer = Some(watch.observer());
        let metrics = Arc::clone(&watch.metrics);
        settings.metrics = Some(Arc::new(move || metrics.text()));
        settings.house = Some(Arc::new(house::Home {
            engine: Arc::clone(&engine),
            folder: plan.folder.clone(),
            manifest: plan.config.text("manifest").map(str::to_owned),
            policies: plan.config.list("policy").to_vec(),
        }));
        let api = Api::new(Arc::clone(&engine), book, settings);
        let listen = plan.listen;
        let failed = |error| Failure::new(Code::Listen, format!("`{listen}`: {error}"));
        let listener = match systemd::listener() {
            Some(listener) => listener,
            None => TcpListener::bind(listen).map_err(failed)?,
        };
        let address = listener.local_addr().map_err(failed)?;
        plan.check_open(address)?;
        let scheme = match tls.is_some() {
            true => "https",
            false => "http",
        };
        let publisher = publisher::Publisher::start(&plan, &engine);
        let place = format!("{scheme}://{address}");
        plan.greet(&api, &place, has_manifest, &watch.log)?;
        let again = move || match in_files {
            true => engine.reload(&files),
            false => Ok(false),
        };
        let log = Arc::clone(&watch.log);
        let reload = move || match again() {
            Ok(true) => {
                let message = "the policies were read again and are in force";
                log.write(Level::Info, message, Record::default());
            }
            Ok(false) => {
                log.write(
                    Level::Info,
                    "the policies have not changed",
                    Record::default(),
                );
            }
            // FAIL-CLOSED: those in force stay.
            Err(error) => telemetry::complain(&log, &Failure::from(error)),
        };
        let mut door = Door::new(api);
        door.tls = tls;
        door.limits.max_connections = plan.number("max_connections")?.max(1);
        door.drain = Duration::from_secs(plan.config.count("drain_seconds"));
        systemd::ready();
        let ran = door.run(listener, reload);
        if let Some(publisher) = publisher {
            publisher.finish();
        }
        watch.end();
        ran.map_err(failed)?;
        Ok(Exit::Done)
    }

    fn configured(self) -> Result<Config, Failure> {
        let file = self.config.as_deref();
        let mut config = Config::of_process(file)?;
        let one = |value: Option<String>| value.into_iter().collect::<Vec<_>>();
        for (name, values) in [
            ("listen", one(self.listen)),
            ("data", one(self.data)),
            ("manifest", one(self.manifest)),
            ("policy", self.policy),
            ("shadow", self.shadow),
            ("acs", one(self.acs)),
            ("allow_host", self.allow_host),
            ("allow_origin", self.allow_origin),
            ("no_auth", one(self.no_auth.then(|| "true".to_owned()))),
            ("tls.cert", one(self.tls_cert)),
            ("tls.key", one(self.tls_key)),
            ("tls.client_ca", one(self.tls_client_ca)),
            (
                "telemetry.disabled",
                one(self.telemetry_disabled.then(|| "true".to_owned())),
            ),
            ("log.format", one(self.log_format)),
        ] {
            config.flag(name, values)?;
        }
        Ok(config)
    }
}

/// What is configured, as far as it can be honoured.
pub(crate) struct Plan {
    pub(crate) config: Config,
    pub(crate) listen: SocketAddr,
    pub(crate) folder: Folder,
}

impl Plan {
    pub(crate) fn new(config: Config) -> Result<Self, Failure> {
        let listen = config.text("listen").unwrap_or_default();
        let listen = listen.parse().map_err(|_| {
            config.wrong(
                "listen",
                &"expected an address and a port, such as 127.0.0.1:7117",
            )
        })?;
        let data = config.text("data").map(PathBuf::from);
        let folder = data.or_else(input::default_data_folder).ok_or_else(|| {
            config.wrong("data", &"there is no home folder: say where the log is")
        })?;
        let plan = Self {
            folder: Folder::new(folder),
            listen,
            config,
        };
        plan.check_open(listen)?;
        plan.durability()?;
        Ok(plan)
    }

    /// What lies in the folder is looked for first, and is not to blame.
    fn check_folder(&self) -> Result<(), Failure> {
        let folder = self.folder.path();
        match folder.exists() && !folder.is_dir() {
            false => Ok(()),
            true => {
                let text = format!("`{}` is no folder", folder.display());
                Err(Failure::new(Code::Folder, text))
            }
        }
    }

    pub(crate) fn files(&self) -> PolicyFiles {
        let paths = |name: &str| self.config.list(name).iter().map(PathBuf::from).collect();
        PolicyFiles {
            manifest: self.config.text("manifest").map(PathBuf::from),
            enforced: paths("policy"),
            shadow: paths("shadow"),
            agent_control: self
                .config
                .text("acs")
                .map(|path| input::agent_control(path.into())),
            ..PolicyFiles::default()
        }
    }

    fn check_open(&self, address: SocketAddr) -> Result<(), Failure> {
        if self.config.is_set("no_auth") && !address.ip().is_loopback() {
            let text = format!("`{address}` can be reached from elsewhere");
            return Err(Failure::new(Code::NoAuth, text));
        }
        Ok(())
    }

    fn durability(&self) -> Result<countersign_store::Durability, Failure> {
        let text = self.config.text("durability").unwrap_or_default();
        text.parse()
            .map_err(|error| self.config.wrong("durability", &error))
    }

    fn number(&self, name: &str) -> Result<usize, Failure> {
        let number = usize::try_from(self.config.count(name));
        number.map_err(|error| self.config.wrong(name, &error))
    }

    pub(crate) fn tls(&self) -> Result<Option<TlsAcceptor>, Failure> {
        let config = &self.config;
        let key = match (config.text("tls.key"), config.list("tls.key_command")) {
            (Some(file), []) => Some(input::file(file, MAX_PEM)?),
            (None, []) => None,
            (None, command) => Some(self.said(command)?),
            (Some(_), _) => {
                let text = "`tls.key` says where the key is already";
                return Err(config.wrong("tls.key_command", &text));
            }
        };
        let authorities = config.text("tls.client_ca");
        let (chain, key) = match (config.text("tls.cert"), key) {
            (Some(chain), Some(key)) => (input::file(chain, MAX_PEM)?, key),
            // FAIL-CLOSED: half of what is needed does not mean "without".
            (Some(_), None) => return Err(config.wrong("tls.cert", &"there is no `tls.key`")),
            (None, Some(_)) => return Err(config.wrong("tls.key", &"there is no `tls.cert`")),
            (None, None) if authorities.is_some() => {
                return Err(config.wrong("tls.client_ca", &"there is no `tls.cert`"));
            }
            (None, None) => return Ok(None),
        };
        let authorities = authorities
            .map(|file| input::file(file, MAX_PEM))
            .transpose()?;
        let tls = acceptor(&chain, &key, authorities.as_deref());
        tls.map(Some)
            .map_err(|error| config.wrong("tls.cert", &error))
    }

    fn said(&self, command: &[String]) -> Result<Vec<u8>, Failure> {
        let wrong = |problem: &dyn std::fmt::Display| self.config.wrong("tls.key_command", problem);
        let (program, arguments) = command.split_first().ok_or_else(|| wrong(&"it is empty"))?;
        let output = std::process::Command::new(program).args(arguments).output();
        let output = output.map_err(|error| wrong(&error))?;
        match output.status.success() {
            true => Ok(output.stdout),
            false => Err(wrong(&output.status)),
        }
    }

    fn settings(&self, is_secure: bool, oidc: Option<Arc<Oidc>>) -> Result<Settings, Failure> {
        let rate = |name: &str| {
            let per_second = u32::try_from(self.config.count(name)).unwrap_or(u32::MAX);
            (per_second > 0).then(|| Rate {
                per_second: f64::from(per_second),
                burst: f64::from(per_second),
            })
        };
        let mut settings = Settings {
            no_auth: self.config.is_set("no_auth"),
            is_secure,
            oidc,
            threads: usize::try_from(self.config.count("threads"))
                .unwrap_or(1)
                .max(1),
            token_rate: rate("rate.token_per_second"),
            tenant_rate: rate("rate.tenant_per_second"),
            tool_rate: rate("rate.tool_per_second"),
            ..Settings::default()
        };
        for host in self.config.list("allow_host") {
            settings.access = settings.access.with_host(host);
        }
        for origin in self.config.list("allow_origin") {
            let named = settings.access.with_origin(origin);
            let wrong = |error: NotAnOrigin| {
                Failure::new(Code::Settings, format!("`allow_origin`: {error}"))
            };
            settings.access = named.map_err(wrong)?;
        }
        Ok(settings)
    }

    fn greet(&self, api: &Api, place: &str, has_manifest: bool, log: &Log) -> Result<(), Failure> {
        let problem = |problem: countersign_api::Problem| {
            Failure::new(Code::Database, problem.detail().to_owned())
        };
        if let Some(token) = api.first_token().map_err(problem)? {
            // SECURITY: standard output, so that whoever starts it decides where it goes.
            output::text(&format!("operator token (shown once): {token}"))?;
        }
        let is_open = self.config.is_set("no_auth");
        let is_relaxed = self.durability()? == countersign_store::Durability::Relaxed;
        let notes = [
            (is_open, "--no-auth: whoever reaches it is the operator"),
            (
                is_relaxed,
                "durability is relaxed: a power cut may lose events",
            ),
            (!has_manifest, "no manifest, so every call is held"),
        ];
        match log.format() {
            LogFormat::Text => {
                output::stderr(&format!("countersign: {place} is open"));
                if let Some(path) = api.login_path().filter(|_| !is_open) {
                    output::stderr(&format!("countersign: this link works once: {place}{path}"));
                }
            }
            // SECURITY: a link that lets a browser in is no line for a log.
            LogFormat::Json => {
                let place = Public::name(place, &Redactor::default());
                let record = Record::default().public("address", place);
                log.write(Level::Info, "the door is open", record);
            }
        }
        for (_, note) in notes.into_iter().filter(|(holds, _)| *holds) {
            log.write(Level::Info, note, Record::default());
        }
        Ok(())
    }
}

fn invalid(error: &dyn ToString) -> Failure {
    Failure::new(Code::Policy, error.to_string())
}

const MAX_PEM: usize = 1 << 20;
