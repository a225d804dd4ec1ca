//! Whether the members of a record agree with each other and with the rules of the format.

use std::collections::{BTreeMap, BTreeSet};

use countersign_approval::{ApprovalMode, SideEffect};
use countersign_canon::{Json, Object};

use super::chain::Chain;
use super::finding::{Code, Finding, Judged};
use super::version::Version;
use super::words::{Backing, Decision, Gate, Resolution};
use crate::envelope::{self, ObservedResult};
use crate::state::{CoverageProblem, StateDigest};
use crate::word::Word;

/// The actions of all runs of a file, by id.
pub(super) struct Runs<'a> {
    actions: BTreeMap<(&'a str, &'a str), Vec<(usize, &'a Json)>>,
    /// Runs whose first record was not given.
    beheaded: BTreeSet<&'a str>,
}

impl<'a> Runs<'a> {
    pub(super) fn of(records: &[Option<&'a Object>], chain: &Chain) -> Self {
        let mut runs = Self {
            actions: BTreeMap::new(),
            beheaded: BTreeSet::new(),
        };
        let mut seen = BTreeSet::new();
        for (index, record) in records.iter().enumerate() {
            let Some(record) = record else { continue };
            let run = text(record.get("run_id"));
            // What stood before the first record of the file may have been of any run.
            if seen.insert(run) && (chain.is_loose(0) || chain.is_loose(index)) {
                runs.beheaded.insert(run);
            }
            for action in items(record.get("actions")) {
                let id = text(action.get("action_id"));
                let places = runs.actions.entry((run, id)).or_default();
                places.push((index, action));
            }
        }
        runs
    }

    /// The action of this id: of the same record, or else the last one before it, or else any.
    fn find(&self, run: &str, id: &str, index: usize) -> Option<&'a Json> {
        let places = self.actions.get(&(run, id))?;
        let mut before = places.iter().rev();
        let found = before.find(|(place, _)| *place <= index);
        found.or_else(|| places.first()).map(|(_, action)| *action)
    }
}

/// Checks one record of a file.
pub(super) fn check(
    index: usize,
    record: &Object,
    version: Option<Version>,
    runs: &Runs<'_>,
    notes: &mut Vec<Finding>,
) -> Judged {
    let mut check = Check {
        index,
        record,
        // What claims no version that is known is held against all rules.
        version: version.unwrap_or(Version::V05),
        run: text(record.get("run_id")),
        runs,
        rooted: BTreeSet::new(),
        against: Vec::new(),
        notes,
    };
    check.run_max();
    check.unique_actions();
    for (place, action) in items(record.get("actions")).iter().enumerate() {
        check.action(action, &format!("/actions/{place}"));
    }
    for (place, decision) in items(record.get("capability_decisions")).iter().enumerate() {
        check.decision(decision, &format!("/capability_decisions/{place}"));
    }
    check.attribution();
    Judged {
        against: check.against,
    }
}

struct Check<'a> {
    index: usize,
    record: &'a Object,
    version: Version,
    run: &'a str,
    runs: &'a Runs<'a>,
    /// Actions that are known to be nobody's ancestor and descendant at once: each is looked at once.
    rooted: BTreeSet<String>,
    against: Vec<Finding>,
    notes: &'a mut Vec<Finding>,
}

