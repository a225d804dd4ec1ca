//! Inputs on which the two evaluators must agree before the quicker one may serve.

use regorus::Value;

use crate::facts::{Facts, State};
use crate::manifest::{Approval, Manifest, SideEffect};
use crate::matcher::Host;

/// Every rule, on both sides of its edge, with names that the manifest knows and names that it does
/// not.
pub(super) fn inputs(manifest: Option<&Manifest>) -> Vec<Value> {
    all(manifest).iter().map(Facts::to_value).collect()
}

/// The same as facts.
pub(super) fn all(manifest: Option<&Manifest>) -> Vec<Facts> {
    let mut names: Vec<String> = vec!["nobody".to_owned(), String::new()];
    let mut hosts: Vec<String> = vec!["nowhere.invalid".to_owned()];
    let mut programs: Vec<String> = vec!["nothing".to_owned()];
    if let Some(manifest) = manifest {
        let permissions = manifest.permissions();
        names.extend(permissions.tools.keys().take(MANY).cloned());
        hosts.extend(
            permissions
                .net
                .domains
                .patterns()
                .take(MANY)
                .map(|pattern| pattern.to_string().replace('*', "sub")),
        );
        programs.extend(permissions.exec.allowed_bins.iter().take(MANY).cloned());
    }
    let mut all = Vec::new();
    for (index, name) in names.iter().enumerate() {
        for variant in 0..VARIANTS {
            let host = pick(&hosts, index + variant);
            let program = pick(&programs, index + variant);
            all.push(facts(name, host, program, variant, manifest));
        }
    }
    all
}

/// One combination: each bit of the variant turns one fact over.
fn facts(
    name: &str,
    host: &str,
    program: &str,
    variant: usize,
    manifest: Option<&Manifest>,
) -> Facts {
    let bit = |number: usize| variant >> number & 1 == 1;
    let budgets = manifest
        .map(|manifest| manifest.permissions().budgets)
        .unwrap_or_default();
    let at = |limit: u64, reached: bool| {
        if reached {
            limit
        } else {
            limit.saturating_sub(1)
        }
    };
    Facts {
        tool: name.to_owned(),
        names: vec![name.to_owned()],
        network: bit(0),
        hosts: if bit(1) {
            Host::from_argument(host).into_iter().collect()
        } else {
            Vec::new()
        },
        hosts_clear: !bit(2),
        hosts_doubt: None,
        exec: bit(3),
        programs: if bit(4) {
            vec![program.to_owned()]
        } else {
            Vec::new()
        },
        command_clear: !bit(2),
        command_doubt: None,
        paths_outside: if bit(5) {
            vec!["/outside".to_owned()]
        } else {
            Vec::new()
        },
        uncleared: if bit(7) && bit(2) {
            vec!["secret".to_owned()]
        } else {
            Vec::new()
        },
        sink: bit(6),
        taint_holds: bit(1),
        side_effect: if bit(3) {
            SideEffect::Read
        } else {
            SideEffect::Unknown
        },
        doubt: None,
        irreversible: false,
        approval: Approval::Unstated,
        state: State {
            steps: at(budgets.max_steps, bit(7)),
            tool_calls: at(budgets.max_tool_calls, bit(5) && bit(0)),
            model_calls: at(budgets.max_model_calls.unwrap_or(1), bit(6) && bit(4)),
            wall_time_ms: at(budgets.max_wall_time_ms, bit(7) && bit(1)),
            loop_violation: if bit(4) && bit(5) {
                "LOOP".to_owned()
            } else {
                String::new()
            },
            tainted: bit(0) || bit(6),
            sanitized: bit(4),
            labels: Vec::new(),
        },
    }
}

fn pick(texts: &[String], index: usize) -> &str {
    texts
        .get(index % texts.len().max(1))
        .map_or("", String::as_str)
}

const VARIANTS: usize = 256;
const MANY: usize = 4;
