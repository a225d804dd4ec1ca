//! Why a rule spoke, in words and numbers.

use std::collections::BTreeMap;

use countersign_canon::Json;

use crate::facts::Facts;
use crate::manifest::Manifest;
use crate::rego::Source;

/// Which rule decided, where it stands, what it saw, and what would change its mind.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The rule.
    pub rule: String,
    /// Its file.
    pub file: String,
    /// Its line, from 1; 0 if it stands nowhere.
    pub line: usize,
    /// The facts that it looked at.
    pub facts: Json,
    /// What would change the verdict.
    pub change: String,
}

/// Where the rules stand in their file.
pub(super) struct Places {
    file: String,
    lines: BTreeMap<String, usize>,
}

impl Places {
    /// A rule stands where it is first named in an answer.
    pub(super) fn of(rules: &Source) -> Self {
        let mut lines = BTreeMap::new();
        for (at, line) in rules.text.lines().enumerate() {
            let rule = line
                .split_once("answer(\"")
                .and_then(|(_, rest)| rest.split_once('"'));
            if let Some((rule, _)) = rule {
                lines.entry(rule.to_owned()).or_insert(at + 1);
            }
        }
        Self {
            file: rules.name.clone(),
            lines,
        }
    }
}

impl Explanation {
    pub(super) fn new(
        rule: &str,
        facts: &Facts,
        manifest: Option<&Manifest>,
        places: &Places,
    ) -> Self {
        Self {
            rule: rule.to_owned(),
            file: places.file.clone(),
            line: places.lines.get(rule).copied().unwrap_or(0),
            facts: relevant(rule, facts, manifest),
            change: change(rule, facts, manifest),
        }
    }

    /// Which budgets of a session are used up, if that is why: their names and limits.
    pub fn used_up(&self) -> Option<String> {
        if self.rule != "budget" {
            return None;
        }
        let number = |name: &str, which| self.facts.get(name)?.get(which)?.as_u64();
        let over = BUDGETS.iter().filter_map(|name| {
            let (count, limit) = (number(name, "count")?, number(name, "limit")?);
            (count >= limit).then(|| format!("`max_{name}` of {limit}"))
        });
        let over: Vec<String> = over.collect();
        (!over.is_empty()).then(|| over.join(", "))
    }

    /// What the session has done, if that is why.
    pub fn of_the_session(&self) -> Option<String> {
        match self.is_loop() {
            true => Some("the session has done this before".to_owned()),
            false => self
                .used_up()
                .map(|budgets| format!("the session has used up its {budgets}")),
        }
    }

    /// Whether the session goes in circles, if that is why.
    pub fn is_loop(&self) -> bool {
        self.rule == "loop"
    }
}

fn relevant(rule: &str, facts: &Facts, manifest: Option<&Manifest>) -> Json {
    let texts = |texts: &[String]| Json::Array(texts.iter().cloned().map(Json::from).collect());
    let budgets = manifest
        .map(|manifest| manifest.permissions().budgets)
        .unwrap_or_default();
    let state = &facts.state;
    let mut members = vec![("tool", Json::from(facts.tool.as_str()))];
    match rule {
        "egress" => {
            members.push(("hosts", texts(&facts.host_names())));
            members.push(("hosts_clear", Json::from(facts.hosts_clear)));
            members.extend(doubt(facts.hosts_doubt.as_deref()));
        }
        "budget" => members.extend([
            ("steps", counted(state.steps, Some(budgets.max_steps))),
            (
                "tool_calls",
                counted(state.tool_calls, Some(budgets.max_tool_calls)),
            ),
            (
                "model_calls",
                counted(state.model_calls, budgets.max_model_calls),
            ),
            (
                "wall_time_ms",
                counted(state.wall_time_ms, Some(budgets.max_wall_time_ms)),
            ),
        ]),
        "loop" => members.push(("loop", Json::from(state.loop_violation.as_str()))),
        "taint" => members.extend([
            ("sink", Json::from(facts.sink)),
            ("tainted", Json::from(state.tainted)),
            ("sanitized", Json::from(state.sanitized)),
        ]),
        "clearance" => members.push(("uncleared", texts(&facts.uncleared))),
        "exec" => {
            members.push(("programs", texts(&facts.programs)));
            members.push(("command_clear", Json::from(facts.command_clear)));
            members.extend(doubt(facts.command_doubt.as_deref()));
        }
        "path" => members.push(("paths_outside", texts(&facts.paths_outside))),
        "side-effect" => {
            members.push(("side_effect", Json::from(facts.side_effect.as_str())));
            members.extend(doubt(facts.doubt.as_deref()));
        }
        _ => {}
    }
    Json::object(members)
}

fn doubt(why: Option<&str>) -> Option<(&'static str, Json)> {
    why.map(|why| ("doubt", Json::from(why)))
}

fn counted(count: u64, limit: Option<u64>) -> Json {
    Json::object([
        ("count", Json::from(count)),
        ("limit", limit.map_or(Json::Null, Json::from)),
    ])
}

/// Only what is missing: a list of everything would ask for more than the call needs.
fn missing(facts: &Facts, manifest: Option<&Manifest>) -> (String, String) {
    let permissions = manifest.map(Manifest::permissions);
    let hosts = facts
        .hosts
        .iter()
        .filter(|host| permissions.is_none_or(|permissions| !permissions.net.domains.covers(host)));
    let programs = facts.programs.iter().filter(|program| {
        permissions.is_none_or(|permissions| !permissions.exec.allowed_bins.contains(*program))
    });
    let hosts: Vec<String> = hosts.map(ToString::to_string).collect();
    let programs: Vec<&str> = programs.map(String::as_str).collect();
    (hosts.join(", "), programs.join(", "))
}

fn change(rule: &str, facts: &Facts, manifest: Option<&Manifest>) -> String {
    let tool = &facts.tool;
    let (hosts, programs) = missing(facts, manifest);
    match rule {
        "undeclared" => format!("declare `{tool}` under permissions.tools"),
        "egress" if !facts.hosts_clear => "give the destination as a plain host or URL".to_owned(),
        "egress" if facts.hosts.is_empty() => {
            "say where the call goes, for example in `url`".to_owned()
        }
        "egress" => format!("list {hosts} under permissions.net.domains"),
        "budget" => "start a new session, or raise the limit in permissions.budgets".to_owned(),
        "loop" => "make another call; polling tools can be exempted in `loops`".to_owned(),
        "taint" => "sanitise the content and name its key, or ask a human".to_owned(),
        "clearance" => format!(
            "raise the clearance of `{tool}` to cover {}, or start a new session",
            facts.uncleared.join(", ")
        ),
        "exec" if !facts.command_clear && !facts.programs.is_empty() => {
            "give arguments that permissions.exec.arg_patterns covers".to_owned()
        }
        "exec" if !facts.command_clear => {
            "write a plain command whose programs and arguments can be told".to_owned()
        }
        "exec" => format!("list {programs} under permissions.exec.allowed_bins"),
        "path" => "stay inside the roots of permissions.fs".to_owned(),
        "approval" => "a human approves the call".to_owned(),
        "side-effect" if facts.doubt.is_some() => {
            "make a call that certainly only reads, or a human approves the call".to_owned()
        }
        "side-effect" => {
            format!("declare the side effect of `{tool}`, or a human approves the call")
        }
        "allow" => "nothing has to change".to_owned(),
        _ => "mend the policy: it gave no answer".to_owned(),
    }
}

/// The facts of the budget rule, in the order in which they are told.
const BUDGETS: [&str; 4] = ["tool_calls", "steps", "model_calls", "wall_time_ms"];
