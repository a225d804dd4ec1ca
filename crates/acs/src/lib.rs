//! Agent Control: one manifest governs an agent at eight points, from its start to its end.
//!
//! A host says where an agent is ([`Point`]) and what it sees there (a snapshot, as JSON). The
//! [`Runtime`] finds what is judged, asks annotators, asks the policy that the [`Manifest`] binds to the
//! point, and gives an [`Evaluation`]: a verdict, the changed target if there is one, and two
//! identities, of what was judged and of what may be done. Whatever goes wrong is a deny with a
//! [`Reserved`] reason.
//!
//! ```
//! use countersign_acs::{Manifest, Mode, Point, Policies, Runtime};
//! use countersign_canon::{Json, Limits};
//!
//! let manifest = Manifest::read(b"
//! agent_control_specification_version: 0.3.1-beta
//! policies:
//!   quiet: {type: test, verdict: {decision: deny, reason: not_today}}
//! intervention_points:
//!   input: {policy_target: $.input.text, policy: {id: quiet}}
//! ")?;
//! let policies = Policies::activate(&manifest, &countersign_acs::NoFiles)?;
//! let runtime = Runtime::new(manifest, policies);
//! let snapshot = Json::admit(br#"{"input":{"text":"hello"}}"#, &Limits::plan())?;
//! let said = runtime.evaluate(Point::Input, &snapshot, Mode::Enforce);
//! assert_eq!(said.verdict().reason(), Some("not_today"));
//!
//! let lost = runtime.evaluate(Point::Output, &snapshot, Mode::Enforce);
//! assert_eq!(lost.verdict().reason(), Some("runtime_error:intervention_point_unknown"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The crate keeps no state between evaluations, and the same manifest, snapshot and answers give the
//! same bytes. It does *no* I/O: files and addresses come through a [`Loader`], annotators through
//! [`Annotate`], policies of other engines through [`Adapter`]. It does not carry out a verdict; that is
//! the host's part.
#![forbid(unsafe_code)]

mod annotate;
mod approval;
mod case;
mod evaluation;
mod input;
mod kept;
mod library;
mod limits;
mod manifest;
mod mode;
mod offline;
mod policies;
mod prompts;
mod reserved;
mod runtime;
mod voice;

pub use countersign_policy::{Identities, Point};

pub use annotate::{Annotate, AnnotationError, AnnotatorCall, NoAnnotators};
pub use approval::{ApprovalRequest, Resolution, Resolve, ResolverError};
pub use case::Case;
pub use evaluation::Evaluation;
pub use input::Input;
pub use kept::{Keeping, Kept};
pub use library::library;
pub use limits::Limits;
pub use manifest::{
    Annotation, Annotator, AnnotatorKind, Approval, Binding, CedarPolicy, CustomPolicy, Fetched,
    LoadError, Loader, Manifest, ManifestError, NoFiles, OnTimeout, Options, PointConfig, Policy,
    RegoPolicy, Resolver, TestPolicy, is_near, load,
};

pub use mode::Mode;
pub use offline::Offline;
pub use policies::{
    ActivationError, Adapter, AdapterCall, Dispatch, DispatchError, Policies, PolicyCall,
};
pub use reserved::Reserved;
pub use runtime::Runtime;
pub use voice::{OURS_TO_SAY, Voice, VoiceError, host_snapshot, revive};
