//! A request as people see it, the same in every command.

use countersign_approval::{Decision, DenyRule, ExecuteBy, State, UnixMs};
use countersign_display::{AgentSays, Rendering, View, quote};
use countersign_engine::{Desk, Standing, Tally, TallyVote};

use crate::clock;
use crate::errors::{Code, Failure};

/// Everything that there is to see of a request.
pub(super) struct Card {
    pub(super) standing: Standing,
    pub(super) tally: Tally,
    pub(super) why: Option<String>,
    pub(super) now: UnixMs,
}

impl Card {
    pub(super) fn new(standing: Standing, desk: &Desk) -> Result<Self, Failure> {
        Ok(Self {
            tally: desk.tally(&standing)?,
            why: desk.why_held(&standing)?,
            now: desk.now()?,
            standing,
        })
    }

    pub(super) fn is_irreversible(&self) -> bool {
        self.standing.envelope.plan().is_irreversible()
    }

    /// What has to be given back to approve it.
    pub(super) fn code(&self) -> String {
        let hash = self.standing.envelope.plan().hash();
        match self.is_irreversible() {
            true => hash.typed(),
            false => hash.short(),
        }
    }

    /// The plan, in full or with long texts cut.
    pub(super) fn rendering(&self, view: View) -> Result<Rendering, Failure> {
        let payload = self.standing.envelope.plan().payload().to_sorted_ascii();
        Rendering::of(&payload, view)
            .map_err(|error| Failure::new(Code::Damaged, error.to_string()))
    }

    /// What the agent says about it.
    pub(super) fn said(&self, view: View) -> Option<AgentSays> {
        let said = self.standing.envelope.agent_says()?;
        Some(AgentSays::of(said, view))
    }

    /// Everything but the plan itself, a line each. `complete` says whether all of the plan is shown
    /// with it: the code of what cannot be undone is not to be had without.
    pub(super) fn facts(&self, complete: bool) -> Vec<String> {
        let envelope = &self.standing.envelope;
        let scope = envelope.plan().scope();
        let mut lines = vec![
            format!("{}  {}", word(self.standing.row.state), envelope.id()),
            format!("code        {}", self.code_line(complete)),
            format!("asked       {}, by {}", self.asked(), self.lineage()),
            format!(
                "session     {}/{}, trust {}",
                quote(scope.chain.tenant.as_str()),
                quote(scope.chain.session.as_str()),
                scope.trust
            ),
        ];
        lines.extend(self.clocks());
        let why = self.why.as_deref();
        lines.push(format!(
            "why         {}",
            why.map_or("not recorded".to_owned(), quote)
        ));
        for call in envelope.plan().calls() {
            let irreversible = match call.class.irreversible {
                true => ", cannot be undone",
                false => "",
            };
            let name = quote(&call.tool.name);
            lines.push(format!(
                "class       {name}: {}{irreversible}",
                call.class.effect
            ));
        }
        lines.push(format!("quorum      {}", self.quorum()));
        lines.extend(self.tally.votes.iter().map(vote));
        if let Some(id) = envelope.supersedes() {
            lines.push(format!("supersedes  {id}"));
        }
        if let Some(id) = envelope.parent_action() {
            lines.push(format!("drifted from {id}"));
        }
        lines
    }

    fn code_line(&self, complete: bool) -> String {
        match (self.is_irreversible(), complete) {
            (true, true) => format!(
                "{} (cannot be undone: type all of it to approve)",
                self.code()
            ),
            (true, false) => "not shown: this cannot be undone, look at all of it first".to_owned(),
            (false, _) => self.code(),
        }
    }

    fn asked(&self) -> String {
        let issued = self.standing.envelope.clocks().issued_at();
        let ago = duration(self.now.distance(issued));
        format!("{} ({ago} ago)", clock::text(issued.get()))
    }

    pub(super) fn lineage(&self) -> String {
        let lineage = self.standing.envelope.lineage();
        let mut names = vec![quote(&lineage.root().to_string())];
        names.extend(
            lineage
                .agents()
                .iter()
                .map(|agent| quote(&agent.to_string())),
        );
        names.join(" ▸ ")
    }

