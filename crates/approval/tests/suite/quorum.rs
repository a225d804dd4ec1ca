//! Who counts, when it is enough, and what comes too late.

use countersign_approval::*;

use crate::desk::*;

/// Three people, of whom `required` must agree, on a plan of two calls.
fn desk(required: usize, deny: DenyRule) -> Desk {
    Desk::new(Draft {
        quorum: people(required, &["dana", "lee", "kim"], deny),
        ..draft()
    })
}

/// Casts votes such as `dana:yn`; returns what became of each, and what came of all.
fn check(desk: &Desk, votes: &[&str], effects: &[Cast], verdicts: Option<&str>) {
    let mut ballot = Ballot::new(&desk.envelope);
    let cast: Vec<Cast> = votes
        .iter()
        .map(|vote| {
            let (person, verdicts) = vote.split_once(':').unwrap();
            ballot.cast(desk.vote(person, verdicts)).unwrap()
        })
        .collect();
    assert_eq!(cast, effects, "{votes:?}");
    let resolved = ballot.resolved().map(|resolved| {
        let verdicts = resolved.decisions().iter();
        let verdict = |it: &CallDecision| if it.decision.is_approved() { 'y' } else { 'n' };
        let text: String = verdicts.map(verdict).collect();
        assert_eq!(text.contains('y'), matches!(resolved, Resolved::Granted(_)));
        text
    });
    assert_eq!(resolved.as_deref(), verdicts, "{votes:?}");
}

use Cast::{AlreadyDecided, Counted, Late, Repeated};

#[test]
fn n01_one_person_counts_once() {
    let desk = desk(2, DenyRule::Veto);
    check(&desk, &["dana:yy"], &[Counted], None);
    check(&desk, &["dana:yy", "dana:yy"], &[Counted, Repeated], None);
    check(
        &desk,
        &["dana:yy", "lee:yy"],
        &[Counted, Counted],
        Some("yy"),
    );
}

#[test]
fn n02_the_requester_does_not_decide() {
    let desk = Desk::new(Draft {
        lineage: lineage(&[]),
        quorum: people(1, &["dana", "lee"], DenyRule::Veto),
        ..draft()
    });
    let refused = told(desk.verify(&desk.submit("dana", "yy")));
    assert_eq!(refused, ("requester_decides", "rejected:requester"));
    check(&desk, &["lee:yy"], &[Counted], Some("yy"));
    // A person decides about what her agent asks for.
    check(
        &self::desk(1, DenyRule::Veto),
        &["dana:yy"],
        &[Counted],
        Some("yy"),
    );
}

#[test]
fn somebody_who_was_not_asked_does_not_decide() {
    let desk = desk(1, DenyRule::Veto);
    let refused = told(desk.verify(&desk.submit("mallory", "yy")));
    assert_eq!(refused, ("not_on_roster", "rejected:not_on_roster"));
}

#[test]
fn n03_one_denial_is_a_veto_unless_configured_otherwise() {
    let veto = desk(2, DenyRule::Veto);
    check(&veto, &["dana:nn"], &[Counted], Some("nn"));
    check(
        &veto,
        &["dana:yn", "lee:yy"],
        &[Counted, Counted],
        Some("yn"),
    );
    check(
        &veto,
        &["dana:yy", "lee:nn"],
        &[Counted, Counted],
        Some("nn"),
    );
    let outvoted = desk(2, DenyRule::Outvoted);
    check(&outvoted, &["dana:nn"], &[Counted], None);
    check(
        &outvoted,
        &["dana:nn", "lee:nn"],
        &[Counted, Counted],
        Some("nn"),
    );
    let votes = ["dana:nn", "lee:yy", "kim:yy"];
    check(&outvoted, &votes, &[Counted; 3], Some("yy"));
    let votes = ["dana:ny", "lee:yn", "kim:yy"];
    check(&outvoted, &votes, &[Counted; 3], Some("yy"));
}

