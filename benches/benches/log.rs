//! Measures the log and prints each result beside its limit.

use std::path::PathBuf;

use countersign_benches::{Plan, Result, run};

fn main() -> Result<()> {
    // Its file system is the one that is measured.
    let place = std::env::var_os("COUNTERSIGN_BENCH_DIR");
    let place = place.map_or_else(|| env!("CARGO_TARGET_TMPDIR").into(), PathBuf::from);
    run(&Plan::from_env(), &place, &mut std::io::stdout().lock())
}
