//! The policies in force: looking at them, trying others, putting them in force, going back.
//!
//! Policies that were given as files are changed as files. Where there are none, the API keeps
//! versions in the data folder; each is written before it is in force, and numbered.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use axum::http::StatusCode;
use axum::http::header::IF_MATCH;
use countersign_canon::{Json, Limits, Numbers, Object};
use countersign_engine::{Engine, reserved};
use countersign_event::EventType;
use countersign_event::payload::{CheckpointCreated, Payload};
use countersign_policy::capability::Capability;
use countersign_policy::manifest::Manifest;
use countersign_policy::rego::Source;
use countersign_policy::rego::testing::{self, Tested, outline};
use countersign_policy::{LoadError, Policies, PolicySources};

use crate::api::{Api, lock};
use crate::call::Call;
use crate::problem::{Kind, Problem};
use crate::reply::{Reply, names};

/// Who keeps the policies.
pub enum PolicyBook {
    /// Files, which somebody else changes.
    Files,
    /// This folder, version by version.
    Folder(PathBuf),
}

/// Keeps the versions; one change at a time.
pub(crate) struct Keeper {
    book: PolicyBook,
    changing: Mutex<()>,
}

impl PolicyBook {
    /// The versions of a data folder.
    pub fn in_folder(data: &Path) -> Self {
        Self::Folder(data.join("policy"))
    }

    /// The policies of the version that was in force last; none if there is no version.
    pub fn current(&self) -> Result<Option<Policies>, Problem> {
        let Self::Folder(folder) = self else {
            return Ok(None);
        };
        let Some(number) = newest(folder)? else {
            return Ok(None);
        };
        load(&version(folder, number)?).map(Some)
    }
}

impl Keeper {
    pub(crate) fn new(book: PolicyBook) -> Self {
        Self {
            book,
            changing: Mutex::default(),
        }
    }

    fn folder(&self) -> Result<&Path, Problem> {
        match &self.book {
            PolicyBook::Folder(folder) => Ok(folder),
            PolicyBook::Files => {
                let text = "change the files, then tell the daemon to read them again";
                Err(Problem::new(Kind::InFiles, text))
            }
        }
    }
}

pub(crate) async fn show(call: &Call) -> Result<Reply, Problem> {
    let api = Arc::clone(&call.api);
    let json = call.api.workers.run(move || api.in_force()).await??;
    Ok(Reply::ok(&json).tagged(call.if_none_match()))
}

pub(crate) async fn manifest(call: &Call) -> Result<Reply, Problem> {
    let policies = call.api.engine.policies();
    let manifest = policies.capability().manifest().map(Manifest::to_json);
    let manifest = manifest.unwrap_or(Json::Null);
    Ok(Reply::ok(&Json::object([("manifest", manifest)])).tagged(call.if_none_match()))
}

pub(crate) async fn tools(call: &Call) -> Result<Reply, Problem> {
    let policies = call.api.engine.policies();
    let manifest = policies.capability().manifest().map(Manifest::to_json);
    let permissions = manifest
        .as_ref()
        .and_then(|manifest| manifest.get("permissions"));
    let tools = permissions
        .and_then(|permissions| permissions.get("tools"))
        .cloned();
    let tools = tools.unwrap_or_else(|| Json::Object(Object::new()));
    Ok(Reply::ok(&Json::object([("tools", tools)])).tagged(call.if_none_match()))
}

pub(crate) async fn validate(call: &Call) -> Result<Reply, Problem> {
    let set = Json::Object(call.object()?);
    let tried = move || load(&set).map(|policies| about(&policies));
    Ok(Reply::ok(&call.api.workers.run(tried).await??))
}

pub(crate) async fn activate(call: &Call) -> Result<Reply, Problem> {
    let set = Json::Object(call.object()?);
    change(call, move |_| Ok(set)).await
}

/// Puts policies beside those in force, whose verdicts are recorded only.
pub(crate) async fn shadow(call: &Call) -> Result<Reply, Problem> {
    let mut given = call.object()?;
    let policies = given.remove("policies").unwrap_or(Json::Array(Vec::new()));
    change(call, move |folder| {
        let current = newest(folder)?
            .map(|number| version(folder, number))
            .transpose()?;
        let mut set = current.and_then(Json::into_object).unwrap_or_default();
        set.insert("shadow".to_owned(), policies);
        Ok(Json::Object(set))
    })
    .await
}

/// Lets the policies in the shadow decide from now on. One of them takes the place of the policy that
/// has its name; the others join.
pub(crate) async fn promote(call: &Call) -> Result<Reply, Problem> {
    call.object()?;
    change(call, |folder| {
        let none = || Problem::new(Kind::NotFound, "there is nothing in the shadow to promote");
        let number = newest(folder)?.ok_or_else(none)?;
        let set = version(folder, number)?;
        let mut set = set.into_object().ok_or_else(none)?;
        let shadow = set.remove("shadow").and_then(Json::into_array);
        let shadow = shadow.filter(|files| !files.is_empty()).ok_or_else(none)?;
        let kept = set.remove("policies").and_then(Json::into_array);
        let mut policies = kept.unwrap_or_default();
        policies.retain(|file| {
            let is_replaced = |new: &Json| new.get("name") == file.get("name");
            !shadow.iter().any(is_replaced)
        });
        policies.extend(shadow);
        set.insert("policies".to_owned(), Json::Array(policies));
        set.insert("promoted_from".to_owned(), Json::from(number));
        Ok(Json::Object(set))
    })
    .await
}

