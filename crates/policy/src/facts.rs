//! Flat facts about one action, for the rules to judge.
//!
//! Everything that needs to know a trick (URLs, paths, command lines, tool names) happens here, once
//! per action; the rules compare names and numbers.

use countersign_canon::{Json, Object};
use countersign_session::View;
use regorus::Value;

use crate::classification::Classification;
use crate::manifest::{Approval, Manifest, OnTaint, Pointer, Schema, SideEffect, Tool};
use crate::matcher::{
    ArgPatterns, Command, Effect, Host, Invocation, Link, NormalPath, Unclear, is_exec_tool,
    is_network_tool, is_sink, parents,
};
use crate::rego::object;

mod clearance;
mod hosts;
mod places;

use places::{Access, Places};

/// What an agent wants to do.
#[derive(Clone, Copy)]
pub struct Action<'a> {
    /// The tool.
    pub tool_name: &'a str,
    /// Its arguments.
    pub args: &'a Json,
    /// The key of the sanitised text that the call carries.
    pub sanitizer_key: Option<&'a str>,
}

/// What the session brings along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// Model calls and tool calls so far.
    pub steps: u64,
    /// Tool calls so far.
    pub tool_calls: u64,
    /// Model calls so far.
    pub model_calls: u64,
    /// Time since the first event.
    pub wall_time_ms: u64,
    /// The name of the loop that this call would make, or empty.
    pub loop_violation: String,
    /// Whether untrusted content was taken in.
    pub tainted: bool,
    /// Whether the call's sanitiser key is known.
    pub sanitized: bool,
    /// The information labels of what the session has taken in.
    pub labels: Vec<String>,
}

impl State {
    /// Of a session in which nothing has happened.
    pub const fn untouched() -> Self {
        Self {
            steps: 0,
            tool_calls: 0,
            model_calls: 0,
            wall_time_ms: 0,
            loop_violation: String::new(),
            tainted: false,
            sanitized: false,
            labels: Vec::new(),
        }
    }
}

/// How paths are looked at.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// Whether a path is a link. Says [`Link::No`] to everything where paths are not of this
    /// machine.
    pub examine: &'a dyn Fn(&NormalPath) -> Link,
    /// What relative paths start from.
    pub base: Option<&'a NormalPath>,
}

/// The facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The tool.
    pub tool: String,
    /// The names under which a manifest may declare it.
    pub names: Vec<String>,
    /// Whether it leaves for the network.
    pub network: bool,
    /// Where to.
    pub hosts: Vec<Host>,
    /// Whether every destination could be told.
    pub hosts_clear: bool,
    /// Why one could not.
    pub hosts_doubt: Option<String>,
    /// Whether it runs programs.
    pub exec: bool,
    /// Which.
    pub programs: Vec<String>,
    /// Whether that could be told, and the arguments are as the manifest wants them.
    pub command_clear: bool,
    /// Why it is not clear what would run, or which arguments are not wanted.
    pub command_doubt: Option<String>,
    /// Paths outside the roots of the manifest, as they were given.
    pub paths_outside: Vec<String>,
    /// Labels of the session that the tool is not cleared for.
    pub uncleared: Vec<String>,
    /// Whether it is a high-risk sink.
    pub sink: bool,
    /// Whether a tainted call is held, not denied.
    pub taint_holds: bool,
    /// What it can change.
    pub side_effect: SideEffect,
    /// Why a call is not taken for reading although the manifest says that its tool reads.
    pub doubt: Option<String>,
    /// Whether what it does cannot be undone.
    pub irreversible: bool,
    /// What the manifest says about approval.
    pub approval: Approval,
    /// What the session brings along.
    pub state: State,
}

impl State {
    /// The state of a recorded session.
    pub fn of(view: &View, sanitized: bool) -> Self {
        let violation = view.loop_violation.as_ref();
        Self {
            steps: view.steps_consumed,
            tool_calls: view.tool_calls_consumed,
            model_calls: view.model_calls_consumed,
            wall_time_ms: view.wall_time_ms,
            loop_violation: violation
                .map(|found| found.kind.as_str().to_owned())
                .unwrap_or_default(),
            tainted: view.is_tainted,
            sanitized,
            labels: view.labels.clone(),
        }
    }
}

