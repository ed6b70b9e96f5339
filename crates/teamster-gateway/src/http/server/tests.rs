//! Connections, over real sockets.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::routing::get;
use futures::StreamExt as _;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::{ServeError, Server, ServerOptions};
use crate::config::{Config, Tls};

/// No step of a test takes longer.
const LIMIT: Duration = Duration::from_secs(20);

struct Running {
    address: SocketAddr,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

fn config() -> Config {
    Config { listen: "127.0.0.1:0".parse().unwrap(), ..Config::default() }
}

fn options() -> ServerOptions {
    let short = Duration::from_millis(300);
    ServerOptions { header_timeout: short, idle_timeout: short, ..ServerOptions::default() }
}

/// Returns routes that answer at once, late, never, and without an end.
fn app(stop: &CancellationToken) -> Router {
    let stop = stop.clone();
    let endless = move || {
        let ticks = futures::stream::repeat_with(|| Ok::<_, Infallible>("tick\n")).then(|tick| async move {
            sleep(Duration::from_millis(10)).await;
            tick
        });
        std::future::ready(Body::from_stream(ticks.take_until(stop.clone().cancelled_owned())))
    };
    let late = || async {
        sleep(Duration::from_millis(500)).await;
        "late"
    };
    let peer = |ConnectInfo(peer): ConnectInfo<SocketAddr>| async move { peer.ip().to_string() };
    Router::new()
        .route("/", get(|| async { "hello" }))
        .route("/peer", get(peer))
        .route("/late", get(late))
        .route("/never", get(std::future::pending::<&'static str>))
        .route("/endless", get(endless))
}

async fn run(config: Config, options: ServerOptions) -> Running {
    let server = Server::bind(&config).await.unwrap();
    let (address, stop) = (server.address(), CancellationToken::new());
    let task = tokio::spawn(server.serve(app(&stop), options, stop.clone()));
    Running { address, stop, task }
}

async fn connect(server: &Running) -> TcpStream {
    TcpStream::connect(server.address).await.unwrap()
}

fn request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n")
}

/// Reads until the connection is closed, or until a text has arrived.
async fn read_until(stream: &mut (impl tokio::io::AsyncRead + Unpin), end: Option<&str>) -> String {
    let mut text = Vec::new();
    let read = async {
        let mut buffer = [0; 4_096];
        loop {
            match stream.read(&mut buffer).await {
                Ok(0) | Err(_) => break,
                Ok(size) => text.extend_from_slice(&buffer[..size]),
            }
            if end.is_some_and(|end| String::from_utf8_lossy(&text).contains(end)) {
                break;
            }
        }
    };
    timeout(LIMIT, read).await.expect("the other end does not answer");
    String::from_utf8_lossy(&text).into_owned()
}

async fn ask(server: &Running, path: &str) -> String {
    let mut stream = connect(server).await;
    stream.write_all(request(path).replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n").as_bytes()).await.unwrap();
    read_until(&mut stream, None).await
}

#[tokio::test]
async fn a_request_gets_its_response_and_handlers_know_the_peer() {
    let server = run(config(), options()).await;
    assert!(ask(&server, "/").await.ends_with("hello"));
    assert!(ask(&server, "/peer").await.ends_with("127.0.0.1"));
}

#[tokio::test]
async fn http2_works_without_tls_as_well() {
    let server = run(config(), options()).await;
    let mut stream = connect(&server).await;
    // The preface, and an empty SETTINGS frame.
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
    let mut frame = [0; 9];
    timeout(LIMIT, stream.read_exact(&mut frame)).await.unwrap().unwrap();
    assert_eq!(frame[3], 4, "the first frame is SETTINGS");
}

#[tokio::test]
async fn a_client_that_sends_nothing_or_too_slowly_is_disconnected() {
    let server = run(config(), options()).await;
    let starts = ["", "P", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET / HTTP/1.1\r\nhost: localhost\r\nx-slow: ", "GET"];
    for start in starts {
        let begin = Instant::now();
        let mut stream = connect(&server).await;
        stream.write_all(start.as_bytes()).await.unwrap();
        read_until(&mut stream, None).await;
        assert!(begin.elapsed() < LIMIT / 4, "{start:?}");
    }
    // A single byte from time to time does not extend the limit.
    let mut stream = connect(&server).await;
    let drip = async {
        for byte in "GET / HTTP/1.1\r\nhost: localhost\r\nx-slow: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa".bytes() {
            if stream.write_all(&[byte]).await.is_err() {
                return;
            }
            sleep(Duration::from_millis(50)).await;
        }
        panic!("the server still listens");
    };
    timeout(LIMIT, drip).await.unwrap();
}

#[tokio::test]
async fn a_connection_that_was_used_once_does_not_stay_for_ever() {
    let server = run(config(), options()).await;
    let mut stream = connect(&server).await;
    stream.write_all(request("/").as_bytes()).await.unwrap();
    assert!(read_until(&mut stream, None).await.ends_with("hello"));
}

#[tokio::test]
async fn headers_beyond_the_limits_are_refused() {
    let server = run(config(), options()).await;
    let many = "x-many: 1\r\n".repeat(200);
    let large = format!("x-large: {}\r\n", "x".repeat(100_000));
    for headers in [many, large] {
        let mut stream = connect(&server).await;
        let request = request("/").replace("\r\n\r\n", &format!("\r\n{headers}\r\n"));
        // The server may close the connection before it has read everything.
        _ = stream.write_all(request.as_bytes()).await;
        let answer = read_until(&mut stream, Some("\r\n\r\n")).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    }
    assert!(ask(&server, "/").await.ends_with("hello"));
}

#[tokio::test]
async fn connections_beyond_the_limit_wait() {
    let server = run(config(), ServerOptions { max_connections: 1, ..options() }).await;
    let mut first = connect(&server).await;
    first.write_all(request("/endless").as_bytes()).await.unwrap();
    read_until(&mut first, Some("tick")).await;
    let mut second = connect(&server).await;
    second.write_all(request("/").as_bytes()).await.unwrap();
    assert!(timeout(Duration::from_millis(200), second.read_u8()).await.is_err());
    drop(first);
    assert!(read_until(&mut second, Some("hello")).await.ends_with("hello"));
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_disconnected() {
    let options = ServerOptions { max_connections: 1, write_timeout: Duration::from_millis(300), ..options() };
    let server = Server::bind(&config()).await.unwrap();
    let (address, stop) = (server.address(), CancellationToken::new());
    let flood =
        || async { Body::from_stream(futures::stream::repeat_with(|| Ok::<_, Infallible>(vec![b'x'; 65_536]))) };
    let app = app(&stop).route("/flood", get(flood));
    let task = tokio::spawn(server.serve(app, options, stop.clone()));
    let server = Running { address, stop, task };
    let mut idle = connect(&server).await;
    idle.write_all(request("/flood").as_bytes()).await.unwrap();
    // Its permit is available for another one, although it is still open.
    assert!(ask(&server, "/").await.ends_with("hello"));
    drop(idle);
}

#[tokio::test]
async fn a_shutdown_finishes_requests_ends_streams_and_accepts_no_more() {
    let server = run(config(), options()).await;
    let (mut late, mut endless, mut idle) = (connect(&server).await, connect(&server).await, connect(&server).await);
    late.write_all(request("/late").as_bytes()).await.unwrap();
    endless.write_all(request("/endless").as_bytes()).await.unwrap();
    idle.write_all(request("/").as_bytes()).await.unwrap();
    read_until(&mut endless, Some("tick")).await;
    read_until(&mut idle, Some("hello")).await;
    server.stop.cancel();
    assert!(read_until(&mut late, None).await.ends_with("late"));
    // The end of the stream is complete: its last chunk is empty.
    assert!(read_until(&mut endless, None).await.ends_with("0\r\n\r\n"));
    read_until(&mut idle, None).await;
    timeout(LIMIT, server.task).await.unwrap().unwrap();
    assert!(TcpStream::connect(server.address).await.is_err());
}

#[tokio::test]
async fn a_shutdown_does_not_wait_for_ever() {
    let options = ServerOptions { shutdown_timeout: Duration::from_millis(200), ..options() };
    let server = run(config(), options).await;
    let mut never = connect(&server).await;
    never.write_all(request("/never").as_bytes()).await.unwrap();
    sleep(Duration::from_millis(50)).await;
    server.stop.cancel();
    timeout(LIMIT, server.task).await.unwrap().unwrap();
    assert_eq!(read_until(&mut never, None).await, "");
}

#[tokio::test]
async fn beyond_loopback_it_listens_only_with_tls_or_behind_a_proxy() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0", "[::ffff:192.0.2.1]:0"] {
        let config = Config { listen: address.parse().unwrap(), ..config() };
        let error = Server::bind(&config).await.unwrap_err();
        assert!(matches!(error, ServeError::Unencrypted { .. }), "{address}");
        for word in [address, "TLS", "--behind-proxy", "127.0.0.1"] {
            assert!(error.to_string().contains(word), "{error}");
        }
    }
    let config = Config { listen: "0.0.0.0:0".parse().unwrap(), behind_proxy: true, ..config() };
    assert!(Server::bind(&config).await.is_ok());
}

#[tokio::test]
async fn an_address_in_use_is_named() {
    let server = run(config(), options()).await;
    let error = Server::bind(&Config { listen: server.address, ..config() }).await.unwrap_err();
    assert!(error.to_string().contains(&server.address.to_string()), "{error}");
}

/// Writes a new certificate and its key, and returns the files and the certificate.
fn certificate(directory: &Path, name: &str) -> (Tls, CertificateDer<'static>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, key) = (directory.join(format!("{name}.pem")), directory.join(format!("{name}.key")));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    (Tls { certificate, key }, made.cert.der().clone())
}

#[tokio::test]
async fn tls_is_served_with_both_versions_of_http_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let (tls, root) = certificate(directory.path(), "own");
    let server = run(Config { tls: Some(tls), ..config() }, options()).await;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(root).unwrap();
    for (offered, expected) in [(vec![], None), (vec![b"h2".to_vec(), b"http/1.1".to_vec()], Some(b"h2".as_slice()))] {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder =
            rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let mut client = builder.with_root_certificates(roots.clone()).with_no_client_auth();
        client.alpn_protocols = offered;
        let connector = tokio_rustls::TlsConnector::from(Arc::new(client));
        let name = ServerName::try_from("localhost").unwrap();
        let mut stream = connector.connect(name, connect(&server).await).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), expected);
        if expected.is_none() {
            stream.write_all(request("/").as_bytes()).await.unwrap();
            assert!(read_until(&mut stream, Some("hello")).await.ends_with("hello"));
        }
    }
    let plain = ask(&server, "/").await;
    assert!(!plain.contains("hello"), "{plain}");
    let mut silent = connect(&server).await;
    read_until(&mut silent, None).await;
}

#[tokio::test]
async fn a_certificate_that_cannot_be_used_is_named_with_its_file() {
    let directory = tempfile::tempdir().unwrap();
    let (own, _) = certificate(directory.path(), "own");
    let (other, _) = certificate(directory.path(), "other");
    let (missing, empty) = (directory.path().join("missing.pem"), directory.path().join("empty.pem"));
    std::fs::write(&empty, "").unwrap();
    let cases = [
        (&missing, &own.key, "missing.pem"),
        (&own.certificate, &missing, "missing.pem"),
        (&empty, &own.key, "empty.pem"),
        (&own.certificate, &empty, "empty.pem"),
        (&own.certificate, &own.certificate, "own.pem"),
        (&own.certificate, &other.key, "other.key"),
    ];
    for (certificate, key, named) in cases {
        let tls = Tls { certificate: certificate.clone(), key: key.clone() };
        let error = Server::bind(&Config { tls: Some(tls), ..config() }).await.unwrap_err().to_string();
        assert!(error.contains(named), "{error}");
        assert!(!error.contains("BEGIN") && !error.contains("PRIVATE"), "{error}");
    }
}
