//! What may be told of the log, and where it goes: spans, metrics and log lines.
//!
//! [`Fold`] makes spans of recorded events: one of each event, and one of each action from its
//! beginning to its end. What is in a [`Span`] went through a [`Record`](countersign_redact::Record),
//! so it has a privacy class; what has none is not in it. [`Telemetry`] takes events on the thread that
//! saw them, without waiting, and exports on threads of its own: into a file of OTLP JSON lines, and to
//! a collector if one is named. What does not fit into its queue is dropped and counted. [`Metrics`]
//! are numbers for Prometheus under words of our own, [`Log`] writes lines for people or programs.
//!
//! Nothing here changes an event, sees a decision before it is durable, or reads the variables of
//! OpenTelemetry's own libraries: an application beside us keeps its telemetry whatever ours does. No
//! connection is opened unless a collector is named.
//!
//! ```
//! use countersign_event::Line;
//! use countersign_redact::Redactor;
//! use countersign_telemetry::Fold;
//!
//! let line = br#"{"event_type":"MEMORY_READ","hash":"0000000000000000000000000000000000000000000000000000000000000000","payload":{"memory_key":"password=hunter2"},"prev_hash":null,"seq":0,"session_id":"s","tenant_id":"t","ts_unix_ms":1}"#;
//! let mut fold = Fold::new(Redactor::default());
//! let told = fold.take(&Line::read(line).unwrap(), None);
//! let span = told.spans.first().unwrap();
//! assert_eq!(span.attribute("countersign.payload.memory_key").unwrap().as_str(), Some("password=[REDACTED]"));
//! ```
#![forbid(unsafe_code)]

mod export;
mod fold;
mod histogram;
mod log;
mod member;
mod metrics;
mod otlp;
mod span;

pub use export::{Collector, File, OpenContent, Protocol, Report, Settings, StartError, Telemetry};
pub use fold::{Fold, Told};
pub use log::{Level, Log, LogFormat, UnknownWord};
pub use metrics::{Cause, Metrics};
pub use otlp::{to_json, to_protobuf};
pub use span::{Ending, Kind, Span, Title};
