//! Tests real servers over HTTP and as programs, correct and faulty ones.
#![expect(
    clippy::unwrap_used,
    reason = "the functions that tests share are tests too"
)]

mod hostile_logins;
mod logins;
mod offline;
mod over_http;
mod programs;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use haft_mcp::{
    Elicitor, ListingCache, Oauth, Protocol, ServerDefinition, ServerEndpoint, ServerHost,
    ServerOrigin, Servers, ToolFilter,
};
use haft_sandbox::Supervisor;
use haft_testkit::support::SHELL_MCP_SERVER;
use haft_tool::CallProgress;
use serde_json::{Map, Value};

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

fn server(name: &str, reach: ServerEndpoint) -> ServerDefinition {
    ServerDefinition {
        name: name.into(),
        origin: ServerOrigin::User,
        endpoint: reach,
        confinement: haft_mcp::ServerConfinement::Default,
        requested_reach: haft_mcp::ServerReach::default(),
        timeout: Duration::from_mins(5),
        startup_timeout: Duration::from_mins(5),
        protocol: Protocol::Auto,
        filter: ToolFilter::default(),
        permission: None,
        oauth: Oauth::default(),
    }
}

fn http(name: &str, url: &str) -> ServerDefinition {
    server(
        name,
        ServerEndpoint::Http {
            url: url.into(),
            headers: Vec::new(),
            bearer: None,
        },
    )
}

fn program(name: &str, cwd: &Path, line: &str) -> ServerDefinition {
    let args = vec!["-c".into(), line.into()];
    server(
        name,
        ServerEndpoint::Command {
            program: "/bin/sh".into(),
            args,
            env: Vec::new(),
            cwd: cwd.into(),
            starts_apart: false,
        },
    )
}

/// Returns the server of [`SHELL_MCP_SERVER`] in `cwd`.
fn shell_server(name: &str, cwd: &Path) -> ServerDefinition {
    program(name, cwd, SHELL_MCP_SERVER)
}

fn host(state: &Path) -> ServerHost {
    ServerHost {
        supervisor: Arc::new(Supervisor::for_tests().unwrap()),
        environment: Arc::new(vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())]),
        writable: Vec::new(),
        folders: state.join("servers"),
        cache: ListingCache::new(state.join("lists")),
        tokens: state.join("tokens"),
        elicitor: None,
        sandbox: None,
    }
}

fn servers(state: &Path, all: Vec<ServerDefinition>) -> Servers {
    Servers::new(all, host(state))
}

fn servers_with_elicitor(
    state: &Path,
    all: Vec<ServerDefinition>,
    elicitor: Arc<dyn Elicitor>,
) -> Servers {
    Servers::new(
        all,
        ServerHost {
            elicitor: Some(elicitor),
            ..host(state)
        },
    )
}

fn arguments(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("{other}"),
    }
}

/// Records the progress texts of a call.
#[derive(Default)]
struct Shown(Mutex<Vec<String>>);

impl Shown {
    /// Returns the function through which a call shows its progress here.
    fn progress(self: &Arc<Self>) -> CallProgress {
        let shown = Arc::clone(self);
        Arc::new(move |text| shown.0.lock().unwrap().push(text))
    }
}

fn nowhere() -> CallProgress {
    Arc::new(|_| {})
}
