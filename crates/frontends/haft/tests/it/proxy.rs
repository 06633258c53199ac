//! `haft proxy` between haft itself and the scripted model: requests must reach the model
//! unchanged.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use haft_testkit::{Reply, Script, ScriptCall};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::{Ran, Rig};

/// A running proxy that is killed when the test ends.
struct RunningProxy {
    child: Child,
    address: String,
}

impl RunningProxy {
    fn start(rig: &Rig, upstream: &str) -> Self {
        Self::start_with(rig, upstream, &[])
    }

    fn start_with(rig: &Rig, upstream: &str, environment: &[(&str, &str)]) -> Self {
        let mut command = rig.command(&["proxy", "--port", "0", "--upstream", upstream]);
        command.envs(environment.iter().copied());
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line
            .split("http://")
            .nth(1)
            .unwrap()
            .split(['.', ' '])
            .collect::<Vec<_>>()[..4]
            .join(".");
        Self { child, address }
    }

    /// Interrupts the proxy, as a user would, and returns its standard error.
    fn stop(mut self) -> String {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        let mut said = String::new();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        assert!(self.child.wait().unwrap().success(), "{said}");
        said
    }
}

impl Drop for RunningProxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn three_replies() -> Script {
    let list = || Reply::calls([ScriptCall::new("list_files", json!({"path": "."}))]);
    Script::replies([list(), list(), Reply::text("Done.")]).unwrap()
}

/// Returns the base URL of the scripted model with the address of the proxy.
fn proxied_base_url(rig: &Rig, api: Api, address: &str) -> String {
    let direct = rig.server.base_url(api);
    direct.replace(&rig.server.address().to_string(), address)
}

fn run_with_base_url(rig: &Rig, base_url: &str) -> Ran {
    let set = format!("providers.mock.base_url={base_url}");
    rig.run(&["run", "--set", &set, "look around"])
}

fn recorded_conversations(rig: &Rig) -> Vec<Value> {
    let listed = rig
        .run(&["conversations", "list", "--namespace", "proxy", "--json"])
        .json();
    listed
        .as_array()
        .or_else(|| listed["conversations"].as_array())
        .unwrap()
        .clone()
}

#[test]
fn proxy_passes_requests_unchanged_on_every_api() {
    for api in Api::ALL {
        let rig = Rig::new(api, three_replies());
        let proxy = RunningProxy::start(&rig, &format!("http://{}", rig.server.address()));
        let ran = run_with_base_url(&rig, &proxied_base_url(&rig, api, &proxy.address));
        assert_eq!(ran.code(), 0, "{api}: {}", ran.stderr());
        let said = proxy.stop();
        let sent = rig.server.generation_requests();
        assert_eq!(sent.len(), 3, "{api}");
        let all = recorded_conversations(&rig);
        assert_eq!(all.len(), 1, "{api}: {all:?}");
        let id = all[0]["id"].as_str().unwrap();
        for (index, request) in sent.iter().enumerate() {
            let number = (index + 1).to_string();
            let body = rig
                .run(&["context", "show", id, "--raw", "--request", &number])
                .stdout();
            assert_eq!(
                body.as_bytes(),
                &request.body[..],
                "{api}, request {number}"
            );
            let own = rig
                .run(&["context", "show", "--raw", "--request", &number])
                .stdout();
            assert_eq!(body, own, "{api}: as haft logged it itself");
        }
        assert_eq!(
            said.lines()
                .filter(|line| line.contains("extends the one before"))
                .count(),
            2,
            "{said}"
        );
        assert!(said.contains("3 requests, 0 breaks"), "{said}");
        assert!(
            said.contains("mock/"),
            "the provider at the upstream is known: {said}"
        );
    }
}

