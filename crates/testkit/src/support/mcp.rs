//! An MCP server over HTTP with the behaviors that tests need: it answers, fails, is slow, hangs,
//! asks the user, and changes its list of tools.
//!
//! The server is written directly on sockets and JSON, without the SDK that haft uses, so that a
//! mistake in the SDK can't cancel itself out. Invariant: the server answers only requests that its
//! revision defines, and keeps all messages it received.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use serde_json::{Value, json};

use super::mcp_login::Logins;

/// A `/bin/sh` script that is an MCP server of the previous protocol revision. Its tool `show`
/// prints environment variables; its tool `die` exits. At each start, the server appends a line to
/// the file `starts` in its folder.
pub const SHELL_MCP_SERVER: &str = include_str!("mcp_server.sh");

/// The protocol revision that the server supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revision {
    /// The server supports only revision 2026-07-28.
    Current,
    /// The server supports only revision 2025-11-25.
    Previous,
}

/// An MCP server in threads of its own, which run until the test program ends.
pub struct McpServer {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    revision: Revision,
    /// The fixed bearer token that every request must contain; `None` if the server was started
    /// without one.
    token: Option<String>,
    logins: Option<Logins>,
    received: Mutex<Vec<Value>>,
    message_arrived: Condvar,
    grown: AtomicBool,
}

impl McpServer {
    /// Starts a server without authorization.
    pub fn start(revision: Revision) -> io::Result<Self> {
        Self::start_with(revision, None, None)
    }

    /// Starts a server that rejects requests without `token`.
    pub fn start_guarded(revision: Revision, token: &str) -> io::Result<Self> {
        Self::start_with(revision, Some(token.to_owned()), None)
    }

    /// Starts a server that requires a login and whose tokens expire after `seconds` seconds.
    pub fn start_with_login(revision: Revision, seconds: u64) -> io::Result<Self> {
        Self::start_with(revision, None, Some(seconds))
    }

    fn start_with(
        revision: Revision,
        token: Option<String>,
        login: Option<u64>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            revision,
            token,
            logins: login.map(|seconds| Logins::new(format!("http://{address}"), seconds)),
            received: Mutex::default(),
            message_arrived: Condvar::new(),
            grown: AtomicBool::new(false),
        });
        let serving = Arc::clone(&shared);
        thread::spawn(move || {
            for visitor in listener.incoming().flatten() {
                let shared = Arc::clone(&serving);
                thread::spawn(move || drop(shared.serve_connection(visitor)));
            }
        });
        Ok(Self { address, shared })
    }

    /// Returns the URL of the server's MCP endpoint.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Returns the OAuth grant types that clients used to get tokens, in order.
    pub fn grants(&self) -> Vec<String> {
        self.shared
            .logins
            .as_ref()
            .map(Logins::grants)
            .unwrap_or_default()
    }

    /// Returns all messages that the server has received, in order.
    pub fn received_messages(&self) -> Vec<Value> {
        self.shared.lock_received().clone()
    }

    /// Returns the methods of all messages that the server has received, in order.
    pub fn methods(&self) -> Vec<String> {
        self.received_messages()
            .iter()
            .filter_map(|message| Some(message["method"].as_str()?.to_owned()))
            .collect()
    }

    /// Waits until the server has received a message for which `like` returns true, and returns
    /// that message.
    pub fn wait_for_message(&self, like: impl Fn(&Value) -> bool) -> Value {
        self.shared.wait_for_message(like)
    }
}

