//! One case of a pack.

use crate::step::Step;

/// A case: what is done, and what must come back.
#[derive(Debug, Clone)]
pub struct Case {
    /// Its name.
    pub id: String,
    /// The requirement that it is about.
    pub req_id: String,
    /// What it shows, in a line.
    pub description: String,
    /// What is done, in order.
    pub steps: Vec<Step>,
    /// Why it is known to fail; it must fail then.
    pub expected_failure: Option<String>,
}
