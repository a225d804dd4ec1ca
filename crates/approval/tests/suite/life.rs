//! The states of an envelope and of its calls, by table and by random walks.

use std::collections::BTreeMap;

use countersign_approval::*;

use crate::desk::*;
use crate::random::Random;

/// Everything that can be tried on one envelope, with valid proofs for the steps that need one.
struct Proofs {
    granted: Granted,
    refused: Refused,
    verified: Verified,
}

impl Proofs {
    fn of(mut desk: Desk) -> Self {
        let granted = desk.granted("dana", "yy");
        let mut ballot = Ballot::new(&desk.envelope);
        ballot.cast(desk.vote("dana", "nn")).unwrap();
        let Some(Resolved::Refused(refused)) = ballot.into_resolved() else {
            panic!();
        };
        desk.state = State::Approved;
        let verified = desk.execute(&granted).unwrap();
        Self {
            granted,
            refused,
            verified,
        }
    }

    fn steps(&self) -> [(&'static str, Step<'_>); 11] {
        [
            ("approve", Step::Approve(&self.granted)),
            ("deny", Step::Deny(&self.refused)),
            ("expire", Step::Expire),
            ("cancel", Step::Cancel),
            ("supersede", Step::Supersede),
            ("consume", Step::Consume(&self.verified)),
            ("start", Step::Start),
            ("execute", Step::Execute),
            ("fail", Step::Fail),
            ("lose", Step::Lose),
            ("never_start", Step::NeverStart),
        ]
    }
}

/// From, step, to. Whatever is not here is not possible.
const TRANSITIONS: &[(&str, &str, &str)] = &[
    ("pending", "approve", "approved"),
    ("pending", "deny", "denied"),
    ("pending", "expire", "expired"),
    ("pending", "cancel", "cancelled"),
    ("pending", "supersede", "superseded"),
    ("approved", "expire", "expired_unused"),
    ("approved", "cancel", "cancelled"),
    ("approved", "supersede", "superseded"),
    ("approved", "consume", "consumed"),
    ("consumed", "start", "started"),
    ("consumed", "never_start", "not_started"),
    ("started", "execute", "executed"),
    ("started", "fail", "failed"),
    ("started", "lose", "unknown"),
];

#[test]
fn every_step_in_every_state_does_what_the_table_says() {
    let (desk, proofs) = (Desk::new(draft()), Proofs::of(Desk::new(draft())));
    for &state in State::ALL {
        let life = Life::restored(&desk.envelope, state);
        let mut possible = 0;
        for (name, step) in proofs.steps() {
            let row = TRANSITIONS
                .iter()
                .find(|(from, step, _)| (*from, *step) == (state.as_str(), name));
            let after = life.after(&step).ok().map(|life| life.state().as_str());
            assert_eq!(after, row.map(|(_, _, to)| *to), "{state} {name}");
            possible += usize::from(after.is_some());
        }
        assert_eq!(state.is_final(), possible == 0, "{state}");
    }
}

#[test]
fn proofs_of_another_envelope_move_nothing() {
    let mut other = draft();
    other.nonce = Nonce::from_random([3; 16]);
    let (mine, foreign) = (Desk::new(draft()), Proofs::of(Desk::new(other)));
    for &state in State::ALL {
        let life = Life::restored(&mine.envelope, state);
        for step in [
            Step::Approve(&foreign.granted),
            Step::Deny(&foreign.refused),
            Step::Consume(&foreign.verified),
        ] {
            assert!(life.after(&step).is_err(), "{state} {step:?}");
        }
    }
    let refused = Life::begin(&mine.envelope).after(&Step::Start).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "an approval that is `pending` cannot start"
    );
}