#[test]
fn j01_j02_denials_are_for_single_calls_and_keep_their_reasons() {
    let mut desk = Desk::new(Draft {
        plan: plan(vec![call("a"), call("b"), call("c")]),
        ..draft()
    });
    let granted = desk.granted("dana", "yny");
    desk.state = State::Approved;
    let verified = desk.execute(&granted).unwrap();
    let runs = verified.runs(&desk.envelope).unwrap();
    let ids: Vec<_> = runs.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids, ["a", "c"]);
    let reason = verified.decisions()[1].decision.reason().unwrap();
    assert_eq!(reason.as_str(), "no to b");
    desk.state = State::Pending;
    let mut ballot = Ballot::new(&desk.envelope);
    ballot.cast(desk.vote("dana", "nnn")).unwrap();
    let Some(Resolved::Refused(refused)) = ballot.into_resolved() else {
        panic!();
    };
    let reasons = refused.decisions().iter();
    let reasons: Vec<_> = reasons.filter_map(|it| it.decision.reason()).collect();
    assert_eq!(reasons.len(), 3);
    let denied = Life::begin(&desk.envelope).after(&Step::Deny(&refused));
    assert_eq!(denied.unwrap().state(), State::Denied);
}

#[test]
fn n05_a_changed_roster_voids_the_request() {
    let mut desk = desk(2, DenyRule::Veto);
    let submission = desk.submit("dana", "yy");
    let mut ballot = Ballot::new(&desk.envelope);
    ballot.cast(desk.vote("dana", "yy")).unwrap();
    ballot.cast(desk.vote("lee", "yy")).unwrap();
    let Some(Resolved::Granted(granted)) = ballot.into_resolved() else {
        panic!();
    };
    let expect = ("configuration_changed", "rejected:configuration_changed");
    for quorum in [
        people(2, &["dana", "lee"], DenyRule::Veto),
        people(2, &["dana", "lee", "kim", "ana"], DenyRule::Veto),
        people(1, &["dana", "lee", "kim"], DenyRule::Veto),
        people(2, &["dana", "lee", "kim"], DenyRule::Outvoted),
    ] {
        desk.quorum = quorum;
        desk.state = State::Pending;
        assert_eq!(told(desk.verify(&submission)), expect);
        desk.state = State::Approved;
        assert_eq!(told(desk.execute(&granted)), expect);
    }
}

#[test]
fn n06_late_votes_change_nothing() {
    let desk = desk(2, DenyRule::Veto);
    let votes = ["dana:yy", "lee:yy", "kim:yy"];
    check(&desk, &votes, &[Counted, Counted, Late], Some("yy"));
    let votes = ["dana:yy", "lee:yy", "kim:nn"];
    check(
        &desk,
        &votes,
        &[Counted, Counted, AlreadyDecided],
        Some("yy"),
    );
}

#[test]
fn k04_the_first_of_two_conflicting_decisions_stands() {
    let one = desk(1, DenyRule::Veto);
    let votes = ["dana:nn", "dana:yy"];
    check(&one, &votes, &[Counted, AlreadyDecided], Some("nn"));
    let two = desk(2, DenyRule::Veto);
    let votes = ["dana:yy", "dana:ny", "lee:yy"];
    check(
        &two,
        &votes,
        &[Counted, AlreadyDecided, Counted],
        Some("yy"),
    );
    let outcome = countersign_approval::audit::Outcome::from(AlreadyDecided);
    assert_eq!(outcome.as_str(), "rejected:already_decided");
}

#[test]
fn a_vote_counts_for_its_own_envelope_only() {
    let (one, mut other) = (desk(1, DenyRule::Veto), draft());
    other.nonce = Nonce::from_random([9; 16]);
    let other = Desk::new(other);
    let mut ballot = Ballot::new(&one.envelope);
    assert_eq!(
        told(ballot.cast(other.vote("dana", "yy"))).0,
        "unknown_nonce"
    );
    let mut other = other;
    other.state = State::Approved;
    let refused = other.execute(&one.granted("dana", "yy"));
    assert_eq!(told(refused).0, "unknown_nonce");
}

#[test]
fn quorums_that_nobody_can_reach_are_refused() {
    let make = |required, roster: &[&str]| {
        let roster = roster.iter().map(|name| human(name));
        Quorum::new(required, roster, DenyRule::Veto)
    };
    assert_eq!(make(0, &["dana"]), Err(QuorumError::NobodyRequired));
    let out_of_reach = |required, eligible| QuorumError::OutOfReach { required, eligible };
    assert_eq!(make(2, &["dana", "dana"]), Err(out_of_reach(2, 1)));
    let both = make(2, &["dana", "lee"]).unwrap();
    let asks = Principal::Human(human("lee"));
    assert_eq!(both.check_reach(&asks), Err(out_of_reach(2, 1)));
}
