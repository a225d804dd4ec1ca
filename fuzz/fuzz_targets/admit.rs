//! Any action through the whole decision path: a permit comes for what the manifest allows only, and
//! only for the bytes that were proposed.
#![no_main]

use std::cell::RefCell;

use countersign_canon::{Digest, Json, Limits};
use countersign_engine::{Admission, Engine, Origin, Proposal, SystemClock};
use countersign_event::Scope;
use countersign_policy::Policies;
use countersign_policy::capability::Capability;
use countersign_policy::manifest::Manifest;
use countersign_store::{Folder, Options, Store};
use libfuzzer_sys::fuzz_target;

const MANIFEST: &str = r#"{"schema":"countersign/manifest/v1","name":"n","version":"1.0.0","publisher":"p",
    "sandbox":{"required":true},"permissions":{
    "tools":{"read_file":{"side_effect":"read"},"mcp.https":{"side_effect":"network-egress"},
             "exec":{"side_effect":"mutate-local"},"deploy":{"side_effect":"read","approval":"required"}},
    "fs":{"read_roots":["/nowhere/data"]},"net":{"domains":["example.com","*.example.org"]},
    "exec":{"allowed_bins":["git"]}}}"#;

struct Bench {
    engine: Engine,
    origin: Origin,
    actions: usize,
    _folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let place = if std::path::Path::new("/dev/shm").is_dir() {
            "/dev/shm"
        } else {
            "."
        };
        let folder = tempfile::tempdir_in(place).unwrap();
        let store = Store::open(&Folder::new(folder.path()), Options::default()).unwrap();
        let manifest = Manifest::read(MANIFEST.as_bytes()).unwrap();
        let policies = Policies::new(Capability::new(Some(manifest)).unwrap());
        Self {
            engine: Engine::new(store, policies, SystemClock),
            origin: Origin::new("operator", "fuzzer", folder.path()).unwrap(),
            actions: 0,
            _folder: folder,
        }
    }
}

thread_local! {
    static BENCH: RefCell<Bench> = RefCell::new(Bench::new());
}

fuzz_target!(|text: &[u8]| {
    let Some((choice, text)) = text.split_first() else {
        return;
    };
    let Ok(args) = Json::admit(text, &Limits::event()) else {
        return;
    };
    let given = args
        .get("tool")
        .and_then(Json::as_str)
        .unwrap_or("read_file")
        .to_owned();
    let tool_name = match choice % 8 {
        0 => "read_file".to_owned(),
        1 => "mcp.https.post".to_owned(),
        2 => "exec".to_owned(),
        3 => "exec.shell".to_owned(),
        4 => "deploy".to_owned(),
        5 => "mcp.https".to_owned(),
        _ => given,
    };
    BENCH.with_borrow_mut(|bench| {
        bench.actions += 1;
        if bench.actions > 5000 {
            *bench = Bench::new();
        }
        let scope = Scope::new("t", format!("s{}", bench.actions)).unwrap();
        let call_id = args
            .get("call_id")
            .and_then(Json::as_str)
            .unwrap_or("c")
            .to_owned();
        let admission = bench.engine.admit(Proposal {
            scope: &scope,
            call_id,
            tool_name: tool_name.clone(),
            server: None,
            definition: None,
            origin: &bench.origin,
            preconditions: Vec::new(),
            args: args.clone(),
            sanitizer_key: args.get("key").and_then(Json::as_str).map(str::to_owned),
            bytes: text,
            encode: &|args| args.to_jcs().unwrap_or_default(),
        });
        if let Admission::Permit(permit) = admission {
            assert_eq!(permit.digest(), Digest::of(text));
            let text = String::from_utf8_lossy(&args.to_jcs().unwrap()).to_lowercase();
            let named = match tool_name.as_str() {
                "read_file" => text.contains("nowhere"),
                "exec" => text.contains("git"),
                name if name.starts_with("exec.") => text.contains("git"),
                // A name may also be written in escapes that a URL reader resolves.
                name if name == "mcp.https" || name.starts_with("mcp.https.") => {
                    text.contains("example") || text.contains('%') || !text.is_ascii()
                }
                _ => false,
            };
            assert!(named, "`{tool_name}` was permitted for {text}");
        }
    });
});
