//! What a lease would cover. Nothing is granted here: whoever grants it signs it.

use countersign_approval::lease::{Argument, Budget, Lease, Offer};
use countersign_approval::{Human, KeyId, LeaseId, UnixMs};
use countersign_canon::Json;
use countersign_console::{Html, Lease as Shown, Tab};
use countersign_engine::Standing;

use super::{Maker, inbox, make};
use crate::api::now_unix_ms;
use crate::call::Call;
use crate::problem::Problem;
use crate::reply::Reply;

pub(super) async fn show(call: &Call) -> Result<Reply, Problem> {
    let id = call.parameters.path("approval").to_owned();
    let asked: Vec<(String, String)> = ["uses", "within", "arguments", "budget"]
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), call.parameters.query(name)?.to_owned())))
        .collect();
    make(call, move |maker| page(maker, &id, &asked)).await
}

fn page(maker: &Maker, id: &str, asked: &[(String, String)]) -> Result<Html, Problem> {
    let api = &maker.api;
    let standing = api.visible(id, &maker.caller)?;
    let json = api.card_of(&standing)?;
    let people = inbox::people(api)?;
    let drawn = drawn(&standing, asked);
    let (mut terms, mut past, mut text) = (Vec::new(), Vec::new(), None);
    let mut trouble = drawn.as_ref().err().cloned();
    if let Ok(lease) = &drawn {
        terms = lease_terms(lease);
        past = api
            .engine
            .preview_lease(lease)?
            .into_iter()
            .map(|one| {
                let why = one.mismatch.map(|why| why.to_string());
                (one.approval.to_string(), why)
            })
            .collect();
        let none = [0_u8; 32];
        let key: Result<KeyId, _> = base16ct::lower::encode_string(&none).parse();
        match key {
            Ok(key) => {
                let bytes = lease.signed_text(key);
                text = Some(String::from_utf8_lossy(&bytes).into_owned());
            }
            Err(error) => trouble = Some(error.to_string()),
        }
    }
    let frame = maker.frame(Tab::Inbox, None)?;
    Ok(countersign_console::lease(
        &frame,
        &Shown {
            json: &json,
            text: text.as_deref(),
            terms: &terms,
            past: &past,
            trouble: trouble.as_deref(),
            asked,
            people: &people,
        },
    ))
}

/// The lease that is asked for. Who grants it is filled in by the page that signs it.
fn drawn(standing: &Standing, asked: &[(String, String)]) -> Result<Lease, String> {
    let value = |name: &str| {
        let found = asked.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.trim()).unwrap_or_default()
    };
    let rules = value("arguments").lines().map(str::trim);
    let arguments: Vec<Argument> = rules
        .filter(|line| !line.is_empty())
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    let budget = Some(value("budget")).filter(|text| !text.is_empty());
    let budget: Option<Budget> = budget.map(str::parse).transpose()?;
    let offer = Offer {
        arguments,
        max_uses: value("uses")
            .parse()
            .map_err(|_| "uses are a whole number, at least 1".to_owned())?,
        within_ms: within(value("within"))?,
        budget,
        children: false,
        least_trust: None,
    };
    let nobody = Human::new("-").map_err(|error| error.to_string())?;
    let now = now_unix_ms().map_err(|problem| problem.detail().to_owned())?;
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|_| "the system gave no randomness".to_owned())?;
    let id = LeaseId::from_random(random);
    offer
        .draw_up(&standing.envelope, &nobody, id, UnixMs::new(now))
        .map_err(|error| error.to_string())
}

/// `90s`, `30m`, `2h`, `7d`.
fn within(text: &str) -> Result<u64, String> {
    let unit = text.chars().last().unwrap_or(' ');
    let factor = match unit {
        's' => 1000_u64,
        'm' => 60_000,
        'h' => 3_600_000,
        'd' => 86_400_000,
        _ => 0,
    };
    let number: Option<u64> = text.strip_suffix(unit).and_then(|text| text.parse().ok());
    let ms = number.and_then(|number| number.checked_mul(factor));
    ms.filter(|ms| *ms > 0)
        .ok_or_else(|| "a length of time is 90s, 30m, 2h or 7d".to_owned())
}

/// What it says, a line each.
fn lease_terms(lease: &Lease) -> Vec<String> {
    let terms = lease.terms();
    let text = lease.to_text();
    let json = Json::admit(&text, &countersign_canon::Limits::plan()).unwrap_or(Json::Null);
    let arguments = json.get("arguments").and_then(Json::as_object);
    let mut lines = vec![format!(
        "covers {}, at most {} times",
        countersign_display::quote(&terms.tool.name),
        terms.max_uses
    )];
    for (name, term) in arguments.into_iter().flat_map(|members| members.iter()) {
        let kind = term.get("kind").and_then(Json::as_str).unwrap_or_default();
        let value = term.get("value").map(Json::to_sorted_ascii);
        let value = String::from_utf8_lossy(&value.unwrap_or_default()).into_owned();
        let name = countersign_display::quote(name);
        lines.push(format!("{name}: {kind} {value}"));
    }
    lines.push("no other argument".to_owned());
    if let Some(budget) = &terms.budget {
        let name = countersign_display::quote(&budget.argument);
        lines.push(format!("{name} adds up to {} at most", budget.limit));
    }
    let chain = &terms.holder.chain;
    lines.push(format!(
        "in session {} of {}, trust {} or more",
        countersign_display::quote(chain.session.as_str()),
        countersign_display::quote(chain.tenant.as_str()),
        terms.least_trust
    ));
    lines
}
