//! What a lease would have covered.

use countersign_approval::lease::{Lease, Mismatch, Use, preview};
use countersign_approval::{ApprovalId, UnixMs};

use super::places::ThisMachine;
use crate::approval::standing;
use crate::refusal::Fault;
use crate::{Engine, Refusal};

/// A call that people were asked about, held against a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseMatch {
    /// The request.
    pub approval: ApprovalId,
    /// Why the lease would not have covered it; `None` if it would.
    pub mismatch: Option<Mismatch>,
}

impl Engine {
    /// Holds a lease, granted or not, against the requests for approval of its session, oldest first:
    /// which of them would nobody have had to answer?
    pub fn preview_lease(&self, lease: &Lease) -> Result<Vec<LeaseMatch>, Refusal> {
        let reader = self.store().reader();
        let scope = &lease.terms().holder.chain;
        let rows = reader.session_approvals(scope).map_err(Fault::from)?;
        let mut past = Vec::with_capacity(rows.len());
        for row in rows {
            past.push(standing(row, reader)?);
        }
        let calls: Vec<_> = past
            .iter()
            .flat_map(|it| {
                it.envelope
                    .plan()
                    .calls()
                    .iter()
                    .map(move |call| (it, call))
            })
            .collect();
        let uses: Vec<Use<'_>> = calls
            .iter()
            .map(|(standing, call)| {
                let plan = standing.envelope.plan();
                Use {
                    tool: &call.tool,
                    args: &call.args,
                    class: call.class,
                    chain: &plan.scope().chain,
                    work_item: &plan.scope().work_item,
                    lineage: standing.envelope.lineage(),
                    trust: plan.scope().trust,
                    policy: plan.policy(),
                    now: UnixMs::new(standing.row.issued.get()),
                }
            })
            .collect();
        let seen = preview(lease, &uses, &ThisMachine);
        let matched = calls.iter().enumerate().map(|(place, (standing, _))| {
            let refused = seen.not_covered.iter().find(|(at, _)| *at == place);
            LeaseMatch {
                approval: standing.row.id,
                mismatch: refused.map(|(_, mismatch)| mismatch.clone()),
            }
        });
        Ok(matched.collect())
    }
}
