//! Tests of servers that are programs.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use haft_mcp::{
    McpError, ServerConfiner, ServerDefinition, ServerEndpoint, ServerHost, ServerState, Servers,
};
use haft_sandbox::ConfinementSpec;
use haft_testkit::support::SHELL_MCP_SERVER;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{arguments, block_on, nowhere, program, servers, shell_server};

fn never() -> CancellationToken {
    CancellationToken::new()
}

fn count_starts(folder: &std::path::Path) -> usize {
    fs::read_to_string(folder.join("starts"))
        .unwrap_or_default()
        .lines()
        .count()
}

#[test]
fn server_starts_once_on_first_use_with_its_own_environment() {
    let folder = tempfile::tempdir().unwrap();
    let mut declared = shell_server("s", folder.path());
    let ServerEndpoint::Command { env, .. } = &mut declared.endpoint else {
        panic!()
    };
    env.push(("GIVEN".into(), "this".into()));
    block_on(async {
        let all = servers(folder.path(), vec![declared]);
        assert_eq!(
            (count_starts(folder.path()), all.state("s")),
            (0, ServerState::Idle)
        );
        for _ in 0..2 {
            let answer = all
                .call_tool("s", "show", arguments(json!({})), nowhere(), &never())
                .await
                .unwrap();
            assert_eq!(
                answer.joined_text(),
                "GIVEN=this SECRET=",
                "nothing of ours leaks"
            );
        }
        assert_eq!(
            (count_starts(folder.path()), all.state("s")),
            (1, ServerState::Running)
        );
        all.close().await;
        assert_eq!(all.state("s"), ServerState::Idle);
    });
}

#[test]
fn server_that_dies_reports_its_output_and_restarts_a_few_times() {
    let folder = tempfile::tempdir().unwrap();
    block_on(async {
        let all = servers(folder.path(), vec![shell_server("s", folder.path())]);
        for start in 1..=4 {
            let error = all
                .call_tool("s", "die", arguments(json!({})), nowhere(), &never())
                .await
                .unwrap_err();
            assert!(matches!(error, McpError::Gone { .. }), "{error}");
            assert!(error.to_string().contains("I am dying"), "{error}");
            assert_eq!(count_starts(folder.path()), start);
        }
        let error = all
            .call_tool("s", "show", arguments(json!({})), nowhere(), &never())
            .await
            .unwrap_err();
        assert!(
            matches!(error, McpError::Resting { starts: 4, .. }),
            "{error}"
        );
        assert_eq!(count_starts(folder.path()), 4);
    });
}

#[test]
fn server_that_cannot_start_reports_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let missing = ServerEndpoint::Command {
        program: "no-such-program".into(),
        args: Vec::new(),
        env: Vec::new(),
        cwd: folder.path().into(),
        starts_apart: false,
    };
    let hanging = ServerDefinition {
        startup_timeout: Duration::from_millis(300),
        ..program("hangs", folder.path(), "exec sleep 1000")
    };
    let all = vec![
        crate::server("missing", missing),
        program("ends", folder.path(), "echo broken pipe dream >&2; exit 1"),
        hanging,
    ];
    block_on(async {
        let all = servers(folder.path(), all);
        for (name, words) in [
            (
                "missing",
                "there is no program `no-such-program` in `PATH` outside the project",
            ),
            ("ends", "broken pipe dream"),
            ("hangs", "did not answer within 0 s; `startup_timeout`"),
        ] {
            let error = all.current_listing(name, &never()).await.unwrap_err();
            assert_eq!(error.code(), "server_start");
            assert!(error.to_string().contains(words), "{error}");
        }
    });
}

#[test]
fn output_lines_that_are_no_messages_are_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let noisy = format!("echo 'Welcome to my server!'\n{SHELL_MCP_SERVER}");
    block_on(async {
        let all = servers(folder.path(), vec![program("s", folder.path(), &noisy)]);
        all.call_tool("s", "show", arguments(json!({})), nowhere(), &never())
            .await
            .unwrap();
    });
}

