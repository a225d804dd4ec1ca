//! A manifest in full, with every default filled in.

use std::fmt::Display;

use countersign_canon::Json;

use super::Manifest;
use super::model::{
    Approval, Arguments, Budgets, Exec, Fs, Integrity, Loops, Net, Permissions, Sandbox, Schema,
    Tool,
};
use super::named::Named;
use crate::matcher;

pub(super) fn manifest(manifest: &Manifest) -> Json {
    let is_ours = manifest.schema == Schema::Countersign;
    given([
        ("schema", name(manifest.schema)),
        ("name", said(&manifest.name)),
        ("version", said(&manifest.version)),
        ("publisher", said(&manifest.publisher)),
        (
            "permissions",
            Some(permissions(&manifest.permissions, manifest.schema)),
        ),
        ("loops", is_ours.then(|| loops(&manifest.loops))),
        ("sandbox", Some(sandbox(&manifest.sandbox))),
        ("integrity", Some(integrity(&manifest.integrity))),
    ])
}

fn permissions(permissions: &Permissions, schema: Schema) -> Json {
    let tools = match schema {
        Schema::Aegis => texts(permissions.tools.keys()),
        Schema::Countersign => Json::object(
            permissions
                .tools
                .iter()
                .map(|(name, one)| (name, tool(name, one))),
        ),
    };
    let approvals = || texts(&permissions.approval_required);
    given([
        ("tools", Some(tools)),
        ("fs", Some(fs(&permissions.fs))),
        ("net", Some(net(&permissions.net))),
        ("secrets", Some(texts(&permissions.secrets))),
        ("exec", Some(exec(&permissions.exec))),
        (
            "approval_required",
            (schema == Schema::Aegis).then(approvals),
        ),
        ("budgets", Some(budgets(&permissions.budgets))),
    ])
}

fn tool(called: &str, tool: &Tool) -> Json {
    given([
        ("server", tool.server.clone().map(Json::from)),
        ("side_effect", name(tool.side_effect)),
        ("sink", sink(called, tool)),
        ("on_taint", name(tool.on_taint)),
        ("trusted_output", Some(Json::from(tool.trusted_output))),
        ("arguments", Some(arguments(&tool.arguments))),
        ("clearance", tool.clearance.clone().map(Json::from)),
        ("labels", Some(texts(&tool.labels))),
        ("approval", approval(tool.approval)),
        ("definition", tool.definition.map(text)),
        ("irreversible", Some(Json::from(tool.irreversible))),
        (
            "state",
            (!tool.state.is_empty()).then(|| texts(&tool.state)),
        ),
    ])
}

/// An entry that covers several names leaves it to each of them.
fn sink(called: &str, tool: &Tool) -> Option<Json> {
    let is_stated = tool.sink.is_some() || !matcher::is_network_tool(called);
    is_stated.then(|| Json::from(tool.is_sink(called)))
}

fn approval(approval: Approval) -> Option<Json> {
    approval.name().map(Json::from)
}

fn arguments(arguments: &Arguments) -> Json {
    Json::object([
        ("host", texts(&arguments.host)),
        ("path", texts(&arguments.path)),
        ("binary", texts(&arguments.binary)),
    ])
}

fn fs(fs: &Fs) -> Json {
    given([
        ("read_roots", fs.read_roots.as_ref().map(texts)),
        ("write_roots", fs.write_roots.as_ref().map(texts)),
    ])
}

fn net(net: &Net) -> Json {
    Json::object([("domains", texts(net.domains.patterns()))])
}

fn exec(exec: &Exec) -> Json {
    Json::object([
        ("allowed_bins", texts(&exec.allowed_bins)),
        ("arg_patterns", texts(exec.arg_patterns.iter())),
    ])
}

fn budgets(budgets: &Budgets) -> Json {
    given([
        ("max_steps", Some(budgets.max_steps.into())),
        ("max_tool_calls", Some(budgets.max_tool_calls.into())),
        ("max_model_calls", budgets.max_model_calls.map(Json::from)),
        ("max_output_bytes", Some(budgets.max_output_bytes.into())),
        ("timeout_ms", Some(budgets.timeout_ms.into())),
        ("max_wall_time_ms", Some(budgets.max_wall_time_ms.into())),
    ])
}

fn loops(loops: &Loops) -> Json {
    Json::object([
        ("identical_calls", loops.identical_calls.into()),
        ("no_progress_steps", loops.no_progress_steps.into()),
        ("sequence_min", loops.sequence_min.into()),
        ("sequence_max", loops.sequence_max.into()),
        ("polling_tools", texts(&loops.polling_tools)),
    ])
}

fn sandbox(sandbox: &Sandbox) -> Json {
    given([
        ("required", Some(Json::from(sandbox.required))),
        ("image", sandbox.image.clone().map(Json::from)),
        ("mounts", Some(texts(&sandbox.mounts))),
    ])
}

fn integrity(integrity: &Integrity) -> Json {
    let files = integrity.files.iter();
    given([
        (
            "files",
            Some(Json::object(files.map(|(path, hash)| (path, text(hash))))),
        ),
        ("tree_sha256", integrity.tree_sha256.map(text)),
        ("signature", integrity.signature.clone().map(Json::from)),
    ])
}

/// The members that have a value.
fn given<const N: usize>(members: [(&'static str, Option<Json>); N]) -> Json {
    let present = members.into_iter();
    Json::object(present.filter_map(|(name, value)| Some((name, value?))))
}

fn name(value: impl Named) -> Option<Json> {
    value.name().map(Json::from)
}

fn said(text: &str) -> Option<Json> {
    (!text.is_empty()).then(|| Json::from(text))
}

fn text(value: impl Display) -> Json {
    Json::from(value.to_string())
}

fn texts<T: Display>(values: impl IntoIterator<Item = T>) -> Json {
    Json::from(values.into_iter().map(text).collect::<Vec<_>>())
}
