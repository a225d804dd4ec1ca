//! The versions of the format.

use crate::word::words;

words! {
    /// A version of the format.
    Version {
        /// Runs, actions, decisions.
        V01 = "aep/v0.1",
        /// Delegation, leases, bare digests of state.
        V02 = "aep/v0.2",
        /// Classes of effects, typed digests of state, drift, modes of approval.
        V03 = "aep/v0.3",
        /// Signatures as DSSE envelopes.
        V04 = "aep/v0.4",
        /// What backs an attribution to a person.
        V05 = "aep/v0.5",
    }
}
