//! Document collections: commands, configuration, and the tool that queries them.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::{Ran, Rig};

fn rig(replies: impl IntoIterator<Item = Reply>) -> Rig {
    Rig::new(Api::OpenaiChat, Script::replies(replies).unwrap())
}

fn query_call(name: &str, query: &str) -> Reply {
    Reply::call("use_rag_tool", json!({"server_name": name, "query": query}))
}

/// Writes a folder of documents, and returns its path.
fn write_documents(rig: &Rig) -> String {
    let folder = rig.home().join("documents");
    fs::create_dir_all(&folder).unwrap();
    fs::write(
        folder.join("zebra.md"),
        "# Zebras\n\nA zebra is counted by its stripes.\n",
    )
    .unwrap();
    fs::write(folder.join("lion.md"), "# Lions\n\nLions sleep.\n").unwrap();
    folder.display().to_string()
}

/// Runs a task in mode `ask`, in which every call that needs approval is denied.
fn run_in_ask_mode(rig: &Rig, task: &str) -> Ran {
    rig.run(&[
        "run",
        "--permission-mode",
        "ask",
        "--output-format",
        "stream-json",
        task,
    ])
}

fn first_tool_result(ran: &Ran) -> Value {
    ran.events()
        .into_iter()
        .find(|event| event["type"] == "tool_result")
        .expect("a tool was called")
}

#[test]
fn collection_is_added_listed_queried_and_removed() {
    let rig = rig([Reply::text("Done.")]);
    let folder = write_documents(&rig);
    let added = rig.run(&["rag", "add", "zoo", &folder, "--description", "Animals."]);
    assert_eq!(added.code(), 0, "{}", added.stderr());
    assert!(added.stdout().contains("2 with text"), "{}", added.stdout());
    let listed = rig.run(&["rag", "list", "--json"]).json();
    assert_eq!(
        (
            &listed[0]["name"],
            &listed[0]["files"],
            &listed[0]["folders"][0]
        ),
        (&json!("zoo"), &json!(2), &json!(folder))
    );
    assert!(rig.run(&["rag"]).stdout().contains("Animals."));

    let found = rig
        .run(&["rag", "query", "zoo", "how are stripes counted?", "--json"])
        .json();
    assert_eq!(
        found["passages"][0]["path"],
        json!(format!("{folder}/zebra.md"))
    );
    assert_eq!(
        (
            &found["passages"][0]["start_line"],
            &found["passages"][0]["end_line"]
        ),
        (&json!(1), &json!(3))
    );
    let shown = rig.run(&["rag", "query", "zoo", "stripes"]).stdout();
    assert!(shown.contains("zebra.md:1-3\n# Zebras"), "{shown}");

    for (arguments, why) in [
        (vec!["rag", "add", "zoo", &folder], "already"),
        (vec!["rag", "add", "a/b", &folder], "letters, digits"),
        (
            vec!["rag", "add", "none", "/nowhere/at/all"],
            "No such file",
        ),
        (vec!["rag", "add", "none", "--url", "ftp://h"], "http://"),
        (vec!["rag", "query", "nobody", "?"], "there are `zoo`"),
        (vec!["rag", "query", "zoo", " "], "empty"),
        (vec!["rag", "remove", "nobody"], "no collection `nobody`"),
    ] {
        let ran = rig.run(&arguments);
        assert_eq!(ran.code(), 2, "{arguments:?}: {}", ran.stdout());
        assert!(
            ran.stderr().contains(why),
            "{arguments:?}: {}",
            ran.stderr()
        );
    }
    assert_eq!(rig.run(&["rag", "remove", "zoo"]).code(), 0);
    assert_eq!(rig.run(&["rag", "list", "--json"]).json(), json!([]));
    assert_eq!(
        fs::read_dir(rig.home().join("data/rag")).unwrap().count(),
        0,
        "its index is gone"
    );
}

