//! The forwarder inside a command's network namespace: it copies every connection to the loopback
//! interface to the proxy's socket.

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread::{self, Builder};
use std::time::Duration;

/// The stack size of a thread that only copies bytes, in bytes.
const STACK_BYTES: usize = 64 << 10;

/// Forwards every connection that `listener` accepts to the Unix socket at `socket`, for as long as
/// the process lives.
///
/// This function starts threads, so it needs a process of its own.
#[expect(
    clippy::needless_pass_by_value,
    reason = "nobody else is to accept its connections"
)]
pub fn forward_connections(listener: TcpListener, socket: &Path) -> ! {
    loop {
        let started = listener.accept().and_then(|(client, _)| {
            let socket = socket.to_owned();
            Builder::new()
                .stack_size(STACK_BYTES)
                .spawn(move || relay_connection(&client, &socket))
                .map(drop)
        });
        if started.is_err() {
            // No descriptor or thread is free; retry shortly. The client sees that this connection
            // is closed.
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Copies bytes in both directions until the connection ends. Errors are not reported: the client
/// sees that the connection is closed.
fn relay_connection(client: &TcpStream, socket: &Path) {
    let Ok(proxy) = UnixStream::connect(socket) else {
        return;
    };
    let (Ok(mut from_client), Ok(mut to_proxy)) = (client.try_clone(), proxy.try_clone()) else {
        return;
    };
    let sending = Builder::new().stack_size(STACK_BYTES).spawn(move || {
        let _ = io::copy(&mut from_client, &mut to_proxy);
        let _ = to_proxy.shutdown(Shutdown::Write);
    });
    if sending.is_ok() {
        let _ = io::copy(&mut &proxy, &mut &*client);
    }
    // The client may still be sending; it sees the end of the stream and closes.
    let _ = client.shutdown(Shutdown::Write);
}