impl Facts {
    /// Looks at one action under a manifest.
    pub fn of(
        action: &Action<'_>,
        state: State,
        surroundings: &Surroundings<'_>,
        manifest: Option<&Manifest>,
    ) -> Self {
        let tool = manifest.and_then(|manifest| manifest.tool(action.tool_name));
        let places = Places::of(action.tool_name, tool);
        let (hosts, doubt_of_hosts) = hosts::named(action.args, &places);
        let named = !hosts.is_empty() || doubt_of_hosts.is_some();
        let egress = tool.is_some_and(|tool| tool.side_effect == SideEffect::NetworkEgress);
        let network =
            is_network_tool(action.tool_name) || places.hosts_declared || (egress && named);
        let exec = is_exec_tool(action.tool_name) || places.programs_declared;
        let (side_effect, doubt) = side_effect(action.args, &places, exec, tool);
        let (programs, command_doubt) = match exec {
            true => programs(action.args, &places.programs, manifest),
            false => (Vec::new(), None),
        };
        let hosts_doubt = doubt_of_hosts.filter(|_| network);
        Self {
            tool: action.tool_name.to_owned(),
            names: names(action.tool_name),
            network,
            hosts: if network { hosts } else { Vec::new() },
            hosts_clear: hosts_doubt.is_none(),
            hosts_doubt,
            exec,
            programs,
            command_clear: command_doubt.is_none(),
            command_doubt,
            paths_outside: paths_outside(action.args, &places, surroundings, manifest),
            uncleared: clearance::uncleared(
                tool.and_then(|tool| tool.clearance.as_deref()),
                &state.labels,
            ),
            sink: tool.map_or_else(
                || is_sink(action.tool_name),
                |tool| tool.is_sink(action.tool_name),
            ),
            taint_holds: taint_holds(tool, manifest),
            side_effect,
            doubt,
            irreversible: tool.is_some_and(|tool| tool.irreversible),
            approval: manifest.map_or(Approval::Unstated, |manifest| {
                manifest.approval(action.tool_name)
            }),
            state,
        }
    }

    /// The destinations by name.
    pub fn host_names(&self) -> Vec<String> {
        self.hosts.iter().map(Host::to_string).collect()
    }

    /// The same facts for a tool that was offered by a server: what its manifest entry says counts
    /// only for the very definition that an operator has pinned. What only fetches reads.
    pub fn classified(mut self, classification: &Classification) -> Self {
        let unread = match self.side_effect {
            SideEffect::Read => classification.reason(),
            _ => None,
        };
        if let Some(reason) = classification.drift().or(unread) {
            self.side_effect = SideEffect::Unknown;
            self.doubt = Some(reason.to_string());
        } else if classification.is_fetching() && self.doubt.is_none() {
            self.side_effect = SideEffect::Read;
        }
        self
    }

    /// The input of the capability rules.
    pub(crate) fn to_value(&self) -> Value {
        object([
            ("tool", Value::from(self.tool.as_str())),
            ("names", texts(&self.names)),
            ("network", Value::Bool(self.network)),
            (
                "hosts",
                Value::from(self.hosts.iter().map(host_value).collect::<Vec<_>>()),
            ),
            ("hosts_clear", Value::Bool(self.hosts_clear)),
            ("exec", Value::Bool(self.exec)),
            ("programs", texts(&self.programs)),
            ("command_clear", Value::Bool(self.command_clear)),
            ("paths_outside", texts(&self.paths_outside)),
            ("uncleared", texts(&self.uncleared)),
            ("sink", Value::Bool(self.sink)),
            ("taint_holds", Value::Bool(self.taint_holds)),
            ("side_effect", Value::from(self.side_effect.as_str())),
            ("steps", Value::from(self.state.steps)),
            ("tool_calls", Value::from(self.state.tool_calls)),
            ("model_calls", Value::from(self.state.model_calls)),
            ("wall_time_ms", Value::from(self.state.wall_time_ms)),
            ("loop", Value::from(self.state.loop_violation.as_str())),
            ("tainted", Value::Bool(self.state.tainted)),
            ("sanitized", Value::Bool(self.state.sanitized)),
        ])
    }
}

fn names(tool: &str) -> Vec<String> {
    let mut names = vec![tool.to_owned()];
    if is_network_tool(tool) || is_exec_tool(tool) {
        let mut rest = tool;
        while let Some((prefix, _)) = rest.rsplit_once('.') {
            if is_network_tool(prefix) || is_exec_tool(prefix) {
                names.push(prefix.to_owned());
            }
            rest = prefix;
        }
    }
    names
}

fn host_value(host: &Host) -> Value {
    let parents: Vec<Value> = parents(host).map(Value::from).collect();
    object([
        ("name", Value::from(host.to_string())),
        ("parents", Value::from(parents)),
    ])
}

/// The programs that would run, and why that cannot be told or which arguments do not fit.
fn programs(
    args: &Json,
    places: &[Pointer],
    manifest: Option<&Manifest>,
) -> (Vec<String>, Option<String>) {
    let commands = match places {
        [] => vec![Command::from_args(args)],
        places => places
            .iter()
            .map(|place| command_at(place, places, args))
            .collect(),
    };
    let patterns = manifest.map(|manifest| &manifest.permissions().exec.arg_patterns);
    let programs = commands
        .iter()
        .flat_map(|command| command.binaries().map(str::to_owned))
        .collect();
    let doubt = commands.iter().find_map(|command| doubt(command, patterns));
    (programs, doubt)
}

/// What a call can change: what the manifest says of its tool, unless that is "nothing" and the call
/// runs a command. FAIL-CLOSED: a command reads only if that is certain.
fn side_effect(
    args: &Json,
    places: &Places,
    exec: bool,
    tool: Option<&Tool>,
) -> (SideEffect, Option<String>) {
    let declared = tool.map_or(SideEffect::Unknown, |tool| tool.side_effect);
    if !exec || declared != SideEffect::Read {
        return (declared, None);
    }
    let effects = match places.programs.as_slice() {
        [] => vec![Effect::of_args(args)],
        places => places
            .iter()
            .map(|place| effect_at(place, places, args))
            .collect(),
    };
    let doubt = effects.iter().find_map(Effect::why);
    match doubt {
        None => (SideEffect::Read, None),
        Some(why) => (SideEffect::Unknown, Some(why.to_owned())),
    }
}

