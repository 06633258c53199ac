//! Dispatches the messages of an editor: one task receives them in order and spawns a task for each
//! long operation.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema::{
    AgentCapabilities, AuthMethod, AuthMethodAgent, AuthMethodTerminal, AuthenticateResponse,
    ClientCapabilities, ClientNotification, ClientRequest, CloseSessionResponse,
    DeleteSessionResponse, Implementation, InitializeRequest, InitializeResponse,
    ListSessionsRequest, ListSessionsResponse, LoadSessionResponse, McpCapabilities, McpServer,
    NewSessionRequest, NewSessionResponse, PromptCapabilities, PromptRequest,
    ResumeSessionResponse, SessionAdditionalDirectoriesCapabilities, SessionCapabilities,
    SessionCloseCapabilities, SessionConfigOptionValue, SessionDeleteCapabilities, SessionId,
    SessionInfo, SessionListCapabilities, SessionResumeCapabilities, SetSessionConfigOptionRequest,
    SetSessionConfigOptionResponse, SetSessionModeResponse,
};
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{Agent, Client, Error, Lines};
use haft_types::ConversationId;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::{LocalSet, spawn_local};

use crate::editor_files::EditorFiles;
use crate::forms;
use crate::host::{Host, ListedConversation, new_conversation_id};
use crate::live_session::{LiveSession, SessionSetup, host_error, invalid_params};
use crate::stdio_lines;
use crate::terminal::EditorTerminals;
use crate::tool_calls::OpenCalls;
use crate::updates::{EditorFeatures, SharedCalls, UpdateSender};

/// The maximum number of sessions in one page of `session/list`.
const PAGE_SIZE: usize = 100;
/// The id of the authentication method with which users choose their first model.
const SETUP_METHOD_ID: &str = "setup";

/// A message from the editor: a request to be answered, or a notification.
enum Incoming {
    Request(Box<(ClientRequest, Responder, ConnectionTo<Client>)>),
    Notification(ClientNotification),
}

