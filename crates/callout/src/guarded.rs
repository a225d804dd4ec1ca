//! Names that lead to this machine are not followed.

use countersign_acs::is_near;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

/// Looks names up, and refuses those that stand for loopback or link-local addresses.
#[derive(Debug, Default)]
pub(crate) struct Guarded(DefaultResolver);

impl Resolver for Guarded {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let found = self.0.resolve(uri, config, timeout)?;
        // SECURITY: one near address among others is enough to end up there.
        match found.iter().any(|address| is_near(address.ip())) {
            true => Err(ureq::Error::HostNotFound),
            false => Ok(found),
        }
    }
}
