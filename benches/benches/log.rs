//! Measures the log and prints each result beside its limit.

use std::path::Path;

use countersign_benches::{Plan, Result, run};

fn main() -> Result<()> {
    // The folder is inside Cargo's target folder: its file system is the one that is measured.
    run(
        &Plan::from_env(),
        Path::new(env!("CARGO_TARGET_TMPDIR")),
        &mut std::io::stdout().lock(),
    )
}