impl Shared {
    fn lock_received(&self) -> MutexGuard<'_, Vec<Value>> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_for_message(&self, like: impl Fn(&Value) -> bool) -> Value {
        let mut heard = self.lock_received();
        loop {
            if let Some(found) = heard.iter().find(|message| like(message)) {
                return found.clone();
            }
            heard = self
                .message_arrived
                .wait(heard)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn serve_connection(&self, visitor: TcpStream) -> io::Result<()> {
        let mut reader = BufReader::new(visitor.try_clone()?);
        let mut visitor = visitor;
        while let Some(request) = read_request(&mut reader)? {
            if let Some(logins) = &self.logins {
                if let Some((status, headers, body)) =
                    logins.serve_page(&request.target, &request.body)
                {
                    write_response(&mut visitor, status, &headers, &body)?;
                    continue;
                }
                if !logins.admits(request.authorization.as_deref()) {
                    write_response(
                        &mut visitor,
                        "401 Unauthorized",
                        &logins.challenge_header(),
                        "",
                    )?;
                    continue;
                }
            }
            if let Some(token) = &self.token
                && request.authorization.as_deref() != Some(&format!("Bearer {token}"))
            {
                write_response(
                    &mut visitor,
                    "401 Unauthorized",
                    "www-authenticate: Bearer\r\n",
                    "",
                )?;
                continue;
            }
            if request.method != "POST" {
                write_response(&mut visitor, "405 Method Not Allowed", "", "")?;
                continue;
            }
            let message: Value = serde_json::from_slice(&request.body)?;
            self.lock_received().push(message.clone());
            self.message_arrived.notify_all();
            if message["id"].is_null() || message["method"].is_null() {
                write_response(&mut visitor, "202 Accepted", "", "")?;
                continue;
            }
            self.respond_to_request(&mut visitor, &message)?;
        }
        Ok(())
    }

    fn respond_to_request(&self, visitor: &mut TcpStream, request: &Value) -> io::Result<()> {
        let method = request["method"].as_str().unwrap_or_default();
        let complete = |mut result: Value| {
            if self.revision == Revision::Current {
                result["resultType"] = "complete".into();
            }
            json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })
        };
        let capabilities =
            json!({ "tools": { "listChanged": true }, "resources": {}, "prompts": {} });
        let reply = match (method, self.revision) {
            ("initialize", Revision::Previous) => complete(json!({
                "protocolVersion": "2025-11-25", "capabilities": capabilities, "instructions": "Be gentle.",
                "serverInfo": { "name": "testkit", "version": "1" }
            })),
            ("server/discover", Revision::Current) => complete(json!({
                "supportedVersions": ["2026-07-28"], "capabilities": capabilities, "instructions": "Be gentle.",
                "ttlMs": 0, "cacheScope": "private",
                "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "testkit", "version": "1" } }
            })),
            ("ping", _) => complete(json!({})),
            ("tools/list", _) => complete(self.list_tools_page(&request["params"]["cursor"])),
            ("resources/list", _) => complete(with_cache_fields(
                json!({ "resources": [{ "uri": "mem:a", "name": "a" }] }),
            )),
            ("resources/templates/list", _) => {
                complete(with_cache_fields(json!({ "resourceTemplates": [] })))
            }
            ("resources/read", _) => complete(with_cache_fields(
                json!({ "contents": [{ "uri": "mem:a", "text": "content of a" }] }),
            )),
            ("prompts/list", _) => complete(with_cache_fields(json!({ "prompts": [
                { "name": "greet", "description": "Greets.", "arguments": [{ "name": "whom", "required": true }] }] }))),
            ("prompts/get", _) => complete(json!({ "messages": [{ "role": "user",
                "content": { "type": "text", "text": format!("Hello {}.", request["params"]["arguments"]["whom"]) } }] })),
            ("tools/call", _) => return self.call_tool(visitor, request, &complete),
            _ => json!({ "jsonrpc": "2.0", "id": request["id"],
                "error": { "code": -32601, "message": format!("Method not found: {method}") } }),
        };
        write_response(
            visitor,
            "200 OK",
            "content-type: application/json\r\n",
            &reply.to_string(),
        )
    }

    /// Returns one page of the list of tools. A page contains two tools.
    fn list_tools_page(&self, cursor: &Value) -> Value {
        let tool = |name: &str, description: &str| {
            json!({ "name": name, "description": description,
            "inputSchema": { "type": "object", "properties": { "text": { "type": "string" } } } })
        };
        let mut tools = vec![
            tool("echo", "Says what it was told."),
            tool("fail", "Always fails."),
            tool("picture", "Shows a picture."),
            tool("long", "Says more than anybody reads."),
            tool("structured", "Answers with data alone."),
            tool("slow", "Takes its time and says so."),
            tool("stuck", "Never answers."),
            tool("ask", "Asks the user."),
            tool("grow", "Gets a new tool."),
        ];
        if self.grown.load(Ordering::SeqCst) {
            tools.push(tool("grown", "Was not there before."));
        }
        let from: usize = cursor
            .as_str()
            .and_then(|cursor| cursor.parse().ok())
            .unwrap_or(0);
        let mut page =
            with_cache_fields(json!({ "tools": tools[from..tools.len().min(from + 2)] }));
        if from + 2 < tools.len() {
            page["nextCursor"] = (from + 2).to_string().into();
        }
        page
    }

    fn call_tool(
        &self,
        visitor: &mut TcpStream,
        request: &Value,
        complete: &dyn Fn(Value) -> Value,
    ) -> io::Result<()> {
        let text = |text: String| json!({ "content": [{ "type": "text", "text": text }] });
        let name = &request["params"]["name"];
        let arguments = &request["params"]["arguments"];
        let mut before = Vec::new();
        let result = match name.as_str().unwrap_or_default() {
            "echo" => text(arguments.to_string()),
            "fail" => {
                json!({ "content": [{ "type": "text", "text": "it went wrong" }], "isError": true })
            }
            "picture" => {
                json!({ "content": [{ "type": "image", "mimeType": "image/png", "data": "aGFmdA==" }] })
            }
            "long" => text(
                (0..5_000)
                    .map(|line| format!("\u{1b}[31mline {line}\u{1b}[0m"))
                    .collect::<Vec<_>>()
                    .join("\n"),
            ),
            "structured" => json!({ "content": [], "structuredContent": { "answer": 42 } }),
            "stuck" => {
                let id = request["id"].clone();
                self.wait_for_message(|heard| {
                    heard["params"]["requestId"] == id
                        && heard["method"] == "notifications/cancelled"
                });
                return Ok(());
            }
            "slow" => {
                let token = &request["params"]["_meta"]["progressToken"];
                before.extend((1..=3).map(|step| {
                    json!({ "jsonrpc": "2.0", "method": "notifications/progress",
                    "params": { "progressToken": token, "progress": step, "total": 3, "message": "working" } })
                }));
                text("done at last".into())
            }
            "grow" => {
                self.grown.store(true, Ordering::SeqCst);
                before.push(
                    json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }),
                );
                text("grown".into())
            }
            "ask" => {
                let question = match &request["params"]["arguments"]["url"] {
                    Value::Null => json!({
                        "message": "Your name?",
                        "requestedSchema": { "type": "object", "properties": { "name": { "type": "string" } } } }),
                    url => json!({
                        "mode": "url", "message": "Your name?", "url": url, "elicitationId": "e1" }),
                };
                let question = json!({
                    "jsonrpc": "2.0", "id": "q1", "method": "elicitation/create", "params": question });
                begin_stream(visitor)?;
                write_event(visitor, &question)?;
                let answer =
                    self.wait_for_message(|heard| heard["id"] == "q1" && heard["method"].is_null());
                write_event(visitor, &complete(text(answer["result"].to_string())))?;
                return visitor.write_all(b"0\r\n\r\n");
            }
            other => {
                json!({ "content": [{ "type": "text", "text": format!("no tool {other}") }], "isError": true })
            }
        };
        if before.is_empty() {
            return write_response(
                visitor,
                "200 OK",
                "content-type: application/json\r\n",
                &complete(result).to_string(),
            );
        }
        begin_stream(visitor)?;
        before
            .iter()
            .try_for_each(|message| write_event(visitor, message))?;
        write_event(visitor, &complete(result))?;
        visitor.write_all(b"0\r\n\r\n")
    }
}

