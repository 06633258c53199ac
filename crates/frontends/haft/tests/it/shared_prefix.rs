//! The first bytes of requests: shared by the new sessions of a project, by sub-agents with one
//! agent file, and by forks with the agent that starts them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use haft_context::{CachePiece, CacheSimulator, request_pieces};
use haft_inspect::rebuild_request;
use haft_store::{LoggedRequest, SqliteStore, Store, StoreConfig};
use haft_testkit::support::FakeClock;
use haft_testkit::{Reply, Script, SeenRole, When};
use haft_types::{Api, CacheKind, CacheRule, ConversationId, Layer, ToolProtocol};
use serde_json::{Value, json};

use crate::rig::{Ran, Rig};
use crate::worktrees::run_git;

/// The rules of all simulated caches.
const RULES: [CacheKind; 8] = [
    CacheKind::Automatic,
    CacheKind::Openai,
    CacheKind::OpenaiBreakpoints,
    CacheKind::Anthropic,
    CacheKind::Gemini,
    CacheKind::Deepseek,
    CacheKind::Vllm,
    CacheKind::LlamaCpp,
];

/// Requests that measure this much above the ideal fail a test.
const MAX_SHARE_OF_IDEAL: f64 = 1.05;

fn rig(api: Api, replies: impl IntoIterator<Item = Reply>) -> Rig {
    let rig = Rig::new(api, Script::replies(replies).unwrap());
    rig.write("AGENTS.md", "Count every stripe twice.\n".repeat(200));
    rig
}

fn write_agent(rig: &Rig, name: &str, head: &str) {
    let text = format!(
        "---\nname: {name}\ndescription: Looks closely\n{head}---\nYou are the {name}, who counts stripes.\n"
    );
    rig.write(&format!(".haft/agents/{name}.md"), text);
    assert_eq!(rig.run(&["trust"]).code(), 0);
}

fn start_agents(mode: &str, name: &str, count: usize) -> Reply {
    let agents: String = (0..count)
        .map(|number| {
            format!("  - {{name: {name}, task: Count the stripes of animal {number}.}}\n")
        })
        .collect();
    Reply::call(
        "run_named_subagents",
        json!({"subagents": format!("mode: {mode}\nsubagents:\n{agents}")}),
    )
}

/// Returns the replies of a run whose main agent starts agents: `start`, then `agent` to every
/// request without results, then the end.
fn replies(start: Reply, agent: Reply) -> [Reply; 3] {
    let when = |request: Option<u64>, tool_results: usize| When {
        request,
        tool_results: Some(tool_results),
        ..When::default()
    };
    [
        start.when(when(Some(1), 0)),
        agent.when(when(None, 0)),
        Reply::text("All have twelve.").when(when(None, 1)),
    ]
}

/// Returns the first logged request of each conversation, in the order in which they were sent.
fn first_requests(home: &Path, conversations: &[String]) -> Vec<LoggedRequest> {
    let database = home.join("data/conversations.db");
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let clock = Arc::new(FakeClock::default());
        let store = SqliteStore::open(&database, &StoreConfig::default(), clock).unwrap();
        let mut found = Vec::new();
        for id in conversations {
            let logged = store.logged_request(&ConversationId::new(id), 1).await;
            found.push(logged.unwrap().unwrap());
        }
        found.sort_by_key(|logged| logged.summary.sent_at);
        found
    })
}

/// Returns the conversations of the project whose requests were sent by sub-agents (`true`) or by
/// main sessions.
fn conversations(rig: &Rig, of_agents: bool) -> Vec<String> {
    let listed = rig
        .run(&["conversations", "list", "--all", "--json"])
        .json();
    let is_wanted = |one: &&Value| {
        let namespace = one["namespace"].as_str().unwrap();
        namespace.ends_with("#agents") == of_agents
    };
    let all = listed.as_array().unwrap().iter().filter(is_wanted);
    all.map(|one| one["id"].as_str().unwrap().to_owned())
        .collect()
}

