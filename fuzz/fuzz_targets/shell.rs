//! Any line: what is said to be read-only writes nowhere, runs nothing from elsewhere, and stays
//! read-only in a list.
#![no_main]

use countersign_policy::matcher::{Command, Effect};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|line: &str| {
    let effect = Effect::of_line(line);
    assert_eq!(effect.is_read_only(), effect.why().is_none());
    if !effect.is_read_only() {
        return;
    }
    // The other reader of shell lines sees no program that could do harm.
    let harmful = [
        "rm", "sudo", "tee", "awk", "python", "curl", "eval", "printenv",
    ];
    let command = Command::from_line(line);
    assert!(command.binaries().all(|binary| !harmful.contains(&binary)));
    // Short ones: there is a limit to the number of commands.
    if !line.contains("<<") && line.len() < 500 {
        assert!(Effect::of_line(&format!("{line}\nls")).is_read_only());
        assert!(!Effect::of_line(&format!("{line}\nrm x")).is_read_only());
    }
});
