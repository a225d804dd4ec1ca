//! What is told of the daemon: spans, numbers and log lines.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use countersign_api::{Answered, Observed, Observer};
use countersign_engine::{Engine, Meter};
use countersign_redact::{Public, Record, Redactor, Rules, Sensitive};
use countersign_store::{Filter, Stored};
use countersign_telemetry::{
    Collector, File, Level, Log, LogFormat, Metrics, OpenContent, Protocol, Report, Settings,
    StartError, Telemetry,
};

use super::Plan;
use crate::errors::Failure;
use crate::input;

/// Everything that looks at the daemon.
pub(super) struct Watch {
    pub(super) log: Arc<Log>,
    pub(super) metrics: Arc<Metrics>,
    redactor: Redactor,
    telemetry: Arc<Telemetry>,
    engine: Arc<Engine>,
    /// The last event that was told.
    last: Arc<AtomicU64>,
}

/// What is configured, before there is anything to look at.
pub(crate) struct Telling {
    log: Arc<Log>,
    metrics: Arc<Metrics>,
    redactor: Redactor,
    file: Option<File>,
    collector: Option<Collector>,
    has_content: bool,
}

impl Telling {
    /// FAIL-CLOSED: what cannot be told as it is written is not told in another way.
    pub(crate) fn new(plan: &Plan) -> Result<Self, Failure> {
        let config = &plan.config;
        let parsed = |name: &str| config.text(name).unwrap_or_default();
        let format = parsed("log.format").parse::<LogFormat>();
        let format = format.map_err(|error| config.wrong("log.format", &error))?;
        let level = parsed("log.level").parse::<Level>();
        let level = level.map_err(|error| config.wrong("log.level", &error))?;
        let is_off = config.is_set("telemetry.disabled");
        Ok(Self {
            log: Arc::new(Log::new(format, level, Box::new(std::io::stderr()))),
            metrics: Arc::default(),
            redactor: redactor(plan)?,
            file: (!is_off).then(|| file(plan)),
            collector: collector(plan)?.filter(|_| !is_off),
            has_content: config.is_set("telemetry.content") && !is_off,
        })
    }

    /// Is told how long things take.
    pub(super) fn meter(&self) -> Arc<dyn Meter> {
        Arc::new(Measures(Arc::clone(&self.metrics)))
    }

    pub(super) fn start(self, plan: &Plan, engine: &Arc<Engine>) -> Result<Watch, Failure> {
        let open = self.has_content.then(|| opener(Arc::clone(engine)));
        let settings = Settings {
            file: self.file,
            collector: self.collector,
            redactor: self.redactor.clone(),
            open,
            report: report(Arc::clone(&self.log), self.redactor.clone()),
        };
        let telemetry = Telemetry::start(settings, Arc::clone(&self.metrics));
        let telemetry = telemetry.map_err(|error| match &error {
            StartError::Collector(_) => plan.config.wrong("telemetry.otlp_endpoint", &error),
            _ => plan.config.wrong("telemetry.file", &error),
        })?;
        Ok(Watch {
            log: self.log,
            metrics: self.metrics,
            redactor: self.redactor,
            telemetry: Arc::new(telemetry),
            last: Arc::new(AtomicU64::new(engine.store().reader().last_id()?)),
            engine: Arc::clone(engine),
        })
    }
}

impl Watch {
    /// Sees requests and events as they come.
    pub(super) fn observer(&self) -> Observer {
        let (log, metrics) = (Arc::clone(&self.log), Arc::clone(&self.metrics));
        let (telemetry, last) = (Arc::clone(&self.telemetry), Arc::clone(&self.last));
        let redactor = self.redactor.clone();
        Arc::new(move |observed| match observed {
            Observed::Request(answered) => {
                let Answered { method, status, .. } = answered;
                metrics.request(method, answered.route, *status, answered.time);
                note(answered, &log, &redactor);
            }
            Observed::Event(event) => {
                telemetry.event(&event.line, event.ciphertext.as_deref());
                last.store(event.id, Ordering::Release);
            }
            _ => {}
        })
    }

    /// Tells what was recorded after the door had closed, and waits until all of it is told.
    pub(super) fn end(self) {
        let last = self.last.load(Ordering::Acquire);
        let telemetry = &self.telemetry;
        let told = self
            .engine
            .store()
            .reader()
            .each(&Filter::default(), last, |event| {
                telemetry.event(&event.line, event.ciphertext.as_deref());
                Ok::<_, countersign_store::Error>(())
            });
        if told.is_err() {
            let message = "the last events are not told";
            self.log.write(Level::Warn, message, Record::default());
        }
        // Whoever still knows the observer has nothing more to tell.
        drop(self.telemetry);
    }
}

