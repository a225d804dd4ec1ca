//! The HTTP API: a door for programs and people.
//!
//! One table ([`ROUTES`]) says what there is: the router, the permission that each route needs and the
//! description of the API come from it. [`Role::may`] says who may. Every request passes the same
//! gate: the name it was called by, who calls, what they may do, how often, how much they send. What
//! an agent proposes is decided by the engine; this crate decides nothing, and keeps no state that a
//! decision would depend on. Whatever waits for the disk does so on threads of its own, a bounded
//! number of them.
//!
//! ```
//! use countersign_api::{Permission, Role};
//!
//! assert!(Role::Agent.may(Permission::Propose));
//! assert!(!Role::Agent.may(Permission::Decide));
//! assert!(!Role::Operator.needs_tenant());
//! ```
#![forbid(unsafe_code)]

mod actions;
mod answer;
mod api;
mod approvals;
mod call;
mod caller;
mod decide;
mod docs;
mod doorkeeper;
mod events;
mod gate;
mod health;
mod house;
mod idempotency;
mod interventions;
mod live;
mod log;
mod observe;
mod oidc;
mod openapi;
mod pages;
mod policies;
pub mod problem;
pub mod query;
mod rate;
mod records;
mod replays;
mod reply;
mod role;
mod route;
mod server;
mod sessions;
mod shape;
mod sign_in;
mod token;
mod tokens;
mod work;

pub use api::{Api, Settings};
pub use caller::Caller;
pub use house::House;
pub use live::Wake;
pub use observe::{Answered, Metrics, Observed, Observer, ShadowDifference};
pub use oidc::{Oidc, OidcError, OidcSettings};
pub use openapi::openapi;
pub use policies::PolicyBook;
pub use problem::Problem;
pub use rate::Rate;
pub use role::{Permission, Role, UnknownRole};
pub use route::{ROUTES, Route, Verb};
pub use server::Door;
pub use sign_in::{Issuer, SignIn};
pub use token::{NewToken, TokenError};
