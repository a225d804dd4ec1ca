//! The reasons that no policy may give: something went wrong.

use std::fmt;

/// A reason of the runtime, of the closed set that the specification reserves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reserved {
    /// The manifest cannot be used.
    ManifestInvalid,
    /// The manifest does not speak about this point.
    InterventionPointUnknown,
    /// A path leads to nothing.
    PathMissing,
    /// A path leads through a value of another type.
    PathTypeMismatch,
    /// The tool is not in the catalog.
    ToolUnknown,
    /// An annotator failed.
    AnnotationFailed,
    /// An annotator took too long.
    AnnotationTimeout,
    /// The policy gave no answer.
    PolicyInvocationFailed,
    /// The policy's answer is no verdict.
    PolicyOutputInvalid,
    /// A change names a place that is not there.
    TransformInvalid,
    /// A change names a place outside what is judged.
    TransformTargetForbidden,
    /// Something is larger or deeper than allowed.
    ResourceLimitExceeded,
    /// Something else was approved than what is about to run.
    ApprovalActionMismatch,
    /// Nobody answers for the resolver that the manifest names.
    ApprovalResolverMissing,
    /// The resolver gave no usable answer.
    ApprovalResolverFailed,
    /// Something can only be judged as a whole.
    StreamingUnsupported,
    /// The host cannot carry out what was decided.
    AdapterUnsupported,
    /// The request itself cannot be read.
    RequestInvalid,
}

impl Reserved {
    /// Every reserved reason.
    pub const ALL: [Self; 18] = [
        Self::ManifestInvalid,
        Self::InterventionPointUnknown,
        Self::PathMissing,
        Self::PathTypeMismatch,
        Self::ToolUnknown,
        Self::AnnotationFailed,
        Self::AnnotationTimeout,
        Self::PolicyInvocationFailed,
        Self::PolicyOutputInvalid,
        Self::TransformInvalid,
        Self::TransformTargetForbidden,
        Self::ResourceLimitExceeded,
        Self::ApprovalActionMismatch,
        Self::ApprovalResolverMissing,
        Self::ApprovalResolverFailed,
        Self::StreamingUnsupported,
        Self::AdapterUnsupported,
        Self::RequestInvalid,
    ];

    /// Words that drafts of the specification reserve and its text does not. Nothing here gives one of
    /// them: what they name is [`Reserved::ManifestInvalid`] or [`Reserved::PolicyOutputInvalid`].
    pub const UNUSED: [&'static str; 6] = [
        "runtime_error:resolution_path_traversal",
        "runtime_error:resolution_cycle",
        "runtime_error:resolution_invalid_governance",
        "runtime_error:resolution_merge_conflict",
        "runtime_error:effect_invalid",
        "runtime_error:effect_target_forbidden",
    ];

    /// The reason in a verdict.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ManifestInvalid => "runtime_error:manifest_invalid",
            Self::InterventionPointUnknown => "runtime_error:intervention_point_unknown",
            Self::PathMissing => "runtime_error:path_missing",
            Self::PathTypeMismatch => "runtime_error:path_type_mismatch",
            Self::ToolUnknown => "runtime_error:tool_unknown",
            Self::AnnotationFailed => "runtime_error:annotation_failed",
            Self::AnnotationTimeout => "runtime_error:annotation_timeout",
            Self::PolicyInvocationFailed => "runtime_error:policy_invocation_failed",
            Self::PolicyOutputInvalid => "runtime_error:policy_output_invalid",
            Self::TransformInvalid => "runtime_error:transform_invalid",
            Self::TransformTargetForbidden => "runtime_error:transform_target_forbidden",
            Self::ResourceLimitExceeded => "runtime_error:resource_limit_exceeded",
            Self::ApprovalActionMismatch => "runtime_error:approval_action_mismatch",
            Self::ApprovalResolverMissing => "runtime_error:approval_resolver_missing",
            Self::ApprovalResolverFailed => "runtime_error:approval_resolver_failed",
            Self::StreamingUnsupported => "runtime_error:streaming_unsupported",
            Self::AdapterUnsupported => "runtime_error:adapter_unsupported",
            Self::RequestInvalid => "runtime_error:request_invalid",
        }
    }
}

impl fmt::Display for Reserved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What went wrong, for an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) reserved: Reserved,
    pub(crate) detail: String,
}

impl Failure {
    pub(crate) fn new(reserved: Reserved, detail: impl Into<String>) -> Self {
        Self {
            reserved,
            detail: detail.into(),
        }
    }
}
