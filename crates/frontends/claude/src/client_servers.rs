//! MCP servers that run inside the client. Every message to such a server is a request to the
//! client.

use std::sync::Arc;

use haft_mcp::ServerLink;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::sync::mpsc::unbounded_channel;

use crate::StreamControl;

/// The size of the buffer for each direction of a connection, in bytes.
const BUFFER_BYTES: usize = 64 * 1024;
/// The JSON-RPC code of an internal error.
const INTERNAL_ERROR: i32 = -32603;

/// Connects to MCP servers that run inside the client's process.
pub struct ClientServers(Arc<StreamControl>);

impl ClientServers {
    /// Creates connections that use `control` to reach the client.
    pub fn new(control: Arc<StreamControl>) -> Self {
        Self(control)
    }
}

impl ServerLink for ClientServers {
    fn connect(&self, server: &str) -> DuplexStream {
        let (here, there) = tokio::io::duplex(BUFFER_BYTES);
        tokio::spawn(forward_messages(
            Arc::clone(&self.0),
            server.to_owned(),
            here,
        ));
        there
    }
}

/// Forwards JSON-RPC messages, one per line, between `pipe` and a server inside the client, until
/// the pipe is closed.
async fn forward_messages(control: Arc<StreamControl>, server: String, pipe: DuplexStream) {
    let (read, mut write) = tokio::io::split(pipe);
    let (answers, mut ready) = unbounded_channel::<Value>();
    tokio::spawn(async move {
        while let Some(answer) = ready.recv().await {
            if write
                .write_all(format!("{answer}\n").as_bytes())
                .await
                .is_err()
            {
                break;
            }
        }
    });
    let mut lines = BufReader::new(read).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let Ok(message) = serde_json::from_str::<Value>(&line) else {
            continue;
        };
        let control = Arc::clone(&control);
        let answers = answers.clone();
        let server = server.clone();
        let id = message.get("id").cloned();
        let request = json!({"subtype": "mcp_message", "server_name": server, "message": message});
        let Some(id) = id else {
            // Later messages may depend on a notification, so wait for it.
            drop(control.call_client(&request, None).await);
            continue;
        };
        tokio::spawn(async move {
            let answer = control
                .call_client(&request, None)
                .await
                .and_then(|mut answer| {
                    Some(answer["mcp_response"].take())
                        .filter(Value::is_object)
                        .ok_or_else(|| "the client gave no answer of the server".to_owned())
                });
            let failed = |why: String| json!({"jsonrpc": "2.0", "id": id, "error": {"code": INTERNAL_ERROR, "message": why}});
            drop(answers.send(answer.unwrap_or_else(failed)));
        });
    }
}
