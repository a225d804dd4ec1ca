//! Whether one lease is within another, field by field.

use super::{Budget, Term, Terms};
use countersign_canon::Quoted;

/// A part would be more than the whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the lease would be wider than its parent in `{field}`{}", Of(.argument.as_deref()))]
pub struct Wider {
    field: &'static str,
    argument: Option<String>,
}

impl Wider {
    /// In which field.
    pub const fn field(&self) -> &'static str {
        self.field
    }

    /// For which argument, if it is about one.
    pub fn argument(&self) -> Option<&str> {
        self.argument.as_deref()
    }
}

/// Checks that whatever `part` covers is covered by `whole` too.
pub(super) fn check(whole: &Terms, part: &Terms) -> Result<(), Wider> {
    // Taken apart, so that a field which is added later cannot be forgotten here.
    let Terms {
        id: _,
        tool,
        arguments,
        max_uses,
        budget,
        valid,
        holder,
        least_trust,
        policy,
        granted_by: _,
    } = part;
    let within = [
        ("tool", *tool == whole.tool),
        ("max_uses", *max_uses <= whole.max_uses),
        (
            "budget",
            is_budget_within(whole.budget.as_ref(), budget.as_ref()),
        ),
        ("granted_at_ms", valid.granted_at >= whole.valid.granted_at),
        ("expires_at_ms", valid.expires_at <= whole.valid.expires_at),
        ("chain", holder.chain == whole.holder.chain),
        ("work_item_id", holder.work_item == whole.holder.work_item),
        ("lineage", is_holder_within(whole, part)),
        ("least_trust", *least_trust >= whole.least_trust),
        ("policy_digest", *policy == whole.policy),
    ];
    if let Some((field, _)) = within.into_iter().find(|(_, within)| !within) {
        return Err(Wider {
            field,
            argument: None,
        });
    }
    let wider = |argument: &String| Wider {
        field: "arguments",
        argument: Some(argument.clone()),
    };
    for (argument, term) in arguments {
        let allowed = whole
            .arguments
            .get(argument)
            .ok_or_else(|| wider(argument))?;
        if !is_term_within(allowed, term) {
            return Err(wider(argument));
        }
    }
    // What the whole requires to be there, the part must not leave out.
    let missing = whole
        .arguments
        .iter()
        .find(|(argument, term)| !term.may_be_absent && !arguments.contains_key(*argument));
    match missing {
        Some((argument, _)) => Err(wider(argument)),
        None => Ok(()),
    }
}

fn is_term_within(whole: &Term, part: &Term) -> bool {
    whole.constraint.covers(&part.constraint) && (whole.may_be_absent || !part.may_be_absent)
}

fn is_budget_within(whole: Option<&Budget>, part: Option<&Budget>) -> bool {
    match (whole, part) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(whole), Some(part)) => whole.argument == part.argument && part.limit <= whole.limit,
    }
}

fn is_holder_within(whole: &Terms, part: &Terms) -> bool {
    let (whole, part) = (&whole.holder, &part.holder);
    match whole.children {
        true => part.lineage.descends_from(&whole.lineage),
        false => part.lineage == whole.lineage && !part.children,
    }
}

struct Of<'a>(Option<&'a str>);

impl std::fmt::Display for Of<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(argument) => write!(f, " for {}", Quoted(argument)),
            None => Ok(()),
        }
    }
}
