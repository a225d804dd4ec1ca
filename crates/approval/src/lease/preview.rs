//! What a lease would have covered.

use super::Lease;
use super::cover::{LeaseStatus, Mismatch, Standing, Usage, Use, charge, check_shape};
use super::places::Places;

/// What a lease would have covered, had it stood when past calls were made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preview {
    /// The calls it would have covered, by their place in the list.
    pub covered: Vec<usize>,
    /// The others, each with the reason.
    pub not_covered: Vec<(usize, Mismatch)>,
    /// How far they would have used it up.
    pub usage: Usage,
}

/// Holds a lease against past calls, in order. Their times do not matter; counters do.
pub fn preview(lease: &Lease, past: &[Use<'_>], places: &dyn Places) -> Preview {
    let mut preview = Preview::default();
    for (place, call) in past.iter().enumerate() {
        let standing = Standing {
            lease,
            status: LeaseStatus::Active,
            usage: preview.usage,
        };
        let charge =
            check_shape(lease.terms(), call, places).and_then(|()| charge(&standing, call.args));
        match charge {
            Ok(charge) => {
                preview.usage = charge.after();
                preview.covered.push(place);
            }
            Err(mismatch) => preview.not_covered.push((place, mismatch)),
        }
    }
    preview
}
