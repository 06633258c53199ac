//! A transport with one JSON-RPC message per line. An invalid line is answered with an error and
//! never ends the connection.
//!
//! Invariant: no two pending requests have the same id.

use std::collections::HashSet;
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt as _;
use futures::stream::BoxStream;
use rmcp::model::{
    ClientNotification, ClientRequest, GetMeta as _, JsonRpcMessage, ProtocolVersion, RequestId,
};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio_util::sync::CancellationToken;

use crate::stdio_lines::read_lines;

const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;

pub(super) struct LineTransport<W> {
    input: BoxStream<'static, io::Result<String>>,
    output: Arc<tokio::sync::Mutex<W>>,
    pending: Arc<Mutex<HashSet<RequestId>>>,
    /// True once a request has opened the session. Until then, all messages that do not open it are
    /// dropped.
    is_open: bool,
    /// A token that is canceled when the input ends.
    input_ended: CancellationToken,
}

/// The error for an input line that is not a valid message, with the id that the error response
/// contains.
struct BadLine {
    id: Value,
    code: i32,
    message: String,
}

impl<W: AsyncWrite + Send + Unpin + 'static> LineTransport<W> {
    pub(super) fn new(
        input: impl AsyncRead + Send + Unpin + 'static,
        output: W,
        input_ended: CancellationToken,
    ) -> Self {
        Self {
            input: read_lines(input).boxed(),
            output: Arc::new(tokio::sync::Mutex::new(output)),
            pending: Arc::default(),
            is_open: false,
            input_ended,
        }
    }

    /// Parses an input line. Returns `None` if the line is to be ignored.
    fn parse_line(&mut self, line: &str) -> Result<Option<RxJsonRpcMessage<RoleServer>>, BadLine> {
        if line.trim().is_empty() {
            return Ok(None);
        }
        let bad = |id: Value, code: i32, message: String| BadLine { id, code, message };
        let value: Value = serde_json::from_str(line).map_err(|error| {
            bad(
                Value::Null,
                PARSE_ERROR,
                format!("the line is not JSON: {error}"),
            )
        })?;
        let Value::Object(object) = &value else {
            let message = "a message is one JSON object; batches are not supported";
            return Err(bad(Value::Null, INVALID_REQUEST, message.to_owned()));
        };
        let id = object
            .get("id")
            .filter(|id| id.is_i64() || id.is_string())
            .cloned();
        let is_request = object.contains_key("method") && object.contains_key("id");
        let message = match serde_json::from_value::<RxJsonRpcMessage<RoleServer>>(value) {
            Ok(message) => message,
            // Invalid responses and notifications get no answer.
            Err(_) if !is_request => return Ok(None),
            Err(error) => {
                return Err(bad(
                    id.unwrap_or_default(),
                    INVALID_REQUEST,
                    error.to_string(),
                ));
            }
        };
        self.admit_message(message)
    }

    fn admit_message(
        &mut self,
        message: RxJsonRpcMessage<RoleServer>,
    ) -> Result<Option<RxJsonRpcMessage<RoleServer>>, BadLine> {
        let mut under_way = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        match &message {
            JsonRpcMessage::Request(request) => {
                if !under_way.insert(request.id.clone()) {
                    let id = serde_json::to_value(&request.id).unwrap_or_default();
                    let message = "a request with this id is still under way".to_owned();
                    return Err(BadLine {
                        id,
                        code: INVALID_REQUEST,
                        message,
                    });
                }
                self.is_open |= opens_session(&request.request);
                return Ok(Some(message));
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    // A canceled request gets no response.
                    under_way.remove(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        Ok(Some(message).filter(|_| self.is_open))
    }
}

/// True if a request opens the session: an `initialize` request, or a request whose metadata
/// contains all data that `initialize` would transmit.
fn opens_session(request: &ClientRequest) -> bool {
    let meta = request.get_meta();
    match request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::DiscoverRequest(_) | ClientRequest::PingRequest(_) => false,
        _ => {
            let known =
                |version: ProtocolVersion| ProtocolVersion::KNOWN_VERSIONS.contains(&version);
            meta.missing_required_keys(&ProtocolVersion::V_2026_07_28)
                .is_empty()
                && meta.protocol_version().is_some_and(known)
        }
    }
}

async fn write_line<W: AsyncWrite + Unpin>(
    output: &tokio::sync::Mutex<W>,
    mut line: Vec<u8>,
) -> io::Result<()> {
    line.push(b'\n');
    let mut output = output.lock().await;
    output.write_all(&line).await?;
    output.flush().await
}

impl<W: AsyncWrite + Send + Unpin + 'static> Transport<RoleServer> for LineTransport<W> {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let answered = match &item {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        if let Some(id) = answered {
            self.pending
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .remove(id);
        }
        let line = serde_json::to_vec(&item);
        let output = Arc::clone(&self.output);
        async move { write_line(&output, line?).await }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let Some(Ok(line)) = self.input.next().await else {
                self.input_ended.cancel();
                return None;
            };
            match self.parse_line(&line) {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                Err(BadLine { id, code, message }) => {
                    let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}});
                    let output = Arc::clone(&self.output);
                    // Written by a task of its own, because this future may be dropped at any
                    // moment and lines must not be cut.
                    tokio::spawn(async move {
                        write_line(&output, error.to_string().into_bytes()).await
                    });
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.output.lock().await.shutdown().await
    }
}
