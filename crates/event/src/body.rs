//! The stored form of a payload: public members in clear, the rest as commitments.

use std::borrow::Cow;

use countersign_canon::{Digest, Error, Json, Object};

/// The member that holds the [`Seal`]. A payload member of this name is undeclared, so it is sealed
/// itself and cannot collide.
pub(crate) const SEALED: &str = "sealed";
pub(crate) const CIPHERTEXT: &str = "ciphertext";
pub(crate) const COMMITMENTS: &str = "commitments";

/// A payload as the chain covers it.
#[derive(Clone)]
pub struct Body {
    text: Vec<u8>,
    refs: Refs<'static>,
}

/// What the chain keeps of the sealed members: a commitment to each, and the digest of the
/// ciphertext that holds them all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seal {
    /// Digest of the ciphertext.
    pub ciphertext: Digest,
    /// Each sealed place with the commitment to its value.
    pub commitments: Vec<(String, Digest)>,
}

/// The ids in a payload that tie events of one call together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refs<'a> {
    /// The model or tool call.
    pub call_id: Option<Cow<'a, str>>,
    /// The approval.
    pub approval_id: Option<Cow<'a, str>>,
    /// The hand-off.
    pub context_id: Option<Cow<'a, str>>,
}

impl Body {
    /// The stored form of the public members and, if anything was sealed, its seal.
    pub fn new(mut public: Object, seal: Option<Seal>) -> Result<Self, Error> {
        let refs = Refs::of(&public);
        if let Some(seal) = seal {
            public.insert(SEALED.to_owned(), seal.into_json());
        }
        Ok(Self {
            text: Json::Object(public).to_jcs()?,
            refs,
        })
    }

    /// The JCS text.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// The ids that the order rules look at.
    pub fn refs(&self) -> &Refs<'static> {
        &self.refs
    }
}

impl Seal {
    fn into_json(self) -> Json {
        let commitments = self
            .commitments
            .into_iter()
            .map(|(place, digest)| (place, Json::from(digest.to_string())))
            .collect::<Object>();
        Json::object([
            (CIPHERTEXT, Json::from(self.ciphertext.to_string())),
            (COMMITMENTS, Json::Object(commitments)),
        ])
    }
}

impl Refs<'static> {
    fn of(public: &Object) -> Self {
        let text = |name| {
            public
                .get(name)
                .and_then(Json::as_str)
                .map(|id| Cow::Owned(id.to_owned()))
        };
        Self {
            call_id: text("call_id"),
            approval_id: text("approval_id"),
            context_id: text("context_id"),
        }
    }
}
