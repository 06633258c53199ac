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

use crate::calls::OpenCalls;
use crate::editor::EditorFiles;
use crate::forms;
use crate::host::{Host, ListedConversation};
use crate::lines;
use crate::live::{LiveSession, SessionSetup, failed, invalid};
use crate::terminal::EditorTerminals;
use crate::updates::{SharedCalls, TakenUpdates, UpdateSender};

/// The maximum number of sessions in one page of `session/list`.
const PAGE: usize = 100;
/// The id of the authentication method with which users choose their first model.
const SETUP: &str = "setup";

/// A message from the editor.
enum Incoming {
    Request(Box<(ClientRequest, Responder, ConnectionTo<Client>)>),
    Notification(ClientNotification),
}

/// Serves the Agent Client Protocol over these streams, until the input ends or `end` resolves.
/// Running turns are then canceled and can be resumed later.
pub async fn serve(
    host: Arc<dyn Host>,
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
            lines::outgoing(output),
            Box::pin(lines::incoming(input)),
        ));
    let dispatcher = Rc::new(Dispatcher {
        host,
        sessions: RefCell::default(),
        capabilities: RefCell::default(),
    });
    LocalSet::new()
        .run_until(async move {
            let dispatching = spawn_local(dispatcher.run(incoming));
            let ended = tokio::select! { ended = connection => ended, () = end => Ok(()) };
            // The dispatcher ends because the connection has dropped the senders. A panic in it has
            // already been reported.
            drop(dispatching.await);
            ended.map_err(io::Error::other)
        })
        .await
}

struct Dispatcher {
    host: Arc<dyn Host>,
    sessions: RefCell<HashMap<String, Rc<LiveSession>>>,
    /// The capabilities the editor declared when it connected.
    capabilities: RefCell<ClientCapabilities>,
}

/// The fields that all requests that open a session share.
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

/// Selects whether the history of a session is sent to the editor when the session is opened again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReplayScope {
    All,
    Nothing,
}

