//! Any text as a host, a path and a command line: no trick passes an allow-list.
#![no_main]

use std::collections::BTreeSet;

use countersign_policy::matcher::{ArgPatterns, Command, Host, HostPattern, HostRules, NormalPath};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let rules: HostRules = ["x.com", "*.y.com"]
        .iter()
        .map(|pattern| HostPattern::parse(pattern).unwrap())
        .collect();
    if let Ok(host) = Host::from_argument(text) {
        let name = host.to_string();
        assert_eq!(
            rules.covers(&host),
            name == "x.com" || name.ends_with(".y.com")
        );
    }
    let root = NormalPath::from_argument("/data").unwrap();
    if let Ok(path) = NormalPath::from_argument(text) {
        let inside = path.as_str() == "/data" || path.as_str().starts_with("/data/");
        assert_eq!(path.within([&root]), inside);
        assert!(
            !path
                .as_str()
                .split('/')
                .any(|part| part == ".." || part == ".")
        );
    }
    let command = Command::from_line(text);
    let allowed = command.allowed(&BTreeSet::from(["git".to_owned()]), &ArgPatterns::default());
    if allowed {
        assert!(command.binaries().all(|binary| binary == "git"));
        assert!(!text.contains(['`', '>', '<']) || text.contains(['\'', '"', '\\']));
    }
});
