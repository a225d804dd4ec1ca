//! Who may speak to the door at all: the name it is called by and the page that calls.
//!
//! A web page can make a browser send requests to a door on this machine, by naming it or by making
//! its own name lead here. Such requests carry the page's `Origin`, or the page's name as `Host`.
//! Where the operator has set a token, clients must bring it.

use countersign_canon::Digest;
use hyper::header::{AUTHORIZATION, HOST, HeaderMap, HeaderName, ORIGIN};
use hyper::{Uri, http::uri::Authority};

/// The names under which the door may be called. Names of this machine are always among them.
#[derive(Debug, Clone, Default)]
pub struct Access {
    hosts: Vec<String>,
    origins: Vec<String>,
    /// Of the token: comparing digests tells nothing about the token by its time.
    token: Option<Digest>,
}

/// Why a request is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Stranger {
    /// The name that it was called by is none of ours.
    #[error("the host is not one of this door; see --allow-host")]
    Host,
    /// A page of somebody else calls.
    #[error("the origin is not allowed here; see --allow-origin")]
    Origin,
    /// The token is missing, or another one.
    #[error("the token of this door is missing, or is another one")]
    Token,
}

impl Access {
    /// Also lets in requests to this host: a name, without a port.
    #[must_use = "gives the changed access back"]
    pub fn with_host(mut self, host: impl Into<String>) -> Self {
        self.hosts.push(host.into());
        self
    }

    /// Also lets in requests from pages of this origin, such as `https://example.com`.
    ///
    /// SECURITY: `null` is the origin of any page that is put into a sandbox, so it is none.
    pub fn with_origin(mut self, origin: &str) -> Result<Self, NotAnOrigin> {
        let written = origin.parse::<Uri>().ok().and_then(|uri| {
            let named = uri.authority().filter(|one| !one.as_str().contains('@'))?;
            Some(format!("{}://{named}", uri.scheme_str()?))
        });
        // As browsers write it: without a path, not even an empty one.
        match written.filter(|written| written.eq_ignore_ascii_case(origin)) {
            Some(_) => self.origins.push(origin.to_owned()),
            None => return Err(NotAnOrigin(origin.to_owned())),
        }
        Ok(self)
    }

    /// Lets in only clients that bring this token, as `Authorization: Bearer TOKEN`.
    #[must_use = "gives the changed access back"]
    pub fn with_token(mut self, token: &str) -> Self {
        self.token = Some(Digest::of(token.as_bytes()));
        self
    }

    /// Whether `Authorization` is ours, and not the server's.
    pub fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// Whether a request may come in.
    pub fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Stranger> {
        self.check_names(uri, headers)?;
        let Some(token) = &self.token else {
            return Ok(());
        };
        let brought = only(headers, &AUTHORIZATION).map_err(|_| Stranger::Token)?;
        let brought = brought.and_then(|value| value.split_once(' '));
        let brought = brought.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        match brought.map(|(_, brought)| Digest::of(brought.trim().as_bytes())) {
            Some(brought) if brought == *token => Ok(()),
            _ => Err(Stranger::Token),
        }
    }

    /// The same for a request that may come without a token, because it asks for nothing but leave.
    pub fn check_names(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Stranger> {
        let host = only(headers, &HOST).map_err(|_| Stranger::Host)?;
        // FAIL-CLOSED: HTTP/1.1 demands a host; who sends none is not a client that we know.
        let host = host.ok_or(Stranger::Host)?;
        // A name of a user does not belong there.
        let host = Some(host).filter(|host| !host.contains('@'));
        let host = host.and_then(|host| host.parse::<Authority>().ok());
        let host = host.ok_or(Stranger::Host)?;
        if !self.is_ours(host.host()) || uri.authority().is_some_and(|named| *named != host) {
            return Err(Stranger::Host);
        }
        match only(headers, &ORIGIN).map_err(|_| Stranger::Origin)? {
            Some(origin) if !self.is_welcome(origin) => Err(Stranger::Origin),
            _ => Ok(()),
        }
    }

    fn is_ours(&self, host: &str) -> bool {
        let same = |ours: &str| ours.eq_ignore_ascii_case(host);
        LOOPBACK.iter().any(|ours| same(ours)) || self.hosts.iter().any(|ours| same(ours))
    }

    /// Whether the operator has named any origin.
    pub fn names_pages(&self) -> bool {
        !self.origins.is_empty()
    }

    /// Whether the operator has named the origin of a page.
    pub fn is_named(&self, origin: &str) -> bool {
        let mut named = self.origins.iter();
        named.any(|one| one.eq_ignore_ascii_case(origin))
    }

    /// Pages of this machine may call, and those that the operator names.
    fn is_welcome(&self, origin: &str) -> bool {
        if self.is_named(origin) {
            return true;
        }
        let Ok(uri) = origin.parse::<Uri>() else {
            return false;
        };
        let is_web = matches!(uri.scheme_str(), Some("http" | "https"));
        let is_bare = uri.path_and_query().is_none_or(|rest| rest.as_str() == "/");
        let is_local = |host: &str| LOOPBACK.iter().any(|ours| ours.eq_ignore_ascii_case(host));
        let authority = uri.authority().filter(|one| !one.as_str().contains('@'));
        is_web && is_bare && authority.is_some_and(|one| is_local(one.host()))
    }
}

/// A text that names no pages.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is no origin of pages; write it as https://example.com or https://example.com:8443", .0.escape_debug())]
pub struct NotAnOrigin(String);

/// A header that is there twice, or is no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a header is there twice, or is no text")]
pub struct Unclear;

/// The value of a header that must not come twice.
pub fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Unclear> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() {
        return Err(Unclear);
    }
    let text = first.map(|value| value.to_str().map_err(|_| Unclear));
    text.transpose()
}

