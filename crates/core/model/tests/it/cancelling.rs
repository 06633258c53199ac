//! Canceling ends a request at once in every phase.
//!
//! The tests use no clock: in each phase a silent server holds the request, and the first poll
//! after the cancellation must return.

use std::pin::pin;
use std::task::Poll;

use futures::poll;
use haft_model::{Delta, RetryConfig};
use haft_types::Api;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{client_of, hello_request, provider};

/// Starts a server that sends `answer` after the request and then stays silent. Sends on the
/// channel when the answer is sent.
async fn serve_and_hold(
    scheme: &str,
    answer: Option<&'static str>,
) -> (String, mpsc::UnboundedReceiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("{scheme}://{}/v1", listener.local_addr().unwrap());
    let (reached, waiting) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        // Reads the first bytes of a handshake, or the whole request: it fits into the buffer.
        let mut request = vec![0; 64 * 1024];
        assert!(stream.read(&mut request).await.unwrap() > 0);
        if let Some(answer) = answer {
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
        reached.send(()).unwrap();
        std::future::pending::<()>().await;
    });
    (url, waiting)
}

/// The event after which the test cancels the request.
#[derive(Clone, Copy, PartialEq)]
enum Until {
    /// The server has sent its answer.
    Sent,
    /// The client has reported a piece of the reply, or a retry.
    Told,
}

async fn assert_canceled_at_once(
    phase: &str,
    scheme: &str,
    answer: Option<&'static str>,
    until: Until,
) {
    let (url, mut sent) = serve_and_hold(scheme, answer).await;
    let retry = RetryConfig {
        connect_timeout_s: 600,
        ..RetryConfig::default()
    };
    let mut client = client_of(provider(Api::OpenaiChat, &url), retry);
    let cancel = CancellationToken::new();
    let request = hello_request();
    let (tell, mut told) = mpsc::unbounded_channel::<Delta>();
    let mut sink = move |delta| drop(tell.send(delta));
    let mut asking = pin!(client.stream_reply(&request, &cancel, &mut sink));
    let reached = async {
        match until {
            Until::Sent => drop(sent.recv().await),
            Until::Told => drop(told.recv().await),
        }
    };
    tokio::select! {
        biased;
        ended = &mut asking => panic!("{phase}: ended by itself: {ended:?}"),
        () = reached => {}
    }
    cancel.cancel();
    match poll!(&mut asking) {
        Poll::Ready(Err(error)) => assert!(error.is_cancelled(), "{phase}: {error}"),
        Poll::Ready(Ok(reply)) => panic!("{phase}: {reply:?}"),
        Poll::Pending => panic!("{phase}: it goes on"),
    }
}

const HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const PIECE: &str = "33\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"Hello\"}}]}\n\n\r\n";

#[tokio::test]
async fn client_cancel_ends_a_request_in_every_phase() {
    let piece: &'static str = format!("{HEAD}{PIECE}").leak();
    let half_event: &'static str = format!("{HEAD}{}", &PIECE[..20]).leak();
    let ending =
        "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\n";
    let ended: &'static str = format!("{HEAD}{:x}\r\n{ending}\r\n", ending.len()).leak();
    let phases = [
        ("in the handshake", "https", None, Until::Sent),
        ("before the head", "http", None, Until::Sent),
        ("in the head", "http", Some("HTTP/1.1 200 O"), Until::Sent),
        ("after the head", "http", Some(HEAD), Until::Sent),
        ("in an event", "http", Some(half_event), Until::Sent),
        ("between events", "http", Some(piece), Until::Told),
        (
            "after the end, before the usage",
            "http",
            Some(ended),
            Until::Told,
        ),
        (
            "in the body of an error",
            "http",
            Some("HTTP/1.1 500 No\r\ncontent-length: 90\r\n\r\n{\"err"),
            Until::Sent,
        ),
        (
            "in the wait before a retry",
            "http",
            Some("HTTP/1.1 503 Busy\r\nretry-after: 600\r\ncontent-length: 2\r\n\r\n{}"),
            Until::Told,
        ),
    ];
    for (phase, scheme, answer, until) in phases {
        assert_canceled_at_once(phase, scheme, answer, until).await;
    }
}

#[tokio::test]
async fn client_cancel_before_the_request_sends_nothing() {
    let (url, mut reached) = serve_and_hold("http", None).await;
    let mut client = client_of(provider(Api::OpenaiChat, &url), RetryConfig::default());
    let cancel = CancellationToken::new();
    cancel.cancel();
    let error = client
        .stream_reply(&hello_request(), &cancel, &mut |_| {})
        .await
        .unwrap_err();
    assert!(error.is_cancelled());
    assert!(reached.try_recv().is_err(), "nothing was sent");
}
