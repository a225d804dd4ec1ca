use super::*;
use crate::Decision;
use crate::capability::{Capability, trials};
use crate::manifest::SideEffect;
use crate::matcher::Host;
use crate::rego::Source;
use countersign_canon::{Json, Limits};

fn manifest() -> Manifest {
    let text = br#"{"permissions":{
        "tools":["read_file","exec","mcp.https","deploy"],
        "net":{"domains":["x.com","*.y.com"]},
        "exec":{"allowed_bins":["git"]},
        "budgets":{"max_steps":40,"max_tool_calls":30,"max_model_calls":20,"max_wall_time_ms":1000},
        "approval_required":["deploy"]}}"#;
    Manifest::partial(&Json::admit(text, &Limits::event()).unwrap()).unwrap()
}

fn capability() -> Capability {
    Capability::new(Some(manifest())).unwrap()
}

/// Facts with the counters moved as far as they go without reaching or leaving a limit.
fn moved(mut facts: Facts, to: impl Fn(u64, u64) -> u64) -> Facts {
    let budgets = manifest().permissions().budgets;
    let state = &mut facts.state;
    for (counter, limit) in [
        (&mut state.steps, budgets.max_steps),
        (&mut state.tool_calls, budgets.max_tool_calls),
        (&mut state.model_calls, budgets.max_model_calls.unwrap()),
        (&mut state.wall_time_ms, budgets.max_wall_time_ms),
    ] {
        *counter = to(*counter, limit);
    }
    facts
}

fn farthest(counter: u64, limit: u64) -> u64 {
    if counter >= limit { u64::MAX } else { 0 }
}

fn nearest(counter: u64, limit: u64) -> u64 {
    if counter >= limit { limit } else { limit - 1 }
}

#[test]
fn what_is_recalled_is_what_the_rules_say() {
    let (recalling, asking) = (capability(), capability().forgetful());
    let manifest = manifest();
    for facts in trials::all(Some(&manifest)) {
        let question = question(&facts, Some(&manifest));
        for facts in [
            facts.clone(),
            moved(facts.clone(), farthest),
            moved(facts, nearest),
        ] {
            assert_eq!(super::question(&facts, Some(&manifest)), question);
            let said = asking.judge(&facts);
            assert_eq!(recalling.judge(&facts), said, "{facts:?}");
        }
    }
    let memory = recalling.memory.as_ref().unwrap();
    assert!(memory.known().recalled > 1000);
    assert!(!memory.known().is_distrusted);
}

#[test]
fn every_fact_that_the_rules_see_makes_another_question() {
    let manifest = manifest();
    let plain = trials::all(Some(&manifest)).swap_remove(0);
    let changes: [fn(&mut Facts); 20] = [
        |_| (),
        |facts| facts.tool.push('x'),
        |facts| facts.names.push("x".to_owned()),
        |facts| facts.names.extend(["x".to_owned(), String::new()]),
        |facts| facts.network = !facts.network,
        |facts| facts.hosts.push(Host::from_argument("x.com").unwrap()),
        |facts| facts.hosts_clear = !facts.hosts_clear,
        |facts| facts.exec = !facts.exec,
        |facts| facts.programs.push("x".to_owned()),
        |facts| facts.command_clear = !facts.command_clear,
        |facts| facts.paths_outside.push("x".to_owned()),
        |facts| facts.uncleared.push("x".to_owned()),
        |facts| facts.sink = !facts.sink,
        |facts| facts.taint_holds = !facts.taint_holds,
        |facts| facts.side_effect = SideEffect::MutateLocal,
        |facts| facts.state.steps = 40,
        |facts| facts.state.tool_calls = 30,
        |facts| facts.state.model_calls = 20,
        |facts| facts.state.wall_time_ms = 1000,
        |facts| facts.state.loop_violation.push('x'),
    ];
    let mut questions: Vec<_> = changes
        .iter()
        .map(|change| {
            let mut facts = plain.clone();
            change(&mut facts);
            question(&facts, Some(&manifest))
        })
        .collect();
    let mut tainted = plain.clone();
    tainted.state.tainted = !tainted.state.tainted;
    let mut sanitized = plain;
    sanitized.state.sanitized = !sanitized.state.sanitized;
    questions.extend([&tainted, &sanitized].map(|facts| question(facts, Some(&manifest))));
    let all = questions.len();
    questions.sort_unstable();
    questions.dedup();
    assert_eq!(questions.len(), all);
}

