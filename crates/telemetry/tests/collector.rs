//! Spans reach a collector that others wrote, by every protocol, with everything that is in them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign_canon::Hash;
use countersign_redact::Redactor;
use countersign_telemetry::{Collector, File, Metrics, Protocol, Settings, StartError, Telemetry};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use tonic::{Request, Response, Status};

/// The collector: remembers what it is given, and may refuse at first.
#[derive(Clone, Default)]
struct Memory {
    spans: Arc<Mutex<Vec<Span>>>,
    token: Arc<Mutex<Option<String>>>,
    refusals: Arc<AtomicUsize>,
}

#[tonic::async_trait]
impl TraceService for Memory {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let left = &self.refusals;
        let take = |left: usize| left.checked_sub(1);
        if left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, take)
            .is_ok()
        {
            return Err(Status::unavailable("not yet"));
        }
        let token = request.metadata().get("authorization").cloned();
        *self.token.lock().unwrap() = token.map(|token| token.to_str().unwrap().to_owned());
        self.keep(request.into_inner());
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

impl Memory {
    fn keep(&self, request: ExportTraceServiceRequest) {
        let mut spans = self.spans.lock().unwrap();
        for resource in request.resource_spans {
            let about = resource.resource.unwrap().attributes;
            assert_eq!(about[0].key, "service.name");
            for scope in resource.scope_spans {
                spans.extend(scope.spans);
            }
        }
    }
}

fn line(seq: u64, kind: &str, payload: &str) -> Vec<u8> {
    let hash = Hash::of(&seq.to_be_bytes());
    let time = 1_700_000_000_000 + seq;
    let text = format!(
        r#"{{"event_type":"{kind}","hash":"{hash}","payload":{payload},"prev_hash":null,"seq":{seq},"session_id":"s1","tenant_id":"acme","ts_unix_ms":{time}}}"#
    );
    text.into_bytes()
}

fn telemetry(collector: Option<Collector>, file: Option<File>) -> (Telemetry, Arc<Metrics>) {
    let metrics = Arc::new(Metrics::default());
    let settings = Settings {
        file,
        collector,
        redactor: Redactor::default(),
        open: None,
        report: Arc::new(|_, _| {}),
    };
    let telemetry = Telemetry::start(settings, Arc::clone(&metrics)).unwrap();
    (telemetry, metrics)
}

