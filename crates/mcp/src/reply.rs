//! Messages of our own making.

use countersign_canon::{Hash, Json};

use crate::{Era, Id};

/// Why a request gets no answer from its server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The JSON-RPC code.
    pub code: i64,
    /// The reason code.
    pub reason: String,
    /// What the model should do next. Says nothing about policies or the system.
    pub message: String,
    /// The event that records it.
    pub event: Option<Hash>,
    /// What a held call is known by while a human decides.
    pub approval: Option<String>,
    /// The code of what a human is asked about: the first bytes of its hash.
    pub plan: Option<[u8; 4]>,
}

/// The form in which a refused call is answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RefusalForm {
    /// As an error of the protocol.
    #[default]
    Error,
    /// As a result of the tool that says that it failed; some clients give up on errors.
    ToolResult,
}

/// A refusal for a client that waits: it names the event that records it, once there is one.
#[derive(Debug)]
pub(crate) struct Notice {
    /// The request, if it is known which one.
    id: Option<Id>,
    refused: Refused,
    form: RefusalForm,
    era: Option<&'static Era>,
}

impl Notice {
    /// An error of the protocol.
    pub(crate) fn error(id: Option<&Id>, refused: Refused) -> Self {
        Self {
            id: id.cloned(),
            refused,
            form: RefusalForm::Error,
            era: None,
        }
    }

    /// The answer to a call.
    pub(crate) fn answer(
        id: &Id,
        refused: Refused,
        form: RefusalForm,
        era: Option<&'static Era>,
    ) -> Self {
        Self {
            id: Some(id.clone()),
            refused,
            form,
            era,
        }
    }

    /// The event that records it, if it is recorded.
    pub(crate) fn recorded_in(&mut self, event: Option<Hash>) {
        self.refused.event = event;
    }

    /// The message that the client gets.
    pub(crate) fn to_message(&self) -> Vec<u8> {
        match &self.id {
            Some(id) => self.refused.to_answer(id, self.form, self.era),
            None => self.refused.to_error(None),
        }
    }
}

impl Refused {
    /// A refusal that a policy, or something like it, decided.
    pub fn denied(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code: DENIED,
            reason: reason.into(),
            message: message.into(),
            event: None,
            approval: None,
            plan: None,
        }
    }

    /// The same with another code.
    #[must_use = "gives the changed refusal back"]
    pub fn with_code(mut self, code: i64) -> Self {
        self.code = code;
        self
    }

    /// The code as people see it.
    pub(crate) fn code_of_plan(&self) -> String {
        let bytes = self.plan.iter().flatten();
        bytes.map(|byte| format!("{byte:02x}")).collect()
    }

    fn data(&self) -> Json {
        let mut members = vec![
            ("reason", Json::from(self.reason.as_str())),
            ("message", Json::from(self.message.as_str())),
            ("event", Json::from(self.event.map(|hash| hash.to_string()))),
        ];
        let approval = self.approval.as_deref();
        members.extend(approval.map(|token| ("approval", Json::from(token))));
        Json::object(members)
    }

    fn error(&self) -> Json {
        Json::object([
            ("code", Json::from(self.code)),
            ("message", Json::from(self.message.as_str())),
            ("data", self.data()),
        ])
    }

    /// An error for whoever waits under this id.
    pub fn to_error(&self, id: Option<&Id>) -> Vec<u8> {
        answer(id, "error", &self.error())
    }

    /// The error alone, as a part of something else.
    pub(crate) fn to_error_member(&self) -> Vec<u8> {
        self.error().to_sorted_ascii()
    }

    /// The answer to a call, in the form that the operator wants.
    pub fn to_answer(&self, id: &Id, form: RefusalForm, era: Option<&Era>) -> Vec<u8> {
        if form == RefusalForm::Error {
            return self.to_error(Some(id));
        }
        let text = Json::object([
            ("type", Json::from("text")),
            ("text", Json::from(self.message.as_str())),
        ]);
        let mut members = vec![
            ("content", Json::from(vec![text])),
            ("isError", Json::from(true)),
            ("_meta", Json::object([(META, self.data())])),
        ];
        if era.is_some_and(|era| era.result_type) {
            members.push(("resultType", Json::from("complete")));
        }
        answer(Some(id), "result", &Json::object(members))
    }
}

/// A request of ours.
pub(crate) fn request(id: &Id, method: &str, params: &Json) -> Vec<u8> {
    let params = text(params);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#).into_bytes()
}

/// A result of ours.
pub(crate) fn result(id: &Id, result: &Json) -> Vec<u8> {
    answer(Some(id), "result", result)
}

/// An answer of the server that was kept: a result, or an error of the protocol.
pub(crate) fn released(id: &Id, content: &Json, is_error: bool) -> Vec<u8> {
    let is_result = !is_error || content.get("isError").is_some();
    let member = match is_result {
        true => "result",
        false => "error",
    };
    answer(Some(id), member, content)
}

/// A cancellation of a request that we no longer wait for.
pub(crate) fn cancelled(id: &Id, reason: &str) -> Vec<u8> {
    let reason = text(&Json::from(reason));
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":{reason}}}}}"#
    )
    .into_bytes()
}

/// A sign of life for a client that waits, under the token that it gave.
pub(crate) fn progress(token: &[u8], count: u64, message: &str) -> Vec<u8> {
    let token = String::from_utf8_lossy(token);
    let message = text(&Json::from(message));
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{count},"message":{message}}}}}"#
    )
    .into_bytes()
}

/// A request for a page of tools.
pub(crate) fn tools_list(id: &Id, meta: Option<&str>, cursor: Option<&str>) -> Vec<u8> {
    let meta = meta.map(|meta| format!(r#""_meta":{meta}"#));
    let cursor = cursor.map(|cursor| format!(r#""cursor":{cursor}"#));
    let params: Vec<String> = meta.into_iter().chain(cursor).collect();
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list","params":{{{}}}}}"#,
        params.join(",")
    )
    .into_bytes()
}

fn answer(id: Option<&Id>, member: &str, value: &Json) -> Vec<u8> {
    let id = id.map_or("null", Id::as_str);
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"{member}":{}}}"#,
        text(value)
    )
    .into_bytes()
}

fn text(value: &Json) -> String {
    String::from_utf8_lossy(&value.to_sorted_ascii()).into_owned()
}

/// A policy does not allow it.
pub const DENIED: i64 = -32000;
/// A human decides.
pub const HELD: i64 = -32001;
/// The method is not known here.
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
/// The parameters make no sense.
pub(crate) const INVALID_PARAMS: i64 = -32602;
/// The message makes no sense.
pub(crate) const INVALID_REQUEST: i64 = -32600;
const META: &str = "countersign/refusal";
