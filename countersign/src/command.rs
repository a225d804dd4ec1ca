//! One module a command.

pub(crate) mod action;
pub(crate) mod approval;
pub(crate) mod approver;
pub(crate) mod backtest;
pub(crate) mod canon;
pub(crate) mod checkpoint;
pub(crate) mod config;
pub(crate) mod connect;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod evidence;
pub(crate) mod explain;
pub(crate) mod keys;
pub(crate) mod lease;
pub(crate) mod log;
pub(crate) mod manifest;
pub(crate) mod mcp;
pub(crate) mod policy;
pub(crate) mod prove;
pub(crate) mod replay;
pub(crate) mod serve;
pub(crate) mod session;
pub(crate) mod token;
pub(crate) mod tools;
pub(crate) mod trust;
pub(crate) mod verify;
