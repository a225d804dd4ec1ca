//! Addresses, and which bytes are expected there.

use base64ct::{Base64Unpadded, Encoding as _};
use std::net::{IpAddr, Ipv4Addr};

use countersign_canon::{Hash, Json};
use url::{Host, Url};

/// An address, and the digest of what is expected there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pinned {
    /// The address.
    pub url: String,
    /// What is expected there.
    pub digest: Option<Hash>,
}

impl Pinned {
    /// Reads `{url, sha256 | integrity}`; `None` if it is anything else.
    pub(crate) fn read(value: &Json) -> Option<Self> {
        let members = value.as_object()?;
        let text = |name: &str| members.get(name).map(|value| value.as_str());
        let digest = match (text("sha256"), text("integrity")) {
            (Some(sha256), None) => hex(sha256?)?,
            (None, Some(given)) => integrity(given?)?,
            _ => return None,
        };
        let is_known = |name: &str| matches!(name, "url" | "sha256" | "integrity");
        let url = text("url")??.to_owned();
        members
            .iter()
            .all(|(name, _)| is_known(name))
            .then_some(Self {
                url,
                digest: Some(digest),
            })
    }
}

/// Reads an address of the only kind that manifests may come from, on every hop.
pub(crate) fn address(text: &str, base: Option<&Url>) -> Result<Url, String> {
    let parsed = match base {
        Some(base) => base.join(text),
        None => Url::parse(text),
    };
    let url = parsed.map_err(|error| format!("not an address: {error}"))?;
    check(&url)?;
    Ok(url)
}

/// SECURITY: the machine's own services and the metadata services of clouds are not asked.
pub(super) fn check(url: &Url) -> Result<(), String> {
    if url.scheme() != "https" {
        return Err(format!("`{}` is not https", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("an address must not hold credentials".to_owned());
    }
    if url.fragment().is_some() {
        return Err("an address must not hold a fragment".to_owned());
    }
    let near = match url.host() {
        None => return Err("the address has no host".to_owned()),
        Some(Host::Ipv4(address)) => is_near(address.into()),
        Some(Host::Ipv6(address)) => is_near(address.into()),
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            name == "localhost" || name.ends_with(".localhost")
        }
    };
    match near {
        true => Err("loopback and link-local hosts are not asked".to_owned()),
        false => Ok(()),
    }
}

/// Loopback, link-local or unspecified, also in the clothes of IPv6.
pub fn is_near(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            address.is_loopback() || address.is_link_local() || address.octets()[0] == 0
        }
        IpAddr::V6(address) => {
            let embedded = match address.segments() {
                [0, 0, 0, 0, 0, 0 | 0xffff, high, low] => {
                    Some(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)))
                }
                // The prefix under which IPv4 addresses are reached from IPv6 networks.
                [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
                    Some(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)))
                }
                _ => None,
            };
            address.is_loopback()
                || address.is_unspecified()
                || address.is_unicast_link_local()
                || embedded.is_some_and(|address| is_near(address.into()))
        }
    }
}

/// 64 hexadecimal digits.
pub(super) fn hex(text: &str) -> Option<Hash> {
    let bytes = base16ct::mixed::decode_vec(text).ok()?;
    Some(Hash::from_bytes(bytes.try_into().ok()?))
}

/// `sha256-` and base64.
pub(super) fn integrity(text: &str) -> Option<Hash> {
    let bytes = base64(text.strip_prefix("sha256-")?)?;
    Some(Hash::from_bytes(bytes.try_into().ok()?))
}

/// Both alphabets, with padding or without.
fn base64(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    if text.len() - digits.len() > 2 {
        return None;
    }
    let digits = digits.replace('-', "+").replace('_', "/");
    Base64Unpadded::decode_vec(&digits).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_https_to_somewhere_else_is_an_address() {
        for good in [
            "https://example.com/m.yaml",
            "https://10.0.0.1/m.yaml",
            "https://[2001:db8::1]/m",
        ] {
            assert!(address(good, None).is_ok(), "{good}");
        }
        for bad in [
            "http://example.com/",
            "file:///etc/passwd",
            "https://user@example.com/",
            "https://example.com/#x",
            "https://localhost/",
            "https://a.localhost./",
            "https://127.0.0.1/",
            "https://127.1/",
            "https://2130706433/",
            "https://0x7f.1/",
            "https://0.0.0.0/",
            "https://169.254.169.254/latest/meta-data",
            "https://[::1]/",
            "https://[::]/",
            "https://[fe80::1]/",
            "https://[::ffff:127.0.0.1]/",
            "https://[::127.0.0.1]/",
            "https://[::ffff:a9fe:a9fe]/",
            "https://[64:ff9b::7f00:1]/",
            "m.yaml",
        ] {
            assert!(address(bad, None).is_err(), "{bad}");
        }
        let base = Url::parse("https://example.com/a/m.yaml").unwrap();
        let next = address("../b.yaml", Some(&base)).unwrap();
        assert_eq!(next.as_str(), "https://example.com/b.yaml");
        assert!(address("//127.0.0.1/x", Some(&base)).is_err());
        assert!(address("http://example.com/x", Some(&base)).is_err());
    }

    #[test]
    fn digests_have_two_forms() {
        let hash = Hash::of(b"hello");
        let text = "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ";
        for form in [
            format!("sha256-{text}="),
            format!("sha256-{text}"),
            format!("sha256-{}=", text.replace('+', "-")),
        ] {
            assert_eq!(integrity(&form), Some(hash), "{form}");
        }
        assert_eq!(hex(&hash.to_string()), Some(hash));
        assert_eq!(hex(&hash.to_string().to_uppercase()), Some(hash));
        for bad in [
            format!("sha512-{text}="),
            format!("sha256-{text}==="),
            "sha256-".to_owned(),
            "sha256-LPJNul+wow4m".to_owned(),
            format!("sha256-{text}A"),
        ] {
            assert_eq!(integrity(&bad), None, "{bad}");
        }
        assert_eq!(hex("ab"), None);
    }
}
