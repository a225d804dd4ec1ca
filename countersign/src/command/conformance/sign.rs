//! A person who decides, for cases about approvals.

use countersign_approval::{
    BallotPaper, CallDecision, Decision, Envelope, Human, SigningKey, UnixMs,
};
use countersign_canon::Json;
use countersign_conformance::Trouble;
use countersign_display::{Rendering, View};

use crate::clock::now_unix_ms;

/// Somebody with a key.
pub(super) struct Person {
    name: Human,
    key: SigningKey,
}

impl Person {
    pub(super) fn new(name: &str, key: SigningKey) -> Result<Self, String> {
        let name = Human::new(name).map_err(|error| error.to_string())?;
        Ok(Self { name, key })
    }

    /// The same person with a key that nobody registered.
    pub(super) fn stranger(&self) -> Result<Self, String> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(|error| error.to_string())?;
        Ok(Self {
            name: self.name.clone(),
            key: SigningKey::from_bytes(&secret),
        })
    }

    /// Signs a decision about what the card shows, once the card shows what it must.
    pub(super) fn sign(&self, card: &Json, decision: &str) -> Result<String, Trouble> {
        let failed = |text: &str| Trouble::Failed(text.to_owned());
        let text = |name: &str| card.get(name).and_then(Json::as_str).unwrap_or_default();
        let envelope = Envelope::read(text("envelope").as_bytes())
            .map_err(|error| failed(&format!("the card has no envelope: {error}")))?;
        let payload = envelope.plan().payload().to_sorted_ascii();
        let rendering = Rendering::of(&payload, View::Full)
            .map_err(|error| failed(&format!("the plan is not canonical: {error}")))?;
        let hash = rendering.display_sha256();
        if text("display") != rendering.text() || text("display_sha256") != hash.to_string() {
            return Err(failed("the card shows something else than what is signed"));
        }
        let decision = match decision {
            "approved" => Decision::Approved,
            _ => Decision::Denied(None),
        };
        let calls = envelope.plan().calls().iter();
        let now = now_unix_ms().map_err(|failure| failed(failure.message()))?;
        let paper = BallotPaper {
            decisions: calls
                .map(|call| CallDecision {
                    call: call.id.clone(),
                    decision: decision.clone(),
                })
                .collect(),
            approver: self.name.clone(),
            display: hash,
            signed_at: UnixMs::new(now),
        };
        let submission = paper.sign(&envelope, &self.key).to_text();
        Ok(String::from_utf8_lossy(&submission).into_owned())
    }
}