fn pieces(logged: &LoggedRequest) -> Vec<CachePiece> {
    request_pieces(&rebuild_request(logged, ToolProtocol::Native), 1.0)
}

/// Returns the number of tokens that a cache with this rule does not read.
fn count_unread_tokens(rule: CacheKind, requests: &[Vec<CachePiece>]) -> u64 {
    let rule = CacheRule {
        rule,
        ttl: "1h".into(),
        ..CacheRule::default()
    };
    let mut cache = CacheSimulator::new(&rule);
    let unread = |(number, request): (usize, &Vec<CachePiece>)| {
        let at = Duration::from_secs(number as u64);
        let usage = cache.send_request(at, request);
        usage.input + usage.cache_write
    };
    requests.iter().enumerate().map(unread).sum()
}

/// Returns the requests as they would be if all of them had the tools, system message and documents
/// of the first one, and a cache mark after every message. The place may differ.
fn make_ideal(requests: &[LoggedRequest]) -> Vec<Vec<CachePiece>> {
    let count = |logged: &LoggedRequest| {
        let is_shared = |one: &&haft_store::LoggedSegment| {
            matches!(one.layer, Layer::System | Layer::Documents) && one.owner != "document:place"
        };
        1 + logged.segments.iter().filter(is_shared).count()
    };
    let first = pieces(&requests[0]);
    let ideal = |logged: &LoggedRequest| {
        let shared = first[..count(&requests[0])].iter();
        let own = pieces(logged).split_off(count(logged));
        let mark = |piece: CachePiece| CachePiece {
            boundary: true,
            ..piece
        };
        shared.copied().chain(own).map(mark).collect()
    };
    requests.iter().map(ideal).collect()
}

/// Asserts for every rule that the requests write hardly more than the ideal requests.
fn assert_nearly_ideal(requests: &[LoggedRequest]) {
    let sent: Vec<_> = requests.iter().map(pieces).collect();
    let ideal = make_ideal(requests);
    for rule in RULES {
        let (sent, ideal) = (
            count_unread_tokens(rule, &sent),
            count_unread_tokens(rule, &ideal),
        );
        let share = sent as f64 / ideal as f64;
        assert!(
            share <= MAX_SHARE_OF_IDEAL,
            "{rule:?}: {} requests write {sent} tokens, {share:.3} times the ideal {ideal}",
            requests.len()
        );
    }
}

