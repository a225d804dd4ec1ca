//! Members that several objects have, each described once.

use super::{ROLES, VERDICT};
use crate::shape::Shape::{Count, Maybe, Object, OneOf, Text};
use crate::shape::{Field, may, must};

pub(super) const SESSION: Field = must("session_id", Text, "The session");
pub(super) const TENANT: Field = must("tenant_id", Text, "The tenant");
pub(super) const OWN_TENANT: Field =
    may("tenant_id", Text, "The tenant; the token's own if absent");
pub(super) const TOOL: Field = must("tool_name", Text, "The tool");
pub(super) const NAME: Field = must("name", Text, "What people call it");
pub(super) const ROLE: Field = must("role", OneOf(ROLES), "What it may do");
pub(super) const ASKED: Field = may("approval_id", Text, "What people decide about");
pub(super) const FOR_MODEL: Field = may("text_for_model", Text, "What to tell the model");
pub(super) const LEASE: Field = must("lease_id", Text, "Its name");
pub(super) const SEQ: Field = must("seq", Count, "Its place in the session");
pub(super) const NEXT: Field = must("next", Maybe(&Text), "The cursor of the next page");
pub(super) const ONLY_TENANT: Field =
    must("tenant_id", Maybe(&Text), "The only tenant that it reaches");
pub(super) const ONLY_SESSION: Field = must(
    "session_id",
    Maybe(&Text),
    "The only session that it reaches",
);
pub(super) const ACTION: Field = must("action_id", Text, "Its name here");
pub(super) const DECISION: Field = must("decision", Object(&VERDICT), "What was decided");
pub(super) const SHORT_CODE: Field = may("short_code", Text, "The code that people compare");
