//! Verifying an evidence pack.

use std::fs;
use std::io::Read;
use std::path::Path;

use countersign_canon::Json;
use countersign_pack::archive::Limits;
use countersign_verify::pack::{self, Action, Answer, Noted, PackProblem, PackReport};

use crate::clock;
use crate::command::trust::Trust;
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::input;
use crate::output::{self, Format, inline};

pub(super) fn verify(
    path: &str,
    source: impl Read,
    trust: Option<&Trust>,
    noted: &Noted,
    page: Option<&Path>,
    format: Format,
) -> Result<Exit, Failure> {
    let limits = Limits::default();
    let file = input::whole(source, path, limits.max_bytes)?;
    let trust = trust.map_or_else(pack::Trust::default, |trust| pack::Trust {
        keys: trust.keys.clone(),
        people: trust.people.clone(),
    });
    let report = pack::verify_noted(&file, &trust, noted, &limits);
    if let Some(page) = page {
        let written = fs::write(page, pack::html(path, &report));
        written.map_err(|error| {
            let message = format!("cannot write `{}`: {error}", page.display());
            Failure::new(Code::Output, message)
        })?;
    }
    let printed = match format {
        Format::Text => output::text(&text(path, &report)),
        Format::Json => output::json(&json(&report)),
    };
    // FAIL-CLOSED: a reader that went away does not make a bad pack a good one.
    match &report.failure {
        None => Ok(printed.map(|()| Exit::Done)?),
        Some(problem) => {
            let message = format!("verification failed: {problem}");
            let code = match problem {
                PackProblem::Noted(problem) => super::blamed(problem, Code::PackUnverified),
                _ => Code::PackUnverified,
            };
            Ok(Failure::new(code, message).report())
        }
    }
}

fn text(name: &str, report: &PackReport) -> String {
    let word = match report.is_good() {
        true => "VERIFIED ✓",
        false => "FAILED ✗",
    };
    let log = report.log.as_ref().map_or_else(String::new, |(log, size)| {
        format!(" of the log `{}` at {size}", inline(log))
    });
    let mut lines = vec![format!(
        "{word}  {}: {} event(s){log}",
        inline(name),
        report.events
    )];
    if let Some(problem) = &report.failure {
        lines.push(format!(
            "\ndoes not hold:\n  ✗ {}",
            inline(&problem.to_string())
        ));
    }
    lines.push("\nchecked:".to_owned());
    lines.extend(
        report
            .checked
            .iter()
            .map(|what| format!("  ✓ {}", inline(what))),
    );
    lines.push("not checked:".to_owned());
    lines.extend(
        report
            .not_checked
            .iter()
            .map(|what| format!("  – {}", inline(what))),
    );
    for action in report.actions.iter().take(MAX_ACTIONS) {
        lines.push(format!(
            "\n{} {} (call {} of {})",
            clock::text(action.ts_unix_ms),
            inline(action.tool.as_deref().unwrap_or("unknown tool")),
            inline(&action.call_id),
            inline(&action.session_id)
        ));
        for (question, answer) in questions(action) {
            lines.push(format!("  {question:<9}  {}", inline(answer.text())));
        }
    }
    if report.actions.len() > MAX_ACTIONS {
        let more = report.actions.len() - MAX_ACTIONS;
        lines.push(format!(
            "\n… and {more} more: --html or --format json shows all"
        ));
    }
    lines.join("\n")
}

fn questions(action: &Action) -> [(&'static str, &Answer); 3] {
    [
        ("available", &action.available),
        ("exercised", &action.exercised),
        ("changed", &action.changed),
    ]
}

fn json(report: &PackReport) -> Json {
    let texts = |texts: &[String]| Json::Array(texts.iter().cloned().map(Json::from).collect());
    let failure = report.failure.as_ref().map_or(Json::Null, |problem| {
        Json::object([
            ("problem", Json::from(problem.name())),
            ("message", Json::from(problem.to_string())),
        ])
    });
    let log = report.log.as_ref().map_or(Json::Null, |(origin, size)| {
        Json::object([
            ("origin", Json::from(origin.as_str())),
            ("size", Json::from(*size)),
            (
                "durability",
                Json::from(report.durability.map(|it| it.to_string())),
            ),
        ])
    });
    let actions = report.actions.iter().map(|action| {
        let mut members = vec![
            ("tenant_id", Json::from(action.tenant_id.as_str())),
            ("session_id", Json::from(action.session_id.as_str())),
            ("call_id", Json::from(action.call_id.as_str())),
            (
                "tool",
                action.tool.as_deref().map_or(Json::Null, Json::from),
            ),
            ("ts_unix_ms", Json::from(action.ts_unix_ms)),
            (
                "record",
                Json::from(action.record.map(|hash| hash.to_string())),
            ),
            ("envelope", action.envelope.clone().unwrap_or(Json::Null)),
        ];
        members.extend(questions(action).map(|(question, answer)| {
            let facts = action.facts.get(question).cloned();
            let answer = Json::object([
                ("is", Json::from(answer.name())),
                ("text", Json::from(answer.text())),
                ("facts", facts.unwrap_or(Json::Null)),
            ]);
            (question, answer)
        }));
        Json::object(members)
    });
    Json::object([
        ("ok", Json::from(report.is_good())),
        ("events", Json::from(report.events)),
        ("log", log),
        ("failure", failure),
        ("checked", texts(&report.checked)),
        ("not_checked", texts(&report.not_checked)),
        ("actions", Json::Array(actions.collect())),
    ])
}

const MAX_ACTIONS: usize = 20;