impl Check<'_> {
    /// The summary is recomputed: the actions are the truth.
    fn run_max(&mut self) {
        let at = "/run_side_effect_class_max";
        let Some(stated) = self.record.get("run_side_effect_class_max") else {
            return;
        };
        let actions = items(self.record.get("actions"));
        let is_silent = actions
            .iter()
            .all(|it| it.get("side_effect_class").is_none());
        // A dialect has the class of the whole run beside its actions, and none in them.
        let beside = word(self.record.get("side_effect_class")).filter(|_| is_silent);
        let worst = beside.or_else(|| actions.iter().map(effect).max());
        if worst.is_none_or(|worst| stated.as_str() != Some(worst.as_str())) {
            let worst = worst.map_or("nothing", SideEffect::as_str);
            let message = format!("the actions give `{worst}`");
            self.fail(Code::RunMaxMismatch, at, &message);
        }
    }

    fn unique_actions(&mut self) {
        let mut seen = BTreeSet::new();
        for (place, action) in items(self.record.get("actions")).iter().enumerate() {
            let Some(id) = action.get("action_id").and_then(Json::as_str) else {
                continue;
            };
            if !seen.insert(id) {
                let message = format!("another action is `{}` as well", id.escape_debug());
                let at = format!("/actions/{place}/action_id");
                self.fail(Code::DuplicateAction, &at, &message);
            }
        }
    }

    fn action(&mut self, action: &Json, at: &str) {
        self.state_changing(action, at);
        self.state_digests(action, at);
        self.parent(action, at);
        self.drift(action, at);
        if let Some(decision) = action.get("capability_decision") {
            self.decision(decision, &format!("{at}/capability_decision"));
            self.approval(action, decision, at);
        }
        self.one_outcome(action, at);
        if action.get("recording_mode").and_then(Json::as_str) == Some("delta")
            && action.get("delta_ref").is_none()
        {
            self.note(
                &format!("{at}/delta_ref"),
                "a delta was recorded, and it says not where",
            );
        }
    }

    fn state_changing(&mut self, action: &Json, at: &str) {
        let stated = action.get("state_changing").and_then(Json::as_bool);
        let class: Option<SideEffect> = word(action.get("side_effect_class"));
        let (Some(stated), Some(class)) = (stated, class) else {
            return;
        };
        let at = format!("{at}/state_changing");
        match (class, stated) {
            (SideEffect::Unknown, false) => self.note(
                &at,
                "nobody knows what it changes, so that it changes nothing is not known either",
            ),
            (class, stated) if stated == (class == SideEffect::Read) => {
                let message = format!("is `{stated}` for `{class}`");
                self.fail(Code::StateChangingMismatch, &at, &message);
            }
            _ => {}
        }
    }

    fn state_digests(&mut self, action: &Json, at: &str) {
        let (kind, coverage) = (
            action.get("state_digest_kind"),
            action.get("state_digest_coverage"),
        );
        let digests = ["pre_state_digest", "post_state_digest"];
        let carried: Vec<&str> = digests
            .into_iter()
            .filter(|name| action.get(name).is_some())
            .collect();
        // Before 0.3 digests of state were bare.
        let bare = self.version < Version::V03 && kind.is_none() && coverage.is_none();
        for name in carried.iter().filter(|_| !bare) {
            let place = format!("{at}/{name}");
            if kind.is_none() {
                let message = "a digest of state needs its kind";
                self.fail(Code::DigestWithoutKind, &place, message);
            }
            if coverage.is_none() {
                let message = "a digest of state needs its coverage";
                self.fail(Code::DigestWithoutCoverage, &place, message);
            }
        }
        if carried.is_empty() && kind.is_some() != coverage.is_some() {
            let message = "kind and coverage belong together";
            self.fail(Code::UnpairedCoverage, at, message);
        }
        let (state, problems) = StateDigest::read("", kind, coverage);
        for CoverageProblem { member, fault } in problems {
            let place = format!("{at}/state_digest_coverage/{member}");
            self.fail(Code::CoverageShape, &place, &fault.to_string());
        }
        for (name, _) in state.unknown.iter() {
            let place = format!(
                "{at}/state_digest_coverage{}",
                super::finding::segment(name)
            );
            self.notes
                .push(Finding::new(Code::UnknownMember, place, "kept as it is"));
        }
        self.weak_coverage(&state, &format!("{at}/state_digest_coverage"));
    }

    fn weak_coverage(&mut self, state: &StateDigest, at: &str) {
        use crate::state::{Coverage, Lifetime};
        match &state.coverage {
            Some(Coverage::DbRowset(rows)) if rows.boundary.snapshot_id.is_none() => {
                self.note(
                    at,
                    "without a snapshot it is comparable by best effort only",
                );
            }
            Some(Coverage::KvSnapshot(values) | Coverage::MemoryBag(values))
                if values.boundary.durable_vs_scratch == Lifetime::Mixed
                    && values.boundary.mixed_partition.is_none() =>
            {
                self.note(at, "mixed values without a partition are not comparable");
            }
            _ => {}
        }
    }

    fn parent(&mut self, action: &Json, at: &str) {
        let Some(parent) = action.get("parent_action_id").and_then(Json::as_str) else {
            return;
        };
        let at = format!("{at}/parent_action_id");
        if self.runs.find(self.run, parent, self.index).is_none() {
            // Before 0.3 nothing said that a parent is in the record; and the records before the first
            // one that was given may have it.
            match self.version < Version::V03 || self.runs.beheaded.contains(self.run) {
                true => self.note(&at, "the parent is not in what was given"),
                false => self.fail(Code::ParentMissing, &at, "there is no such action"),
            }
            return;
        }
        let mut seen = BTreeSet::new();
        let mut next = Some(action);
        while let Some(action) = next {
            let id = text(action.get("action_id"));
            if self.rooted.contains(id) {
                break;
            }
            if !seen.insert(id.to_owned()) {
                self.fail(Code::ParentCycle, &at, "it is its own ancestor");
                return;
            }
            let parent = action.get("parent_action_id").and_then(Json::as_str);
            next = parent.and_then(|parent| self.runs.find(self.run, parent, self.index));
        }
        self.rooted.append(&mut seen);
    }

    fn drift(&mut self, action: &Json, at: &str) {
        let Some(drift) = action.get("argument_drift") else {
            return;
        };
        let place = format!("{at}/argument_drift");
        let detected = drift.get("detected").and_then(Json::as_bool);
        let resolution: Option<Resolution> = word(drift.get("resolution"));
        let digest = |name| drift.get(name).and_then(Json::as_str).map(bare_digest);
        let (approved, observed) = (
            digest("approved_args_digest"),
            digest("observed_args_digest"),
        );
        if [&approved, &observed].contains(&&Some(String::new())) {
            let message = "an empty digest is of no arguments";
            self.fail(Code::DriftInconsistent, &place, message);
        }
        let differ = approved != observed;
        if let Some(detected) = detected
            && detected != differ
        {
            let message = match detected {
                true => "a drift was detected between equal digests",
                false => "no drift was detected between different digests",
            };
            self.fail(Code::DriftInconsistent, &place, message);
        }
        if let (Some(detected), Some(resolution)) = (detected, resolution)
            && detected != (resolution == Resolution::Denied)
        {
            let message = match resolution {
                Resolution::Matched => "a drift that was detected did not match",
                Resolution::Denied => "nothing drifted that could be denied",
            };
            self.fail(Code::DriftInconsistent, &place, message);
        }
        if resolution == Some(Resolution::Denied) {
            self.denied_drift(action, at);
        }
    }

    /// A denied drift is told by one action: the denial, and nothing that came later.
    fn denied_drift(&mut self, action: &Json, at: &str) {
        let denied = match action.get("capability_decision") {
            Some(decision) => is_deny(decision),
            None => items(self.record.get("capability_decisions"))
                .iter()
                .any(is_deny),
        };
        if !denied {
            let message = "a drift that was denied needs the decision `deny`";
            self.fail(Code::DriftNotDenied, at, message);
        }
    }

    /// An action tells of its denial or of a success, and not of both.
    fn one_outcome(&mut self, action: &Json, at: &str) {
        let drift = action.get("argument_drift");
        let drifted =
            drift.and_then(|drift| word(drift.get("resolution"))) == Some(Resolution::Denied);
        let gate = action.get("permission_gate");
        let stopped = gate.and_then(|gate| word(gate.get("decision"))) == Some(Gate::Denied);
        let denied = drifted || stopped || action.get("capability_decision").is_some_and(is_deny);
        // Why something was denied may be a result; what changed after its approval has none.
        let ran = succeeded(action) || drifted && action.get("result_digest").is_some();
        let message = "a denial and what ran later are two actions";
        // Before 0.3 an action could tell of more than one event.
        match (denied && ran, drifted || self.version >= Version::V03) {
            (true, true) => self.fail(Code::TwoOutcomes, at, message),
            (true, false) => self.note(at, message),
            _ => {}
        }
    }

    fn decision(&mut self, decision: &Json, at: &str) {
        let outcome: Option<Decision> = word(decision.get("decision"));
        let mode: Option<ApprovalMode> = word(decision.get("approval_mode"));
        let Some(outcome) = outcome else { return };
        if decision.get("deny_reason_class").is_some() && outcome != Decision::Deny {
            let place = format!("{at}/deny_reason_class");
            let message = "only a denial has a reason for it";
            self.fail(Code::DenyReasonWithoutDeny, &place, message);
        }
        let contradicts = match mode {
            Some(ApprovalMode::PolicyAllowWithReceipt) => outcome != Decision::Allow,
            Some(ApprovalMode::PolicyDenyWithEvidence) => outcome != Decision::Deny,
            _ => false,
        };
        if contradicts {
            let place = format!("{at}/approval_mode");
            let message = format!("contradicts the decision `{outcome}`");
            self.fail(Code::ModeContradictsDecision, &place, &message);
        }
    }

    fn approval(&mut self, action: &Json, decision: &Json, at: &str) {
        match word(decision.get("approval_mode")) {
            Some(ApprovalMode::ReApprovalOnDrift) => self.re_approval(action, at),
            Some(ApprovalMode::BoundedLease) if action.get("scope_lease_id").is_none() => {
                self.note(&format!("{at}/scope_lease_id"), "it says not which lease");
            }
            Some(ApprovalMode::OneShotPayload) if action.get("approval_context_hash").is_none() => {
                self.note(
                    &format!("{at}/approval_context_hash"),
                    "it says not what was approved",
                );
            }
            _ => {}
        }
    }

    /// An action of its own, linked to the one that was denied, with an approval of its own.
    fn re_approval(&mut self, action: &Json, at: &str) {
        if action.get("argument_drift").is_some() {
            let place = format!("{at}/argument_drift");
            let message = "what was approved anew drifts from nothing";
            self.fail(Code::ReApprovalWithDrift, &place, message);
        }
        let context = action.get("approval_context_hash").and_then(Json::as_str);
        if context.is_none_or(str::is_empty) {
            let place = format!("{at}/approval_context_hash");
            let message = "a re-approval has an approval of its own";
            self.fail(Code::ReApprovalWithoutContext, &place, message);
        }
        let place = format!("{at}/parent_action_id");
        let Some(parent) = action.get("parent_action_id").and_then(Json::as_str) else {
            let message = "a re-approval names the action that was denied";
            self.fail(Code::ReApprovalWithoutParent, &place, message);
            return;
        };
        let Some(parent) = self.runs.find(self.run, parent, self.index) else {
            return;
        };
        let drift = parent.get("argument_drift");
        let resolution = drift.and_then(|drift| word(drift.get("resolution")));
        if resolution != Some(Resolution::Denied) {
            let message = "its parent was not denied for drift";
            self.fail(Code::ReApprovalParentNotDenied, &place, message);
        }
        let earlier = parent.get("approval_context_hash").and_then(Json::as_str);
        if context.is_some() && context == earlier {
            let place = format!("{at}/approval_context_hash");
            let message = "is the approval that the denied action drifted from";
            self.fail(Code::ReApprovalWithoutContext, &place, message);
        }
    }

    fn attribution(&mut self) {
        let floor = self.record.get("run_attribution_backing_floor");
        let observed = self.record.get("run_attribution_backing_observed");
        let at = "/run_attribution_backing_floor";
        let grades: Vec<Option<Backing>> = items(observed)
            .iter()
            .map(|grade| word(Some(grade)))
            .collect();
        match (floor, observed) {
            (None, None) => {}
            (Some(floor), Some(_)) if !grades.is_empty() => {
                let weakest = grades.iter().copied().flatten().min();
                let floor: Option<Backing> = word(Some(floor));
                if floor.is_none() || floor != weakest {
                    let message = "is not the weakest grade that was observed";
                    self.fail(Code::FloorNotWeakest, at, message);
                }
            }
            _ => {
                let message = "a floor and the grades that it is the floor of go together";
                self.fail(Code::FloorUnpaired, at, message);
            }
        }
        let distinct: BTreeSet<_> = grades.iter().collect();
        let repeated = distinct.len() < grades.len();
        let backing = self.record.get("attribution_backing");
        let unknown = backing.is_some_and(|backing| word::<Backing>(Some(backing)).is_none())
            || grades.iter().any(Option::is_none);
        let count = self.record.get("authorization_evidence_count");
        let negative = count.is_some_and(|count| count.as_u64().is_none());
        if repeated || unknown || negative {
            let message = "grades are known, each once, and counts are not negative";
            self.fail(Code::AttributionInvalid, "", message);
        }
    }

    fn fail(&mut self, code: Code, at: &str, message: &str) {
        self.against.push(Finding::new(code, at, message));
    }

    fn note(&mut self, at: &str, message: &str) {
        self.notes.push(Finding::new(Code::Weak, at, message));
    }
}

fn is_deny(decision: &Json) -> bool {
    word(decision.get("decision")) == Some(Decision::Deny)
}

/// What an action changes; nobody knows where it does not say.
fn effect(action: &Json) -> SideEffect {
    word(action.get("side_effect_class")).unwrap_or(SideEffect::Unknown)
}

/// Whether an action says that it ran and went well.
fn succeeded(action: &Json) -> bool {
    envelope::told(action) == Some(ObservedResult::Success)
        || action.get("exit_code").and_then(Json::as_i64) == Some(0)
}

/// A digest without the name of its algorithm, which some write and some do not.
fn bare_digest(digest: &str) -> String {
    let digest = digest.to_ascii_lowercase();
    let bare = ["sha256:", "sha256-"]
        .iter()
        .find_map(|name| digest.strip_prefix(name));
    bare.map_or_else(|| digest.clone(), str::to_owned)
}

fn word<W: Word>(value: Option<&Json>) -> Option<W> {
    value.and_then(Json::as_str).and_then(W::named)
}

fn text(value: Option<&Json>) -> &str {
    value.and_then(Json::as_str).unwrap_or_default()
}

fn items(value: Option<&Json>) -> &[Json] {
    value.and_then(Json::as_array).unwrap_or_default()
}
