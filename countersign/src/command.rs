//! One module a command.

pub(crate) mod acs;
pub(crate) mod action;
pub(crate) mod approval;
pub(crate) mod approver;
pub(crate) mod canon;
pub(crate) mod connect;
pub(crate) mod demo;
pub(crate) mod explain;
pub(crate) mod keys;
pub(crate) mod log;
pub(crate) mod manifest;
pub(crate) mod mcp;
pub(crate) mod policy;
pub(crate) mod session;
pub(crate) mod tools;
pub(crate) mod verify;