/// An action of five events; whoever drops the telemetry waits until all of it was sent.
fn act(telemetry: Telemetry) {
    let call = r#"{"call_id":"c1","server":"files","tool_name":"read_file"}"#;
    let result = r#"{"call_id":"c1","is_error":true,"latency_ms":12,"result_labels":["web"]}"#;
    telemetry.event(&line(0, "TOOL_CALL_PROPOSED", call), None);
    telemetry.event(
        &line(
            1,
            "POLICY_DECISION",
            r#"{"call_id":"c1","outcome":"allow"}"#,
        ),
        None,
    );
    telemetry.event(&line(2, "TOOL_CALL_ALLOWED", r#"{"call_id":"c1"}"#), None);
    telemetry.event(&line(3, "TOOL_CALL_EXECUTED", r#"{"call_id":"c1"}"#), None);
    telemetry.event(&line(4, "TOOL_RESULT", result), None);
    drop(telemetry);
}

fn check(spans: &[Span]) {
    assert_eq!(spans.len(), 6);
    let action = spans
        .iter()
        .find(|span| span.name == "execute_tool read_file");
    let action = action.unwrap();
    assert_eq!(
        (action.trace_id.len(), action.span_id.len(), action.kind),
        (16, 8, 1)
    );
    assert_eq!(action.start_time_unix_nano, 1_700_000_000_000_000_000);
    assert_eq!(action.end_time_unix_nano, 1_700_000_000_004_000_000);
    assert_eq!(action.status.as_ref().unwrap().code, 2);
    assert_eq!(action.flags, 1);
    let found = |name: &str| {
        let found = action.attributes.iter().find(|pair| pair.key == name);
        let value = found.and_then(|pair| pair.value.clone());
        value.and_then(|value| value.value)
    };
    let text = |text: &str| Some(Value::StringValue(text.to_owned()));
    assert_eq!(found("gen_ai.tool.name"), text("read_file"));
    assert_eq!(found("error.type"), text("tool_error"));
    assert_eq!(
        found("countersign.payload.is_error"),
        Some(Value::BoolValue(true))
    );
    let Some(Value::ArrayValue(labels)) = found("countersign.payload.result_labels") else {
        panic!("no labels");
    };
    assert_eq!(labels.values[0].value, text("web"));
    let event = spans
        .iter()
        .find(|span| span.name == "TOOL_RESULT")
        .unwrap();
    assert_eq!(event.parent_span_id, action.span_id);
    let seq = event
        .attributes
        .iter()
        .find(|pair| pair.key == "countersign.event.seq");
    let seq = seq.unwrap().value.clone().unwrap().value;
    assert_eq!(seq, Some(Value::IntValue(4)));
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap()
}

/// A server of gRPC on a free port.
fn serve_grpc(memory: Memory) -> (SocketAddr, tokio::runtime::Runtime) {
    let runtime = runtime();
    let probe = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = probe.local_addr().unwrap();
    drop(probe);
    let server = tonic::transport::Server::builder().add_service(TraceServiceServer::new(memory));
    runtime.spawn(server.serve(address));
    while std::net::TcpStream::connect(address).is_err() {
        std::thread::sleep(Duration::from_millis(10));
    }
    (address, runtime)
}

#[test]
fn grpc_reaches_a_server_that_others_wrote_and_tries_again() {
    let memory = Memory::default();
    memory.refusals.store(2, Ordering::SeqCst);
    let (address, _runtime) = serve_grpc(memory.clone());
    let collector = Collector::new(&format!("http://{address}"), Protocol::Grpc).unwrap();
    let collector = collector
        .with_headers("Authorization: Bearer of-the-collector\n\n")
        .unwrap();
    let (telemetry, metrics) = telemetry(Some(collector), None);
    act(telemetry);
    check(&memory.spans.lock().unwrap());
    assert_eq!(
        memory.token.lock().unwrap().as_deref(),
        Some("Bearer of-the-collector")
    );
    assert_eq!((metrics.exported(), metrics.dropped()), (6, 0));
}

/// A server of HTTP/1.1 that answers everything with one status, and gives what it was sent.
fn serve_http(status: &'static str) -> (SocketAddr, std::thread::JoinHandle<(String, Vec<u8>)>) {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let thread = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream);
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            if let Some(value) = line.to_lowercase().strip_prefix("content-length: ") {
                length = value.trim().parse().unwrap();
            }
            if line == "\r\n" {
                break;
            }
            head.push_str(&line);
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
        reader.get_mut().write_all(answer.as_bytes()).unwrap();
        (head, body)
    });
    (address, thread)
}

#[test]
fn http_carries_the_same_as_protocol_buffers_and_as_json() {
    for (protocol, kind) in [
        (Protocol::HttpProtobuf, "application/x-protobuf"),
        (Protocol::HttpJson, "application/json"),
    ] {
        let (address, server) = serve_http("200 OK");
        let collector = Collector::new(&format!("http://{address}/"), protocol).unwrap();
        let (telemetry, metrics) = telemetry(Some(collector), None);
        act(telemetry);
        let (head, body) = server.join().unwrap();
        assert!(head.starts_with("POST /v1/traces HTTP/1.1"), "{head}");
        assert!(head.contains(kind), "{head}");
        let memory = Memory::default();
        memory.keep(match protocol {
            Protocol::HttpJson => serde_json::from_slice(&body).unwrap(),
            _ => prost::Message::decode(body.as_slice()).unwrap(),
        });
        check(&memory.spans.lock().unwrap());
        assert_eq!(metrics.exported(), 6);
    }
}

/// Whom a certificate was issued by, and a front that speaks TLS for a server behind it.
fn secured(behind: SocketAddr, protocol: &[u8]) -> (String, SocketAddr, tokio::runtime::Runtime) {
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
    use tokio_rustls::rustls::pki_types::PrivateKeyDer;
    use tokio_rustls::rustls::{ServerConfig, crypto::ring};

    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &authority).unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    config.alpn_protocols = vec![protocol.to_vec()];
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let runtime = runtime();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"));
    let listener = listener.unwrap();
    let address = listener.local_addr().unwrap();
    runtime.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // Who does not trust the certificate hangs up.
            let Ok(mut stream) = acceptor.accept(stream).await else {
                continue;
            };
            let mut server = tokio::net::TcpStream::connect(behind).await.unwrap();
            let _ = tokio::io::copy_bidirectional(&mut stream, &mut server).await;
        }
    });
    (authority.pem(), address, runtime)
}

