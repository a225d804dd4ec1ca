//! A request by its name, or by the beginning of it.

use countersign_approval::ApprovalId;
use countersign_engine::{Desk, Standing};
use countersign_store::Reader;

use crate::errors::{Code, Failure};

/// The one request whose id begins so, with or without `apr_`.
pub(crate) fn find(text: &str, desk: &Desk) -> Result<Standing, Failure> {
    desk.approval(find_id(text, desk.reader())?)?
        .ok_or_else(|| absent(text))
}

/// Its whole id. One that is whole already need not be there.
pub(crate) fn find_id(text: &str, reader: &Reader) -> Result<ApprovalId, Failure> {
    match text.parse::<ApprovalId>() {
        Ok(id) => Ok(id),
        Err(_) => unabbreviated(text, reader),
    }
}

pub(crate) fn absent(text: &str) -> Failure {
    failure(format!("there is no approval `{text}`"))
}

fn unabbreviated(text: &str, reader: &Reader) -> Result<ApprovalId, Failure> {
    let beginning = text.strip_prefix("apr_").unwrap_or(text);
    let is_hex = beginning.bytes().all(|byte| byte.is_ascii_hexdigit());
    if beginning.is_empty() || !is_hex {
        return Err(failure(format!("`{text}` is not the id of an approval")));
    }
    let beginning = format!("apr_{}", beginning.to_ascii_lowercase());
    let rows = reader.newest_approvals(MOST)?;
    let mut ids = rows.iter().map(|row| row.id);
    let begins = |id: &ApprovalId| id.to_string().starts_with(&beginning);
    match (ids.find(begins), ids.find(begins)) {
        (Some(id), None) => Ok(id),
        (None, _) => Err(absent(text)),
        (Some(_), Some(_)) => Err(failure(format!("several approvals begin with `{text}`"))),
    }
}

fn failure(message: String) -> Failure {
    Failure::new(Code::NoApproval, message)
}

/// Older ones need their whole id.
const MOST: usize = 100_000;
