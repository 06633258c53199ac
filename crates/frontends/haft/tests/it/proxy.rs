//! `haft proxy` between haft itself and the scripted model: what reaches the model is what haft sends without it.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};

use haft_testkit::{Reply, Script, ScriptCall};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::{Ran, Rig};

/// A running proxy, ended with the test.
struct RunningProxy {
    child: Child,
    address: String,
}

impl RunningProxy {
    fn start(rig: &Rig, upstream: &str) -> Self {
        let mut command = rig.command(&["proxy", "--port", "0", "--upstream", upstream]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.split("http://").nth(1).unwrap().split(['.', ' ']).collect::<Vec<_>>()[..4].join(".");
        Self { child, address }
    }

    /// Interrupts it, as its user would, and gives what it said.
    fn stop(mut self) -> String {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
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

fn script() -> Script {
    let list = || Reply::calls([ScriptCall::new("list_files", json!({"path": "."}))]);
    Script::replies([list(), list(), Reply::text("Done.")]).unwrap()
}

/// The base URL of the scripted model with the proxy's address in it.
fn through(rig: &Rig, api: Api, address: &str) -> String {
    let direct = rig.server.base_url(api);
    direct.replace(&rig.server.address().to_string(), address)
}

fn run_through(rig: &Rig, base_url: &str) -> Ran {
    let set = format!("providers.mock.base_url={base_url}");
    rig.run(&["run", "--set", &set, "look around"])
}

fn recorded(rig: &Rig) -> Vec<Value> {
    let listed = rig.run(&["conversations", "list", "--namespace", "proxy", "--json"]).json();
    listed.as_array().or_else(|| listed["conversations"].as_array()).unwrap().clone()
}

#[test]
fn haft_sends_the_same_through_it_on_every_api() {
    for api in Api::ALL {
        let rig = Rig::new(api, script());
        let proxy = RunningProxy::start(&rig, &format!("http://{}", rig.server.address()));
        let ran = run_through(&rig, &through(&rig, api, &proxy.address));
        assert_eq!(ran.code(), 0, "{api}: {}", ran.stderr());
        let said = proxy.stop();
        let sent = rig.server.generations();
        assert_eq!(sent.len(), 3, "{api}");
        let all = recorded(&rig);
        assert_eq!(all.len(), 1, "{api}: {all:?}");
        let id = all[0]["id"].as_str().unwrap();
        for (index, request) in sent.iter().enumerate() {
            let number = (index + 1).to_string();
            let body = rig.run(&["context", "show", id, "--raw", "--request", &number]).stdout();
            assert_eq!(body.as_bytes(), &request.body[..], "{api}, request {number}");
            let own = rig.run(&["context", "show", "--raw", "--request", &number]).stdout();
            assert_eq!(body, own, "{api}: as haft logged it itself");
        }
        assert_eq!(said.lines().filter(|line| line.contains("extends the one before")).count(), 2, "{said}");
        assert!(said.contains("3 requests, 0 breaks"), "{said}");
        assert!(said.contains("mock/"), "the provider at the upstream is known: {said}");
    }
}

#[test]
fn recorded_requests_are_shown_compared_and_explained() {
    let rig = Rig::new(Api::Anthropic, script());
    let proxy = RunningProxy::start(&rig, &format!("http://{}", rig.server.address()));
    let base_url = through(&rig, Api::Anthropic, &proxy.address);
    assert_eq!(run_through(&rig, &base_url).code(), 0);
    proxy.stop();
    let id = recorded(&rig)[0]["id"].as_str().unwrap().to_owned();
    let shown = rig.run(&["context", "show", &id, "--json"]).json();
    let owners: Vec<_> =
        shown["segments"].as_array().unwrap().iter().map(|one| one["owner"].as_str().unwrap()).collect();
    assert!(owners.starts_with(&["tools"]) && owners.contains(&"system") && owners.contains(&"tool"), "{owners:?}");
    let spoken = shown["segments"].as_array().unwrap().iter().find(|one| one["owner"] == "user").unwrap();
    assert!(!spoken["first_words"].as_str().unwrap().starts_with('{'), "{spoken}");
    let difference = rig.run(&["context", "diff", &id]).stdout();
    assert!(difference.contains("kept") && difference.contains("+ "), "{difference}");
    let why = rig.run(&["context", "why", &id, "--json"]).json();
    assert_eq!((&why["requests"], &why["unexplained"]), (&json!(3), &json!(0)));
    let replayed = rig.run(&["context", "replay", &id, "--policy", "none,tail", "--json"]);
    assert_eq!(replayed.code(), 0, "{}", replayed.stderr());
    assert_eq!(replayed.json()["policies"][0]["requests"], 3, "{}", replayed.stdout());
    let report = rig.run(&["context", "report", &id, "--request", "2", "--json"]).json();
    assert!(report["usage"].is_object(), "{report}");
    let all = rig.run(&["conversations", "show", &id, "--json"]).json();
    let roles: Vec<_> = all["messages"].as_array().unwrap().iter().map(|one| one["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant", "tool", "assistant"]);
    assert_eq!(all["messages"][2]["content"][0]["name"], "list_files");
    let dialogue = rig.run(&["conversations", "show", &id]).stdout();
    assert!(dialogue.contains("look around") && dialogue.contains("Done."), "{dialogue}");
}

#[test]
fn a_command_runs_through_it() {
    let rig = Rig::new(Api::OpenaiChat, script());
    let upstream = format!("http://{}", rig.server.address());
    let haft = crate::rig::haft().display().to_string();
    let inner = format!("{haft} run --set providers.mock.base_url=$OPENAI_BASE_URL 'look around'");
    let ran = rig.run(&["proxy", "--upstream", &upstream, "--", "sh", "-c", &inner]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    assert!(ran.stdout().contains("Done."), "{}", ran.stdout());
    assert!(ran.stderr().contains("3 requests, 0 breaks"), "{}", ran.stderr());
    assert_eq!(rig.run(&["proxy", "--upstream", &upstream, "--", "sh", "-c", "exit 7"]).code(), 1);
    assert_eq!(rig.run(&["proxy", "--", "no-such-program-here"]).code(), 2);
    assert_eq!(rig.run(&["proxy", "--upstream", "nowhere"]).code(), 2);
}

#[test]
fn traffic_goes_on_when_nothing_can_be_recorded() {
    let rig = Rig::new(Api::OpenaiChat, script());
    let proxy = RunningProxy::start(&rig, &format!("http://{}", rig.server.address()));
    let base_url = through(&rig, Api::OpenaiChat, &proxy.address);
    // An agent of another home, so that its own store is not in the way.
    let other = Rig::new(Api::OpenaiChat, script());
    for entry in std::fs::read_dir(rig.home()).unwrap().flatten() {
        if entry.path().is_dir() {
            std::fs::remove_dir_all(entry.path()).unwrap();
        }
    }
    let ran = run_through(&other, &base_url);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    proxy.stop();
    assert_eq!(rig.server.generations().len(), 3);
}
