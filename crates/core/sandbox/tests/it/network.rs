//! Tests of the filtering proxy and the forwarder over real sockets, with servers on the loopback
//! interface.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use haft_sandbox::{Hosts, Proxy, forward_connections};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::processes::wait_until;

/// A server that sends `answer` on each connection and records the requests.
struct Server {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
    accepted: Arc<AtomicUsize>,
}

impl Server {
    fn answering(answer: impl Into<Vec<u8>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let answer = answer.into();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::default());
        let notes = Arc::clone(&seen);
        let accepted = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&accepted);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::SeqCst);
                let answer = answer.clone();
                let notes = Arc::clone(&notes);
                std::thread::spawn(move || record_and_answer(&client, &answer, &notes));
            }
        });
        Self {
            address,
            seen,
            accepted,
        }
    }

    fn http() -> Self {
        Self::answering("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
    }

    fn port(&self) -> u16 {
        self.address.port()
    }

    /// Waits until all connections have ended, and returns the request of each one.
    fn seen(&self) -> Vec<String> {
        let all = || self.seen.lock().unwrap().len() == self.accepted.load(Ordering::SeqCst);
        wait_until("every connection ends", all);
        self.seen.lock().unwrap().clone()
    }
}

/// Reads a head and the body it announces, records both and any further bytes, and answers.
fn record_and_answer(mut client: &TcpStream, answer: &[u8], notes: &Mutex<Vec<String>>) {
    let mut text = Vec::new();
    let mut piece = [0; 1024];
    let whole = |text: &[u8]| {
        let text = String::from_utf8_lossy(text).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            return text.starts_with("raw");
        };
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("Content-Length: "))
            .map_or(0, |n| n.parse().unwrap());
        body.len() >= length
    };
    while !whole(&text) {
        match client.read(&mut piece) {
            Ok(0) | Err(_) => break,
            Ok(length) => text.extend_from_slice(&piece[..length]),
        }
    }
    client.write_all(answer).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let _ = client.read_to_end(&mut text);
    notes
        .lock()
        .unwrap()
        .push(String::from_utf8_lossy(&text).into_owned());
}

/// A proxy with its own folder.
struct Rig {
    runtime: Runtime,
    proxy: Option<Proxy>,
    socket: PathBuf,
    _folder: TempDir,
}

impl Rig {
    fn new(hosts: &[String]) -> Self {
        let folder = TempDir::new().unwrap();
        let socket = folder.path().join("proxy");
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let proxy = runtime
            .block_on(async { Proxy::start(socket.clone(), Hosts::parse(hosts).unwrap()) })
            .unwrap();
        Self {
            runtime,
            proxy: Some(proxy),
            socket,
            _folder: folder,
        }
    }

    /// Sends the bytes and returns the whole answer.
    fn send(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut client = UnixStream::connect(&self.socket).unwrap();
        // A proxy that has already rejected the request may not read all of it.
        let _ = client.write_all(bytes.as_ref());
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or(answer)
}

#[test]
fn proxy_forwards_to_a_listed_host() {
    let server = Server::http();
    let at = server.address;
    let rig = Rig::new(&[at.to_string()]);
    let answer = rig.send(format!(
        "GET http://{at}/page?x HTTP/1.1\r\nHost: {at}\r\nProxy-Connection: x\r\n\r\n"
    ));
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.ends_with("hello"),
        "{answer}"
    );
    let seen = server.seen();
    assert_eq!(
        seen,
        [format!(
            "GET /page?x HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n"
        )]
    );
}

#[test]
fn proxy_tunnel_carries_bytes_both_ways() {
    let server = Server::answering("\0\u{1}raw answer");
    let rig = Rig::new(&[server.address.to_string()]);
    // The first bytes are sent together with the head.
    let answer = rig.send(format!(
        "CONNECT {} HTTP/1.1\r\n\r\nraw bytes\r\n\r\n",
        server.address
    ));
    assert_eq!(
        answer,
        "HTTP/1.1 200 Connection established\r\n\r\n\0\u{1}raw answer"
    );
    assert_eq!(server.seen(), ["raw bytes\r\n\r\n"]);
}

