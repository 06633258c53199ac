//! Tests of connection pooling, HTTP/2, certificates, proxies and compression.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use haft_model::{ModelError, ProviderConfig};
use haft_types::Api;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::{ask, client_of, hello_request, provider, retry_without_waiting, text_of};

fn fixture(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures")
        .join(name)
}

/// The requests and connections a server received.
#[derive(Default)]
struct Seen {
    connections: AtomicUsize,
    /// Version and target of each request.
    requests: Mutex<Vec<String>>,
    protocols: Mutex<Vec<String>>,
}

impl Seen {
    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

/// The encoding of a server's answer.
#[derive(Clone, Copy)]
enum Wrapped {
    Plainly,
    /// The fixture with this file extension, and the name of its encoding.
    As(&'static str, &'static str),
}

/// TLS or plain TCP.
#[derive(Clone, Copy, PartialEq)]
enum Security {
    Plain,
    Tls,
}

/// Starts a server that answers every request with one reply.
async fn start_server(security: Security, wrapped: Wrapped) -> (u16, Arc<Seen>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let seen = Arc::new(Seen::default());
    let shared = Arc::clone(&seen);
    let acceptor = (security == Security::Tls).then(acceptor);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            shared.connections.fetch_add(1, Ordering::AcqRel);
            let seen = Arc::clone(&shared);
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                match acceptor {
                    None => serve(stream, "http/1.1", wrapped, seen).await,
                    Some(acceptor) => {
                        // A client that rejects the certificate disconnects here.
                        let Ok(stream) = acceptor.accept(stream).await else {
                            return;
                        };
                        let agreed = stream
                            .get_ref()
                            .1
                            .alpn_protocol()
                            .unwrap_or_default()
                            .to_vec();
                        serve(stream, &String::from_utf8(agreed).unwrap(), wrapped, seen).await;
                    }
                }
            });
        }
    });
    (port, seen)
}

fn acceptor() -> TlsAcceptor {
    let certificates: Vec<_> = CertificateDer::pem_file_iter(fixture("tls/server.pem"))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    let key = PrivateKeyDer::from_pem_file(fixture("tls/server.key")).unwrap();
    let mut config = rustls::ServerConfig::builder_with_provider(
        rustls::crypto::ring::default_provider().into(),
    )
    .with_safe_default_protocol_versions()
    .unwrap()
    .with_no_client_auth()
    .with_single_cert(certificates, key)
    .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    protocol: &str,
    wrapped: Wrapped,
    seen: Arc<Seen>,
) {
    seen.protocols.lock().unwrap().push(protocol.to_owned());
    let service = service_fn(move |request: Request<Incoming>| {
        let seen = Arc::clone(&seen);
        async move {
            let told = format!(
                "{:?} {} {}",
                request.version(),
                request.method(),
                request.uri()
            );
            seen.requests.lock().unwrap().push(told);
            let accepted = request
                .headers()
                .get("accept-encoding")
                .map(|value| value.to_str().unwrap().to_owned());
            request.into_body().collect().await.unwrap();
            Ok::<_, hyper::Error>(reply(wrapped, accepted.as_deref().unwrap_or_default()))
        }
    });
    let stream = TokioIo::new(stream);
    // Returns an error when the client disconnects.
    let _ = if protocol == "h2" {
        hyper::server::conn::http2::Builder::new(TokioExecutor::new())
            .serve_connection(stream, service)
            .await
    } else {
        hyper::server::conn::http1::Builder::new()
            .serve_connection(stream, service)
            .await
    };
}

fn reply(wrapped: Wrapped, accepted: &str) -> Response<Full<Bytes>> {
    let mut response = Response::builder().header("content-type", "text/event-stream");
    let file = match wrapped {
        Wrapped::Plainly => "encoded/reply.sse".to_owned(),
        Wrapped::As(ending, encoding) => {
            assert!(
                accepted.contains(encoding),
                "`{encoding}` is not among `{accepted}`"
            );
            response = response.header("content-encoding", encoding);
            format!("encoded/reply.sse.{ending}")
        }
    };
    response
        .body(Full::new(std::fs::read(fixture(&file)).unwrap().into()))
        .unwrap()
}

fn with_test_ca(mut provider: ProviderConfig) -> ProviderConfig {
    provider.ca_file = Some(fixture("tls/ca.pem").display().to_string());
    provider
}

async fn ask_for_text(provider: ProviderConfig) -> Result<String, ModelError> {
    ask(
        &mut client_of(provider, retry_without_waiting()),
        &hello_request(),
    )
    .await
    .1
    .map(|reply| text_of(&reply))
}

#[tokio::test]
async fn client_uses_one_connection_for_ten_requests() {
    for (security, scheme, protocol) in [
        (Security::Plain, "http", "http/1.1"),
        (Security::Tls, "https", "h2"),
    ] {
        let (port, seen) = start_server(security, Wrapped::Plainly).await;
        let provider = with_test_ca(provider(
            Api::OpenaiChat,
            &format!("{scheme}://localhost:{port}/v1"),
        ));
        let mut client = client_of(provider, retry_without_waiting());
        for _ in 0..10 {
            assert_eq!(
                text_of(&ask(&mut client, &hello_request()).await.1.unwrap()),
                "Packed words."
            );
        }
        assert_eq!(seen.requests().len(), 10);
        assert_eq!(seen.connections.load(Ordering::Acquire), 1, "{scheme}");
        assert_eq!(*seen.protocols.lock().unwrap(), [protocol]);
    }
}