/// What a process tells that trusts this authority, and no other, after it has sent an action.
fn sent_by_child(address: SocketAddr, protocol: &str, authority: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("authority.pem");
    std::fs::write(&file, authority).unwrap();
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["child_sends", "--exact", "--ignored", "--nocapture"])
        .env("SSL_CERT_FILE", &file)
        .env_remove("SSL_CERT_DIR")
        .env(ADDRESS, format!("https://localhost:{}", address.port()))
        .env(PROTOCOL, protocol)
        .output()
        .unwrap();
    assert!(child.status.success(), "{child:?}");
    String::from_utf8(child.stdout).unwrap()
}

#[test]
#[ignore = "runs in a process of its own"]
fn child_sends() {
    let Ok(address) = std::env::var(ADDRESS) else {
        return;
    };
    let protocol: Protocol = std::env::var(PROTOCOL).unwrap().parse().unwrap();
    let collector = Collector::new(&address, protocol).unwrap();
    let (telemetry, metrics) = telemetry(Some(collector), None);
    act(telemetry);
    println!("exported {}", metrics.exported());
}

#[test]
fn spans_go_through_tls_to_a_collector_that_proves_its_name() {
    let memory = Memory::default();
    let (server, _server) = serve_grpc(memory.clone());
    let (authority, front, _front) = secured(server, b"h2");
    let said = sent_by_child(front, "grpc", &authority);
    assert!(said.contains("exported 6"), "{said}");
    check(&memory.spans.lock().unwrap());

    let (server, given) = serve_http("200 OK");
    let (authority, front, _front) = secured(server, b"http/1.1");
    let said = sent_by_child(front, "http/json", &authority);
    assert!(said.contains("exported 6"), "{said}");
    let memory = Memory::default();
    memory.keep(serde_json::from_slice(&given.join().unwrap().1).unwrap());
    check(&memory.spans.lock().unwrap());
}

#[test]
fn a_collector_that_cannot_prove_its_name_gets_no_span() {
    let memory = Memory::default();
    let (server, _server) = serve_grpc(memory.clone());
    let (_, front, _front) = secured(server, b"h2");
    let (another, _, _) = secured(server, b"h2");
    let said = sent_by_child(front, "grpc", &another);
    assert!(said.contains("exported 0"), "{said}");
    assert!(memory.spans.lock().unwrap().is_empty());
}

const ADDRESS: &str = "COUNTERSIGN_TEST_COLLECTOR";
const PROTOCOL: &str = "COUNTERSIGN_TEST_PROTOCOL";

