//! Decisions: the rules by both evaluators beside native code, and admission without and with the
//! store.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use countersign_canon::{Hash, Json};
use countersign_engine::{Admission, Engine, Origin, Proposal, SystemClock};
use countersign_event::Scope;
use countersign_policy::Policies;
use countersign_policy::capability::Capability;
use countersign_policy::facts::{Action, Facts, State, Surroundings};
use countersign_policy::manifest::Manifest;
use countersign_policy::matcher::Link;
use countersign_store::{Folder, Options, Store};

use crate::measure::{Latencies, Pair, Result, Spent, middle};
use crate::report::{Report, microseconds, milliseconds, progress, ratio};

mod history;
mod native;

/// Measures decisions and prints them.
pub(crate) fn section(place: &Path, report: &mut Report<'_>) -> Result<()> {
    rules(report)?;
    admission(place, report)?;
    growth(place, report)
}

fn rules(report: &mut Report<'_>) -> Result<()> {
    progress("rules");
    report.table(
        "The capability rules, one core",
        &[
            "what",
            "action",
            "per evaluation",
            "limit",
            "per evaluation",
            "times the limit",
        ],
    )?;
    let recalling = Capability::new(Some(manifest()?))?;
    let machine = Capability::new(Some(manifest()?))?.forgetful();
    let interpreter = Capability::new(Some(manifest()?))?.interpreted();
    for size in SIZES {
        let args = arguments(size, 0);
        let facts = facts(&args, &machine);
        let native = || native::judge(black_box(&facts), machine.manifest());
        if native() != machine.judge(&facts).verdict.reason() {
            return Err("the native rules decide differently".into());
        }
        for (name, capability) in [
            ("interpreter", &interpreter),
            ("machine", &machine),
            ("asked before", &recalling),
        ] {
            let compared = middle(|| {
                Ok(Compared {
                    ours: per_call(RULE_CALLS, || {
                        drop(black_box(capability.judge(black_box(&facts))))
                    })?,
                    limit: per_call(NATIVE_CALLS, || {
                        black_box(native());
                    })?,
                })
            })?;
            row(name, size, "native rules, same facts", &compared, report)?;
        }
    }
    Ok(())
}

fn admission(place: &Path, report: &mut Report<'_>) -> Result<()> {
    progress("admission");
    report.table(
        "Admission of an action in a session of 32 calls",
        &[
            "what",
            "action",
            "processor time",
            "limit",
            "per hash",
            "times the limit",
        ],
    )?;
    for size in SIZES {
        let desk = Desk::open(place, history::Extent::calls(32))?;
        let args = arguments(size, 0);
        let bytes = args.to_jcs()?;
        let hash = || {
            black_box(Hash::of(black_box(&bytes)));
        };
        let compared = middle(|| {
            Ok(Compared {
                ours: per_call(ADMIT_CALLS, || {
                    drop(black_box(
                        desk.engine.preview(&desk.proposal(0, &args, &bytes)),
                    ));
                })?,
                limit: per_call(HASH_CALLS, hash)?,
            })
        })?;
        row(
            "without the store",
            size,
            "SHA-256 of the action",
            &compared,
            report,
        )?;
        let mut number = 0;
        let mut latencies = Latencies::default();
        let compared = middle(|| {
            let ours = per_call(STORED_CALLS, || {
                number += 1;
                let args = arguments(size, number);
                let start = Instant::now();
                let admission = desk.engine.admit(desk.proposal(number, &args, &bytes));
                latencies.push(start.elapsed());
                drop(black_box(admission));
            })?;
            Ok(Compared {
                ours,
                limit: per_call(HASH_CALLS, hash)?,
            })
        })?;
        let name = format!(
            "with the store, three events durable; p50 {}",
            milliseconds(latencies.percentile(0.5))
        );
        row(&name, size, "SHA-256 of the action", &compared, report)?;
        if !matches!(
            desk.engine
                .admit(desk.proposal(number + 1, &arguments(size, number + 1), &bytes)),
            Admission::Permit(_)
        ) {
            return Err("the action was not permitted".into());
        }
    }
    Ok(())
}

fn growth(place: &Path, report: &mut Report<'_>) -> Result<()> {
    progress("admission, growth");
    report.table(
        "Admission without the store as the snapshot grows, action of 1 KB",
        &[
            "snapshot",
            "processor time",
            "limit",
            "per hash",
            "times the limit",
        ],
    )?;
    for extent in history::Extent::growing() {
        let desk = Desk::open(place, extent)?;
        let snapshot = desk.snapshot;
        let args = arguments(SIZES[0], 0);
        let bytes = args.to_jcs()?;
        let text = vec![b'x'; snapshot];
        let compared = middle(|| {
            Ok(Compared {
                ours: per_call(ADMIT_CALLS, || {
                    drop(black_box(
                        desk.engine.preview(&desk.proposal(0, &args, &bytes)),
                    ));
                })?,
                limit: per_call(HASH_CALLS, || {
                    black_box(Hash::of(black_box(&text)));
                })?,
            })
        })?;
        report.row(&[
            format!("{snapshot} bytes"),
            microseconds(compared.ours),
            "SHA-256 of the snapshot".to_owned(),
            microseconds(compared.limit),
            ratio(compared.ratio()),
        ])?;
    }
    Ok(())
}