    fn clocks(&self) -> Vec<String> {
        let clocks = self.standing.envelope.clocks();
        let row = &self.standing.row;
        let decide = match clocks.decide_by() {
            None => "when you can: it waits".to_owned(),
            Some(end) => self.until(end),
        };
        let execute = match (row.ends, clocks.execute_by()) {
            (Some(end), _) | (None, ExecuteBy::At(end)) => self.until(end),
            (None, ExecuteBy::Within(ms)) => format!("within {} of the approval", duration(ms)),
        };
        vec![
            format!("decide by   {decide}"),
            format!("execute by  {execute}"),
        ]
    }

    fn until(&self, end: UnixMs) -> String {
        let distance = duration(self.now.distance(end));
        match self.now.is_before(end) {
            true => format!("{} (in {distance})", clock::text(end.get())),
            false => format!("{} (over)", clock::text(end.get())),
        }
    }

    fn quorum(&self) -> String {
        let quorum = self.standing.envelope.quorum();
        let deny = match quorum.deny() {
            DenyRule::Veto => "one denial is enough",
            DenyRule::Outvoted => "denials can be outvoted",
        };
        let (approved, required) = (self.tally.approvals(), self.tally.required);
        let people = quorum.roster().len();
        format!("{approved} of {required} approvals, {people} could decide, {deny}")
    }
}

fn vote(vote: &TallyVote) -> String {
    let denied = vote.decisions.iter().find(|it| !it.is_approved());
    let said = match denied {
        None => "✓ approved".to_owned(),
        Some(decision) => {
            let reason = decision.reason().map(|reason| quote(reason.as_str()));
            format!("✗ denied {}", reason.unwrap_or_default())
        }
    };
    let (who, when) = (
        quote(&vote.approver.to_string()),
        clock::text(vote.at.get()),
    );
    format!("            {who} {} at {when}", said.trim_end())
}

/// A word and a shape. What nobody answered is not denied.
pub(super) fn word(state: State) -> &'static str {
    match state {
        State::Pending => "HOLD ⏸",
        State::Approved => "APPROVED ✓",
        State::Denied => "DENIED ✗",
        State::Expired => "EXPIRED ⌛ (not answered)",
        State::ExpiredUnused => "EXPIRED ⌛ (approved, not used)",
        State::Cancelled => "CANCELLED –",
        State::Superseded => "SUPERSEDED –",
        State::Consumed => "CONSUMED ▶",
        State::NotStarted => "NOT STARTED –",
        State::Started => "STARTED ▶",
        State::Executed => "EXECUTED ✓",
        State::Failed => "FAILED ✗",
        State::Unknown => "UNKNOWN ?",
    }
}

/// `90s`, `59m`, `23h`, `6d`
pub(crate) fn duration(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Whether somebody may still decide about it, and if not, what became of it.
pub(super) fn check_open(standing: &Standing) -> Result<(), Failure> {
    let problem = match standing.row.state {
        State::Pending => return Ok(()),
        State::Expired => "it has expired: nobody answered in time".to_owned(),
        State::ExpiredUnused => "it was approved, and its time to run is over".to_owned(),
        State::Denied => "it was denied".to_owned(),
        State::Approved => "it is approved already".to_owned(),
        State::Cancelled => "it was cancelled".to_owned(),
        State::Superseded => "it was superseded by an edited one".to_owned(),
        used => format!("it was approved and used; its state is `{used}`"),
    };
    let id = standing.envelope.id();
    Err(Failure::new(
        Code::Approval,
        format!("`{id}` cannot be decided: {problem}"),
    ))
}

/// What a decision is called once it is given.
pub(super) fn verb(decision: &Decision) -> &'static str {
    match decision {
        Decision::Approved => "approved",
        Decision::Denied(_) => "denied",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn j05_what_nobody_answered_is_not_called_denied() {
        for state in State::ALL {
            let denies = word(*state).contains("DENIED");
            assert_eq!(denies, *state == State::Denied, "{state}");
        }
    }

    #[test]
    fn durations_are_short() {
        let check = |ms, text| assert_eq!(duration(ms), text);
        check(0, "0s");
        check(119_999, "119s");
        check(3_600_000, "60m");
        check(7_200_000, "2h");
        check(172_800_000, "2d");
    }
}