const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

#[cfg(test)]
mod tests {
    use super::*;

    fn check(access: &Access, headers: &[(HeaderName, &str)]) -> Result<(), Stranger> {
        let headers: HeaderMap = headers
            .iter()
            .map(|(name, value)| (name.clone(), value.parse().unwrap()))
            .fold(HeaderMap::new(), |mut map, (name, value)| {
                map.append(name, value);
                map
            });
        access.check(&Uri::from_static("/mcp"), &headers)
    }

    #[test]
    fn only_names_of_this_machine_are_ours() {
        let access = Access::default();
        for host in [
            "localhost",
            "localhost:80",
            "LOCALHOST:1",
            "127.0.0.1:9",
            "[::1]:9",
        ] {
            assert_eq!(check(&access, &[(HOST, host)]), Ok(()), "{host}");
        }
        for host in [
            "example.com",
            "localhost.example.com",
            "127.0.0.1.nip.io",
            "x@localhost.evil",
            "x@localhost",
            "0.0.0.0",
            "",
        ] {
            assert_eq!(
                check(&access, &[(HOST, host)]),
                Err(Stranger::Host),
                "{host}"
            );
        }
        assert_eq!(check(&access, &[]), Err(Stranger::Host));
        let twice = [(HOST, "localhost"), (HOST, "localhost")];
        assert_eq!(check(&access, &twice), Err(Stranger::Host));
        let named = access.with_host("proxy.internal");
        assert_eq!(check(&named, &[(HOST, "proxy.internal:443")]), Ok(()));
    }

    #[test]
    fn who_does_not_bring_the_token_is_not_let_in() {
        let access = Access::default().with_token("s3cret");
        let with = |value: &str| check(&access, &[(HOST, "localhost"), (AUTHORIZATION, value)]);
        assert_eq!(with("Bearer s3cret"), Ok(()));
        assert_eq!(with("bearer  s3cret"), Ok(()));
        for wrong in [
            "",
            "s3cret",
            "Bearer",
            "Bearer ",
            "Bearer s3cre",
            "Basic s3cret",
            "Bearer S3cret",
        ] {
            assert_eq!(with(wrong), Err(Stranger::Token), "{wrong}");
        }
        assert_eq!(check(&access, &[(HOST, "localhost")]), Err(Stranger::Token));
        let twice = [
            (HOST, "localhost"),
            (AUTHORIZATION, "Bearer s3cret"),
            (AUTHORIZATION, "Bearer s3cret"),
        ];
        assert_eq!(check(&access, &twice), Err(Stranger::Token));
        // Who only asks for leave does not bring it yet.
        let mut headers = HeaderMap::new();
        headers.insert(HOST, "localhost".parse().unwrap());
        assert_eq!(
            access.check_names(&Uri::from_static("/mcp"), &headers),
            Ok(())
        );
        // Who is a stranger by another thing hears nothing about tokens.
        assert_eq!(
            check(&access, &[(HOST, "example.com")]),
            Err(Stranger::Host)
        );
    }

    #[test]
    fn only_what_a_browser_says_of_a_page_is_an_origin() {
        for origin in [
            "https://example.com",
            "HTTP://localhost:6274",
            "http://[::1]:80",
            "chrome-extension://abcdef",
        ] {
            let access = Access::default().with_origin(origin).unwrap();
            assert!(access.is_named(origin), "{origin}");
        }
        for text in [
            "null",
            "*",
            "",
            "example.com",
            "https://example.com/",
            "https://example.com/page",
            "https://user@example.com",
            "https://",
            "/page",
        ] {
            assert!(Access::default().with_origin(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_request_that_names_two_hosts_is_not_let_in() {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, "localhost".parse().unwrap());
        let uri = Uri::from_static("http://example.com/mcp");
        assert_eq!(Access::default().check(&uri, &headers), Err(Stranger::Host));
    }

    #[test]
    fn pages_from_elsewhere_are_not_let_in() {
        let access = Access::default();
        let from = |origin| check(&access, &[(HOST, "localhost"), (ORIGIN, origin)]);
        assert_eq!(from("http://localhost:3000"), Ok(()));
        assert_eq!(from("https://127.0.0.1"), Ok(()));
        for origin in [
            "null",
            "https://example.com",
            "http://localhost.example.com",
            "http://localhost@example.com",
            "http://example.com@localhost",
            "file://localhost",
            "chrome-extension://localhost",
            "localhost",
            "",
        ] {
            assert_eq!(from(origin), Err(Stranger::Origin), "{origin}");
        }
        let twice = [
            (HOST, "localhost"),
            (ORIGIN, "http://localhost"),
            (ORIGIN, "http://localhost"),
        ];
        assert_eq!(check(&access, &twice), Err(Stranger::Origin));
        let named = access.with_origin("https://console.example.com").unwrap();
        let page = [(HOST, "localhost"), (ORIGIN, "https://console.example.com")];
        assert_eq!(check(&named, &page), Ok(()));
    }
}
