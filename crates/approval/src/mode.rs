//! How authority came to be, by the names that evidence uses.

use crate::names::names;

names! {
    /// How an action came to be allowed or denied.
    ApprovalMode as "approval mode" {
        /// A person approved exactly this payload, once.
        OneShotPayload = "one-shot-payload",
        /// A lease covered it.
        BoundedLease = "bounded-lease",
        /// A policy allowed it; the receipt says why.
        PolicyAllowWithReceipt = "policy-allow-with-receipt",
        /// A policy denied it; the evidence says why.
        PolicyDenyWithEvidence = "policy-deny-with-evidence",
        /// A person approved a payload that had changed since an earlier approval.
        ReApprovalOnDrift = "re-approval-on-drift",
        /// Nobody and nothing was asked.
        None = "none",
    }
}