struct Measures(Arc<Metrics>);

impl Meter for Measures {
    fn decided(&self, took: Duration) {
        self.0.decided(took);
    }

    fn appended(&self, took: Duration) {
        self.0.appended(took);
    }
}

/// A line for a request: what fails inside is said always, the rest to whoever wants all of it.
fn note(answered: &Answered<'_>, log: &Log, redactor: &Redactor) {
    let level = match answered.status {
        500.. => Level::Error,
        _ => Level::Debug,
    };
    if !log.is_on(level) {
        return;
    }
    let method = METHODS.iter().find(|known| **known == answered.method);
    let micros = u64::try_from(answered.time.as_micros()).unwrap_or(u64::MAX);
    let mut record = Record::default()
        .public("request_id", Public::name(answered.id, redactor))
        .public("method", Public::word(method.unwrap_or(&"other")))
        .public("route", Public::word(answered.route.unwrap_or("none")))
        .public("status", Public::count(answered.status.into()))
        .public("micros", Public::count(micros));
    if let Some((id, role)) = answered.caller {
        record = record
            .public("caller", Public::name(id, redactor))
            .public("role", Public::word(role.as_str()));
    }
    log.write(level, "request", record);
}

/// Says what goes wrong with exporting.
pub(crate) fn report(log: Arc<Log>, redactor: Redactor) -> Report {
    Arc::new(move |message, why| {
        let record = Record::default();
        match why {
            Some(why) => {
                let record = record.sensitive("error", Sensitive::text(why, &redactor));
                log.write(Level::Warn, message, record);
            }
            None => log.write(Level::Info, message, record),
        }
    })
}

fn opener(engine: Arc<Engine>) -> OpenContent {
    Arc::new(move |line, ciphertext| {
        let event = Stored {
            id: 0,
            line: line.to_vec(),
            ciphertext: ciphertext.map(<[u8]>::to_vec),
        };
        engine.store().reader().open_payload(&event).ok()
    })
}

fn redactor(plan: &Plan) -> Result<Redactor, Failure> {
    let config = &plan.config;
    let rules = Rules {
        secret_names: config.list("redact.secret_names").to_vec(),
        secret_prefixes: config.list("redact.secret_prefixes").to_vec(),
        keep_email: config.is_set("redact.keep_email"),
        keep_numbers: config.is_set("redact.keep_numbers"),
    };
    Redactor::new(rules).map_err(|error| match error {
        countersign_redact::RuleError::Name(_) => config.wrong("redact.secret_names", &error),
        countersign_redact::RuleError::Prefix(_) => config.wrong("redact.secret_prefixes", &error),
    })
}

fn file(plan: &Plan) -> File {
    let path = plan.config.text("telemetry.file").map(PathBuf::from);
    let usual = || plan.folder.path().join("telemetry").join("spans.ndjson");
    File {
        path: path.unwrap_or_else(usual),
        max_bytes: plan.config.count("telemetry.file_max_mib").max(1) << 20,
    }
}

fn collector(plan: &Plan) -> Result<Option<Collector>, Failure> {
    let config = &plan.config;
    let protocol = config.text("telemetry.otlp_protocol").unwrap_or_default();
    let protocol: Protocol = protocol
        .parse()
        .map_err(|error| config.wrong("telemetry.otlp_protocol", &error))?;
    let headers = config.text("telemetry.otlp_headers_file");
    let Some(address) = config.text("telemetry.otlp_endpoint") else {
        return match headers {
            None => Ok(None),
            Some(_) => {
                let text = "there is no `telemetry.otlp_endpoint`";
                Err(config.wrong("telemetry.otlp_headers_file", &text))
            }
        };
    };
    let collector = Collector::new(address, protocol);
    let collector = collector.map_err(|error| config.wrong("telemetry.otlp_endpoint", &error))?;
    let Some(headers) = headers else {
        return Ok(Some(collector));
    };
    let text = input::file(headers, MAX_HEADERS)?;
    let collector = collector.with_headers(&String::from_utf8_lossy(&text));
    let wrong = |error| config.wrong("telemetry.otlp_headers_file", &error);
    Ok(Some(collector.map_err(wrong)?))
}

/// Says what is wrong and did not happen.
pub(super) fn complain(log: &Log, failure: &Failure) {
    match log.format() {
        LogFormat::Text => drop(failure.report()),
        LogFormat::Json => {
            let why = Sensitive::text(failure.message(), &Redactor::default());
            let record = Record::default().sensitive("error", why);
            log.write(Level::Error, "the policies in force stay", record);
        }
    }
}

const METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
const MAX_HEADERS: usize = 64 << 10;
