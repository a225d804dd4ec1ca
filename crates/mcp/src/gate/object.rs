//! Calls of tools that are not to be trusted, whatever policies say.

use countersign_event::payload::{PolicyDecision, ToolCallProposed};

use super::*;

impl Gate {
    /// Stops a call of a tool that is not what was accepted. Where calls are only observed it goes on, and the
    /// log says what would have stopped it.
    pub(super) fn object(&self, call: &Call, objection: Objection) -> Result<(), Refused> {
        if let Some(approval) = call.back {
            // What people were asked about is no longer what would run.
            let _ = self.engine.cancel(approval);
            return Err(distrusted(objection));
        }
        if !self.engine.policies().is_observing() {
            self.forget_again(call);
            return Err(self.deny(call, objection));
        }
        let Objection { reason, because } = objection;
        let tool = call.tool.escape_debug();
        let message =
            format!("observed: a call of `{tool}` passes, which would be refused: {because}");
        let entry = record::fault(reason, message);
        match self.record(vec![entry]) {
            Ok(_) => Ok(()),
            Err(refusal) => Err(self.undecided(call, &refusal)),
        }
    }

    /// Refuses a call without asking the policies, and records it as they would.
    fn deny(&self, call: &Call, objection: Objection) -> Refused {
        let Objection { reason, because } = objection;
        let call_id = Some(call.id.as_str().to_owned());
        let proposed = Payload::ToolCallProposed(ToolCallProposed {
            call_id: call_id.clone(),
            tool_name: Some(call.tool.clone()),
            server: Some(self.server.clone()),
            args: Some(call.args.clone()),
            ..ToolCallProposed::default()
        });
        let decision = Payload::PolicyDecision(PolicyDecision {
            call_id: call_id.clone(),
            outcome: Some("deny".to_owned()),
            verdict: Some("deny".to_owned()),
            reason: Some(reason.to_owned()),
            policy_ref: Some(TOOL_IDENTITY.to_owned()),
            ..PolicyDecision::default()
        });
        let denied = Payload::ToolCallDenied(ToolCallDenied {
            call_id,
            reason_code: Some(reason.to_owned()),
            message: Some(Json::from(because)),
            policy_ref: Some(TOOL_IDENTITY.to_owned()),
            ..ToolCallDenied::default()
        });
        let events = [
            (EventType::ToolCallProposed, proposed),
            (EventType::PolicyDecision, decision),
            (EventType::ToolCallDenied, denied),
        ];
        let event = match self.engine.record_all(&self.scope, &events) {
            Ok(recorded) => Some(recorded.hash()),
            Err(refusal) => return self.undecided(call, &refusal),
        };
        Refused {
            event,
            ..distrusted(objection)
        }
    }
}

fn distrusted(Objection { reason, because }: Objection) -> Refused {
    let text = format!(
        "refused ({reason}): {because}; ask the operator to look at this tool, do not retry"
    );
    Refused::denied(reason, text)
}

const TOOL_IDENTITY: &str = concat!("tool-identity countersign/", env!("CARGO_PKG_VERSION"));
