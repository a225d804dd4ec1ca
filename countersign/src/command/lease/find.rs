//! A lease by its name, or by the beginning of it.

use countersign_approval::LeaseId;
use countersign_engine::{Desk, StandingLease};

use crate::errors::{Code, Failure};

/// The one lease whose id begins so, with or without `lse_`.
pub(super) fn find(text: &str, desk: &Desk) -> Result<StandingLease, Failure> {
    let absent = || failure(format!("there is no lease `{text}`"));
    if let Ok(id) = text.parse::<LeaseId>() {
        return desk.lease(id)?.ok_or_else(absent);
    }
    let beginning = text.strip_prefix("lse_").unwrap_or(text);
    if beginning.is_empty() {
        return Err(failure(format!("`{text}` is not the id of a lease")));
    }
    let beginning = format!("lse_{beginning}");
    let mut found = desk
        .all_leases()?
        .into_iter()
        .filter(|it| it.lease.id().to_string().starts_with(&beginning));
    match (found.next(), found.next()) {
        (Some(lease), None) => Ok(lease),
        (None, _) => Err(absent()),
        (Some(_), Some(_)) => Err(failure(format!("several leases begin with `{text}`"))),
    }
}

fn failure(message: String) -> Failure {
    Failure::new(Code::NoLease, message)
}
