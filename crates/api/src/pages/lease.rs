//! What a lease would cover.

use crate::call::Call;
use crate::problem::{Kind, Problem};
use crate::reply::Reply;

pub(super) async fn show(_call: &Call) -> Result<Reply, Problem> {
    Err(Problem::new(Kind::NotFound, "no such page"))
}