#[test]
fn context_commands_read_recorded_requests() {
    let rig = Rig::new(Api::Anthropic, three_replies());
    let proxy = RunningProxy::start(&rig, &format!("http://{}", rig.server.address()));
    let base_url = proxied_base_url(&rig, Api::Anthropic, &proxy.address);
    assert_eq!(run_with_base_url(&rig, &base_url).code(), 0);
    proxy.stop();
    let id = recorded_conversations(&rig)[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let shown = rig.run(&["context", "show", &id, "--json"]).json();
    let owners: Vec<_> = shown["segments"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["owner"].as_str().unwrap())
        .collect();
    assert!(
        owners.starts_with(&["tools"]) && owners.contains(&"system") && owners.contains(&"tool"),
        "{owners:?}"
    );
    let spoken = shown["segments"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["owner"] == "user")
        .unwrap();
    assert!(
        !spoken["first_words"].as_str().unwrap().starts_with('{'),
        "{spoken}"
    );
    let difference = rig.run(&["context", "diff", &id]).stdout();
    assert!(
        difference.contains("kept") && difference.contains("+ "),
        "{difference}"
    );
    let why = rig.run(&["context", "why", &id, "--json"]).json();
    assert_eq!(
        (&why["requests"], &why["unexplained"]),
        (&json!(3), &json!(0))
    );
    let replayed = rig.run(&["context", "replay", &id, "--policy", "none,tail", "--json"]);
    assert_eq!(replayed.code(), 0, "{}", replayed.stderr());
    assert_eq!(
        replayed.json()["policies"][0]["requests"],
        3,
        "{}",
        replayed.stdout()
    );
    let compared = rig.run(&["context", "replay", &id, "--json"]).json();
    assert_eq!(
        (
            &compared["policies"][0]["policy"],
            &compared["policies"][0]["breaks"],
            &compared["model_source"]
        ),
        (&json!("recorded"), &json!(0), &json!("recorded")),
        "{compared}"
    );
    let report = rig
        .run(&["context", "report", &id, "--request", "2", "--json"])
        .json();
    assert!(report["usage"].is_object(), "{report}");
    let all = rig.run(&["conversations", "show", &id, "--json"]).json();
    let roles: Vec<_> = all["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["role"].as_str().unwrap())
        .collect();
    assert_eq!(
        roles,
        [
            "user",
            "assistant",
            "tool",
            "assistant",
            "tool",
            "assistant"
        ]
    );
    assert_eq!(all["messages"][2]["content"][0]["name"], "list_files");
    let dialogue = rig.run(&["conversations", "show", &id]).stdout();
    assert!(
        dialogue.contains("look around") && dialogue.contains("Done."),
        "{dialogue}"
    );
}

#[test]
fn proxy_runs_a_command() {
    let rig = Rig::new(Api::OpenaiChat, three_replies());
    let upstream = format!("http://{}", rig.server.address());
    let haft = crate::rig::haft().display().to_string();
    let inner =
        format!("'{haft}' run --set providers.mock.base_url=$OPENAI_BASE_URL 'look around'");
    let ran = rig.run(&["proxy", "--upstream", &upstream, "--", "sh", "-c", &inner]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    assert!(ran.stdout().contains("Done."), "{}", ran.stdout());
    assert!(
        ran.stderr().contains("3 requests, 0 breaks"),
        "{}",
        ran.stderr()
    );
    assert_eq!(
        rig.run(&["proxy", "--upstream", &upstream, "--", "sh", "-c", "exit 7"])
            .code(),
        1
    );
    assert_eq!(rig.run(&["proxy", "--", "no-such-program-here"]).code(), 2);
    assert_eq!(rig.run(&["proxy", "--upstream", "nowhere"]).code(), 2);
}

#[test]
fn proxy_forwards_traffic_if_recording_fails() {
    let rig = Rig::new(Api::OpenaiChat, three_replies());
    let proxy = RunningProxy::start(&rig, &format!("http://{}", rig.server.address()));
    let base_url = proxied_base_url(&rig, Api::OpenaiChat, &proxy.address);
    // The agent has another home, so that its own store is intact.
    let other = Rig::new(Api::OpenaiChat, three_replies());
    for entry in std::fs::read_dir(rig.home()).unwrap().flatten() {
        if entry.path().is_dir() {
            std::fs::remove_dir_all(entry.path()).unwrap();
        }
    }
    let ran = run_with_base_url(&other, &base_url);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    proxy.stop();
    assert_eq!(rig.server.generation_requests().len(), 3);
}

/// Starts an HTTP proxy that only opens tunnels. Returns its address and the requests it receives.
fn start_tunnel_proxy() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let asked = Arc::<Mutex<Vec<String>>>::default();
    let heads = Arc::clone(&asked);
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n")
                && stream.read(&mut byte).is_ok_and(|count| count == 1)
            {
                head.push(byte[0]);
            }
            let head = String::from_utf8_lossy(&head).into_owned();
            let target = head
                .strip_prefix("CONNECT ")
                .and_then(|rest| rest.split(' ').next())
                .map(TcpStream::connect);
            heads.lock().unwrap().push(head);
            let Some(Ok(target)) = target else { continue };
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
            let mut from = stream.try_clone().unwrap();
            let mut to = target.try_clone().unwrap();
            thread::spawn(move || io::copy(&mut from, &mut to));
            let mut from = target;
            let mut to = stream;
            thread::spawn(move || io::copy(&mut from, &mut to));
        }
    });
    (address, asked)
}

#[test]
fn proxy_reaches_its_upstream_through_http_proxy() {
    let rig = Rig::new(Api::OpenaiChat, three_replies());
    let upstream = format!("http://{}", rig.server.address());
    let (address, asked) = start_tunnel_proxy();
    let named = format!("http://me:word@{address}");
    let proxy = RunningProxy::start_with(&rig, &upstream, &[("HTTP_PROXY", &named)]);
    let ran = run_with_base_url(
        &rig,
        &proxied_base_url(&rig, Api::OpenaiChat, &proxy.address),
    );
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    let said = proxy.stop();
    assert!(said.contains("3 requests, 0 breaks"), "{said}");
    let heads = asked.lock().unwrap().clone();
    let wanted = format!("CONNECT {} HTTP/1.1", rig.server.address());
    assert!(
        !heads.is_empty() && heads.iter().all(|head| head.starts_with(&wanted)),
        "{heads:?}"
    );
    assert!(
        heads[0]
            .to_lowercase()
            .contains("proxy-authorization: basic "),
        "{heads:?}"
    );

    let rig = Rig::new(Api::OpenaiChat, three_replies());
    let upstream = format!("http://{}", rig.server.address());
    let except = [
        ("HTTP_PROXY", named.as_str()),
        ("NO_PROXY", "example.org,127.0.0.1"),
    ];
    let proxy = RunningProxy::start_with(&rig, &upstream, &except);
    assert_eq!(
        run_with_base_url(
            &rig,
            &proxied_base_url(&rig, Api::OpenaiChat, &proxy.address)
        )
        .code(),
        0
    );
    proxy.stop();
    assert_eq!(
        asked.lock().unwrap().len(),
        heads.len(),
        "it was not asked again"
    );

    let mut command = rig.command(&["proxy", "--port", "0"]);
    let ended = command
        .env("HTTPS_PROXY", "socks5://me:word@127.0.0.1:1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(
        ended.status.code() == Some(2) && said.contains("socks5") && !said.contains("word"),
        "{said}"
    );
}