pub(crate) async fn roll_back(call: &Call) -> Result<Reply, Problem> {
    let to = call
        .object()?
        .remove("version")
        .and_then(|number| number.as_u64());
    change(call, move |folder| {
        let none = || Problem::new(Kind::NotFound, "there is no such version");
        let newest = newest(folder)?.ok_or_else(none)?;
        let to = to.unwrap_or(newest.saturating_sub(1));
        if to == 0 || to >= newest {
            return Err(none());
        }
        version(folder, to)
    })
    .await
}

/// Writes a new version and puts it in force. Blocks others who do.
async fn change(
    call: &Call,
    make: impl FnOnce(&Path) -> Result<Json, Problem> + Send + 'static,
) -> Result<Reply, Problem> {
    let expected = call.header(&IF_MATCH).map(str::to_owned);
    let (api, who) = (Arc::clone(&call.api), call.caller.id.clone());
    let changed = move || {
        let folder = api.keeper.folder()?.to_owned();
        let _one_at_a_time = lock(&api.keeper.changing);
        let digest = format!("\"{}\"", api.engine.policies().digest());
        if expected.is_some_and(|expected| !names(&expected, &digest)) {
            let text = format!("the policies in force are {digest}");
            return Err(Problem::new(Kind::Changed, text));
        }
        let set = make(&folder)?;
        let policies = load(&set)?;
        let number = newest(&folder)?.unwrap_or(0) + 1;
        let unwritten = |_| {
            let text = "the version could not be written; nothing has changed";
            Problem::new(Kind::Database, text)
        };
        write(&folder, &set).map_err(unwritten)?;
        // What decides is in the log before it decides, now and after a restart.
        record(&api.engine, number, &policies, &who)?;
        publish(&folder, number).map_err(|_| {
            let text = "the version is in the log, but could not be written; those in force stay, try again";
            Problem::new(Kind::Database, text)
        })?;
        api.engine.replace_policies(policies);
        api.in_force()
    };
    let json = call.api.workers.run(changed).await??;
    Ok(Reply::json(StatusCode::CREATED, &json))
}

impl Api {
    /// The tests of the version in force, run now, and which lines they reach; nothing where there is no
    /// policy. Blocks.
    pub(crate) fn tested(&self) -> Result<Option<Json>, Problem> {
        let PolicyBook::Folder(folder) = &self.keeper.book else {
            return Ok(None);
        };
        let Some(number) = newest(folder)? else {
            return Ok(None);
        };
        let set = version(folder, number)?;
        let (policies, tests) = (files(&set, "policies")?, files(&set, "tests")?);
        if policies.is_empty() {
            return Ok(None);
        }
        let in_force = self.engine.policies();
        let manifest = in_force.capability().manifest();
        let tested = testing::run(&policies, &tests, manifest)
            .map_err(|error| Problem::new(Kind::Policy, error.to_string()))?;
        Ok(Some(test_report(&tested)))
    }

    pub(crate) fn in_force(&self) -> Result<Json, Problem> {
        let policies = self.engine.policies();
        let mut json = about(&policies);
        let number = match &self.keeper.book {
            PolicyBook::Files => None,
            PolicyBook::Folder(folder) => newest(folder)?,
        };
        let kept_in = match &self.keeper.book {
            PolicyBook::Files => "files",
            PolicyBook::Folder(_) => "versions",
        };
        if let Some(members) = json.as_object_mut() {
            members.insert("kept_in".to_owned(), Json::from(kept_in));
            members.insert("version".to_owned(), Json::from(number));
        }
        Ok(json)
    }
}

fn test_report(tested: &Tested) -> Json {
    let failed = tested.tests.iter().filter(|test| test.failure.is_some());
    let failed = failed.count() as u64;
    let tests = tested.tests.iter().map(|test| {
        Json::object([
            ("place", Json::from(format!("{}:{}", test.file, test.line))),
            ("name", Json::from(test.name.as_str())),
            ("failure", Json::from(test.failure.as_deref())),
        ])
    });
    let files = tested.coverage.iter().map(|file| {
        let (covered, missed) = (file.covered.len() as u64, file.missed.len() as u64);
        let lines = file.missed.iter().copied().map(Json::from);
        Json::object([
            ("name", Json::from(file.file.as_str())),
            ("covered", Json::from(covered)),
            ("lines", Json::from(covered + missed)),
            ("missed", Json::Array(lines.collect())),
        ])
    });
    Json::object([
        ("passed", Json::from(tested.tests.len() as u64 - failed)),
        ("failed", Json::from(failed)),
        ("tests", Json::Array(tests.collect())),
        ("files", Json::Array(files.collect())),
    ])
}