#[test]
fn servers_leave_no_processes_when_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let leaves = format!("sleep 4321 & echo $! > child\n{SHELL_MCP_SERVER}");
    // Its pid differs inside a pid namespace, so the process is found by its folder.
    let alive = || {
        let folders = fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .map(|entry| entry.path().join("cwd"));
        folders
            .filter(|cwd| fs::read_link(cwd).is_ok_and(|target| target == folder.path()))
            .count()
    };
    block_on(async {
        let all = servers(folder.path(), vec![program("s", folder.path(), &leaves)]);
        all.call_tool("s", "show", arguments(json!({})), nowhere(), &never())
            .await
            .unwrap();
        assert!(alive() > 0, "the search works");
    });
    while alive() > 0 {
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn server_that_fails_to_start_three_times_is_not_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    block_on(async {
        let all = servers(
            folder.path(),
            vec![program("ends", folder.path(), "echo >> starts; exit 1")],
        );
        for _ in 0..3 {
            assert_eq!(
                all.current_listing("ends", &never())
                    .await
                    .unwrap_err()
                    .code(),
                "server_start"
            );
        }
        let error = all.current_listing("ends", &never()).await.unwrap_err();
        assert!(
            matches!(error, McpError::Failing { failures: 3, .. }),
            "{error}"
        );
        assert_eq!(error.code(), "server_resting");
        let tried = fs::read_to_string(folder.path().join("starts")).unwrap_or_default();
        assert_eq!(tried.lines().count(), 3);
    });
}

/// Decides like a session whose user switches the mode.
struct Switched {
    confine: AtomicBool,
    asked: Mutex<Vec<String>>,
}

#[async_trait::async_trait]
impl ServerConfiner for Switched {
    async fn confine(
        &self,
        server: &ServerDefinition,
    ) -> Result<Option<Arc<ConfinementSpec>>, String> {
        self.asked.lock().unwrap().push(server.name.clone());
        if self.must_be_confined(server) {
            Err("not any more".into())
        } else {
            Ok(None)
        }
    }

    fn must_be_confined(&self, server: &ServerDefinition) -> bool {
        server.name == "project" && self.confine.load(Ordering::SeqCst)
    }
}

#[test]
fn server_that_is_unconfined_ends_with_its_permission_mode() {
    let state = tempfile::tempdir().unwrap();
    let theirs = tempfile::tempdir().unwrap();
    let own = tempfile::tempdir().unwrap();
    let switched = Arc::new(Switched {
        confine: false.into(),
        asked: Mutex::default(),
    });
    let host = ServerHost {
        sandbox: Some(Arc::clone(&switched) as _),
        ..crate::host(state.path())
    };
    let servers = Servers::new(
        vec![
            shell_server("project", theirs.path()),
            shell_server("user", own.path()),
        ],
        host,
    );
    let call = async |name: &str| {
        servers
            .call_tool(name, "show", arguments(json!({})), nowhere(), &never())
            .await
    };
    block_on(async {
        call("project").await.unwrap();
        call("user").await.unwrap();
        assert!(!servers.has_wrongly_unconfined_server());
        call("project").await.unwrap();
        assert_eq!(
            switched.asked.lock().unwrap().len(),
            2,
            "what runs is used again"
        );
        switched.confine.store(true, Ordering::SeqCst);
        assert!(servers.has_wrongly_unconfined_server());
        let error = call("project").await.unwrap_err().to_string();
        assert!(error.contains("not any more"), "{error}");
        assert_eq!(
            servers.state("project"),
            ServerState::Idle,
            "the old one is gone"
        );
        call("user").await.unwrap();
        // Without a call, too: before the next request.
        switched.confine.store(false, Ordering::SeqCst);
        call("project").await.unwrap();
        switched.confine.store(true, Ordering::SeqCst);
        servers.end_wrongly_unconfined_servers().await;
        assert_eq!(servers.state("project"), ServerState::Idle);
        assert_eq!(servers.state("user"), ServerState::Running);
        assert!(!servers.has_wrongly_unconfined_server());
    });
}
