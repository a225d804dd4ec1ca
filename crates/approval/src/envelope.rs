//! The envelope: a plan, who asks, who must agree, and until when. Made once, never changed.

use countersign_canon::{Hash, Json};

use crate::clocks::Clocks;
use crate::form::{self, ENVELOPE, Fields, FormError, wrong};
use crate::id::{ActionId, ApprovalId, Nonce};
use crate::mode::ApprovalMode;
use crate::plan::{Plan, PlanHash};
use crate::principal::Lineage;
use crate::quorum::{Quorum, QuorumError};

/// What an envelope is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// The envelope's name.
    pub id: ApprovalId,
    /// The token that is consumed once.
    pub nonce: Nonce,
    /// What is to run.
    pub plan: Plan,
    /// Until when.
    pub clocks: Clocks,
    /// Who must agree.
    pub quorum: Quorum,
    /// Who asks, and who started whom.
    pub lineage: Lineage,
    /// The denied action that this one takes up again, after its arguments had changed.
    pub parent_action: Option<ActionId>,
    /// The envelope whose plan was edited to make this one.
    pub supersedes: Option<ApprovalId>,
    /// What the agent says about it. Nobody has checked it.
    pub agent_says: Option<String>,
}

/// A request for approval, immutable. The only thing that a submission is held against.
///
/// INVARIANT: the plan hash and the envelope hash were worked out here, from the parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    draft: Draft,
    hash: Hash,
}

impl Envelope {
    /// Makes an envelope, before anybody sees anything of it.
    pub fn create(draft: Draft) -> Result<Self, EnvelopeError> {
        draft.quorum.check_reach(&draft.lineage.requester())?;
        if draft.supersedes == Some(draft.id) {
            return Err(EnvelopeError::SupersedesItself);
        }
        let said = draft.agent_says.as_deref().unwrap_or_default();
        if said.len() > MAX_SAID_BYTES {
            return Err(EnvelopeError::SaysTooMuch);
        }
        let text = to_json(&draft).to_sorted_ascii();
        if text.len() > ENVELOPE.max_bytes {
            return Err(EnvelopeError::TooLarge);
        }
        Ok(Self {
            hash: Hash::of(&text),
            draft,
        })
    }

    /// Reads an envelope back from its canonical text, and nothing else.
    pub fn read(text: &[u8]) -> Result<Self, FormError> {
        let mut fields = Fields::of("envelope", form::canonical(text, &ENVELOPE)?)?;
        if fields.text("format")? != FORMAT {
            return Err(wrong("format", "a version of the envelope that is known"));
        }
        let plan = Plan::read(fields.take("plan")?)?;
        if fields.parsed::<PlanHash>("plan_hash")? != plan.hash() {
            return Err(wrong("plan_hash", "the hash of the plan"));
        }
        let draft = Draft {
            id: fields.parsed("envelope_id")?,
            nonce: fields.parsed("nonce")?,
            plan,
            clocks: Clocks::take(&mut fields)?,
            quorum: Quorum::read(fields.take("quorum")?)?,
            lineage: Lineage::read("lineage", fields.list("lineage")?)?,
            parent_action: fields.nullable("parent_action_id")?,
            supersedes: fields.nullable("supersedes")?,
            agent_says: fields.nullable_text("agent_says")?,
        };
        fields.end()?;
        let envelope =
            Self::create(draft).map_err(|error| FormError::refused("envelope", error))?;
        match envelope.to_text() == text {
            true => Ok(envelope),
            false => Err(FormError::NotCanonical),
        }
    }

    /// The canonical text: what is stored.
    pub fn to_text(&self) -> Vec<u8> {
        to_json(&self.draft).to_sorted_ascii()
    }

    /// The SHA-256 of the canonical text. Every signature covers it.
    pub const fn hash(&self) -> Hash {
        self.hash
    }

    /// The envelope's name.
    pub const fn id(&self) -> ApprovalId {
        self.draft.id
    }

    /// The token that is consumed once.
    pub const fn nonce(&self) -> Nonce {
        self.draft.nonce
    }

    /// What is to run.
    pub const fn plan(&self) -> &Plan {
        &self.draft.plan
    }

    /// Until when.
    pub const fn clocks(&self) -> &Clocks {
        &self.draft.clocks
    }

    /// Who must agree.
    pub const fn quorum(&self) -> &Quorum {
        &self.draft.quorum
    }

    /// Who asks, and who started whom.
    pub const fn lineage(&self) -> &Lineage {
        &self.draft.lineage
    }

    /// The denied action that this one takes up again.
    pub const fn parent_action(&self) -> Option<ActionId> {
        self.draft.parent_action
    }

    /// The envelope whose plan was edited to make this one.
    pub const fn supersedes(&self) -> Option<ApprovalId> {
        self.draft.supersedes
    }

    /// What the agent says about it. Nobody has checked it.
    pub fn agent_says(&self) -> Option<&str> {
        self.draft.agent_says.as_deref()
    }

    /// How evidence calls an approval of this envelope.
    pub const fn mode(&self) -> ApprovalMode {
        match self.draft.parent_action {
            Some(_) => ApprovalMode::ReApprovalOnDrift,
            None => ApprovalMode::OneShotPayload,
        }
    }
}

fn to_json(draft: &Draft) -> Json {
    let members = [
        ("agent_says", Json::from(draft.agent_says.clone())),
        ("envelope_id", Json::from(draft.id.to_string())),
        ("format", Json::from(FORMAT)),
        ("lineage", draft.lineage.to_json()),
        ("nonce", Json::from(draft.nonce.to_string())),
        (
            "parent_action_id",
            Json::from(draft.parent_action.map(|id| id.to_string())),
        ),
        ("plan", draft.plan.payload()),
        ("plan_hash", Json::from(draft.plan.hash().to_string())),
        ("quorum", draft.quorum.to_json()),
        (
            "supersedes",
            Json::from(draft.supersedes.map(|id| id.to_string())),
        ),
    ];
    Json::object(members.into_iter().chain(draft.clocks.members()))
}

/// Why an envelope was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnvelopeError {
    /// Its quorum could never be reached.
    #[error(transparent)]
    Quorum(#[from] QuorumError),
    /// It would replace itself.
    #[error("an envelope cannot supersede itself")]
    SupersedesItself,
    /// The agent's text is too long.
    #[error("what the agent says is longer than {MAX_SAID_BYTES} bytes")]
    SaysTooMuch,
    /// Its text would be too long to read back.
    #[error("the envelope is too large")]
    TooLarge,
}

const FORMAT: &str = "countersign.envelope.v1";
const MAX_SAID_BYTES: usize = 64 << 10;