#[test]
fn use_rag_tool_queries_a_local_collection_without_approval() {
    let rig = rig([
        query_call("zoo", "zebra stripes"),
        query_call("zo", "x"),
        Reply::text("Done."),
    ]);
    rig.run(&[
        "rag",
        "add",
        "zoo",
        &write_documents(&rig),
        "--description",
        "Animals.",
    ]);
    let ran = run_in_ask_mode(&rig, "how many?");
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    let text = first_tool_result(&ran)["text"].as_str().unwrap().to_owned();
    assert!(text.contains("zebra.md:1-3\n```\n# Zebras"), "{text}");
    let last = ran
        .events()
        .into_iter()
        .rfind(|event| event["type"] == "tool_result")
        .unwrap();
    assert!(
        last["text"]
            .as_str()
            .unwrap()
            .contains("there is no collection `zo`; there are `zoo`"),
        "{last}"
    );
    let request = rig.server.generation_requests()[0].decode().unwrap();
    assert!(
        request.tools.iter().any(|tool| tool.name == "use_rag_tool"),
        "the tool is offered"
    );
    assert_eq!(
        request.prompt_section("RAG_COLLECTIONS"),
        Some("- `zoo`: Animals."),
        "{}",
        request.system
    );
}

#[test]
fn use_rag_tool_is_not_offered_without_valid_collections() {
    let rig = rig([Reply::text("Done.").times(2)]);
    rig.task(&["hello"]);
    let file = rig.home().join("config.toml");
    fs::write(
        &file,
        format!(
            "{}[rag.broken]\nfolders = [\"docs\"]\n",
            fs::read_to_string(&file).unwrap()
        ),
    )
    .unwrap();
    let ran = rig.task(&["hello"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    let told = ran
        .events()
        .into_iter()
        .find(|event| event["type"] == "error")
        .expect("a notice");
    assert!(
        told["message"].as_str().unwrap().contains("[rag.broken]"),
        "{told}"
    );
    for request in rig.server.generation_requests() {
        assert!(
            request
                .decode()
                .unwrap()
                .tools
                .iter()
                .all(|tool| tool.name != "use_rag_tool")
        );
    }
}

#[test]
fn use_rag_tool_needs_approval_for_a_remote_server() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", server.local_addr().unwrap());
    let rig = rig([
        query_call("far", "stripes"),
        Reply::text("Done."),
        query_call("far", "stripes"),
        Reply::text("Done."),
    ]);
    let added = rig.run(&[
        "rag",
        "add",
        "far",
        "--url",
        &url,
        "--description",
        "Far away.",
    ]);
    assert_eq!(added.code(), 0, "{}", added.stderr());
    let refused = first_tool_result(&run_in_ask_mode(&rig, "ask it"));
    let told = refused["text"].as_str().unwrap();
    assert!(
        told.contains("haft permissions add \"use_rag_tool(domain:127.0.0.1)\""),
        "{told}"
    );

    let answering = std::thread::spawn(move || {
        let (mut stream, _) = server.accept().unwrap();
        let mut piece = [0; 8192];
        let _ = stream.read(&mut piece).unwrap();
        let body =
            r#"{"choices":[{"message":{"content":"Forty\u001b[2J."}}],"citations":["stripes.md"]}"#;
        write!(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
    });
    rig.run(&["permissions", "add", "use_rag_tool(domain:127.0.0.1)"]);
    let answered = first_tool_result(&run_in_ask_mode(&rig, "ask it"));
    answering.join().unwrap();
    assert_eq!(answered["text"], "Forty.\n\nSources:\n- stripes.md");
}

#[test]
fn rag_serve_provides_a_remote_collection() {
    let rig = rig([query_call("again", "zebra stripes"), Reply::text("Done.")]);
    rig.run(&["rag", "add", "zoo", &write_documents(&rig)]);
    let refused = rig.run(&["rag", "serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(refused.code(), 2, "{}", refused.stdout());
    let mut server = rig
        .command(&["rag", "serve", "--listen", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let url = lines
        .next()
        .unwrap()
        .unwrap()
        .strip_prefix("Serving zoo at ")
        .unwrap()
        .to_owned();
    let token = lines
        .next()
        .unwrap()
        .unwrap()
        .strip_prefix("Token: ")
        .unwrap()
        .to_owned();
    let address = url
        .strip_prefix("http://")
        .unwrap()
        .strip_suffix("/v1")
        .unwrap()
        .to_owned();

    let say = |method: &str, path: &str, headers: &str, body: &str| {
        let mut stream = TcpStream::connect(&address).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
        )
        .unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        reply
    };
    let known = format!("host: {address}\r\nauthorization: Bearer {token}\r\n");
    let body = r#"{"model":"zoo","messages":[{"role":"user","content":"stripes of a zebra"}]}"#;
    for (headers, status) in [
        (format!("host: {address}\r\n"), "401"),
        (
            format!("host: {address}\r\nauthorization: Bearer wrong\r\n"),
            "401",
        ),
        (
            format!("host: evil.example\r\nauthorization: Bearer {token}\r\n"),
            "403",
        ),
        (format!("{known}origin: https://evil.example\r\n"), "403"),
    ] {
        let reply = say("POST", "/v1/chat/completions", &headers, body);
        assert!(
            reply.starts_with(&format!("HTTP/1.1 {status}")),
            "{headers}: {reply}"
        );
        assert!(!reply.contains("stripes"), "{reply}");
    }
    let models = say("GET", "/v1/models", &known, "");
    assert!(models.contains(r#""id":"zoo""#), "{models}");
    let whole = say("POST", "/v1/chat/completions", &known, body);
    assert!(
        whole.contains("counted by its stripes") && whole.contains("zebra.md:1-3\"]"),
        "{whole}"
    );
    let stream = say(
        "POST",
        "/v1/chat/completions",
        &known,
        &body.replace("}]}", "}],\"stream\":true}"),
    );
    assert!(
        stream.contains("text/event-stream") && stream.ends_with("data: [DONE]\n\n"),
        "{stream}"
    );
    assert!(say("POST", "/v1/chat/completions", &known, "{").starts_with("HTTP/1.1 400"));
    assert!(say("GET", "/elsewhere", &known, "").starts_with("HTTP/1.1 404"));

    // Another haft queries the served collection.
    let file = rig.home().join("config.toml");
    let section = format!("[rag.again]\nurl = \"{url}\"\napi_key_env = \"ZOO_TOKEN\"\n");
    fs::write(
        &file,
        format!("{}{section}", fs::read_to_string(&file).unwrap()),
    )
    .unwrap();
    let run = [
        "run",
        "--permission-mode",
        "yolo",
        "--output-format",
        "stream-json",
        "ask it",
    ];
    let ran = rig.command(&run).env("ZOO_TOKEN", &token).output().unwrap();
    let told = String::from_utf8(ran.stdout).unwrap();
    assert!(
        told.contains("counted by its stripes") && told.contains("Sources:"),
        "{told}"
    );
    assert!(!told.contains(&token));
    server.kill().unwrap();
    server.wait().unwrap();
}

#[test]
fn index_survives_a_kill_at_any_moment() {
    let rig = rig([Reply::text("Done.")]);
    let folder = write_documents(&rig);
    for part in 0..300 {
        fs::write(
            format!("{folder}/{part}.md"),
            format!("# Part {part}\n\nanimal{part} lives here.\n"),
        )
        .unwrap();
    }
    let file = rig.home().join("config.toml");
    fs::write(
        &file,
        format!(
            "{}[rag.zoo]\nfolders = [\"{folder}\"]\n",
            fs::read_to_string(&file).unwrap()
        ),
    )
    .unwrap();
    let sizes = || -> Vec<u64> {
        let files = fs::read_dir(rig.home().join("data/rag"))
            .into_iter()
            .flatten();
        let sizes = files.map(|file| file.unwrap().metadata().map_or(0, |found| found.len()));
        sizes.collect()
    };
    // The query is killed at the nth change of the index's files, or ends before.
    for changes in [0, 1, 2, 4, 8] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_haft"))
            .args(["rag", "query", "zoo", "animal299"])
            .env_clear()
            .env("HAFT_HOME", rig.home())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        for _ in 0..changes {
            let before = sizes();
            while sizes() == before && child.try_wait().unwrap().is_none() {
                std::thread::yield_now();
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let found = rig.run(&["rag", "query", "zoo", "animal299", "--json"]);
    assert_eq!(found.code(), 0, "{}", found.stderr());
    assert_eq!(
        found.json()["passages"][0]["path"],
        json!(format!("{folder}/299.md"))
    );
    assert_eq!(rig.run(&["rag", "list", "--json"]).json()[0]["files"], 302);
}

#[cfg(feature = "mcp")]
#[test]
fn system_prompt_lists_servers_collections_and_agents_in_order() {
    for protocol in ["native", "xml"] {
        let rig = rig([Reply::text("Done.").times(9)]);
        rig.run(&[
            "rag",
            "add",
            "zoo",
            &write_documents(&rig),
            "--description",
            "Animals.",
        ]);
        rig.run(&["mcp", "add", "--no-test", "web", "--", "true"]);
        rig.write(
            ".haft/agents/keeper.md",
            "---\nname: keeper\ndescription: Feeds animals.\n---\nYou feed animals.\n",
        );
        rig.run(&["trust"]);
        let protocol = format!("models.\"mock/gemini-3-scripted\".tool_protocol=\"{protocol}\"");
        rig.task(&["--set", &protocol, "hello"]);
        let system = rig.server.generation_requests()[0].decode().unwrap().system;
        let headings = [
            "TOOL USE\n",
            "# MCP_SERVER_LIST\n",
            "# RAG_COLLECTIONS\n",
            "# Named agents\n",
            "CAPABILITIES\n",
        ];
        let places: Vec<_> = headings
            .iter()
            .map(|heading| system.find(heading))
            .collect();
        assert!(
            places.iter().all(Option::is_some) && places.is_sorted(),
            "{places:?} in\n{system}"
        );
    }
}

/// A server of embeddings. A vector has one component for each of [`MEANINGS`], set if the text
/// holds one of its words. The server records the texts it receives.
struct VectorServer {
    address: SocketAddr,
    texts: Arc<Mutex<Vec<String>>>,
}

const MEANINGS: [&[&str]; 3] = [
    &["car", "automobile", "vehicle"],
    &["fruit", "apple"],
    &["river"],
];

impl VectorServer {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let texts: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = Arc::clone(&texts);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                Self::answer_request(&mut stream.unwrap(), &kept);
            }
        });
        Self { address, texts }
    }

    /// Answers one request of one connection.
    fn answer_request(stream: &mut TcpStream, kept: &Mutex<Vec<String>>) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut line = String::new();
        let mut length = 0;
        let mut first = String::new();
        while reader.read_line(&mut line).unwrap_or(0) > 2 {
            if first.is_empty() {
                first.clone_from(&line);
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            line.clear();
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        assert!(first.starts_with("POST /v1/embeddings "), "{first}");
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["model"], "tiny");
        let texts: Vec<String> = serde_json::from_value(body["input"].clone()).unwrap();
        let part = |text: &str, words: &[&str]| {
            words.iter().filter(|word| text.contains(*word)).count() as f64 + 0.01
        };
        let vector = |text: &String| MEANINGS.map(|words| part(&text.to_lowercase(), words));
        let data: Vec<_> = texts
            .iter()
            .enumerate()
            .map(|(index, text)| json!({"index": index, "embedding": vector(text)}))
            .collect();
        kept.lock().unwrap().extend(texts);
        let reply = json!({"object": "list", "data": data, "model": "tiny", "usage": {"prompt_tokens": 1_000}});
        let reply = reply.to_string();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            reply.len()
        );
        stream.write_all((head + &reply).as_bytes()).unwrap();
    }

    fn take_texts(&self) -> Vec<String> {
        std::mem::take(&mut self.texts.lock().unwrap())
    }
}

/// A collection of three files, searched by words and by the embeddings of this server.
fn rig_with_embeddings(address: SocketAddr) -> Rig {
    let rig = Rig::new(Api::Anthropic, Script::turns([]).unwrap());
    let docs = rig.project().join("docs").display().to_string();
    for (name, text) in [
        ("garage.md", "# Garage\n\nThe automobile is parked here.\n"),
        ("kitchen.md", "# Kitchen\n\nAn apple lies on the table.\n"),
        ("map.md", "# Map\n\nThe river flows south.\n"),
    ] {
        rig.write(&format!("docs/{name}"), text);
    }
    let config = fs::read_to_string(rig.home().join("config.toml")).unwrap();
    rig.configure(&format!(
        "{config}[providers.vectors]\napi = \"openai-chat\"\nbase_url = \"http://{address}/v1\"\n\
         [model_roles]\nembedding = \"vectors/tiny\"\n[rag.docs]\nfolders = [\"{docs}\"]\n"
    ));
    rig
}

fn found_files(ran: &Ran) -> Vec<String> {
    let json = ran.json();
    let name = |passage: &Value| {
        passage["path"]
            .as_str()
            .unwrap()
            .rsplit('/')
            .next()
            .unwrap()
            .to_owned()
    };
    json["passages"]
        .as_array()
        .unwrap()
        .iter()
        .map(name)
        .collect()
}

#[test]
fn query_with_embeddings_finds_passages_by_meaning() {
    let server = VectorServer::start();
    let rig = rig_with_embeddings(server.address);
    let ask = |question: &str| rig.run(&["rag", "query", "docs", question, "--json"]);
    // No file holds the word.
    let ran = ask("car");
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    assert_eq!(found_files(&ran)[0], "garage.md", "{}", ran.stdout());
    assert_eq!(
        server.take_texts().len(),
        4,
        "three passages and the question"
    );
    ask("fruit");
    assert_eq!(server.take_texts(), ["fruit"], "a vector is made once");
    assert_eq!(
        found_files(&ask("river south"))[0],
        "map.md",
        "words count as before"
    );
    server.take_texts();
    rig.write("docs/map.md", "# Map\n\nThe vehicle crosses the river.\n");
    let sent = ask("automobile").json();
    assert!(sent["notes"].as_array().unwrap().is_empty(), "{sent}");
    assert_eq!(
        server.take_texts().len(),
        2,
        "the passage that changed, and the question"
    );
}

#[test]
fn query_without_embedding_server_falls_back_to_words() {
    let closed = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let rig = rig_with_embeddings(closed);
    let ran = rig.run(&["rag", "query", "docs", "automobile", "--json"]);
    assert_eq!(
        (ran.code(), found_files(&ran)),
        (0, vec!["garage.md".to_owned()]),
        "{}",
        ran.stderr()
    );
    assert!(
        ran.json()["notes"][0]
            .as_str()
            .unwrap()
            .contains("found by words alone"),
        "{}",
        ran.stdout()
    );
    // A provider without embeddings is reported when the session begins, and the collection still
    // answers.
    let ran = rig.run(&[
        "rag",
        "query",
        "docs",
        "automobile",
        "--json",
        "--set",
        "providers.vectors.api=\"anthropic\"",
    ]);
    assert_eq!(found_files(&ran), ["garage.md"]);
}

/// Two requests for embeddings of 1,000 tokens each: the passages, and the question.
#[test]
fn embedding_cost_is_counted_if_the_model_has_a_price() {
    let server = VectorServer::start();
    for (price, more) in [
        ("", 0.0),
        ("price = { input = 250.0, output = 0.0 }\n", 0.5),
    ] {
        let rig = rig_with_embeddings(server.address);
        let call = Reply::call(
            "use_rag_tool",
            json!({"server_name": "docs", "query": "automobile"}),
        );
        let old = fs::read_to_string(rig.home().join("config.toml")).unwrap();
        let before = rig.server.base_url(Api::Anthropic);
        let rig = rig.with_script(
            Script::turns([call, Reply::text("Parked.")]).unwrap(),
            Api::Anthropic,
        );
        let model = format!("[models.\"vectors/tiny\"]\n{price}");
        rig.configure(&format!(
            "{}{model}",
            old.replace(&before, &rig.server.base_url(Api::Anthropic))
        ));
        let ran = rig.task(&["where is it?"]);
        assert_eq!(ran.code(), 0, "{}", ran.stderr());
        let of = |event: &Value| event["type"] == "usage" && event["model"] == "vectors/tiny";
        let vectors: Vec<_> = ran.events().into_iter().filter(of).collect();
        assert_eq!(
            vectors.len(),
            if price.is_empty() { 0 } else { 2 },
            "{}",
            ran.stdout()
        );
        let costs = ran
            .events()
            .into_iter()
            .filter(|event| event["type"] == "usage");
        let sum: f64 = costs
            .map(|event| event["cost"]["total"].as_f64().unwrap())
            .sum();
        let told = ran
            .events()
            .into_iter()
            .find(|event| event["type"] == "result")
            .unwrap();
        let total = told["cost"]["total"].as_f64().unwrap();
        assert!(
            (total - sum).abs() < 1e-9 && (0.0..0.1).contains(&(total - more)),
            "{told}"
        );
        assert_ne!(told["cost"]["incomplete"], json!(true), "{told}");
    }
}

#[test]
fn query_under_a_budget_requests_no_embeddings() {
    let server = VectorServer::start();
    let rig = rig_with_embeddings(server.address);
    let call = Reply::call(
        "use_rag_tool",
        json!({"server_name": "docs", "query": "automobile"}),
    );
    let old = fs::read_to_string(rig.home().join("config.toml")).unwrap();
    let before = rig.server.base_url(Api::Anthropic);
    let rig = rig.with_script(
        Script::turns([call, Reply::text("Parked.")]).unwrap(),
        Api::Anthropic,
    );
    rig.configure(&old.replace(&before, &rig.server.base_url(Api::Anthropic)));
    let ran = rig.task(&["--max-budget-usd", "5", "where is it?"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    assert!(server.take_texts().is_empty());
    assert!(
        ran.stdout().contains("garage.md") && ran.stdout().contains("limit of money"),
        "{}",
        ran.stdout()
    );
}