fn about(policies: &Policies) -> Json {
    let others = policies.others().iter().map(|policy| {
        Json::object([
            ("name", Json::from(policy.name())),
            ("mode", Json::from(policy.mode().as_str())),
            ("digest", Json::from(policy.digest().to_string())),
        ])
    });
    let manifest = policies.capability().manifest();
    Json::object([
        ("digest", Json::from(policies.digest().to_string())),
        (
            "manifest_digest",
            Json::from(manifest.map(|manifest| manifest.digest().to_string())),
        ),
        ("policies", Json::Array(others.collect())),
        ("observing", Json::from(policies.is_observing())),
    ])
}

/// Compiles a set and runs its tests.
pub(crate) fn load(set: &Json) -> Result<Policies, Problem> {
    let manifest = match set.get("manifest") {
        None | Some(Json::Null) => None,
        Some(manifest) => Some(
            Manifest::from_json(manifest)
                .map_err(|error| Problem::new(Kind::Manifest, error.to_string()).at("/manifest"))?,
        ),
    };
    let mut sources = PolicySources {
        shadow: files(set, "shadow")?,
        tests: files(set, "tests")?,
        ..PolicySources::default()
    };
    for source in files(set, "policies")? {
        let is_rules = outline(&source).is_ok_and(|outline| outline.package == RULES);
        match (is_rules, &sources.rules) {
            (false, _) => sources.enforced.push(source),
            (true, None) => sources.rules = Some(source),
            (true, Some(_)) => {
                let text = "two policies stand in the place of the built-in rules";
                return Err(Problem::new(Kind::Policy, text).at("/policies"));
            }
        }
    }
    let loaded = Policies::load(&sources, |rules| match rules {
        Some(rules) => Capability::with_rules(rules, manifest),
        None => Capability::new(manifest),
    });
    loaded.map_err(|error: LoadError| Problem::new(Kind::Policy, error.to_string()))
}

fn files(set: &Json, member: &str) -> Result<Vec<Source>, Problem> {
    let files = set.get(member).and_then(Json::as_array).unwrap_or_default();
    let text = |file: &Json, name: &str| file.get(name).and_then(Json::as_str).map(str::to_owned);
    let source = |file: &Json| {
        Some(Source {
            name: text(file, "name")?,
            text: text(file, "text")?,
        })
    };
    let wrong = || Problem::new(Kind::Member, "a policy has a `name` and a `text`");
    files
        .iter()
        .map(|file| source(file).ok_or_else(wrong))
        .collect()
}

/// Tells in the log which policies come into force, and who says so.
fn record(engine: &Engine, number: u64, policies: &Policies, who: &str) -> Result<(), Problem> {
    let scope = reserved::policies()?;
    let mut other = Object::new();
    other.insert("activated_by".to_owned(), Json::from(who));
    let payload = Payload::CheckpointCreated(CheckpointCreated {
        checkpoint_id: Some(format!("policy/{number}")),
        snapshot_hash: Some(policies.digest().to_string()),
        other,
        ..CheckpointCreated::default()
    });
    let recorded = engine.record(&scope, EventType::CheckpointCreated, payload);
    recorded.map(drop).map_err(Problem::from)
}

/// The number of the newest version.
fn newest(folder: &Path) -> Result<Option<u64>, Problem> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        entries => entries.map_err(|_| unreadable())?,
    };
    let mut newest = None;
    for entry in entries {
        let name = entry.map_err(|_| unreadable())?.file_name();
        let number = name
            .to_str()
            .and_then(|name| name.strip_suffix(".json")?.parse().ok());
        newest = newest.max(number);
    }
    Ok(newest)
}

fn version(folder: &Path, number: u64) -> Result<Json, Problem> {
    let text = fs::read(folder.join(format!("{number:06}.json"))).map_err(|_| unreadable())?;
    Json::admit(&text, &VERSION).map_err(|_| unreadable())
}

/// Writes a set where no version is looked for.
fn write(folder: &Path, set: &Json) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut file = File::create(folder.join(UNPUBLISHED))?;
    file.write_all(&set.to_sorted_ascii())?;
    file.sync_all()
}

/// Makes what was written the newest version.
fn publish(folder: &Path, number: u64) -> io::Result<()> {
    let version = folder.join(format!("{number:06}.json"));
    fs::rename(folder.join(UNPUBLISHED), version)?;
    match cfg!(unix) {
        true => File::open(folder)?.sync_all(),
        false => Ok(()),
    }
}

fn unreadable() -> Problem {
    Problem::new(Kind::Policy, "the kept versions cannot be read")
}

const UNPUBLISHED: &str = "new";
const RULES: &str = "data.countersign.capability";

const VERSION: Limits = Limits {
    max_bytes: 64 << 20,
    max_depth: 130,
    numbers: Numbers::Double,
};
