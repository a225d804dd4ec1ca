//! Why a frame was refused.

use countersign_canon as canon;

use super::{Id, salvage};

/// A frame that was refused, with the id of the request that waits for an answer, where the frame
/// still says it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{fault}")]
pub struct FrameError {
    fault: Fault,
    id: Option<Id>,
    answers: bool,
}

/// What is wrong with a frame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// It is not strict JSON, or over the limits.
    #[error("not strict JSON: {0}")]
    Json(#[from] canon::Error),
    /// Several messages in one frame.
    #[error("batches are not accepted")]
    Batch,
    /// A batch without messages.
    #[error("a batch must not be empty")]
    EmptyBatch,
    /// A batch with too many messages.
    #[error("a batch must not have more than 128 messages")]
    LongBatch,
    /// A message that must come alone.
    #[error("this message must come alone, not in a batch")]
    NotBatched,
    /// Something else than an object.
    #[error("a message must be an object")]
    NotAnObject,
    /// `jsonrpc` is missing or not `2.0`.
    #[error("`jsonrpc` must be \"2.0\"")]
    Version,
    /// Neither a request, nor a notification, nor a response, or several of them.
    #[error("neither a request, a notification nor a response")]
    Shape,
    /// An id that is neither a string nor an integer that every reader has exactly.
    #[error("an id must be a string or an integer of at most 2^53-1")]
    Id,
    /// An id that is too long.
    #[error("an id must not be longer than 512 bytes")]
    IdTooLong,
    /// A method that is not text.
    #[error("`method` must be a string")]
    Method,
    /// Parameters that are not an object.
    #[error("`params` must be an object")]
    Params,
    /// A key that some readers take for another one.
    #[error("the key `{found}` can be taken for `{known}`")]
    LookAlike {
        /// The key as it stands there, made visible.
        found: String,
        /// The key that it looks like.
        known: &'static str,
    },
    /// An answer to `tools/list` without a list.
    #[error("a list of tools must be an array named `tools`")]
    NoTools,
    /// A line that some readers take for several.
    #[error("a carriage return inside a line, which some readers take for its end")]
    CarriageReturn,
    /// More bytes than a frame may have.
    #[error("larger than {limit} bytes")]
    TooLarge {
        /// The most that a frame may have.
        limit: usize,
    },
    /// Too many large frames at a time.
    #[error("larger than what there was room for beside the others that were on their way")]
    NoRoom,
}

impl FrameError {
    /// A fault of these bytes, with the id that they still show.
    pub(crate) fn of(fault: Fault, bytes: &[u8]) -> Self {
        let salvaged = salvage::salvage(bytes);
        Self {
            fault,
            id: salvaged.id,
            answers: salvaged.answers,
        }
    }

    /// The same for a frame of which only its beginning and its end are there.
    pub(crate) fn of_cut(fault: Fault, beginning: &[u8], end: &[u8]) -> Self {
        let mut error = Self::of(fault, beginning);
        error.id = error.id.or_else(|| salvage::salvage_end(end));
        error
    }

    /// The same for an answer that could be read, and is none.
    pub(crate) fn of_answer(fault: Fault, id: Id) -> Self {
        Self {
            fault,
            id: Some(id),
            answers: true,
        }
    }

    /// What is wrong.
    pub fn fault(&self) -> &Fault {
        &self.fault
    }

    /// The id, as far as it could be told. It is good for an answer and for nothing else.
    pub fn id(&self) -> Option<&Id> {
        self.id.as_ref()
    }

    /// Whether the frame looks like an answer to somebody else's request.
    pub fn is_answer(&self) -> bool {
        self.answers
    }

    /// The JSON-RPC code for it.
    pub fn code(&self) -> i64 {
        match self.fault {
            Fault::Json(_) | Fault::CarriageReturn | Fault::TooLarge { .. } | Fault::NoRoom => {
                PARSE_ERROR
            }
            Fault::Params => INVALID_PARAMS,
            _ => INVALID_REQUEST,
        }
    }
}

impl From<Fault> for FrameError {
    fn from(fault: Fault) -> Self {
        Self {
            fault,
            id: None,
            answers: false,
        }
    }
}

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const INVALID_PARAMS: i64 = -32602;
