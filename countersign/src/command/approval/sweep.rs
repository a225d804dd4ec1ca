//! What is over, before anything is shown or decided.

use countersign_engine::{Desk, Standing};
use countersign_store::{Approval, Reader};

use crate::errors::Failure;
use crate::output::{self, visible};

/// Moves what is over. A request that cannot be moved is told of; the others do not wait for it.
pub(super) fn sweep(desk: &Desk) -> Result<(), Failure> {
    for (id, refusal) in desk.sweep()?.failed {
        let message = refusal.message();
        output::stderr(&visible(&format!(
            "countersign: {id} is over and cannot be ended: {message}"
        )));
    }
    Ok(())
}

/// The requests that can be read; says which cannot.
pub(super) fn readable(rows: Vec<Approval>, reader: &Reader) -> Vec<Standing> {
    let mut standings = Vec::with_capacity(rows.len());
    for row in rows {
        let id = row.id;
        match Standing::read(row, reader) {
            Ok(standing) => standings.push(standing),
            Err(refusal) => output::stderr(&visible(&format!(
                "countersign: {id} cannot be shown: {}",
                refusal.message()
            ))),
        }
    }
    standings
}