fn run_agents(mode: &str, head: &str, count: usize) -> Rig {
    let rig = rig(
        Api::Anthropic,
        replies(
            start_agents(mode, "scout", count),
            Reply::text("Twelve.").times(u32::try_from(count).unwrap()),
        ),
    );
    for git in [
        &["init", "--quiet"][..],
        &["add", "--all"],
        &["commit", "--quiet", "-m", "begin"],
    ] {
        run_git(&rig, git);
    }
    write_agent(&rig, "scout", head);
    let ran = rig.task(&["count"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    rig
}

#[test]
fn siblings_write_their_shared_bytes_once() {
    for count in [2, 8, 32] {
        let rig = run_agents("parallel", "", count);
        let requests = first_requests(rig.home(), &conversations(&rig, true));
        assert_eq!(requests.len(), count);
        assert_nearly_ideal(&requests);
    }
}

#[test]
fn siblings_one_after_another_write_their_shared_bytes_once() {
    let rig = run_agents("serial", "", 8);
    assert_nearly_ideal(&first_requests(rig.home(), &conversations(&rig, true)));
}

#[test]
fn siblings_share_a_cache_key_for_twelve() {
    let rig = run_agents("parallel", "", 32);
    let requests = first_requests(rig.home(), &conversations(&rig, true));
    let mut counts = std::collections::BTreeMap::new();
    for request in &requests {
        *counts
            .entry(request.cache_key.clone().unwrap())
            .or_insert(0) += 1;
    }
    let mut counts: Vec<_> = counts.into_values().collect();
    counts.sort_unstable();
    assert_eq!(counts, [8, 12, 12]);
}

#[test]
fn forks_write_only_their_task() {
    for count in [2, 8, 32] {
        let rig = run_agents("parallel", "fork: true\n", count);
        let main = conversations(&rig, false);
        let all = [main, conversations(&rig, true)].concat();
        let requests = first_requests(rig.home(), &all);
        assert_eq!(requests.len(), count + 1);
        assert_nearly_ideal(&requests);
    }
}

#[test]
fn new_sessions_write_their_shared_bytes_once() {
    let rig = rig(Api::Anthropic, [Reply::text("Twelve.").times(10)]);
    assert_eq!(rig.run(&["trust"]).code(), 0);
    for number in 0..10 {
        let folder = format!("part-{number}");
        std::fs::create_dir_all(rig.project().join(&folder)).unwrap();
        let ran = rig
            .command(&["run", "--cwd", &folder, &format!("count animal {number}")])
            .env("USER", format!("worker-{number}"))
            .output()
            .unwrap();
        assert!(ran.status.success(), "{ran:?}");
    }
    let requests = first_requests(rig.home(), &conversations(&rig, false));
    assert_eq!(requests.len(), 10);
    assert_nearly_ideal(&requests);
    let users: Vec<_> = requests
        .iter()
        .map(|request| {
            let place = request
                .segments
                .iter()
                .find(|one| one.owner == "document:place")
                .unwrap();
            place.message.joined_text()
        })
        .collect();
    for (number, text) in users.iter().enumerate() {
        assert!(
            text.contains(&format!("part-{number}; relative paths"))
                && text.contains(&format!("User: worker-{number}")),
            "{text}"
        );
    }
}

/// Agents that work in worktrees differ only after the documents.
#[test]
fn worktrees_share_their_first_bytes() {
    let rig = run_agents("parallel", "worktree: true\n", 2);
    let requests = first_requests(rig.home(), &conversations(&rig, true));
    let [one, other] = requests.as_slice() else {
        panic!("{}", requests.len());
    };
    assert_eq!(one.tools, other.tools);
    let mut places = Vec::new();
    for (one, other) in one.segments.iter().zip(&other.segments) {
        if one.owner == "document:place" {
            places.push(one.hash == other.hash);
        } else if matches!(one.layer, Layer::System | Layer::Documents) {
            assert_eq!(one.hash, other.hash, "{}", one.owner);
        }
    }
    assert_eq!(places, [false, true], "the place and its acknowledgment");
}

#[test]
fn fork_sends_the_bytes_of_its_parent() {
    for api in Api::ALL {
        let rig = rig(
            api,
            replies(start_agents("serial", "scout", 1), Reply::text("Twelve.")),
        );
        write_agent(&rig, "scout", "fork: true\n");
        let ran = rig.task(&["MARK the zebra"]);
        assert_eq!(ran.code(), 0, "{api}: {}", ran.stderr());
        let requests = rig.server.generation_requests();
        let body = |number: usize| String::from_utf8(requests[number].body.to_vec()).unwrap();
        let parent = body(0);
        let fork = body(1);
        let shared = parent.find("MARK the zebra").unwrap();
        assert_eq!(fork[..shared], parent[..shared], "{api}");
        // The fields after the messages are equal, too.
        let fields = |body: &str| {
            let mut body: Value = serde_json::from_str(body).unwrap();
            let fields = body.as_object_mut().unwrap();
            for messages in ["messages", "input", "contents"] {
                fields.remove(messages);
            }
            body
        };
        assert_eq!(fields(&fork), fields(&parent), "{api}");
        let seen = requests[1].decode().unwrap();
        let texts = seen.texts(SeenRole::User);
        let first = texts
            .iter()
            .find(|text| text.contains("who counts stripes"))
            .unwrap();
        assert!(
            first.contains("copy `scout`") && first.ends_with("Count the stripes of animal 0."),
            "{first}"
        );
        assert!(!fork.contains("MARK the zebra"), "nothing of the history");
    }
}

#[test]
fn fork_may_call_only_its_own_tools() {
    let write = json!({"path": "stripes.txt", "content": "twelve\n"});
    let refused = When {
        last_contains: Some("did not run".into()),
        ..When::default()
    };
    let [start, agent, end] = replies(
        start_agents("serial", "scout", 1),
        Reply::call("write_to_file", write),
    );
    let given_up = Reply::text("I may not write.").when(refused).times(1);
    let rig = rig(Api::Anthropic, [given_up, start, agent, end]);
    write_agent(&rig, "scout", "fork: true\ntools: read_file, list_files\n");
    let ran = rig.task(&["count"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    assert!(!rig.project().join("stripes.txt").exists());
    let events = ran.events();
    let refused = events
        .iter()
        .find(|event| event["type"] == "tool_result" && event["agent"] == "scout")
        .unwrap();
    assert_eq!(refused["error"]["code"], "outside_tools");
    assert_eq!(
        refused["text"],
        "`write_to_file` did not run: You may call only these tools: `read_file` (path), `list_files` (path)."
    );
}

#[test]
fn agent_file_with_another_model_cannot_fork() {
    let rig = rig(Api::Anthropic, []);
    write_agent(&rig, "scout", "fork: true\nmodel: mock/other\n");
    write_agent(&rig, "guide", "fork: true\nsystem_prompt: Guide.\n");
    let listed = rig.run(&["agents", "list"]);
    insta::assert_snapshot!(listed.stderr().replace(&rig.project().display().to_string(), "PROJECT"), @"
    warning: PROJECT/.haft/agents/guide.md: `fork: true` excludes a system prompt of its own, because a fork has the model and the system prompt of the agent that starts it (remove one of them); it is skipped
    warning: PROJECT/.haft/agents/scout.md: `fork: true` excludes `model: mock/other`, because a fork has the model and the system prompt of the agent that starts it (remove one of them); it is skipped
    ");
}

/// The conversations of earlier versions keep their system message; new ones differ once.
#[test]
fn old_conversations_keep_their_bytes() {
    let rig = rig(Api::Anthropic, [Reply::text("Twelve.").times(4)]);
    assert_eq!(rig.task(&["count"]).code(), 0);
    let id = conversations(&rig, false).pop().unwrap();
    make_old(&rig, &id);
    let again = rig.task(&["-r", &id, "and again"]);
    let systems = |rig: &Rig| -> Vec<bool> {
        let all = rig.server.generation_requests();
        all.iter()
            .map(|request| {
                let place = format!("`{}`", rig.project().display());
                request.decode().unwrap().system.contains(&place)
            })
            .collect()
    };
    assert_eq!(systems(&rig), [false, true], "{}", again.stderr());
    let notices = |ran: &Ran| {
        let is_notice = |event: &Value| event["code"] == "prompt_layout";
        ran.events().iter().filter(|event| is_notice(event)).count()
    };
    assert_eq!(notices(&again), 0);
    let first = rig.task(&["something new"]);
    rig.run(&["conversations", "use", &id]);
    let second = rig.task(&["something else"]);
    assert_eq!((notices(&first), notices(&second)), (1, 0));
    assert_eq!(systems(&rig), [false, true, false, false]);
}

/// Removes what only versions with the new layout store of a conversation.
fn make_old(rig: &Rig, id: &str) {
    let database = rusqlite::Connection::open(rig.home().join("data/conversations.db")).unwrap();
    let removed = database
        .execute(
            "DELETE FROM states WHERE name = 'place' AND conversation = (SELECT key FROM conversations WHERE id = ?1)",
            [id],
        )
        .unwrap();
    assert_eq!(removed, 1);
}
