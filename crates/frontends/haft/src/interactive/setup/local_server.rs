//! Checks whether a model server runs on this machine.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

/// The time limit for an answer. A server that answers later counts as not running.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(400);

/// Returns true if the server at this address lists models. Contacts only this machine.
pub(super) fn is_model_server(base_url: &str) -> bool {
    request_models(base_url).is_some_and(|reply| {
        let status = reply.split(' ').nth(1).unwrap_or_default();
        // A server that requires a key counts, too; a server that answers with a web page does not.
        status == "401"
            || status == "200"
                && reply
                    .split_once("\r\n\r\n")
                    .is_some_and(|(_, body)| body.contains('{'))
    })
}

fn request_models(base_url: &str) -> Option<String> {
    let rest = base_url.strip_prefix("http://")?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let address = if host.contains(':') {
        host.to_owned()
    } else {
        format!("{host}:80")
    };
    let is_here = |address: &SocketAddr| address.ip().is_loopback();
    let address = address.to_socket_addrs().ok()?.find(is_here)?;
    let mut stream = TcpStream::connect_timeout(&address, ANSWER_TIMEOUT).ok()?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT)).ok()?;
    let path = path.trim_end_matches('/');
    write!(
        stream,
        "GET /{path}/models HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )
    .ok()?;
    let mut bytes = vec![0; 4096];
    let mut filled = 0;
    while filled < bytes.len() {
        match stream.read(&mut bytes[filled..]) {
            Ok(0) | Err(_) => break,
            Ok(count) => filled += count,
        }
    }
    Some(String::from_utf8_lossy(&bytes[..filled]).into_owned())
        .filter(|text| text.starts_with("HTTP/1."))
}
