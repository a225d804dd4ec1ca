//! Who answers what.

use crate::call::Call;
use crate::problem::Problem;
use crate::reply::Reply;
use crate::route::Endpoint;
use crate::{
    actions, approvals, decide, docs, events, health, interventions, live, log, pages, policies,
    replays, sessions, tokens,
};

pub(crate) async fn answer(call: Call) -> Result<Reply, Problem> {
    match call.route.endpoint {
        Endpoint::Healthz => Ok(health::healthz()),
        Endpoint::Readyz => Ok(health::readyz(&call).await),
        Endpoint::Metrics => health::metrics(&call),
        Endpoint::Login => pages::door::link(&call),
        Endpoint::Me => Ok(health::me(&call)),
        Endpoint::AppendEvent => events::append(call).await,
        Endpoint::ListEvents => events::list(&call).await,
        Endpoint::ListSessions => sessions::list(&call).await,
        Endpoint::ShowSession => sessions::show(&call).await,
        Endpoint::ShowSnapshot => sessions::snapshot(&call).await,
        Endpoint::VerifySession => sessions::verify(&call).await,
        Endpoint::ShowCheckpoint => log::checkpoint(&call).await,
        Endpoint::ShowLogKey => log::key(&call).await,
        Endpoint::ShowTile => log::tile(&call).await,
        Endpoint::ProveInclusion => log::inclusion(&call).await,
        Endpoint::ProveConsistency => log::consistency(&call).await,
        Endpoint::StartReplay => replays::start(call).await,
        Endpoint::ShowReplay => replays::show(&call).await,
        Endpoint::Decide => decide::decide(call).await,
        Endpoint::Listen => live::listen(call).await,
        Endpoint::ProposeAction => actions::propose(call).await,
        Endpoint::ShowAction => actions::show(&call).await,
        Endpoint::PermitAction => actions::permit(&call).await,
        Endpoint::SettleAction => actions::result(call).await,
        Endpoint::Intervene => interventions::ask(call).await,
        Endpoint::ListApprovals => approvals::list(&call).await,
        Endpoint::ShowApproval => approvals::show(&call).await,
        Endpoint::Vote => approvals::vote(&call).await,
        Endpoint::EditApproval => approvals::edit(&call).await,
        Endpoint::ListLeases => approvals::leases(&call).await,
        Endpoint::GrantLease => approvals::grant(&call).await,
        Endpoint::RevokeLease => approvals::revoke(&call).await,
        Endpoint::ListTools => policies::tools(&call).await,
        Endpoint::ShowManifest => policies::manifest(&call).await,
        Endpoint::ShowPolicies => policies::show(&call).await,
        Endpoint::ValidatePolicies => policies::validate(&call).await,
        Endpoint::ActivatePolicies => policies::activate(&call).await,
        Endpoint::ShadowPolicies => policies::shadow(&call).await,
        Endpoint::PromotePolicies => policies::promote(&call).await,
        Endpoint::RollBackPolicies => policies::roll_back(&call).await,
        Endpoint::ListTokens => tokens::list(&call).await,
        Endpoint::CreateToken => tokens::create(&call).await,
        Endpoint::RevokeToken => tokens::revoke(&call).await,
        Endpoint::OpenApi => Ok(docs::openapi(&call)),
        Endpoint::Docs => Ok(docs::page(&call)),
        Endpoint::Page(page) => pages::answer(page, call).await,
    }
}