/// Adds the cache fields that the current protocol revision requires in cacheable results.
fn with_cache_fields(mut result: Value) -> Value {
    result["ttlMs"] = 0.into();
    result["cacheScope"] = "private".into();
    result
}

struct Request {
    method: String,
    target: String,
    authorization: Option<String>,
    body: Vec<u8>,
}

fn read_request(reader: &mut BufReader<TcpStream>) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split(' ').map(str::to_owned);
    let method = words.next().unwrap_or_default();
    let target = words.next().unwrap_or_default();
    let mut length = 0;
    let mut authorization = None;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        match line.trim_end().split_once(": ") {
            None => break,
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.parse().unwrap_or(0);
            }
            Some((name, value)) if name.eq_ignore_ascii_case("authorization") => {
                authorization = Some(value.to_owned());
            }
            Some(_) => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(Request {
        method,
        target,
        authorization,
        body,
    }))
}

fn write_response(
    visitor: &mut TcpStream,
    status: &str,
    headers: &str,
    body: &str,
) -> io::Result<()> {
    write!(
        visitor,
        "HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn begin_stream(visitor: &mut TcpStream) -> io::Result<()> {
    write!(
        visitor,
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    )
}

fn write_event(visitor: &mut TcpStream, message: &Value) -> io::Result<()> {
    let text = format!("event: message\ndata: {message}\n\n");
    write!(visitor, "{:x}\r\n{text}\r\n", text.len())
}
