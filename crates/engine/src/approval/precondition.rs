//! What must not change between the question and the run.

use super::ask::enforced_identity;
use super::*;

/// Something that must still be as it is now when an action runs, if a human has to approve it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Precondition {
    /// What the engine can look at: a file, a commit.
    Seen(Subject),
    /// What only the door can look at.
    Told(Told),
}

/// What a door says of something that only it can look at. People see it as a part of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// Of what.
    pub name: String,
    /// What it is like.
    pub value: String,
}

impl Told {
    fn subject(&self) -> Subject {
        Subject {
            kind: SubjectKind::Resource,
            name: self.name.clone(),
        }
    }
}

impl Precondition {
    /// What it is about.
    pub(crate) fn subject(&self) -> Subject {
        match self {
            Self::Seen(subject) => subject.clone(),
            Self::Told(told) => told.subject(),
        }
    }

    /// The fingerprint that it has now.
    pub(crate) fn fingerprint(&self) -> Option<String> {
        match self {
            Self::Seen(subject) => fingerprint(subject),
            Self::Told(told) => Some(told.value.clone()),
        }
    }
}

/// What a plan rests on, to be asked about again: what a door told stays as it told it.
pub(crate) fn preconditions(plan: &Plan) -> Vec<Precondition> {
    let again = |(subject, value): (&Subject, Option<&str>)| match (subject.kind, value) {
        (SubjectKind::Resource, Some(value)) if *subject != enforced_identity() => {
            Precondition::Told(Told {
                name: subject.name.clone(),
                value: value.to_owned(),
            })
        }
        _ => Precondition::Seen(subject.clone()),
    };
    plan.preconditions().iter().map(again).collect()
}

/// FAIL-CLOSED: what the action would rest on now, and people have not seen, counts as changed.
pub(crate) fn check_known(now: &[Precondition], plan: &Plan) -> Result<(), PreconditionFailed> {
    let is_known = |wanted: &Subject| {
        let mut asked = plan.preconditions().iter();
        asked.any(|(subject, _)| subject == wanted)
    };
    let unknown = now.iter().find(|it| !is_known(&it.subject()));
    match unknown {
        None => Ok(()),
        Some(unknown) => Err(PreconditionFailed {
            subject: unknown.subject(),
            expected: None,
            seen: Some(unknown.fingerprint()),
        }),
    }
}
