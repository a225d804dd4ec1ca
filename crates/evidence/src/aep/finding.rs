//! What a check found: typed reasons with their place.

use countersign_canon::Json;

use crate::word::words;

words! {
    /// What was found. The names stay the same between versions.
    Code {
        /// The text is not JSON that everybody reads alike.
        Json = "json",
        /// The record is not an object.
        NotAnObject = "not-an-object",
        /// A version that is not known.
        UnknownVersion = "unknown-version",
        /// A member that has to be there.
        MissingMember = "missing-member",
        /// A member of another type.
        WrongType = "wrong-type",
        /// A word that a closed vocabulary does not have.
        UnknownWord = "unknown-word",
        /// A number that is not in range.
        OutOfRange = "out-of-range",
        /// An item that stands twice where it may stand once.
        DuplicateItem = "duplicate-item",

        /// The summary of effects is not the worst effect of the actions.
        RunMaxMismatch = "run-max-mismatch",
        /// `state_changing` contradicts the class of effects.
        StateChangingMismatch = "state-changing-mismatch",
        /// A digest of state without its kind.
        DigestWithoutKind = "digest-without-kind",
        /// A digest of state without its coverage.
        DigestWithoutCoverage = "digest-without-coverage",
        /// A kind without a coverage, or a coverage without a kind.
        UnpairedCoverage = "unpaired-coverage",
        /// A coverage that is not of the shape of its kind.
        CoverageShape = "coverage-shape",
        /// The parts of a drift contradict each other.
        DriftInconsistent = "drift-inconsistent",
        /// A drift that was denied, in an action that was not.
        DriftNotDenied = "drift-not-denied",
        /// A denial and a success in one action.
        TwoOutcomes = "two-outcomes",
        /// A re-approval that says not what it takes up again.
        ReApprovalWithoutParent = "re-approval-without-parent",
        /// A re-approval of something that was not denied for drift.
        ReApprovalParentNotDenied = "re-approval-parent-not-denied",
        /// A re-approval without an approval of its own.
        ReApprovalWithoutContext = "re-approval-without-context",
        /// A re-approval that drifts itself.
        ReApprovalWithDrift = "re-approval-with-drift",
        /// A parent that does not exist.
        ParentMissing = "parent-missing",
        /// Actions that are each other's parents.
        ParentCycle = "parent-cycle",
        /// Two actions with one id.
        DuplicateAction = "duplicate-action",
        /// A reason for a denial where nothing was denied.
        DenyReasonWithoutDeny = "deny-reason-without-deny",
        /// A mode of approval that contradicts the decision.
        ModeContradictsDecision = "mode-contradicts-decision",
        /// A floor without grades, or grades without a floor.
        FloorUnpaired = "floor-unpaired",
        /// A floor that is not the weakest grade.
        FloorNotWeakest = "floor-not-weakest",
        /// A grade that does not exist, stands twice, or counts less than nothing.
        AttributionInvalid = "attribution-invalid",

        /// No key of this name was given.
        UnknownKey = "unknown-key",
        /// An algorithm other than Ed25519.
        Algorithm = "algorithm",
        /// A signature or payload that is not base64 of the right length.
        Encoding = "encoding",
        /// The signature does not cover these bytes.
        SignatureMismatch = "signature-mismatch",
        /// Words where a signature should be.
        Placeholder = "placeholder-signature",
        /// A signature of a kind that this version does not use any more.
        RetiredProfile = "retired-profile",
        /// A number of signatures other than one.
        SignatureCount = "signature-count",
        /// A payload of another type.
        PayloadType = "payload-type",
        /// A payload that is no statement.
        Statement = "statement",
        /// A statement about something else.
        PredicateType = "predicate-type",
        /// A statement about no run, or another.
        Subject = "subject",
        /// A statement about other content.
        Predicate = "predicate",
        /// The copy of the signature is not a copy, and no signature of its own.
        Mirror = "mirror-signature",

        /// A link to another record than the one before.
        LinkBroken = "link-broken",
        /// A record without a link.
        LinkMissing = "link-missing",
        /// A link to a record that was not given.
        PredecessorMissing = "predecessor-missing",

        /// A member that this version does not have yet.
        LaterVersion = "later-version",
        /// A member that nobody knows.
        UnknownMember = "unknown-member",
        /// Something that is allowed and says less than it could.
        Weak = "weak",
    }
}

/// Something that was found, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is.
    pub code: Code,
    /// Where it is, as a JSON pointer; empty for the whole record.
    pub pointer: String,
    /// In words.
    pub message: String,
}

impl Finding {
    pub(crate) fn new(code: Code, pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code,
            pointer: pointer.into(),
            message: message.into(),
        }
    }

    /// The finding as a value.
    pub fn to_json(&self) -> Json {
        Json::object([
            ("code", Json::from(self.code.as_str())),
            ("pointer", Json::from(self.pointer.as_str())),
            ("message", Json::from(self.message.as_str())),
        ])
    }
}

/// What an axis concluded: it holds exactly if nothing is against it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Judged {
    /// What is against it.
    pub against: Vec<Finding>,
}

impl Judged {
    /// Whether nothing is against it.
    pub fn holds(&self) -> bool {
        self.against.is_empty()
    }
}

/// The segment of a JSON pointer for a member.
pub(crate) fn segment(name: &str) -> String {
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
}