fn effect_at(place: &Pointer, places: &[Pointer], args: &Json) -> Effect {
    let given = command_given(place, places, args);
    Effect::of_args(&given.unwrap_or(Json::Null))
}

fn command_at(place: &Pointer, places: &[Pointer], args: &Json) -> Command {
    match command_given(place, places, args) {
        Some(given) => Command::from_args(&given),
        None => Command::Unclear(Unclear::Missing),
    }
}

/// A declared place holds a program, a command line or a list of words: the arguments as an exec tool
/// would take them. SECURITY: with what stands beside it, because `args`, `env` and the like change
/// what runs wherever the command stands.
fn command_given(place: &Pointer, places: &[Pointer], args: &Json) -> Option<Json> {
    let command = place.resolve(args)?.clone();
    let mut given = Object::new();
    for level in [Pointer::root(), place.parent()] {
        let members = level.resolve(args).and_then(Json::as_object);
        for (name, value) in members.into_iter().flatten() {
            if !places.iter().any(|place| place.passes(&level, name)) {
                given.insert(name.to_owned(), value.clone());
            }
        }
    }
    let usual = |name: &&str| Command::NAMES.contains(name);
    // Under a name that is taken it would hide what stands there; under two it is unclear.
    let name = match place.name().filter(usual) {
        Some(name) if !given.contains_key(name) => name,
        _ if given.contains_key("command") => "cmd",
        _ => "command",
    };
    given.insert(name.to_owned(), command);
    Some(Json::Object(given))
}

fn doubt(command: &Command, patterns: Option<&ArgPatterns>) -> Option<String> {
    let runs = match command {
        Command::Clear(runs) => runs,
        Command::Unclear(why) => return Some(why.to_string()),
    };
    let patterns = patterns.filter(|patterns| !patterns.is_empty())?;
    let fits = |run: &&Invocation| {
        run.arguments()
            .is_some_and(|arguments| patterns.match_whole(&arguments.join(" ")))
    };
    let run = runs.iter().find(|run| !fits(run))?;
    Some(match run.arguments() {
        Some(_) => format!("no pattern covers the arguments of `{}`", run.binary()),
        None => format!("an expansion decides the arguments of `{}`", run.binary()),
    })
}

fn paths_outside(
    args: &Json,
    places: &Places,
    surroundings: &Surroundings<'_>,
    manifest: Option<&Manifest>,
) -> Vec<String> {
    let fs = manifest.map(|manifest| &manifest.permissions().fs);
    let classic = manifest.is_some_and(|manifest| manifest.schema() == Schema::Aegis);
    let roots = fs.and_then(|fs| {
        let (roots, others) = match places.access {
            Access::None => return None,
            Access::Read => (&fs.read_roots, &fs.write_roots),
            Access::Write => (&fs.write_roots, &fs.read_roots),
        };
        // FAIL-CLOSED: whoever names roots for the one and not for the other means none.
        let none = (others.is_some() && !classic).then_some(&NO_ROOTS);
        roots.as_ref().or(none)
    });
    let Some(roots) = roots else {
        return Vec::new();
    };
    let mut given = places
        .paths
        .iter()
        .filter_map(|place| place.resolve(args))
        .peekable();
    if given.peek().is_none() {
        // FAIL-CLOSED: it touches files, and does not say which.
        return vec!["(no path)".to_owned()];
    }
    given
        .flat_map(each_path)
        .filter(|path| !is_inside(path, roots, surroundings))
        .map(shown)
        .collect()
}

/// A path, or each of a list of paths. An empty list names no path and is no text either.
fn each_path(given: &Json) -> &[Json] {
    match given {
        Json::Array(paths) if !paths.is_empty() => paths,
        _ => std::slice::from_ref(given),
    }
}

fn is_inside(path: &Json, roots: &[NormalPath], surroundings: &Surroundings<'_>) -> bool {
    path.as_str()
        .and_then(|path| {
            NormalPath::resolve(path, surroundings.base, |path| (surroundings.examine)(path)).ok()
        })
        .is_some_and(|path| path.within(roots))
}

fn shown(path: &Json) -> String {
    path.as_str()
        .map_or_else(|| "(not text)".to_owned(), str::to_owned)
}

fn taint_holds(tool: Option<&Tool>, manifest: Option<&Manifest>) -> bool {
    match (tool, manifest.map(Manifest::schema)) {
        (Some(tool), _) => tool.on_taint == OnTaint::Hold,
        (None, schema) => schema != Some(Schema::Aegis),
    }
}

fn texts(texts: &[String]) -> Value {
    Value::from(
        texts
            .iter()
            .map(|text| Value::from(text.as_str()))
            .collect::<Vec<_>>(),
    )
}

static NO_ROOTS: Vec<NormalPath> = Vec::new();