impl Dispatcher {
    async fn run(self: Rc<Self>, mut incoming: UnboundedReceiver<Incoming>) {
        while let Some(message) = incoming.recv().await {
            match message {
                Incoming::Request(request) => {
                    let (request, responder, editor) = *request;
                    self.request(request, responder, editor);
                }
                Incoming::Notification(ClientNotification::CancelNotification(cancel)) => {
                    if let Ok(session) = self.session(&cancel.session_id) {
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

    fn request(
        self: &Rc<Self>,
        request: ClientRequest,
        responder: Responder,
        editor: ConnectionTo<Client>,
    ) {
        match request {
            ClientRequest::InitializeRequest(request) => {
                reply(responder, Ok(self.initialize(request)));
            }
            ClientRequest::AuthenticateRequest(_) => reply(responder, self.authenticate()),
            ClientRequest::NewSessionRequest(request) => {
                self.new_session(request, responder, editor);
            }
            ClientRequest::LoadSessionRequest(request) => {
                let wanted = SessionRequest::new(
                    request.cwd,
                    request.additional_directories,
                    request.mcp_servers,
                );
                self.open(
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
                self.open(
                    wanted,
                    request.session_id,
                    ReplayScope::Nothing,
                    responder,
                    editor,
                );
            }
            ClientRequest::ListSessionsRequest(request) => {
                let this = Rc::clone(self);
                spawn_local(async move { reply(responder, this.list(request).await) });
            }
            ClientRequest::CloseSessionRequest(request) => {
                let session = self
                    .sessions
                    .borrow_mut()
                    .remove(request.session_id.0.as_ref());
                let Some(session) = session else {
                    return reply::<()>(responder, Err(unknown(&request.session_id)));
                };
                spawn_local(async move {
                    session.close().await;
                    reply(responder, Ok(CloseSessionResponse::new()));
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
                    let deleted = host.delete(&id).await.map_err(failed);
                    reply(responder, deleted.map(|()| DeleteSessionResponse::new()));
                });
            }
            ClientRequest::SetSessionModeRequest(request) => {
                let set = self
                    .session(&request.session_id)
                    .and_then(|session| session.set_mode(&request.mode_id.0));
                reply(responder, set.map(|()| SetSessionModeResponse::new()));
            }
            ClientRequest::SetSessionConfigOptionRequest(request) => {
                reply(responder, self.set_option(&request));
            }
            ClientRequest::PromptRequest(request) => self.prompt(request, responder),
            _ => reply::<()>(responder, Err(Error::method_not_found())),
        }
    }

    fn initialize(&self, request: InitializeRequest) -> InitializeResponse {
        let setup = "Choose a provider and a model at the terminal.";
        let method = if request.client_capabilities.auth.terminal {
            let method =
                AuthMethodTerminal::new(SETUP, "Set up haft").description(setup.to_owned());
            AuthMethod::Terminal(method.args(vec!["--setup".to_owned()]))
        } else {
            let how = format!("{setup} Run `haft` in a terminal, then come back.");
            AuthMethod::Agent(AuthMethodAgent::new(SETUP, "Set up haft").description(how))
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
            .agent_info(Implementation::new("haft", self.host.version()).title("haft".to_owned()))
            .auth_methods(vec![method])
    }

    /// Reloads the configuration, and fails if it still has no model.
    fn authenticate(&self) -> Result<AuthenticateResponse, Error> {
        self.host.reload().map_err(failed)?;
        self.host.model().map_err(failed)?;
        Ok(AuthenticateResponse::new())
    }

    fn new_session(
        &self,
        request: NewSessionRequest,
        responder: Responder,
        editor: ConnectionTo<Client>,
    ) {
        let id = self.host.fresh_id();
        let wanted = SessionRequest::new(
            request.cwd,
            request.additional_directories,
            request.mcp_servers,
        );
        match self.live(wanted, id.clone(), editor) {
            Err(error) => reply::<()>(responder, Err(error)),
            Ok(session) => {
                let answer = NewSessionResponse::new(id.to_string())
                    .modes(session.modes())
                    .config_options(session.options());
                self.sessions
                    .borrow_mut()
                    .insert(id.to_string(), Rc::clone(&session));
                reply(responder, Ok(answer));
                session.introduce();
            }
        }
    }

    /// Opens a stored conversation. If it is already open here, that session is closed first.
    fn open(
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
                let session = this.live(wanted, ConversationId::new(id.0.to_string()), editor)?;
                if stored {
                    session.load().await.map_err(failed)?;
                }
                Ok(session)
            };
            let session = match opened.await {
                Ok(session) => session,
                Err(error) => return reply_error(responder, error),
            };
            if replay == ReplayScope::All {
                session.replay();
            }
            let modes = session.modes();
            let options = session.options();
            this.sessions
                .borrow_mut()
                .insert(id.0.to_string(), Rc::clone(&session));
            match replay {
                ReplayScope::All => {
                    reply(
                        responder,
                        Ok(LoadSessionResponse::new()
                            .modes(modes)
                            .config_options(options)),
                    );
                }
                ReplayScope::Nothing => {
                    reply(
                        responder,
                        Ok(ResumeSessionResponse::new()
                            .modes(modes)
                            .config_options(options)),
                    );
                }
            }
            session.introduce();
        });
    }

    /// Creates a session. Its conversation is opened later.
    fn live(
        &self,
        wanted: SessionRequest,
        id: ConversationId,
        editor: ConnectionTo<Client>,
    ) -> Result<Rc<LiveSession>, Error> {
        for folder in std::iter::once(&wanted.cwd).chain(&wanted.added_folders) {
            check_folder(folder)?;
        }
        self.host.reload().map_err(failed)?;
        let capabilities = self.capabilities.borrow();
        let offered = capabilities.session.as_ref();
        let taken = TakenUpdates {
            notices: offered.is_some_and(|offered| offered.notices.is_some()),
            compaction: offered.is_some_and(|offered| offered.compaction.is_some()),
            forms: forms::are_shown(capabilities.elicitation.as_ref()),
        };
        let session = SessionId::new(id.to_string());
        let sender = UpdateSender {
            editor: editor.clone(),
            session: session.clone(),
            taken,
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
                .map(declared)
                .collect::<Result<_, _>>()?,
            files: EditorFiles::new(editor, session, capabilities.fs.clone(), terminals),
            calls,
            sender,
            host: Arc::clone(&self.host),
        };
        LiveSession::new(setup, id).map(Rc::new).map_err(failed)
    }

    async fn list(&self, request: ListSessionsRequest) -> Result<ListSessionsResponse, Error> {
        if let Some(cwd) = &request.cwd {
            check_folder(cwd)?;
        }
        let from = match &request.cursor {
            None => 0,
            Some(cursor) => cursor
                .parse()
                .map_err(|_| invalid(format!("`{cursor}` is not a cursor of this agent")))?,
        };
        let listed = self
            .host
            .list(request.cwd.as_deref())
            .await
            .map_err(failed)?;
        let next = listed
            .len()
            .checked_sub(from + PAGE)
            .filter(|left| *left > 0)
            .map(|_| (from + PAGE).to_string());
        let shown = |one: ListedConversation| {
            SessionInfo::new(one.id.to_string(), one.folder)
                .title(one.name)
                .updated_at(one.updated_at.to_string())
        };
        let sessions = listed
            .into_iter()
            .skip(from)
            .take(PAGE)
            .filter(|one| one.folder.is_absolute())
            .map(shown);
        Ok(ListSessionsResponse::new(sessions.collect()).next_cursor(next))
    }

    fn set_option(
        &self,
        request: &SetSessionConfigOptionRequest,
    ) -> Result<SetSessionConfigOptionResponse, Error> {
        let session = self.session(&request.session_id)?;
        let SessionConfigOptionValue::ValueId { value } = &request.value else {
            return Err(invalid(format!(
                "`{}` takes one of its values",
                request.config_id.0
            )));
        };
        session.set_option(&request.config_id.0, &value.0)?;
        Ok(SetSessionConfigOptionResponse::new(session.options()))
    }

    fn prompt(&self, request: PromptRequest, responder: Responder) {
        let session = match self.session(&request.session_id) {
            Ok(session) => session,
            Err(error) => return reply_error(responder, error),
        };
        let cancellation = responder.cancellation();
        // The token is taken here, because the next message may already cancel this prompt.
        let cancel = session.prompt_token();
        spawn_local(async move {
            let mut turn = std::pin::pin!(session.prompt(request.prompt, &cancel));
            let ended = tokio::select! {
                ended = &mut turn => ended,
                () = cancellation.cancelled() => {
                    cancel.cancel();
                    turn.await
                }
            };
            reply(responder, ended);
        });
    }

    fn session(&self, id: &SessionId) -> Result<Rc<LiveSession>, Error> {
        self.sessions
            .borrow()
            .get(id.0.as_ref())
            .map(Rc::clone)
            .ok_or_else(|| unknown(id))
    }
}

fn unknown(id: &SessionId) -> Error {
    let message = format!(
        "there is no session `{}` here; `session/load` opens a stored one",
        id.0
    );
    Error::new(-32002, message).data(json!({ "sessionId": id }))
}

fn check_folder(folder: &Path) -> Result<(), Error> {
    let shown = folder.display();
    if !folder.is_absolute() {
        return Err(invalid(format!("`{shown}` is not an absolute path")));
    }
    if folder.is_dir() {
        Ok(())
    } else {
        Err(invalid(format!("`{shown}` is not a folder")))
    }
}

/// Converts an MCP server of the editor to JSON in the shape of `.mcp.json`.
fn declared(server: McpServer) -> Result<String, Error> {
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
            return Err(invalid(format!(
                "the MCP server `{name}` speaks SSE, which haft does not; use its HTTP address"
            )));
        }
        _ => return Err(invalid("an MCP server is of an unknown kind".to_owned())),
    };
    Ok(json!({ "mcpServers": { name: declared } }).to_string())
}

/// Answers a request. Errors are ignored, because they mean that the editor has disconnected.
fn reply<T: Serialize>(responder: Responder, answer: Result<T, Error>) {
    let answer =
        answer.and_then(|answer| serde_json::to_value(answer).map_err(Error::into_internal_error));
    drop(responder.respond_with_result(answer));
}

fn reply_error(responder: Responder, error: Error) {
    reply::<()>(responder, Err(error));
}