#[test]
fn proxy_refuses_other_hosts_by_name() {
    let server = Server::http();
    let rig = Rig::new(&["crates.io".to_owned()]);
    for head in [
        "GET http://example.org/ HTTP/1.1\r\n\r\n".to_owned(),
        "CONNECT example.org:443 HTTP/1.1\r\n\r\n".to_owned(),
        "CONNECT crates.io:22 HTTP/1.1\r\n\r\n".to_owned(),
        format!("GET http://{}/ HTTP/1.1\r\n\r\n", server.address),
        format!("CONNECT {} HTTP/1.1\r\n\r\n", server.address),
        format!("CONNECT 0x7f.1:{} HTTP/1.1\r\n\r\n", server.port()),
        format!(
            "CONNECT [::ffff:127.0.0.1]:{} HTTP/1.1\r\n\r\n",
            server.port()
        ),
    ] {
        let answer = rig.send(&head);
        assert_eq!(status(&answer), "403", "{head} {answer}");
        assert!(answer.contains("`[sandbox] network`"), "{answer}");
    }
    assert!(
        rig.send("CONNECT Example.ORG:443 HTTP/1.1\r\n\r\n")
            .contains("`example.org:443` is not among the hosts")
    );
    assert!(server.seen().is_empty());
}

#[test]
fn proxy_refuses_a_listed_name_at_a_private_address() {
    let server = Server::http();
    let at = server.port();
    let request = format!("GET http://localhost:{at}/ HTTP/1.1\r\n\r\n");
    let rig = Rig::new(&[format!("localhost:{at}")]);
    let answer = rig.send(&request);
    assert_eq!(status(&answer), "403", "{answer}");
    assert!(
        answer.contains("not an address of the public internet") && answer.contains("`localhost:"),
        "{answer}"
    );
    assert!(server.seen().is_empty());
    // Only listing the address itself, at that port, allows it.
    let rig = Rig::new(&[
        format!("localhost:{at}"),
        "127.0.0.1".into(),
        "[::1]".into(),
    ]);
    assert_eq!(status(&rig.send(&request)), "403");
    let rig = Rig::new(&[format!("localhost:{at}"), format!("127.0.0.1:{at}")]);
    assert_eq!(status(&rig.send(&request)), "200");
}

#[test]
fn proxy_passes_redirects_to_the_client() {
    let other = Server::http();
    let moved = format!(
        "HTTP/1.1 302 Found\r\nLocation: http://{}/\r\nContent-Length: 0\r\n\r\n",
        other.address
    );
    let server = Server::answering(moved);
    let rig = Rig::new(&[server.address.to_string()]);
    let answer = rig.send(format!("GET http://{}/ HTTP/1.1\r\n\r\n", server.address));
    assert_eq!(status(&answer), "302");
    assert!(other.seen().is_empty(), "the proxy follows nothing");
    let location = answer
        .lines()
        .find_map(|line| line.strip_prefix("Location: "))
        .unwrap();
    assert_eq!(
        status(&rig.send(format!("GET {location} HTTP/1.1\r\n\r\n"))),
        "403"
    );
}

#[test]
fn proxy_rejects_smuggled_requests() {
    let server = Server::http();
    let at = server.address;
    let rig = Rig::new(&[at.to_string()]);
    let hidden = format!("GET http://{at}/hidden HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    // Bytes after the end of a request are not forwarded.
    let answer = rig.send(format!("GET http://{at}/ HTTP/1.1\r\n\r\n{hidden}"));
    assert_eq!(status(&answer), "200");
    assert_eq!(
        answer.matches("HTTP/1.1").count(),
        1,
        "one answer: {answer}"
    );
    let answer = rig.send(format!(
        "POST http://{at}/ HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc{hidden}"
    ));
    assert_eq!(status(&answer), "200");
    for framing in [
        "Content-Length: 3\r\nContent-Length: 40",
        "Content-Length: 3\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 3",
        "Host: evil.example",
        "Host: 127.0.0.1:1",
        "X: y\nHost: evil.example",
    ] {
        let answer = rig.send(format!(
            "POST http://{at}/ HTTP/1.1\r\n{framing}\r\n\r\nabc{hidden}"
        ));
        assert_eq!(status(&answer), "400", "{framing}");
    }
    let answer = rig.send(format!(
        "POST http://{at}/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}"
    ));
    assert_eq!(status(&answer), "411");
    let seen = server.seen();
    assert_eq!(seen.len(), 2, "{seen:?}");
    // The server's threads may record the requests in either order.
    assert!(
        seen.iter().any(|text| text.ends_with("\r\n\r\nabc")),
        "{seen:?}"
    );
    assert!(seen.iter().all(|text| !text.contains("hidden")), "{seen:?}");
}

#[test]
fn proxy_forwards_a_body_whole_in_any_pieces() {
    let server = Server::http();
    let at = server.address;
    let rig = Rig::new(&[at.to_string()]);
    let body = "x".repeat(300_000);
    let mut client = UnixStream::connect(&rig.socket).unwrap();
    let head = format!(
        "PUT http://{at}/ HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    for piece in head.as_bytes().chunks(7) {
        client.write_all(piece).unwrap();
    }
    let mut go_on = [0; 25];
    client.read_exact(&mut go_on).unwrap();
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    client.write_all(body.as_bytes()).unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("hello"), "{answer}");
    assert!(server.seen()[0].ends_with(&format!("\r\n\r\n{body}")));
}