#[test]
fn a_wrong_recollection_is_found_and_denied() {
    let (recalling, asking) = (capability(), capability().forgetful());
    let manifest = manifest();
    let denied = |facts: &Facts| asking.judge(facts).verdict.decision() == Decision::Deny;
    let facts = trials::all(Some(&manifest)).into_iter().find(denied);
    let facts = facts.unwrap();
    let memory = recalling.memory.as_ref().unwrap();
    let wrong = Answer {
        rule: "allow".to_owned(),
        verdict: Verdict::new(Decision::Allow, "OK"),
    };
    memory.known().recalled = SAMPLE - 1;
    memory.keep(question(&facts, Some(&manifest)), wrong);
    let found = recalling.judge(&facts);
    assert_eq!(found.verdict.decision(), Decision::Deny);
    assert_eq!(
        found.verdict.reason(),
        Some("runtime_error:policy_disagreement")
    );
    // From now on the rules are asked.
    assert_eq!(recalling.judge(&facts), asking.judge(&facts));
    assert_eq!(recalling.judge(&facts), asking.judge(&facts));
    assert!(memory.known().answers.is_empty());
}

#[test]
fn what_an_evaluator_said_that_has_erred_since_is_not_recalled() {
    // Members of a text: the interpreter fails, the machine does not notice.
    let text = "package countersign.capability\nimport rego.v1\n\
        decision := {\"rule\": \"b\", \"decision\": \"deny\", \"reason\": \"NO\"} if bad\n\
        else := {\"rule\": \"a\", \"decision\": \"allow\", \"reason\": \"OK\"}\n\
        bad if { input.tool == \"odd\"; some part in input.tool; part == \"d\" }\n";
    let rules = Source {
        name: "rules.rego".to_owned(),
        text: text.to_owned(),
    };
    let mut capability = Capability::with_unseen_rules(rules, None).unwrap();
    capability.memory = Some(Memory::default());
    let [mut odd, mut even] = [0, 1].map(|index| trials::all(None).swap_remove(index));
    (odd.tool, even.tool) = ("odd".to_owned(), "even".to_owned());
    // The first is compared; the next is not.
    let allows = |facts: &Facts| capability.judge(facts).verdict.decision() == Decision::Allow;
    assert!(allows(&even) && allows(&odd));
    let asked = (0..1000).map(|_| allows(&odd)).collect::<Vec<_>>();
    let found = asked.iter().position(|allowed| !allowed).unwrap();
    assert!(found <= SAMPLE as usize);
    assert!(asked[found..].iter().all(|allowed| !allowed));
    assert_eq!(capability.machine(), crate::rego::Machine::Demoted);
}

#[test]
fn what_other_rules_said_is_not_kept() {
    let rules = Source {
        name: "capability.rego".to_owned(),
        text: crate::capability::RULES.replace("input.steps >=", "input.steps * 2 >="),
    };
    let capability = Capability::with_rules(rules, Some(manifest())).unwrap();
    assert!(capability.memory.is_none());
}

#[test]
fn memory_has_an_end() {
    let memory = Memory::default();
    for number in 0..=MOST as u64 {
        let answer = Answer {
            rule: "allow".to_owned(),
            verdict: Verdict::new(Decision::Allow, "OK"),
        };
        memory.keep(Digest::of(&number.to_be_bytes()), answer);
    }
    assert_eq!(memory.known().answers.len(), 1);
}
