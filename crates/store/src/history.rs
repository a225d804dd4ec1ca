//! The history of one session, opened and checked on the way.

use countersign_canon::Digest;
use countersign_event::{EventType, Head, Line, Order, Payload, Scope};
use countersign_vault::{SessionKey, joined};

use crate::{Error, Filter, Reader, Stored};

/// An event of a session, as it was given.
pub struct Opened<'a> {
    /// Its type.
    pub event_type: EventType,
    /// Its place in the session.
    pub seq: u64,
    /// When it happened.
    pub ts_unix_ms: u64,
    /// The call that it is about.
    pub call_id: Option<&'a str>,
    /// Its content.
    pub payload: &'a Payload,
    /// The head of the chain after it.
    pub head: Head,
}

impl Reader {
    /// Visits the events of a session in their order. Every hash, link, order rule and ciphertext is
    /// held against the chain; what does not fit is an error, and so is content that was erased.
    pub fn history<E: From<Error>>(
        &self,
        scope: &Scope,
        mut visit: impl FnMut(Opened<'_>) -> Result<(), E>,
    ) -> Result<Head, E> {
        let mut head = Head::GENESIS;
        let mut order = Order::default();
        let mut key: Option<SessionKey> = None;
        self.each(&Filter::session(scope), 0, |event| {
            let line = checked(&event, head, &mut order)?;
            let payload = self.opened(&line, &event, scope, &mut key)?;
            head = Head::after(line.seq, line.hash);
            visit(Opened {
                event_type: line.event_type,
                seq: line.seq,
                ts_unix_ms: line.ts_unix_ms,
                call_id: line.refs.call_id.as_deref(),
                payload: &payload,
                head,
            })
        })?;
        Ok(head)
    }

    fn opened(
        &self,
        line: &Line<'_>,
        event: &Stored,
        scope: &Scope,
        key: &mut Option<SessionKey>,
    ) -> Result<Payload, Error> {
        let openings = match (&line.seal, &event.ciphertext) {
            (None, None) => Vec::new(),
            // SECURITY: a session key opens every ciphertext of its session, so the line has to say
            // which one belongs to it.
            (Some(seal), Some(ciphertext)) if Digest::of(ciphertext) == seal.ciphertext => {
                let key = match key {
                    Some(key) => key,
                    None => key.insert(self.session_key(scope)?),
                };
                key.open(ciphertext, scope)?
            }
            (Some(_), Some(_)) => return Err(damaged(line, "its ciphertext was changed")),
            (Some(_), None) => return Err(damaged(line, "its ciphertext is missing")),
            (None, Some(_)) => {
                let problem = "its ciphertext belongs to no sealed member";
                return Err(damaged(line, problem));
            }
        };
        let payload = joined(line.payload, openings)?;
        Payload::admit(line.event_type, payload)
            .map_err(|_| damaged(line, "its payload has another form than its type"))
    }
}

fn checked<'e>(event: &'e Stored, head: Head, order: &mut Order) -> Result<Line<'e>, Error> {
    let line = Line::read(&event.line)?;
    if line.computed_hash() != line.hash {
        return Err(damaged(&line, "its hash does not match its content"));
    }
    if head.accepts(line.seq, line.prev_hash.as_ref()).is_err() {
        return Err(damaged(&line, "it does not follow the event before it"));
    }
    if order.admit(line.event_type, &line.refs).is_err() {
        return Err(damaged(&line, "it breaks the order of events"));
    }
    Ok(line)
}

fn damaged(line: &Line<'_>, problem: &'static str) -> Error {
    Error::damaged(line.seq, problem)
}