#[test]
fn proxy_rejects_a_huge_head() {
    let rig = Rig::new(&["crates.io".to_owned()]);
    let answer = rig.send(format!(
        "GET http://crates.io/ HTTP/1.1\r\nX: {}\r\n\r\n",
        "x".repeat(64 << 10)
    ));
    assert_eq!(status(&answer), "431", "{answer}");
    let answer = rig.send("x".repeat(64 << 10));
    assert_eq!(status(&answer), "431", "{answer}");
}

#[test]
fn proxy_times_out_a_slow_client_without_blocking_others() {
    let server = Server::http();
    let at = server.address;
    let rig = Rig::new(&[at.to_string()]);
    let mut slow = UnixStream::connect(&rig.socket).unwrap();
    slow.write_all(b"GET http://").unwrap();
    assert_eq!(
        status(&rig.send(format!("GET http://{at}/ HTTP/1.1\r\n\r\n"))),
        "200"
    );
    let mut answer = String::new();
    slow.read_to_string(&mut answer).unwrap();
    assert_eq!(status(&answer), "408", "{answer}");
}

#[test]
fn proxy_reports_an_unreachable_server() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    drop(listener);
    let rig = Rig::new(&[at.to_string(), "no-such-name.invalid".to_owned()]);
    let answer = rig.send(format!("CONNECT {at} HTTP/1.1\r\n\r\n"));
    assert!(
        status(&answer) == "502" && answer.contains(&format!("`{at}` does not answer")),
        "{answer}"
    );
    let answer = rig.send("CONNECT no-such-name.invalid:443 HTTP/1.1\r\n\r\n");
    assert!(
        status(&answer) == "502" && answer.contains("has no address"),
        "{answer}"
    );
}

#[test]
fn proxy_socket_is_private_and_removed_with_the_proxy() {
    let server = Server::answering("raw");
    let mut rig = Rig::new(&[server.address.to_string()]);
    assert_eq!(
        std::fs::metadata(&rig.socket).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let taken = rig
        .runtime
        .block_on(async { Proxy::start(rig.socket.clone(), Hosts::default()) });
    assert!(taken.is_err(), "never takes the place of another");
    let mut open = UnixStream::connect(&rig.socket).unwrap();
    open.write_all(format!("CONNECT {} HTTP/1.1\r\n\r\n", server.address).as_bytes())
        .unwrap();
    let mut established = [0; 39];
    open.read_exact(&mut established).unwrap();
    rig.proxy = None;
    assert!(!rig.socket.exists());
    // The tunnel is closed, too.
    let mut rest = Vec::new();
    let _ = open.read_to_end(&mut rest);
    assert!(rest.is_empty(), "{rest:?}");
}

#[test]
fn forwarder_copies_both_ways_for_many_clients() {
    let server = Server::http();
    let at = server.address;
    let rig = Rig::new(&[at.to_string()]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let entrance = listener.local_addr().unwrap();
    let socket = rig.socket.clone();
    std::thread::spawn(move || forward_connections(listener, &socket));
    let ask = move |request: String| {
        let mut client = TcpStream::connect(entrance).unwrap();
        client.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        answer
    };
    let asking: Vec<_> = (0..40)
        .map(|number| {
            std::thread::spawn(move || match number % 2 {
                0 => ask(format!("GET http://{at}/ HTTP/1.1\r\n\r\n")).ends_with("hello"),
                // The refusal arrives whole although the client sent more bytes than the proxy
                // read.
                _ => ask(format!(
                    "POST http://evil.example/ HTTP/1.1\r\n\r\n{}",
                    "x".repeat(9000)
                ))
                .contains("evil.example"),
            })
        })
        .collect();
    for asked in asking {
        assert!(asked.join().unwrap());
    }
    drop(rig);
    let mut client = TcpStream::connect(entrance).unwrap();
    client
        .set_read_timeout(Some(Duration::from_mins(1)))
        .unwrap();
    let mut answer = Vec::new();
    let _ = client.read_to_end(&mut answer);
    assert!(answer.is_empty(), "without a proxy a connection just ends");
}