/// Serves the Agent Client Protocol over `input` and `output`, until the input ends or `end`
/// resolves. At the end, running turns are canceled; they can be resumed later.
pub async fn serve(
    host: Arc<Host>,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
    end: impl Future<Output = ()>,
) -> io::Result<()> {
    let (requests, incoming) = unbounded_channel();
    let notifications = requests.clone();
    let connection = Agent
        .v1()
        .name("haft")
        .on_receive_request(
            async move |request: ClientRequest, responder, editor| {
                // The receiver outlives this connection, so sending does not fail.
                drop(requests.send(Incoming::Request(Box::new((request, responder, editor)))));
                Ok(())
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_notification(
            async move |notification: ClientNotification, _| {
                drop(notifications.send(Incoming::Notification(notification)));
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .connect_to(Lines::new(
            stdio_lines::create_line_writer(output),
            Box::pin(stdio_lines::read_lines(input)),
        ));
    let dispatcher = Rc::new(Dispatcher {
        host,
        sessions: RefCell::default(),
        capabilities: RefCell::default(),
    });
    LocalSet::new()
        .run_until(async move {
            let dispatching = spawn_local(dispatcher.process_messages(incoming));
            let ended = tokio::select! { ended = connection => ended, () = end => Ok(()) };
            // The dispatcher ends because the connection has dropped the senders. A panic in it has
            // already been reported.
            drop(dispatching.await);
            ended.map_err(io::Error::other)
        })
        .await
}

struct Dispatcher {
    host: Arc<Host>,
    sessions: RefCell<HashMap<String, Rc<LiveSession>>>,
    /// The capabilities the editor declared when it connected.
    capabilities: RefCell<ClientCapabilities>,
}

/// The fields that all requests for opening a session have in common.
struct SessionRequest {
    cwd: PathBuf,
    added_folders: Vec<PathBuf>,
    servers: Vec<McpServer>,
}

impl SessionRequest {
    fn new(cwd: PathBuf, added_folders: Vec<PathBuf>, servers: Vec<McpServer>) -> Self {
        Self {
            cwd,
            added_folders,
            servers,
        }
    }
}

/// Selects whether the history of a stored session is sent to the editor when the session is
/// opened.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReplayScope {
    All,
    None,
}

impl Dispatcher {
    async fn process_messages(self: Rc<Self>, mut incoming: UnboundedReceiver<Incoming>) {
        while let Some(message) = incoming.recv().await {
            match message {
                Incoming::Request(request) => {
                    let (request, responder, editor) = *request;
                    self.handle_request(request, responder, editor);
                }
                Incoming::Notification(ClientNotification::CancelNotification(cancel)) => {
                    if let Ok(session) = self.find_session(&cancel.session_id) {
                        session.cancel();
                    }
                }
                Incoming::Notification(_) => {}
            }
        }
        let sessions: Vec<_> = self
            .sessions
            .borrow_mut()
            .drain()
            .map(|(_, session)| session)
            .collect();
        futures::future::join_all(sessions.iter().map(|session| session.close())).await;
    }

    fn handle_request(
        self: &Rc<Self>,
        request: ClientRequest,
        responder: Responder,
        editor: ConnectionTo<Client>,
    ) {
        if let Err(error) = self.host.require_config() {
            return send_error(responder, host_error(error));
        }
        match request {
            ClientRequest::InitializeRequest(request) => {
                send_reply(responder, Ok(self.initialize(request)));
            }
            ClientRequest::AuthenticateRequest(_) => send_reply(responder, self.authenticate()),
            ClientRequest::NewSessionRequest(request) => {
                self.create_session(request, responder, editor);
            }
            ClientRequest::LoadSessionRequest(request) => {
                let wanted = SessionRequest::new(
                    request.cwd,
                    request.additional_directories,
                    request.mcp_servers,
                );
                self.reopen_session(
                    wanted,
                    request.session_id,
                    ReplayScope::All,
                    responder,
                    editor,
                );
            }
            ClientRequest::ResumeSessionRequest(request) => {
                let wanted = SessionRequest::new(
                    request.cwd,
                    request.additional_directories,
                    request.mcp_servers,
                );
                self.reopen_session(
                    wanted,
                    request.session_id,
                    ReplayScope::None,
                    responder,
                    editor,
                );
            }
            ClientRequest::ListSessionsRequest(request) => {
                let this = Rc::clone(self);
                spawn_local(
                    async move { send_reply(responder, this.list_sessions(request).await) },
                );
            }
            ClientRequest::CloseSessionRequest(request) => {
                let session = self
                    .sessions
                    .borrow_mut()
                    .remove(request.session_id.0.as_ref());
                let Some(session) = session else {
                    return send_reply::<()>(
                        responder,
                        Err(unknown_session_error(&request.session_id)),
                    );
                };
                spawn_local(async move {
                    session.close().await;
                    send_reply(responder, Ok(CloseSessionResponse::new()));
                });
            }
            ClientRequest::DeleteSessionRequest(request) => {
                let session = self
                    .sessions
                    .borrow_mut()
                    .remove(request.session_id.0.as_ref());
                let host = Arc::clone(&self.host);
                let id = ConversationId::new(request.session_id.0.to_string());
                spawn_local(async move {
                    if let Some(session) = session {
                        session.close().await;
                    }
                    let deleted = host.delete_conversation(&id).await.map_err(host_error);
                    send_reply(responder, deleted.map(|()| DeleteSessionResponse::new()));
                });
            }
            ClientRequest::SetSessionModeRequest(request) => {
                let set = self
                    .find_session(&request.session_id)
                    .and_then(|session| session.set_mode(&request.mode_id.0));
                send_reply(responder, set.map(|()| SetSessionModeResponse::new()));
            }
            ClientRequest::SetSessionConfigOptionRequest(request) => {
                send_reply(responder, self.set_option(&request));
            }
            ClientRequest::PromptRequest(request) => self.start_prompt(request, responder),
            _ => send_reply::<()>(responder, Err(Error::method_not_found())),
        }
    }

    fn initialize(&self, request: InitializeRequest) -> InitializeResponse {
        let setup = "Choose a provider and a model at the terminal.";
        let method = if request.client_capabilities.auth.terminal {
            let method = AuthMethodTerminal::new(SETUP_METHOD_ID, "Set up haft")
                .description(setup.to_owned());
            AuthMethod::Terminal(method.args(vec!["--setup".to_owned()]))
        } else {
            let how = format!("{setup} Run `haft` in a terminal, then come back.");
            AuthMethod::Agent(AuthMethodAgent::new(SETUP_METHOD_ID, "Set up haft").description(how))
        };
        *self.capabilities.borrow_mut() = request.client_capabilities;
        let sessions = SessionCapabilities::new()
            .list(SessionListCapabilities::new())
            .resume(SessionResumeCapabilities::new())
            .close(SessionCloseCapabilities::new())
            .delete(SessionDeleteCapabilities::new())
            .additional_directories(SessionAdditionalDirectoriesCapabilities::new());
        let capabilities = AgentCapabilities::new()
            .load_session(true)
            .prompt_capabilities(PromptCapabilities::new().image(true).embedded_context(true))
            .mcp_capabilities(McpCapabilities::new().http(true))
            .session_capabilities(sessions);
        InitializeResponse::new(ProtocolVersion::V1)
            .agent_capabilities(capabilities)
            .agent_info(
                Implementation::new("haft", env!("CARGO_PKG_VERSION")).title("haft".to_owned()),
            )
            .auth_methods(vec![method])
    }

    /// Reloads the configuration. Fails if the configuration names no model.
    fn authenticate(&self) -> Result<AuthenticateResponse, Error> {
        self.host.reload_config().map_err(host_error)?;
        self.host.default_model().map_err(host_error)?;
        Ok(AuthenticateResponse::new())
    }

    fn create_session(
        &self,
        request: NewSessionRequest,
        responder: Responder,
        editor: ConnectionTo<Client>,
    ) {
        let id = new_conversation_id();
        let wanted = SessionRequest::new(
            request.cwd,
            request.additional_directories,
            request.mcp_servers,
        );
        match self.build_session(wanted, id.clone(), editor) {
            Err(error) => send_reply::<()>(responder, Err(error)),
            Ok(session) => {
                let answer = NewSessionResponse::new(id.to_string())
                    .modes(session.mode_state())
                    .config_options(session.config_options());
                self.sessions
                    .borrow_mut()
                    .insert(id.to_string(), Rc::clone(&session));
                send_reply(responder, Ok(answer));
                session.send_introduction();
            }
        }
    }

    /// Opens a stored conversation as a session. If the conversation is already open on this
    /// connection, its session is closed first.
    fn reopen_session(
        self: &Rc<Self>,
        wanted: SessionRequest,
        id: SessionId,
        replay: ReplayScope,
        responder: Responder,
        editor: ConnectionTo<Client>,
    ) {
        let this = Rc::clone(self);
        spawn_local(async move {
            let before = this.sessions.borrow_mut().remove(id.0.as_ref());
            let mut stored = true;
            if let Some(before) = before {
                before.close().await;
                stored = before.is_stored();
            }
            let opened = async {
                let session =
                    this.build_session(wanted, ConversationId::new(id.0.to_string()), editor)?;
                if stored {
                    session.open_stored().await.map_err(host_error)?;
                }
                Ok(session)
            };
            let session = match opened.await {
                Ok(session) => session,
                Err(error) => return send_error(responder, error),
            };
            if replay == ReplayScope::All {
                session.send_history();
            }
            let modes = session.mode_state();
            let options = session.config_options();
            this.sessions
                .borrow_mut()
                .insert(id.0.to_string(), Rc::clone(&session));
            match replay {
                ReplayScope::All => {
                    send_reply(
                        responder,
                        Ok(LoadSessionResponse::new()
                            .modes(modes)
                            .config_options(options)),
                    );
                }
                ReplayScope::None => {
                    send_reply(
                        responder,
                        Ok(ResumeSessionResponse::new()
                            .modes(modes)
                            .config_options(options)),
                    );
                }
            }
            session.send_introduction();
        });
    }

    /// Creates a session, without opening its conversation yet.
    fn build_session(
        &self,
        wanted: SessionRequest,
        id: ConversationId,
        editor: ConnectionTo<Client>,
    ) -> Result<Rc<LiveSession>, Error> {
        for folder in std::iter::once(&wanted.cwd).chain(&wanted.added_folders) {
            check_folder(folder)?;
        }
        self.host.reload_config().map_err(host_error)?;
        let capabilities = self.capabilities.borrow();
        let offered = capabilities.session.as_ref();
        let taken = EditorFeatures {
            notices: offered.is_some_and(|offered| offered.notices.is_some()),
            compaction: offered.is_some_and(|offered| offered.compaction.is_some()),
            forms: forms::supports_forms(capabilities.elicitation.as_ref()),
        };
        let session = SessionId::new(id.to_string());
        let sender = UpdateSender {
            editor: editor.clone(),
            session: session.clone(),
            features: taken,
        };
        let calls = SharedCalls::new(OpenCalls::new(wanted.cwd.clone()));
        let terminals = capabilities.terminal.then(|| EditorTerminals {
            sender: sender.clone(),
            calls: calls.clone(),
            host: Arc::clone(&self.host),
        });
        let setup = SessionSetup {
            cwd: wanted.cwd,
            added_folders: wanted.added_folders,
            servers: wanted
                .servers
                .into_iter()
                .map(to_mcp_json)
                .collect::<Result<_, _>>()?,
            files: EditorFiles::new(editor, session, capabilities.fs.clone(), terminals),
            calls,
            sender,
            host: Arc::clone(&self.host),
        };
        LiveSession::new(setup, id).map(Rc::new).map_err(host_error)
    }

    async fn list_sessions(
        &self,
        request: ListSessionsRequest,
    ) -> Result<ListSessionsResponse, Error> {
        if let Some(cwd) = &request.cwd {
            check_folder(cwd)?;
        }
        let from: usize = match &request.cursor {
            None => 0,
            Some(cursor) => cursor
                .parse()
                .map_err(|_| invalid_params(format!("`{cursor}` is not a cursor of this agent")))?,
        };
        let listed = self
            .host
            .list_conversations(request.cwd.as_deref())
            .await
            .map_err(host_error)?;
        // The cursor comes from the client and may be any number.
        let end = from.saturating_add(PAGE_SIZE);
        let next = (listed.len() > end).then(|| end.to_string());
        let shown = |one: ListedConversation| {
            SessionInfo::new(one.id.to_string(), one.folder)
                .title(one.name)
                .updated_at(one.updated_at.to_string())
        };
        let sessions = listed
            .into_iter()
            .skip(from)
            .take(PAGE_SIZE)
            .filter(|one| one.folder.is_absolute())
            .map(shown);
        Ok(ListSessionsResponse::new(sessions.collect()).next_cursor(next))
    }

    fn set_option(
        &self,
        request: &SetSessionConfigOptionRequest,
    ) -> Result<SetSessionConfigOptionResponse, Error> {
        let session = self.find_session(&request.session_id)?;
        let SessionConfigOptionValue::ValueId { value } = &request.value else {
            return Err(invalid_params(format!(
                "`{}` takes one of its values",
                request.config_id.0
            )));
        };
        session.set_option(&request.config_id.0, &value.0)?;
        Ok(SetSessionConfigOptionResponse::new(
            session.config_options(),
        ))
    }

    fn start_prompt(&self, request: PromptRequest, responder: Responder) {
        let session = match self.find_session(&request.session_id) {
            Ok(session) => session,
            Err(error) => return send_error(responder, error),
        };
        let cancellation = responder.cancellation();
        // The token is taken here, because the next message may already cancel this prompt.
        let cancel = session.prompt_token();
        spawn_local(async move {
            let mut turn = std::pin::pin!(session.run_prompt(request.prompt, &cancel));
            let ended = tokio::select! {
                ended = &mut turn => ended,
                () = cancellation.cancelled() => {
                    cancel.cancel();
                    turn.await
                }
            };
            send_reply(responder, ended);
        });
    }

    fn find_session(&self, id: &SessionId) -> Result<Rc<LiveSession>, Error> {
        self.sessions
            .borrow()
            .get(id.0.as_ref())
            .map(Rc::clone)
            .ok_or_else(|| unknown_session_error(id))
    }
}

fn unknown_session_error(id: &SessionId) -> Error {
    let message = format!(
        "there is no session `{}` here; `session/load` opens a stored one",
        id.0
    );
    Error::new(-32002, message).data(json!({ "sessionId": id }))
}

fn check_folder(folder: &Path) -> Result<(), Error> {
    let shown = folder.display();
    if !folder.is_absolute() {
        return Err(invalid_params(format!("`{shown}` is not an absolute path")));
    }
    if folder.is_dir() {
        Ok(())
    } else {
        Err(invalid_params(format!("`{shown}` is not a folder")))
    }
}

/// Converts the editor's declaration of an MCP server to JSON in the format of `.mcp.json`.
fn to_mcp_json(server: McpServer) -> Result<String, Error> {
    let (name, declared) = match server {
        McpServer::Stdio(server) => {
            let env: serde_json::Map<_, _> = server
                .env
                .into_iter()
                .map(|one| (one.name, Value::from(one.value)))
                .collect();
            (
                server.name,
                json!({ "command": server.command, "args": server.args, "env": env }),
            )
        }
        McpServer::Http(server) => {
            let headers: serde_json::Map<_, _> = server
                .headers
                .into_iter()
                .map(|one| (one.name, Value::from(one.value)))
                .collect();
            (
                server.name,
                json!({ "type": "http", "url": server.url, "headers": headers }),
            )
        }
        McpServer::Sse(server) => {
            let name = server.name;
            return Err(invalid_params(format!(
                "the MCP server `{name}` speaks SSE, which haft does not; use its HTTP address"
            )));
        }
        _ => {
            return Err(invalid_params(
                "an MCP server is of an unknown kind".to_owned(),
            ));
        }
    };
    Ok(json!({ "mcpServers": { name: declared } }).to_string())
}

/// Sends the answer to a request. Errors while sending are ignored, because they mean that the
/// editor has disconnected.
fn send_reply<T: Serialize>(responder: Responder, answer: Result<T, Error>) {
    let answer =
        answer.and_then(|answer| serde_json::to_value(answer).map_err(Error::into_internal_error));
    drop(responder.respond_with_result(answer));
}

fn send_error(responder: Responder, error: Error) {
    send_reply::<()>(responder, Err(error));
}
