//! The one scan of a frame.

use std::borrow::Cow;

use countersign_canon::scan::Scan;
use countersign_canon::{Error, Limits};

use super::error::Fault;
use super::lookalike;
use super::{Id, Kind, Params, Span};
use crate::Method;

/// What the members of a message said, before anybody asked whether they fit together.
#[derive(Default)]
struct Members {
    version: bool,
    id: Option<Span>,
    method: Option<(Method, Span)>,
    params: Option<Span>,
    parts: Params,
    result: Option<Span>,
    error: Option<Span>,
    /// Whether there are members that messages do not have.
    others: bool,
    /// The first fault that is not one of JSON.
    fault: Option<Fault>,
}

/// Reads one message; tells whether it has members that messages do not have.
pub(super) fn read(bytes: &[u8], limits: &Limits) -> Result<(Kind, bool), Fault> {
    let mut scan = Scan::new(bytes, limits)?;
    match scan.peek() {
        Some(b'{') => {}
        Some(b'[') => {
            scan.value()?;
            scan.finish()?;
            return Err(Fault::Batch);
        }
        _ => {
            scan.value()?;
            scan.finish()?;
            return Err(Fault::NotAnObject);
        }
    }
    let mut members = Members::default();
    scan.object(|scan, key| members.member(scan, &key))?;
    scan.finish()?;
    let others = members.others;
    Ok((members.into_kind(bytes)?, others))
}

impl Members {
    fn member(&mut self, scan: &mut Scan<'_>, key: &str) -> Result<(), Error> {
        self.check(lookalike::refuse(key, TOP));
        match key {
            "jsonrpc" => self.version = text(scan)?.is_some_and(|version| version == "2.0"),
            "id" => self.id = Some(scan.value()?.into()),
            "method" => {
                let start = scan.offset();
                match text(scan)? {
                    Some(name) => {
                        let span = Span::from(start..scan.offset());
                        self.method = Some((Method::of(&name), span));
                    }
                    None => self.check(Err(Fault::Method)),
                }
            }
            "params" => {
                let start = scan.offset();
                self.read_params(scan)?;
                self.params = Some((start..scan.offset()).into());
            }
            "result" => self.result = Some(scan.value()?.into()),
            "error" => self.error = Some(scan.value()?.into()),
            _ => self.others = true,
        }
        Ok(())
    }

    fn read_params(&mut self, scan: &mut Scan<'_>) -> Result<(), Error> {
        if scan.peek() != Some(b'{') {
            scan.value()?;
            self.check(Err(Fault::Params));
            return Ok(());
        }
        scan.object(|scan, key| {
            self.check(lookalike::refuse(&key, PARAMS));
            let place = match &*key {
                "name" => &mut self.parts.name,
                "uri" => &mut self.parts.uri,
                "arguments" => &mut self.parts.arguments,
                "_meta" => &mut self.parts.meta,
                "taskId" => &mut self.parts.task_id,
                "requestId" => &mut self.parts.request_id,
                _ => return Ok(()),
            };
            *place = Some(scan.value()?.into());
            Ok(())
        })
    }

    fn check(&mut self, found: Result<(), Fault>) {
        if let Err(fault) = found {
            self.fault.get_or_insert(fault);
        }
    }

    fn into_kind(self, bytes: &[u8]) -> Result<Kind, Fault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        if !self.version {
            return Err(Fault::Version);
        }
        let id = self.id.map(|span| span.of(bytes));
        let params = Params {
            whole: self.params,
            ..self.parts
        };
        match (id, self.method, self.result, self.error) {
            (Some(id), Some((method, name)), None, None) => Ok(Kind::Request {
                id: Id::read(id)?,
                method,
                name,
                params,
            }),
            (None, Some((method, name)), None, None) => Ok(Kind::Notification {
                method,
                name,
                params,
            }),
            (Some(id), None, Some(result), None) => Ok(Kind::Response {
                id: Id::read(id)?,
                result,
            }),
            (id, None, None, Some(error)) => Ok(Kind::Error {
                id: match id {
                    None | Some(b"null") => None,
                    Some(id) => Some(Id::read(id)?),
                },
                error,
            }),
            _ => Err(Fault::Shape),
        }
    }
}

/// The string that is next; anything else is stepped over.
fn text<'a>(scan: &mut Scan<'a>) -> Result<Option<Cow<'a, str>>, Error> {
    match scan.peek() {
        Some(b'"') => scan.string().map(Some),
        _ => scan.value().map(|_| None),
    }
}

/// What messages consist of.
pub(crate) const TOP: &[&str] = &["jsonrpc", "id", "method", "params", "result", "error"];
const PARAMS: &[&str] = &[
    "name",
    "uri",
    "arguments",
    "_meta",
    "taskId",
    "requestId",
    "task",
    "inputResponses",
    "requestState",
];