#[tokio::test]
async fn client_rejects_a_certificate_of_an_unknown_authority() {
    let (port, seen) = start_server(Security::Tls, Wrapped::Plainly).await;
    let error = ask_for_text(provider(
        Api::OpenaiChat,
        &format!("https://localhost:{port}/v1"),
    ))
    .await
    .unwrap_err();
    assert_eq!(error.code(), "unreachable", "{error}");
    assert!(
        error.to_string().to_lowercase().contains("certificate"),
        "{error}"
    );
    assert!(seen.requests().is_empty());
}

#[test]
fn client_rejects_a_ca_file_without_certificates() {
    for (file, said) in [
        ("tls/absent.pem", "cannot read"),
        ("encoded/reply.sse", "no certificate"),
    ] {
        let mut provider = provider(Api::OpenaiChat, "https://localhost:1/v1");
        provider.ca_file = Some(fixture(file).display().to_string());
        let error = super::errors::client_error(provider, "k").to_string();
        assert!(
            error.contains("`ca_file`") && error.contains(said) && error.contains(file),
            "{error}"
        );
    }
}

#[tokio::test]
async fn client_reads_compressed_replies() {
    for (ending, encoding) in [("gz", "gzip"), ("br", "br"), ("zst", "zstd")] {
        let (port, _) = start_server(Security::Plain, Wrapped::As(ending, encoding)).await;
        let said = ask_for_text(provider(
            Api::OpenaiChat,
            &format!("http://127.0.0.1:{port}/v1"),
        ))
        .await;
        assert_eq!(said.unwrap(), "Packed words.", "{encoding}");
    }
}

#[tokio::test]
async fn proxy_receives_plain_requests_whole() {
    let (port, seen) = start_server(Security::Plain, Wrapped::Plainly).await;
    for proxy in [
        format!("http://127.0.0.1:{port}"),
        format!("127.0.0.1:{port}"),
    ] {
        let mut provider = provider(Api::OpenaiChat, "http://api.invalid/v1");
        provider.proxy = Some(proxy);
        assert_eq!(ask_for_text(provider).await.unwrap(), "Packed words.");
    }
    let expected = "HTTP/1.1 POST http://api.invalid/v1/chat/completions";
    assert_eq!(seen.requests(), [expected, expected]);
}

/// Starts a proxy that tunnels every request to `port`, and returns its port and the targets it was
/// asked for.
async fn start_tunnel_proxy(port: u16) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let own = listener.local_addr().unwrap().port();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let head = read_request_head(&mut near).await;
            told.lock()
                .unwrap()
                .push(head.lines().next().unwrap_or_default().to_owned());
            near.write_all(b"HTTP/1.1 200 Connected\r\n\r\n")
                .await
                .unwrap();
            let mut far = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            tokio::spawn(async move { tokio::io::copy_bidirectional(&mut near, &mut far).await });
        }
    });
    (own, asked)
}

/// Reads the head of a request byte by byte, so that the bytes after it stay unread.
async fn read_request_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

#[tokio::test]
async fn proxy_tunnels_secure_requests() {
    let (port, seen) = start_server(Security::Tls, Wrapped::Plainly).await;
    let (proxy, asked) = start_tunnel_proxy(port).await;
    // Only the proxy can resolve the target; the certificate is for `localhost`.
    let mut provider = with_test_ca(provider(Api::OpenaiChat, "https://localhost:9/v1"));
    provider.proxy = Some(format!("http://127.0.0.1:{proxy}"));
    assert_eq!(ask_for_text(provider).await.unwrap(), "Packed words.");
    assert_eq!(*asked.lock().unwrap(), ["CONNECT localhost:9 HTTP/1.1"]);
    assert_eq!(*seen.protocols.lock().unwrap(), ["h2"]);
}

#[tokio::test]
async fn client_reaches_no_proxy_hosts_directly() {
    let (port, seen) = start_server(Security::Plain, Wrapped::Plainly).await;
    let direct = provider(Api::OpenaiChat, &format!("http://127.0.0.1:{port}/v1"));
    // No server listens on port 9.
    let through = |proxy: &str, except: Option<&str>| ProviderConfig {
        proxy: Some(proxy.to_owned()),
        no_proxy: except.map(str::to_owned),
        ..direct.clone()
    };
    assert!(
        ask_for_text(through("http://127.0.0.1:9", None))
            .await
            .is_err()
    );
    assert!(
        ask_for_text(through("http://127.0.0.1:9", Some("example.com")))
            .await
            .is_err()
    );
    assert!(seen.requests().is_empty());
    for passed in [
        through("http://127.0.0.1:9", Some("example.com, 127.0.0.0/8")),
        through("http://127.0.0.1:9", Some("*")),
        through("", None),
    ] {
        assert_eq!(ask_for_text(passed).await.unwrap(), "Packed words.");
    }
}

#[test]
fn proxy_error_does_not_contain_the_password() {
    for proxy in ["socks5://u:secret@h:1", "http://u:secret@", "://"] {
        let mut provider = provider(Api::OpenaiChat, "http://127.0.0.1:1");
        provider.proxy = Some(proxy.to_owned());
        let error = super::errors::client_error(provider, "k").to_string();
        assert!(
            error.contains("`proxy`") && !error.contains("secret"),
            "{proxy}: {error}"
        );
    }
}
