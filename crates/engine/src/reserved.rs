//! Sessions of the program itself. Whoever may decide and which policies are in force is told there, so
//! they take no events of others, and nothing in them is erased.

use countersign_event::{IdError, Scope};

/// Where changes of the list of approvers are told, and what belongs to no session of an agent.
pub fn approvers() -> Result<Scope, IdError> {
    Scope::new(APPROVERS.0, APPROVERS.1)
}

/// Where is told which policies come into force.
pub fn policies() -> Result<Scope, IdError> {
    Scope::new(POLICIES.0, POLICIES.1)
}

/// Whether a session is one of these.
pub fn is_reserved(scope: &Scope) -> bool {
    let names = (scope.tenant.as_str(), scope.session.as_str());
    [APPROVERS, POLICIES].contains(&names)
}

const APPROVERS: (&str, &str) = ("default", "approvers");
const POLICIES: (&str, &str) = ("countersign", "policy");
