//! Everything that is told about the events of one session: records, envelopes, CloudEvents.

use std::collections::BTreeMap;

use countersign_canon::Error;
use countersign_canon::Json;
use countersign_event::Scope;
use countersign_redact::Redactor;

use crate::Event;
use crate::aep::{self, Form, Run, Unsigned, WriteError};
use crate::cloudevents::{CloudEvent, Converter, Producer};
use crate::envelope::{SideDocuments, envelopes};

/// What follows from the events of one session, and from nothing else: whoever has the events can work
/// it out again and compare.
#[derive(Clone, Debug)]
pub struct Account {
    /// One record for each action, linked, and not signed yet.
    pub records: Vec<Unsigned>,
    /// The decision envelopes of the records, in their order.
    pub envelopes: Vec<Json>,
    /// The events, in their order.
    pub events: Vec<CloudEvent>,
    /// Actions that no record can tell of without breaking a rule.
    pub untold: Vec<WriteError>,
}

impl Account {
    /// Works out the account of a session. `policies` says which manifest, in which version, stands
    /// behind a digest of policies.
    pub fn of(
        scope: &Scope,
        events: &[Event],
        policies: &BTreeMap<String, (String, String)>,
        producer: &Producer,
    ) -> Result<Self, Error> {
        let mut converter = Converter::new(scope, producer.clone(), Redactor::default());
        let session = aep::session(scope.session.as_str(), events);
        let documents = SideDocuments {
            leases: session.leases,
            policies: policies.clone(),
        };
        let mut run = Run::new(converter.run(), Form::Inline);
        let mut account = Self {
            records: Vec::with_capacity(session.actions.len()),
            envelopes: Vec::with_capacity(session.actions.len()),
            events: Vec::with_capacity(events.len() + 1),
            untold: Vec::new(),
        };
        for (action, surroundings) in &session.actions {
            match run.record(action, surroundings) {
                Ok(record) => {
                    let told = record.clone().into_json();
                    account.envelopes.extend(envelopes(&told, &documents));
                    account.records.push(record);
                }
                Err(WriteError::Json(error)) => return Err(error),
                Err(error) => account.untold.push(error),
            }
        }
        for event in events {
            account.events.extend(converter.convert(event)?);
        }
        Ok(account)
    }
}