/// An engine with one session that has a history.
struct Desk {
    engine: Engine,
    scope: Scope,
    origin: Origin,
    snapshot: usize,
    _folder: tempfile::TempDir,
}

impl Desk {
    fn open(place: &Path, extent: history::Extent) -> Result<Self> {
        let folder = tempfile::tempdir_in(place)?;
        let store = Store::open(&Folder::new(folder.path()), Options::default())?;
        let policies = Policies::new(Capability::new(Some(manifest()?))?);
        let engine = Engine::new(store, policies, SystemClock);
        let scope = Scope::new("bench", "s")?;
        let snapshot = history::record(&extent, &scope, &engine)?;
        Ok(Self {
            engine,
            scope,
            origin: Origin::new("operator", "bench", place)?,
            snapshot,
            _folder: folder,
        })
    }

    fn proposal<'a>(&'a self, number: u64, args: &Json, bytes: &'a [u8]) -> Proposal<'a> {
        Proposal {
            scope: &self.scope,
            call_id: format!("n{number}"),
            tool_name: "mcp.https.post".to_owned(),
            server: None,
            definition: None,
            origin: &self.origin,
            preconditions: Vec::new(),
            args: args.clone(),
            sanitizer_key: Some("k0".to_owned()),
            bytes,
            encode: &|args| args.to_jcs().unwrap_or_default(),
        }
    }
}

struct Compared {
    ours: f64,
    limit: f64,
}

impl Pair for Compared {
    fn ratio(&self) -> f64 {
        self.ours / self.limit
    }
}

/// Seconds of processor time for one call.
fn per_call(calls: u32, mut work: impl FnMut()) -> Result<f64> {
    let spent = Spent::on(calls, || {
        work();
        Ok(())
    })?;
    Ok(spent.cpu.as_secs_f64() / f64::from(calls))
}

fn row(
    name: &str,
    size: usize,
    limit: &str,
    compared: &Compared,
    report: &mut Report<'_>,
) -> Result<()> {
    report.row(&[
        name.to_owned(),
        format!("{} KB", size / 1000),
        microseconds(compared.ours),
        limit.to_owned(),
        microseconds(compared.limit),
        ratio(compared.ratio()),
    ])
}

/// Arguments of about this many bytes: a URL and small members, as tools take them.
fn arguments(size: usize, number: u64) -> Json {
    let fields = (0..(size / 50)).map(|field| {
        (
            format!("field_{field:04}"),
            Json::from(format!("value {field} of call {number:08}")),
        )
    });
    let url = (
        "url".to_owned(),
        Json::from("https://api.example.com/v1/things"),
    );
    Json::object(fields.chain([url]))
}

fn facts(args: &Json, capability: &Capability) -> Facts {
    let action = Action {
        tool_name: "mcp.https.post",
        args,
        sanitizer_key: None,
    };
    let state = State {
        steps: 3,
        tool_calls: 3,
        wall_time_ms: 100,
        ..State::untouched()
    };
    let surroundings = Surroundings {
        examine: &|_| Link::No,
        base: None,
    };
    Facts::of(&action, state, &surroundings, capability.manifest())
}

/// A manifest of an ordinary size.
fn manifest() -> Result<Manifest> {
    let tools = (0..30).map(|number| {
        (
            format!("tool_{number}"),
            Json::object([("side_effect", Json::from("read"))]),
        )
    });
    let post = Json::object([
        ("side_effect", Json::from("network-egress")),
        ("sink", Json::from(true)),
    ]);
    let tools = tools.chain([("mcp.https".to_owned(), post)]);
    let domains = ["api.example.com", "*.cdn.example.com"].map(Json::from);
    let limits = ["max_steps", "max_tool_calls", "max_wall_time_ms"]
        .map(|name| (name, Json::from(1_000_000_000_u64)));
    let permissions = Json::object([
        ("tools", Json::object(tools)),
        (
            "net",
            Json::object([("domains", Json::Array(domains.into()))]),
        ),
        ("budgets", Json::object(limits)),
    ]);
    Ok(Manifest::from_json(&Json::object([
        ("schema", Json::from("countersign/manifest/v1")),
        ("name", Json::from("bench")),
        ("version", Json::from("1.0.0")),
        ("publisher", Json::from("bench")),
        ("permissions", permissions),
        ("sandbox", Json::object([("required", Json::from(true))])),
    ]))?)
}

/// Of the action, in bytes.
const SIZES: [usize; 2] = [1_000, 95_000];
const RULE_CALLS: u32 = 20_000;
const NATIVE_CALLS: u32 = 1_000_000;
const HASH_CALLS: u32 = 50_000;
const ADMIT_CALLS: u32 = 20_000;
const STORED_CALLS: u32 = 1_000;
