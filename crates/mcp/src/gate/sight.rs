//! What the model or the human of a client is asked, and what they answer: each of it is shown to those who
//! want to see it, and recorded, whichever way it takes.

use super::points::{UNSEEN, changed_part, withheld};
use super::*;
use crate::session::Question;

/// What there is to see at a point of the agent's life.
pub struct Sight {
    pub(crate) point: Point,
    pub(crate) subject: Json,
    /// Whether the subject holds all that there is to see.
    pub(crate) is_whole: bool,
    /// The id of the model call.
    pub(crate) call_id: Option<String>,
    /// What is recorded in any case, or for a model call where nobody wants to be asked.
    pub(crate) entries: Vec<Entry>,
}

/// Questions that a server asks by one result, or answers that a client gives by one request.
pub struct Round {
    pub(crate) parts: Vec<Part>,
    /// What is known already to stand in the place of something.
    pub(crate) changes: Vec<(Span, Json)>,
    pub(crate) then: Onward,
}

/// One of them.
pub(crate) struct Part {
    pub(crate) sight: Sight,
    /// Where that stands which may be changed.
    pub(crate) place: Option<Span>,
}

/// What becomes of a round that may pass.
pub enum Onward {
    /// It is delivered; whoever is asked by it may answer these questions.
    Deliver(Delivery, Vec<Question>),
    /// The call that it came with goes on.
    Call(Box<Frame>, Arc<AtomicBool>),
}

impl Round {
    /// The call that goes on then.
    pub(super) fn call(&self) -> Option<&Id> {
        match &self.then {
            Onward::Deliver(..) => None,
            Onward::Call(frame, ..) => match frame.kind() {
                Kind::Request { id, .. } => Some(id),
                _ => None,
            },
        }
    }

    pub(super) fn waits(&self) -> Waits {
        match &self.then {
            Onward::Deliver(then, ..) => then.waits.clone(),
            Onward::Call(..) => Waits::Nobody,
        }
    }
}

impl Gate {
    pub(super) fn pass(&self, sight: Sight, then: Delivery) -> Done {
        let point = sight.point;
        match self.look_at(sight) {
            Ok(None) => Done::Deliver(then),
            Ok(Some(new)) => Done::Instead(then, Instead::Part(point, new)),
            Err(refused) => Done::Unrecorded(then.waits, refused),
        }
    }

    /// Either all of it passes, or nothing.
    pub(super) fn round(&self, round: Round) -> Done {
        let Round {
            parts,
            mut changes,
            then,
        } = round;
        let mut begun = Vec::new();
        for Part { sight, place } in parts {
            let model = sight.call_id.clone();
            let begins = sight.point == Point::PreModelCall;
            let looked = self.look_at(sight);
            if looked.is_ok() && begins {
                begun.extend(model);
            }
            match (looked, place) {
                (Ok(None), _) => {}
                (Ok(Some(new)), Some(place)) => changes.push((place, new)),
                (Ok(Some(_)), None) => return self.ended(begun, then, unsupported()),
                (Err(refused), _) => return self.ended(begun, then, refused),
            }
        }
        Done::Rounded(then, Ok(changes))
    }

    /// Nothing of a round passes: models that were to be asked are not.
    fn ended(&self, begun: Vec<String>, then: Onward, refused: Refused) -> Done {
        let unasked = begun.into_iter();
        let unasked = unasked.map(|call_id| record::sampling_ended(call_id, b"null"));
        // That it could not be recorded lets nothing pass.
        let _ = self.record(unasked.collect());
        Done::Rounded(then, Err(refused))
    }

    /// Shows something to those who want to see it, and records it. Gives what is to stand in its place.
    fn look_at(&self, sight: Sight) -> Result<Option<Json>, Refused> {
        let Sight {
            point,
            subject,
            is_whole,
            call_id,
            entries,
        } = sight;
        if !self.attends(point) {
            let recorded = self.record(entries);
            return recorded.map(|_| None).map_err(|refusal| refused(&refusal));
        }
        // FAIL-CLOSED: what nobody could look at does not pass.
        if !is_whole {
            let fault = record::fault(UNSEEN, format!("what there was to see at {point}"));
            return Err(Refused {
                event: self.record(vec![fault]).ok().flatten(),
                ..unsupported()
            });
        }
        // The engine tells of model calls itself.
        let entries = match call_id {
            Some(_) => Vec::new(),
            None => entries,
        };
        match self.intervene(point, subject.clone(), call_id) {
            Intervened::Passed(passed) => {
                let recorded = self.record(entries);
                recorded.map_err(|refusal| refused(&refusal))?;
                let changed = passed.changed.as_ref();
                let part = changed.map(|changed| changed_part(point, changed, &subject));
                part.map(|part| part.ok_or_else(unsupported)).transpose()
            }
            Intervened::Held(hold) => Err(hold::refused(&hold)),
            Intervened::Refused(refusal) => Err(refused(&refusal)),
        }
    }
}

/// What a client hears whose result asks what it must not. Nobody decides about it any more.
pub(crate) fn withheld_for(refused: &Refused) -> Refused {
    Refused {
        event: refused.event,
        ..withheld(&refused.reason)
    }
}