/// Random people vote at random, and every step is tried again and again with whatever proofs exist.
#[test]
fn no_path_reaches_consumed_without_its_quorum() {
    let mut random = Random::seeded(11);
    let foreign = Proofs::of(Desk::new(draft()));
    let (mut consumed, mut denied) = (0, 0);
    for _ in 0..300 {
        let required = 1 + random.below(3);
        let rule = random.pick(&[DenyRule::Veto, DenyRule::Outvoted]);
        let mut desk = Desk::new(Draft {
            nonce: Nonce::from_random([random.next() as u8; 16]),
            quorum: people(required, &["dana", "lee", "kim", "ana"], rule),
            ..draft()
        });
        // Lee's requests are Lee's own: three others are left.
        if random.below(2) == 0 {
            desk = own_request(required, rule);
        }
        match walk(&mut random, &mut desk, &foreign) {
            State::Pending | State::Expired | State::Cancelled | State::Superseded => {}
            State::Denied => denied += 1,
            _ => consumed += 1,
        }
    }
    assert!(consumed > 20 && denied > 20, "{consumed} {denied}");
}

fn own_request(required: usize, rule: DenyRule) -> Desk {
    Desk::new(Draft {
        lineage: Lineage::of(human("lee")),
        quorum: people(required, &["dana", "lee", "kim", "ana"], rule),
        ..draft()
    })
}

fn walk(random: &mut Random, desk: &mut Desk, foreign: &Proofs) -> State {
    let envelope = desk.envelope.clone();
    let (mut ballot, mut life) = (Ballot::new(&envelope), Life::begin(&envelope));
    // What an observer notes: the first verdicts of each person who may vote.
    let mut noted: BTreeMap<&str, &str> = BTreeMap::new();
    let requester = envelope.lineage().requester().to_string();
    for _ in 0..24 {
        desk.state = life.state();
        let person = random.pick(&["dana", "lee", "kim", "ana", "mallory"]);
        let verdicts = random.pick(&["yy", "yy", "yn", "nn"]);
        let undecided = ballot.resolved().is_none();
        let counted = desk
            .verify(&desk.submit(person, verdicts))
            .and_then(|vote| ballot.cast(vote));
        if counted == Ok(Cast::Counted) {
            assert!(undecided && person != "mallory" && requester != format!("human:{person}"));
            assert_eq!(noted.insert(person, verdicts), None);
        }
        let verified = match ballot.resolved() {
            Some(Resolved::Granted(granted)) => desk.execute(granted).ok(),
            _ => None,
        };
        let step = match (random.below(9), ballot.resolved(), &verified) {
            (0 | 1, Some(Resolved::Granted(granted)), _) => Step::Approve(granted),
            (0 | 1, Some(Resolved::Refused(refused)), _) => Step::Deny(refused),
            (2 | 3, _, Some(verified)) => Step::Consume(verified),
            (4, _, _) => Step::Consume(&foreign.verified),
            (5, _, _) => Step::Approve(&foreign.granted),
            (6, _, _) => Step::Start,
            (7, _, _) => Step::NeverStart,
            (8, _, _) if random.below(12) == 0 => Step::Expire,
            _ => Step::Execute,
        };
        let Ok(next) = life.after(&step) else {
            continue;
        };
        life = next;
        if life.state() == State::Consumed {
            let required = envelope.quorum().required();
            let approved = |place: usize| {
                let yes = noted.values().filter(|it| it.as_bytes()[place] == b'y');
                yes.count() >= required
            };
            assert!(approved(0) || approved(1), "{noted:?}");
            let verdicts = ballot.resolved().unwrap().decisions();
            for (place, verdict) in verdicts.iter().enumerate() {
                assert!(!verdict.decision.is_approved() || approved(place));
            }
        }
    }
    life.state()
}

#[test]
fn only_an_approved_envelope_executes() {
    let mut desk = Desk::new(draft());
    let granted = desk.granted("dana", "yy");
    for &state in State::ALL {
        desk.state = state;
        let result = desk.execute(&granted);
        match state {
            State::Approved => assert!(result.is_ok()),
            State::Pending => assert_eq!(told(result), ("not_approved", "rejected:not_approved")),
            State::Denied => assert_eq!(told(result), ("denied", "rejected:denied")),
            _ => assert_eq!(told(result).1.split(':').next(), Some("rejected")),
        }
    }
}

