//! The chains that have been seen so far.

use std::collections::{BTreeMap, HashMap};

use countersign_canon::Hash;
use countersign_event::{Head, Order};
use countersign_tlog::{Range, hash, session_entry};

use crate::examine::Examined;
use crate::expectation::End;
use crate::report::{Problem, SessionReport};

/// Every chain by tenant and session.
#[derive(Default)]
pub(crate) struct Chains {
    /// Two maps, so that a look-up needs no joined or copied key.
    by_name: HashMap<String, HashMap<String, usize>>,
    chains: Vec<Chain>,
    /// The chain of the last event.
    last: usize,
}

struct Chain {
    tenant_id: String,
    session_id: String,
    /// Which chain came after this one the last time. Sessions go on or take turns, so it is tried
    /// first; the names are compared all the same.
    next: usize,
    head: Head,
    order: Order,
}

impl Chains {
    /// The event must be the next one of its chain.
    pub(crate) fn follow(&mut self, event: &Examined<'_>) -> Result<(), Problem> {
        let chain = self.chain(&event.tenant_id, &event.session_id);
        chain.head.accepts(event.seq, event.prev_hash.as_ref())?;
        chain.order.admit(event.event_type, &event.refs)?;
        chain.head = Head::after(event.seq, event.hash);
        Ok(())
    }

    /// How many chains have a good event.
    pub(crate) fn len(&self) -> usize {
        self.chains
            .iter()
            .filter(|chain| chain.head.count() > 0)
            .count()
    }

    /// Where each chain ends.
    pub(crate) fn ends(&self) -> Vec<End> {
        let heads = self.chains.iter().map(|chain| &chain.head);
        let end = |head: &Head| End {
            head: head.hash(),
            count: head.count(),
        };
        heads.map(end).collect()
    }

    /// How many sessions there are, and the root of the tree of their heads.
    pub(crate) fn heads(&self) -> (u64, Hash) {
        let chains = self.chains.iter().filter_map(|chain| {
            let names = (chain.tenant_id.as_str(), chain.session_id.as_str());
            Some((names, (chain.head.count(), chain.head.hash()?)))
        });
        let sorted: BTreeMap<_, _> = chains.collect();
        let mut tree = Range::default();
        for ((tenant, session), (count, head)) in sorted {
            tree.push(hash::leaf(&session_entry(tenant, session, count, &head)));
        }
        (tree.end(), tree.root())
    }

    pub(crate) fn report(&self) -> Vec<SessionReport> {
        self.chains
            .iter()
            .filter(|chain| chain.head.count() > 0)
            .map(|chain| SessionReport {
                tenant_id: chain.tenant_id.clone(),
                session_id: chain.session_id.clone(),
                events: chain.head.count(),
                head: chain.head.hash(),
                terminated: chain.order.is_terminated(),
            })
            .collect()
    }

    fn chain(&mut self, tenant_id: &str, session_id: &str) -> &mut Chain {
        let guess = self.chains.get(self.last).map_or(0, |last| last.next);
        let is_right = self
            .chains
            .get(guess)
            .is_some_and(|chain| chain.session_id == session_id && chain.tenant_id == tenant_id);
        let index = match is_right {
            true => guess,
            false => self.find(tenant_id, session_id),
        };
        if let Some(last) = self.chains.get_mut(self.last) {
            last.next = index;
        }
        self.last = index;
        #[expect(clippy::indexing_slicing, reason = "indices come from this very list")]
        &mut self.chains[index]
    }

    fn find(&mut self, tenant_id: &str, session_id: &str) -> usize {
        let known = self
            .by_name
            .get(tenant_id)
            .and_then(|sessions| sessions.get(session_id));
        known.copied().unwrap_or_else(|| {
            let index = self.chains.len();
            let sessions = self.by_name.entry(tenant_id.to_owned()).or_default();
            sessions.insert(session_id.to_owned(), index);
            self.chains.push(Chain {
                tenant_id: tenant_id.to_owned(),
                session_id: session_id.to_owned(),
                next: index,
                head: Head::GENESIS,
                order: Order::default(),
            });
            index
        })
    }
}
