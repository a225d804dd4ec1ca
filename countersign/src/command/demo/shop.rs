//! What the operator of the demonstration has set up: a manifest, and one person who may approve.

use std::path::{Path, PathBuf};

use countersign_approval::{BallotPaper, CallDecision, Decision, Human, SigningKey, State, UnixMs};
use countersign_canon::Json;
use countersign_engine::{Approvers, Engine, PolicyFiles, Standing, SystemClock};
use countersign_mcp::tools::Definition;
use countersign_store::{Folder, Options, Store};

use super::server;
use crate::errors::{Code, Failure};
use crate::folder::create_private;

/// The operator's side: an engine beside the proxy's, on the same log.
pub(super) struct Operator {
    engine: Engine,
    person: Human,
    key: SigningKey,
}

impl Operator {
    /// Registers a person with a new key, and writes the manifest.
    pub(super) fn new(folder: &Folder) -> Result<(Self, PathBuf), Failure> {
        let manifest = folder.path().join("manifest.json");
        create_private(folder.path())?;
        std::fs::write(&manifest, self::manifest()?.to_jcs()?)?;
        let secret = countersign_vault::open_or_create_secret(&folder.path().join("demo.key"))?;
        let key = SigningKey::from_bytes(&secret);
        let person = Human::new("you").map_err(|error| failed(&error))?;
        let mut approvers = Approvers::load(folder.path()).map_err(|error| failed(&error))?;
        if approvers.keys().is_empty() {
            approvers
                .add(person.clone(), &key.verifying_key())
                .and_then(|_| approvers.save(folder.path()))
                .map_err(|error| failed(&error))?;
        }
        let files = PolicyFiles {
            manifest: Some(manifest.clone()),
            ..PolicyFiles::default()
        };
        let policies = files.load().map_err(|error| failed(&error))?;
        let store = Store::open(folder, Options::default())?;
        let engine = Engine::new(store, policies, SystemClock);
        let operator = Self {
            engine,
            person,
            key,
        };
        Ok((operator, manifest))
    }

    /// The request that waits, once there is one.
    pub(super) fn waiting(&self) -> Result<Standing, Failure> {
        for _ in 0..500 {
            let pending = self.engine.store().reader().approvals_in(State::Pending)?;
            if let Some(row) = pending.first() {
                let standing = self.engine.approval(row.id);
                let standing = standing.map_err(|refusal| failed(&refusal.message()))?;
                return standing.ok_or_else(|| failed(&"the request has disappeared"));
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        Err(failed(&"nothing was held"))
    }

    /// Signs a decision.
    pub(super) fn decide(&self, standing: &Standing, decision: Decision) -> Result<(), Failure> {
        let calls = standing.envelope.plan().calls().iter();
        let paper = BallotPaper {
            decisions: calls
                .map(|call| CallDecision {
                    call: call.id.clone(),
                    decision: decision.clone(),
                })
                .collect(),
            approver: self.person.clone(),
            display: standing.rendering.display_sha256(),
            signed_at: UnixMs::new(crate::clock::now_unix_ms()?),
        };
        let submission = paper.sign(&standing.envelope, &self.key);
        let voted = self.engine.vote(&submission.to_text());
        voted.map(drop).map_err(|error| failed(&error))
    }
}

/// What the agent may use. Tools that only read are pinned by their definitions.
fn manifest() -> Result<Json, Failure> {
    let mut tools = Vec::new();
    for definition in server::definitions() {
        let definition = Definition::from_json(definition).map_err(|error| failed(&error))?;
        let Some(entry) = entry(definition.name()) else {
            continue;
        };
        let mut members = entry.into_object().unwrap_or_default();
        members.insert("server".to_owned(), Json::from("shop"));
        members.insert(
            "definition".to_owned(),
            Json::from(definition.digest().to_string()),
        );
        tools.push((definition.name().to_owned(), Json::Object(members)));
    }
    let domains = Json::Array(vec![Json::from("api.shop.example")]);
    Ok(Json::object([
        ("schema", Json::from("countersign/manifest/v1")),
        ("name", Json::from("shop-agent")),
        ("version", Json::from("1.0.0")),
        ("publisher", Json::from("demo")),
        (
            "permissions",
            Json::object([
                ("tools", Json::object(tools)),
                ("net", Json::object([("domains", domains)])),
            ]),
        ),
        ("sandbox", Json::object([("required", Json::from(true))])),
    ]))
}

/// What the manifest says about a tool; nothing about the one that formats disks.
fn entry(tool: &str) -> Option<Json> {
    let effect = |effect: &'static str| ("side_effect", Json::from(effect));
    let at_url = || {
        let pointer = Json::Array(vec![Json::from("/url")]);
        ("arguments", Json::object([("host", pointer)]))
    };
    Some(match tool {
        "catalog_list" => Json::object([effect("read"), ("trusted_output", Json::from(true))]),
        "read_file" => Json::object([effect("read")]),
        "http_post" => Json::object([effect("network-egress"), at_url()]),
        "mail_send" => Json::object([
            effect("mutate-external"),
            ("sink", Json::from(true)),
            ("on_taint", Json::from("deny")),
        ]),
        "pay" => Json::object([
            effect("mutate-external"),
            ("sink", Json::from(false)),
            ("approval", Json::from("required")),
        ]),
        _ => return None,
    })
}

fn failed(error: &dyn ToString) -> Failure {
    Failure::new(Code::Demo, error.to_string())
}

/// Where the demonstration's server writes down what it did.
pub(super) fn effects(folder: &Path) -> PathBuf {
    folder.join("effects.txt")
}
