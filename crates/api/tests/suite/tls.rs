//! Encrypted connections: what is configured holds, and nobody comes in without.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use countersign_api::Settings;
use countersign_web::acceptor;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::scene::Scene;

type Issuer = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Issuer {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate for this name, in PEM, and its key.
fn certificate(name: &str, issuer: &Issuer) -> (String, KeyPair) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    (params.signed_by(&key, issuer).unwrap().pem(), key)
}

fn scene(authority: &Issuer, clients: Option<&Issuer>) -> Scene {
    let (chain, key) = certificate("localhost", authority);
    let key = key.serialize_pem();
    let clients = clients.map(|clients| clients.pem());
    let clients = clients.as_ref().map(|pem| pem.as_bytes());
    let tls = acceptor(chain.as_bytes(), key.as_bytes(), clients).unwrap();
    Scene::opened(None, Settings::default(), |mut door| {
        door.tls = Some(tls);
        door
    })
}

fn ask(
    scene: &Scene,
    authority: &Issuer,
    client: Option<(String, KeyPair)>,
) -> std::io::Result<String> {
    use rustls::pki_types::pem::PemObject as _;
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(authority.pem().as_bytes()).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match client {
        None => builder.with_no_client_auth(),
        Some((chain, key)) => {
            let chain = vec![CertificateDer::from_pem_slice(chain.as_bytes()).unwrap()];
            let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
            builder.with_client_auth_cert(chain, key).unwrap()
        }
    };
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = StreamOwned::new(connection, scene.connect());
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    match stream.read_to_string(&mut answer) {
        Err(_) if answer.contains("\"ok\"") => {}
        result => drop(result?),
    }
    Ok(answer)
}

#[test]
fn only_encrypted_connections_are_answered() {
    let ours = authority();
    let scene = scene(&ours, None);
    assert!(ask(&scene, &ours, None).unwrap().contains("\"ok\""));
    assert!(ask(&scene, &authority(), None).is_err());
    let mut plain: TcpStream = scene.connect();
    plain
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(
        !answer.starts_with(b"HTTP"),
        "{}",
        String::from_utf8_lossy(&answer)
    );
}

#[test]
fn only_clients_of_the_named_authority_are_let_in() {
    let (ours, theirs, strangers) = (authority(), authority(), authority());
    let scene = scene(&ours, Some(&theirs));
    let good = ask(&scene, &ours, Some(certificate("client", &theirs)));
    assert!(good.unwrap().contains("\"ok\""));
    assert!(ask(&scene, &ours, None).is_err());
    assert!(ask(&scene, &ours, Some(certificate("client", &strangers))).is_err());
}

#[test]
fn certificates_that_cannot_be_used_are_refused_at_once() {
    let ours = authority();
    let (chain, key) = certificate("localhost", &ours);
    let (_, other) = certificate("localhost", &ours);
    let (key, other) = (key.serialize_pem(), other.serialize_pem());
    assert!(acceptor(chain.as_bytes(), key.as_bytes(), None).is_ok());
    assert!(acceptor(b"", key.as_bytes(), None).is_err());
    assert!(acceptor(chain.as_bytes(), b"", None).is_err());
    assert!(acceptor(chain.as_bytes(), other.as_bytes(), None).is_err());
    assert!(acceptor(chain.as_bytes(), key.as_bytes(), Some(b"")).is_err());
}
