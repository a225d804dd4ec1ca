//! Bundles and manifests over real TLS. The name of the server leads to this machine only here, where the
//! test looks names up; that such names are refused otherwise is shown by the last test.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use countersign_acs::{Manifest, ManifestError, Mode, Options, Point, Policies, Runtime, load};
use countersign_canon::{Hash, Json, Limits as TextLimits};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use ureq::http::Uri;
use ureq::tls::{Certificate, RootCerts};
use ureq::unversioned::resolver::ResolvedSocketAddrs;
use ureq::unversioned::transport::NextTimeout;

use super::*;

const RULES: &str =
    "package agent\nimport rego.v1\nverdict := {\"decision\": \"warn\", \"reason\": \"fetched\"}\n";

/// Every name is the server's.
#[derive(Debug)]
struct Here(SocketAddr);

impl Resolver for Here {
    fn resolve(
        &self,
        _: &Uri,
        _: &Config,
        _: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let mut found = self.empty();
        found.push(self.0);
        Ok(found)
    }
}

/// A loader that trusts the authority of the test, and finds its server.
struct Trusting {
    address: SocketAddr,
    authority: Vec<u8>,
}

impl Loader for Trusting {
    fn real(&self, path: &Path) -> Result<PathBuf, LoadError> {
        Disk.real(path)
    }

    fn read(&self, path: &Path, max_bytes: usize) -> Result<Vec<u8>, LoadError> {
        Disk.read(path, max_bytes)
    }

    fn files(&self, path: &Path) -> Result<Vec<PathBuf>, LoadError> {
        Disk.files(path)
    }

    fn fetch(&self, url: &Url, limits: &Limits) -> Result<Fetched, LoadError> {
        let authority = Certificate::from_der(&self.authority).to_owned();
        let roots = RootCerts::new_with_certs(&[authority]);
        let tls = TlsConfig::builder().root_certs(roots).build();
        let config = config(limits.manifest_url_timeout, tls);
        get(url, limits, config, Here(self.address))
    }
}

/// A server with a certificate for `bundles.example`, and a loader that finds and trusts it.
fn served(answer: impl Fn(&str) -> String + Send + 'static) -> Trusting {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let own = CertificateParams::new(vec!["bundles.example".to_owned()]).unwrap();
    let own = own.signed_by(&key, &authority).unwrap();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![own.der().clone()], key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(connection, stream.unwrap());
            let mut head = Vec::new();
            let mut part = [0; 1024];
            while !head.ends_with(b"\r\n\r\n") {
                match stream.read(&mut part) {
                    Ok(length) if length > 0 => head.extend_from_slice(&part[..length]),
                    _ => break,
                }
            }
            let head = String::from_utf8_lossy(&head).into_owned();
            let path = head.split(' ').nth(1).unwrap_or_default();
            let _ = stream.write_all(answer(path).as_bytes());
            stream.conn.send_close_notify();
            let _ = stream.flush();
        }
    });
    Trusting {
        address,
        authority: authority.der().to_vec(),
    }
}

fn ok(body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
}

fn moved(to: &str) -> String {
    format!(
        "HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    )
}

/// The addresses of the server: rules, detours, and floods.
fn answers(path: &str) -> String {
    match path {
        "/rules.rego" => ok(RULES),
        "/moved" => moved("/rules.rego"),
        "/near" => moved("https://127.0.0.1/rules.rego"),
        "/mapped" => moved("https://[::ffff:127.0.0.1]/rules.rego"),
        "/metadata" => moved("https://169.254.169.254/latest"),
        "/plain" => moved("http://bundles.example/rules.rego"),
        "/circle" => moved("/circle"),
        "/flood" => ok(&"#".repeat(2 << 20)),
        _ => "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned(),
    }
}

fn manifest(path: &str, digest: &str) -> String {
    format!(
        "
agent_control_specification_version: 0.3.1-beta
policies:
  p: {{type: rego, query: data.agent.verdict, bundle_url: {{url: 'https://bundles.example{path}', sha256: {digest}}}}}
intervention_points:
  input: {{policy_target: $.text, policy: {{id: p}}}}
"
    )
}

fn activated(path: &str, digest: &str, loader: &Trusting) -> Result<String, String> {
    let manifest = Manifest::read(manifest(path, digest).as_bytes()).unwrap();
    let policies = Policies::activate(&manifest, loader).map_err(|error| error.to_string())?;
    let snapshot = Json::admit(br#"{"text":"hello"}"#, &TextLimits::plan()).unwrap();
    let runtime = Runtime::new(manifest, policies);
    let found = runtime.evaluate(Point::Input, &snapshot, Mode::Enforce);
    Ok(found.verdict().reason().unwrap_or_default().to_owned())
}

#[test]
fn a_bundle_is_fetched_pinned_and_asked() {
    let loader = served(answers);
    let digest = Hash::of(RULES.as_bytes()).to_string();
    for path in ["/rules.rego", "/moved"] {
        let said = activated(path, &digest, &loader);
        assert_eq!(said, Ok("fetched".to_owned()), "{path}");
    }
    let other = Hash::of(b"something else").to_string();
    let refused = activated("/rules.rego", &other, &loader).unwrap_err();
    assert!(refused.contains("expected digest"), "{refused}");
}

#[test]
fn detours_floods_and_strangers_are_refused() {
    let loader = served(answers);
    let digest = Hash::of(RULES.as_bytes()).to_string();
    for path in [
        "/near",
        "/mapped",
        "/metadata",
        "/plain",
        "/circle",
        "/flood",
        "/nothing",
    ] {
        let refused = activated(path, &digest, &loader);
        assert!(refused.is_err(), "{path}: {refused:?}");
    }
    let stranger = Trusting {
        authority: served(answers).authority,
        ..loader
    };
    let refused = activated("/rules.rego", &digest, &stranger).unwrap_err();
    assert!(refused.contains("certificate"), "{refused}");
}

#[test]
fn a_manifest_at_an_address_brings_its_bundle() {
    let digest = Hash::of(RULES.as_bytes()).to_string();
    let whole = manifest("/rules.rego", &digest);
    let pin = Hash::of(whole.as_bytes());
    let text = whole.clone();
    let loader = served(move |path| match path {
        "/agent.yaml" => ok(&text),
        other => answers(other),
    });
    let from = "https://bundles.example/agent.yaml";
    let options = Options::default();
    let loaded = load(from, Some(pin), &loader, &options).unwrap();
    assert!(Policies::activate(&loaded, &loader).is_ok());
    // Nobody vouches for the way to the bundle.
    let believing = Options {
        believe_unpinned: true,
        ..options
    };
    let refused = load(from, None, &loader, &believing);
    assert!(
        matches!(refused, Err(ManifestError::Remote { .. })),
        "{refused:?}"
    );
    let other = load(from, Some(Hash::of(b"x")), &loader, &options);
    assert!(other.is_err());
}

#[test]
fn names_that_lead_to_this_machine_are_refused_by_the_loader_that_is_used() {
    let loader = served(answers);
    let port = loader.address.port();
    let limits = Limits::default();
    for name in ["localhost", "127.0.0.1", "[::1]"] {
        let url = format!("https://{name}:{port}/rules.rego").parse().unwrap();
        let refused = Disk.fetch(&url, &limits).unwrap_err().to_string();
        assert!(!refused.contains("certificate"), "{name}: {refused}");
    }
}