#[test]
fn what_a_collector_refuses_is_counted_and_said_once() {
    let (address, server) = serve_http("400 Bad Request");
    let collector = Collector::new(&format!("http://{address}"), Protocol::HttpJson).unwrap();
    let said = Arc::new(Mutex::new(Vec::new()));
    let hears = Arc::clone(&said);
    let metrics = Arc::new(Metrics::default());
    let settings = Settings {
        file: None,
        collector: Some(collector),
        redactor: Redactor::default(),
        open: None,
        report: Arc::new(move |what, why| {
            let why = why.unwrap_or_default().to_owned();
            hears.lock().unwrap().push((what, why));
        }),
    };
    act(Telemetry::start(settings, Arc::clone(&metrics)).unwrap());
    server.join().unwrap();
    assert_eq!((metrics.exported(), metrics.dropped()), (0, 6));
    assert!(
        metrics
            .text()
            .contains("countersign_spans_dropped_total{cause=\"collector_failed\"} 6")
    );
    let expect = ("the collector takes no spans", "400 Bad Request".to_owned());
    assert_eq!(*said.lock().unwrap(), [expect]);
}

#[test]
fn a_file_has_a_line_for_each_span_that_others_can_read_and_makes_room() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("telemetry/spans.ndjson");
    let file = File {
        path: path.clone(),
        max_bytes: 10_000,
    };
    let (telemetry, metrics) = telemetry(None, Some(file.clone()));
    act(telemetry);
    let memory = Memory::default();
    for line in std::fs::read_to_string(&path).unwrap().lines() {
        memory.keep(serde_json::from_str(line).unwrap());
    }
    check(&memory.spans.lock().unwrap());
    assert_eq!(metrics.exported(), 6);
    for _ in 0..3 {
        let (telemetry, _) = self::telemetry(None, Some(file.clone()));
        act(telemetry);
    }
    let size = |path: &std::path::Path| std::fs::metadata(path).unwrap().len();
    assert!(size(&path) <= 10_000);
    assert!(size(&folder.path().join("telemetry/spans.ndjson.1")) <= 10_000);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn nobody_waits_for_a_collector_that_does_not_answer() {
    // It takes connections and says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let collector = Collector::new(&format!("http://{address}"), Protocol::HttpJson).unwrap();
    let (telemetry, metrics) = telemetry(Some(collector), None);
    let event = line(0, "MEMORY_READ", r#"{"memory_key":"k"}"#);
    let (mut sent, began) = (0, std::time::Instant::now());
    while metrics.dropped() == 0 && began.elapsed() < Duration::from_secs(60) {
        telemetry.event(&event, None);
        sent += 1;
    }
    // The queue has an end, and what did not fit is told.
    assert!(metrics.dropped() > 0, "{sent} events");
    let text = metrics.text();
    assert!(
        text.contains("countersign_telemetry_queue_events"),
        "{text}"
    );
}

#[test]
fn addresses_that_cannot_be_meant_are_refused() {
    let check = |address: &str, protocol: Protocol, expect: Option<&str>| {
        let found = Collector::new(address, protocol).err();
        let found = found.map(|error: StartError| error.to_string());
        match expect {
            None => assert_eq!(found, None, "{address}"),
            Some(expect) => assert!(found.unwrap().contains(expect), "{address}"),
        }
    };
    check(
        "https://collector.example:4318",
        Protocol::HttpProtobuf,
        None,
    );
    check(
        "http://127.0.0.1:4318/custom/traces",
        Protocol::HttpJson,
        None,
    );
    check("http://127.0.0.1:4317/x", Protocol::Grpc, Some("no path"));
    check(
        "collector:4317",
        Protocol::Grpc,
        Some("expected an address"),
    );
    check(
        "ftp://collector",
        Protocol::Grpc,
        Some("expected an address"),
    );
    check(
        "http://user:hunter2@collector",
        Protocol::Grpc,
        Some("a secret does not belong"),
    );
    let collector = Collector::new("http://c", Protocol::Grpc).unwrap();
    let wrong = collector.with_headers("x-key: 1\nhunter2\n").err().unwrap();
    assert_eq!(wrong.to_string(), "line 2: not a header");
    assert!("carrier-pigeon".parse::<Protocol>().is_err());
}