#[test]
fn f05_time_alone_ends_what_waits_and_nothing_else() {
    let desk = Desk::new(draft());
    let due = |state, decided_at: Option<u64>, now| {
        let life = Life::restored(&desk.envelope, state);
        let step = life.due(&desk.envelope, decided_at.map(at), at(now));
        step.map(|step| life.after(&step).unwrap().state())
    };
    assert_eq!(due(State::Pending, None, 3_599_999), None);
    assert_eq!(due(State::Pending, None, 3_600_000), Some(State::Expired));
    let unused = Some(State::ExpiredUnused);
    assert_eq!(due(State::Approved, Some(5), 7_199_999), None);
    assert_eq!(due(State::Approved, Some(5), 7_200_000), unused);
    assert_eq!(due(State::Approved, None, 10), unused);
    for &state in State::ALL {
        if !matches!(state, State::Pending | State::Approved) {
            assert_eq!(due(state, Some(5), 1 << 40), None, "{state}");
        }
    }
}

#[test]
fn j05_expired_is_not_denied() {
    let mut desk = Desk::new(draft());
    desk.state = State::Expired;
    let refusal = desk.verify(&desk.submit("dana", "yy")).unwrap_err();
    assert_eq!(refusal.to_string(), "the time to decide is over");
    assert!(!refusal.to_string().contains("denied"));
}

#[test]
fn e02_e03_e04_a_restart_says_what_is_known() {
    let desk = Desk::new(draft());
    let after = |state| {
        let life = Life::restored(&desk.envelope, state);
        life.recovered()
            .map(|step| life.after(&step).unwrap().state())
    };
    assert_eq!(after(State::Consumed), Some(State::NotStarted));
    assert_eq!(after(State::Started), Some(State::Unknown));
    for state in [
        State::Pending,
        State::Approved,
        State::Executed,
        State::Failed,
    ] {
        assert_eq!(after(state), None);
    }
}

#[test]
fn e06_a_batch_that_was_killed_says_so_call_by_call() {
    let desk = Desk::new(Draft {
        plan: plan(["a", "b", "c", "d"].map(call).to_vec()),
        ..draft()
    });
    let granted = desk.granted("dana", "ynyy");
    let mut progress = Progress::begin(&granted);
    assert_eq!(progress.state(), State::Consumed);
    assert_eq!(progress.start(), Some(0));
    assert_eq!(progress.start(), None);
    assert_eq!(progress.finish(false), Some(0));
    assert_eq!(progress.finish(false), None);
    assert_eq!(progress.state(), State::Started);
    assert_eq!(progress.start(), Some(2));
    let mut finished = progress.clone();
    progress.stop();
    use CallState::{Denied, Executed, Failed, NotStarted, Unknown};
    assert_eq!(progress.calls(), [Executed, Denied, Unknown, NotStarted]);
    assert_eq!(progress.state(), State::Unknown);
    finished.finish(true);
    finished.stop();
    assert_eq!(finished.calls(), [Executed, Denied, Failed, NotStarted]);
    assert_eq!(finished.state(), State::Failed);
    let mut never = Progress::begin(&granted);
    never.stop();
    assert_eq!(never.state(), State::NotStarted);
    let mut all = Progress::begin(&granted);
    while all.start().is_some() {
        all.finish(false);
    }
    assert_eq!(all.state(), State::Executed);
}

#[test]
fn every_state_has_its_text_and_its_outcome() {
    for &state in State::ALL {
        assert_eq!(state.as_str().parse(), Ok(state));
        let outcome = audit::Outcome::from(state);
        let expect = match state {
            State::Pending => "requested",
            state => state.as_str(),
        };
        assert_eq!(outcome.as_str(), expect);
    }
    assert!("Pending".parse::<State>().is_err());
}
