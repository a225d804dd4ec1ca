//! The closed vocabularies of the format, apart from those that approvals have as well.

use crate::word::words;

words! {
    /// The gross outcome of a decision.
    Decision {
        /// It may run.
        Allow = "allow",
        /// It may not.
        Deny = "deny",
        /// A person is asked.
        AskUser = "ask_user",
        /// It runs without effects.
        DryRun = "dry_run",
    }
}

words! {
    /// Why something was denied.
    DenyReason {
        /// The tool is not the one it was.
        ToolIdentity = "tool-identity",
        /// Its arguments.
        Argument = "argument",
        /// Content from outside steers it.
        TaintedInput = "tainted-input",
        /// It reaches for something outside its bounds.
        ResourceScope = "resource-scope",
        /// Nobody passed the right on.
        MissingDelegation = "missing-delegation",
        /// A rule says so.
        PolicyRule = "policy-rule",
        /// Something else.
        Other = "other",
    }
}

words! {
    /// How much of an action was recorded.
    RecordingMode {
        /// What is needed to check it.
        Validation = "validation",
        /// What changed.
        Delta = "delta",
        /// Everything.
        Full = "full",
    }
}

words! {
    /// What a permission gate said.
    Gate {
        /// A person approved.
        Approved = "approved",
        /// It was denied.
        Denied = "denied",
        /// It was approved without a person.
        AutoApproved = "auto_approved",
    }
}

words! {
    /// What followed from a comparison of arguments.
    Resolution {
        /// They are the same.
        Matched = "matched",
        /// They differ, and it did not run.
        Denied = "denied",
    }
}

words! {
    /// What stands behind an attribution to a person, from weakest to strongest.
    Backing {
        /// Nobody can grade it.
        Unknown = "unknown",
        /// The operator says so.
        OperatorAsserted = "operator_asserted",
        /// The person's key signed.
        PrincipalKeySigned = "principal_key_signed",
        /// A qualified signature.
        QualifiedSignature = "qualified_signature",
    }
}

words! {
    /// How authority was obtained.
    Origin {
        /// The person agreed.
        SubjectConsented = "subject_consented",
        /// An administrator assigned it.
        AdministratorAssigned = "administrator_assigned",
        /// It holds for an organisation.
        OrganizationWide = "organization_wide",
        /// Nobody knows.
        Unknown = "unknown",
    }
}

words! {
    /// How an identity was established.
    IdentitySource {
        /// By its own word.
        SelfAsserted = "self_asserted",
        /// By an organisation.
        OrganizationAttested = "organization_attested",
        /// By a notified electronic identity.
        NotifiedEid = "notified_eid",
        /// By a qualified certificate.
        QualifiedCertificate = "qualified_certificate",
        /// Nobody knows.
        Unknown = "unknown",
    }
}
