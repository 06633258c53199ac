//! Models: the built-in list, the commands that show it, fallbacks, roles, images and cost.

use base64::Engine as _;
use haft_testkit::{Reply, Script, ScriptedServer, Seen, SeenPart, When};
use haft_types::{Api, Usage};
use serde_json::{Value, json};

use crate::rig::{MODEL, Ran, Rig};

fn rig(replies: impl IntoIterator<Item = Reply>) -> Rig {
    Rig::new(Api::OpenaiChat, Script::turns(replies).unwrap())
}

fn events_of_type(events: &[Value], kind: &str) -> Vec<Value> {
    events
        .iter()
        .filter(|event| event["type"] == kind)
        .cloned()
        .collect()
}

#[test]
fn models_list_shows_built_in_models_with_a_key() {
    let rig = rig([Reply::text("Hello.")]);
    let names = |arguments: &[&str], keys: &[(&str, &str)]| -> Vec<String> {
        let output = rig
            .command(arguments)
            .envs(keys.iter().copied())
            .output()
            .unwrap();
        let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
        listed
            .as_array()
            .unwrap()
            .iter()
            .map(|model| model["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let own = format!("mock/{MODEL}");
    assert_eq!(names(&["models", "list", "--json"], &[]), [own.as_str()]);
    let with_key = names(&["models", "list", "--json"], &[("MISTRAL_API_KEY", "k")]);
    assert_eq!(with_key, ["mistral/mistral-medium-3.5", own.as_str()]);
    assert!(names(&["models", "list", "--all", "--json"], &[]).len() > 20);
}

#[test]
fn models_list_is_a_table_of_usable_models() {
    let rig = rig([Reply::text("Hello.")]);
    insta::assert_snapshot!(rig.screen(&["models", "list"]), @"
    MODEL  API  KEY  WINDOW  OUTPUT  USD/M IN  CACHED  OUT
    mock/gemini-3-scripted (main)  openai-chat  none  200,000  8,192  3  0.3  15
    ");
}

#[test]
fn missing_usage_is_reported_once() {
    let look = Reply::call("list_files", json!({"path": "."}));
    let rig = rig([
        look.with_usage(Usage::default()),
        Reply::text("Done.").with_usage(Usage::default()),
    ]);
    let ran = rig.task(&["look"]);
    let missing: Vec<_> = events_of_type(&ran.events(), "notice")
        .into_iter()
        .filter(|notice| notice["code"] == "usage_missing")
        .collect();
    assert_eq!((ran.code(), missing.len()), (0, 1), "{}", ran.stdout());
    let message = missing[0]["message"].as_str().unwrap();
    assert!(message.contains("reports no usage"), "{message}");
}

#[test]
fn models_test_prints_reply_and_cost() {
    let usage = Usage {
        input: 30,
        output: 2,
        ..Usage::default()
    };
    let rig = rig([Reply::text("OK").with_usage(usage)]);
    insta::assert_snapshot!(rig.screen(&["models", "test"]), @r#"
    mock/gemini-3-scripted over openai-chat at http://127.0.0.1:PORT/v1
    list  1 model, not this one
    answer  "OK" after DURATION, first token after DURATION
    usage  30 input, 0 read from the cache, 0 written to it, 2 output, $0.00012
    cache  declared as automatic, from 1024 tokens, for 5m (`--cache` tries it)
    "#);
}

#[test]
fn unknown_models_are_usage_errors_with_a_suggestion() {
    let rig = rig([Reply::text("Hello.")]);
    insta::assert_snapshot!(rig.screen(&["run", "-m", "mock", "hi"]), @"
    -- errors
    haft: `mock` is not a model name; write `provider/model`, such as `mock/gemini-3-scripted`
    -- exit 2
    ");
    insta::assert_snapshot!(rig.screen(&["run", "-m", "anthropic/claude-opus", "hi"]), @"
    -- errors
    haft: no key for provider `anthropic`: the environment variable `ANTHROPIC_API_KEY` is not set; export it, or change `providers.anthropic.api_key_env`
    -- exit 2
    ");
}

#[test]
fn built_in_model_needs_its_key_only_when_used() {
    let rig = rig([Reply::text("Hello.")]);
    assert_eq!(
        rig.task(&["hi"]).code(),
        0,
        "no key of the others is asked for"
    );
    insta::assert_snapshot!(rig.screen(&["run", "-m", "anthropic/claude-opus-5", "hi"]), @"
    -- errors
    haft: no key for provider `anthropic`: the environment variable `ANTHROPIC_API_KEY` is not set; export it, or change `providers.anthropic.api_key_env`
    -- exit 2
    ");
}

#[test]
fn models_show_reports_the_origin_of_each_value() {
    let rig = rig([Reply::text("Hello.")]);
    let set = "models.\"anthropic/claude-opus-5\".price.input=4.5";
    let shown = rig
        .run(&[
            "models",
            "show",
            "anthropic/claude-opus-5",
            "--json",
            "--set",
            set,
        ])
        .json();
    let value =
        |key: &str| shown["values"][format!("models.\"anthropic/claude-opus-5\".{key}")].clone();
    assert_eq!(
        value("price.input"),
        json!({"value": 4.5, "origin": "flag --set"})
    );
    assert_eq!(
        value("price.output"),
        json!({"value": 25.0, "origin": "built-in"})
    );
    assert_eq!(
        value("tool_protocol"),
        json!({"value": "native", "origin": "default"})
    );
    assert_eq!(shown["key"], "no");
    assert!(
        shown["built_in"]["model"]["source"]
            .as_str()
            .unwrap()
            .starts_with("https://")
    );
    insta::assert_snapshot!(rig.screen(&["models", "show", "anthropic/claude-opus-5"]), @r#"
    anthropic/claude-opus-5 (key: no)
    Profile: `full`, the default
    models."anthropic/claude-opus-5".cache.look_back = 20  # built-in
    models."anthropic/claude-opus-5".cache.min = 512  # built-in
    models."anthropic/claude-opus-5".cache.rule = "anthropic"  # built-in
    models."anthropic/claude-opus-5".cache.ttl = "5m"  # default
    models."anthropic/claude-opus-5".cache.ttls = ["5m", "1h"]  # built-in
    models."anthropic/claude-opus-5".capabilities.images = true  # built-in
    models."anthropic/claude-opus-5".capabilities.max_tokens = false  # default
    models."anthropic/claude-opus-5".capabilities.prefill = false  # default
    models."anthropic/claude-opus-5".capabilities.reasoning = true  # built-in
    models."anthropic/claude-opus-5".capabilities.reasoning_back = false  # default
    models."anthropic/claude-opus-5".capabilities.user_after_tool = true  # default
    models."anthropic/claude-opus-5".context_window = 1000000  # built-in
    models."anthropic/claude-opus-5".max_output_tokens = 128000  # built-in
    models."anthropic/claude-opus-5".price.cache_write = 6.25  # built-in
    models."anthropic/claude-opus-5".price.cached_input = 0.5  # built-in
    models."anthropic/claude-opus-5".price.input = 5.0  # built-in
    models."anthropic/claude-opus-5".price.output = 25.0  # built-in
    models."anthropic/claude-opus-5".profile = "full"  # default
    models."anthropic/claude-opus-5".tokenizer_factor = 1.5  # built-in
    models."anthropic/claude-opus-5".tool_protocol = "native"  # default
    providers.anthropic.api = "anthropic"  # built-in
    providers.anthropic.api_key_env = "ANTHROPIC_API_KEY"  # built-in
    providers.anthropic.base_url = "https://api.anthropic.com"  # built-in
    providers.anthropic.stream = true  # default
    anthropic/claude-opus-5: https://platform.claude.com/docs/en/models/opus-5/overview as of DATE
    anthropic: https://platform.claude.com/docs/en/api/overview as of DATE
    "#);
    insta::assert_snapshot!(rig.screen(&["models", "show", "mock/gemini-3-scripted"]), @r#"
    mock/gemini-3-scripted (key: none)
    Profile: `full`, the default
    models."mock/gemini-3-scripted".cache.min = 1024  # default
    models."mock/gemini-3-scripted".cache.rule = "automatic"  # default
    models."mock/gemini-3-scripted".cache.ttl = "5m"  # default
    models."mock/gemini-3-scripted".capabilities.images = true  # default
    models."mock/gemini-3-scripted".capabilities.max_tokens = false  # default
    models."mock/gemini-3-scripted".capabilities.prefill = false  # default
    models."mock/gemini-3-scripted".capabilities.reasoning = false  # default
    models."mock/gemini-3-scripted".capabilities.reasoning_back = false  # default
    models."mock/gemini-3-scripted".capabilities.user_after_tool = true  # default
    models."mock/gemini-3-scripted".context_window = 200000  # HOME/config.toml
    models."mock/gemini-3-scripted".max_output_tokens = 8192  # HOME/config.toml
    models."mock/gemini-3-scripted".price.cache_write = 3.75  # HOME/config.toml
    models."mock/gemini-3-scripted".price.cached_input = 0.3  # HOME/config.toml
    models."mock/gemini-3-scripted".price.input = 3.0  # HOME/config.toml
    models."mock/gemini-3-scripted".price.output = 15.0  # HOME/config.toml
    models."mock/gemini-3-scripted".profile = "full"  # default
    models."mock/gemini-3-scripted".tokenizer_factor = 1.0  # default
    models."mock/gemini-3-scripted".tool_protocol = "native"  # default
    providers.mock.api = "openai-chat"  # HOME/config.toml
    providers.mock.base_url = "http://127.0.0.1:PORT/v1"  # HOME/config.toml
    providers.mock.stream = true  # default
    "#);
    insta::assert_snapshot!(rig.screen(&["models", "show", "antropic/claude"]), @"
    -- errors
    haft: `antropic/claude`: no provider `antropic` is declared; did you mean `anthropic`? declared are: …
    -- exit 2
    ");
}

#[test]
fn models_add_makes_the_model_usable_at_once() {
    let rig = rig([Reply::text("Hello.")]);
    rig.configure("# nothing yet\n");
    let base_url = rig.server.base_url(Api::OpenaiChat);
    let added = rig.run(&[
        "models",
        "add",
        "local/m",
        "--api",
        "openai-chat",
        "--base-url",
        &base_url,
        "--main",
    ]);
    insta::assert_snapshot!(rig.mask(&added), @"Declared `local/m` in `HOME/config.toml`. `haft models test local/m` tries it.");
    let text = std::fs::read_to_string(rig.home().join("config.toml")).unwrap();
    insta::assert_snapshot!(rig.mask_text(&text), @r#"
    model = "local/m"

    [providers.local]
    api = "openai-chat"
    base_url = "http://127.0.0.1:PORT/v1"

    [models."local/m"]
    # nothing yet
    "#);
    assert_eq!(rig.run(&["run", "hi"]).stdout(), "Hello.\n");
    insta::assert_snapshot!(rig.screen(&["models", "add", "local/m"]), @"
    -- errors
    haft: `local/m` is already declared in `HOME/config.toml`; change it there
    -- exit 2
    ");
    assert_eq!(
        std::fs::read_to_string(rig.home().join("config.toml")).unwrap(),
        text,
        "nothing was written"
    );
}

#[test]
fn models_test_reports_reply_usage_and_cost() {
    let usage = Usage {
        input: 30,
        output: 2,
        ..Usage::default()
    };
    let rig = rig([Reply::text("OK").with_usage(usage)]);
    let tested = rig.run(&["models", "test", "--json"]);
    let told = tested.json();
    assert_eq!((tested.code(), &told["ok"]), (0, &json!(true)), "{told}");
    assert_eq!(
        (
            &told["replies"][0]["text"],
            &told["replies"][0]["usage"]["input"]
        ),
        (&json!("OK"), &json!(30))
    );
    assert!(told["replies"][0]["cost"]["total"].as_f64().unwrap() > 0.0);
    assert_eq!(rig.server.generation_requests().len(), 1);
    assert!(
        rig.server.refusals().is_empty(),
        "{:?}",
        rig.server.refusals()
    );
}

#[test]
fn models_test_with_cache_flag_reports_cached_tokens() {
    let cold = Reply::text("OK").with_usage(Usage {
        input: 1_500,
        output: 2,
        ..Usage::default()
    });
    let warm = Reply::text("OK").with_usage(Usage {
        input: 100,
        cached_input: 1_400,
        output: 2,
        ..Usage::default()
    });
    let script = Script::replies([cold.times(1), warm])
        .unwrap()
        .with_models([MODEL]);
    let rig = Rig::new(Api::OpenaiChat, script);
    insta::assert_snapshot!(rig.screen(&["models", "test", "--cache"]), @r#"
    mock/gemini-3-scripted over openai-chat at http://127.0.0.1:PORT/v1
    list  1 model, this one
    answer  "OK" after DURATION, first token after DURATION
    usage  1500 input, 0 read from the cache, 0 written to it, 2 output, $0.00453
    answer  "OK" after DURATION, first token after DURATION
    usage  100 input, 1400 read from the cache, 0 written to it, 2 output, $0.00075
    cache  works: the second request read 1400 tokens from it
    "#);
    let bodies: Vec<_> = rig
        .server
        .generation_requests()
        .iter()
        .map(|request| request.decode().unwrap())
        .collect();
    assert_eq!(bodies.len(), 2);
    assert!(bodies[0].system.len() > 4_000 && bodies[0].system == bodies[1].system);
}

#[test]
fn models_test_distinguishes_bad_addresses_from_failures() {
    let rig = rig([Reply::text("Hello.")]);
    let dead = "providers.mock.base_url=\"http://127.0.0.1:1/v1\"";
    insta::assert_snapshot!(rig.screen(&["models", "test", "--set", dead]), @"
    mock/gemini-3-scripted over openai-chat at http://127.0.0.1:1/v1
    list  none: cannot connect to http://127.0.0.1:1/v1/chat/completions: Connection refused (os error 111); check that the server is running and that `base_url` is correct
    cache  declared as automatic, from 1024 tokens, for 5m (`--cache` tries it)
    failed  cannot connect to http://127.0.0.1:1/v1/chat/completions: Connection refused (os error 111); check that the server is running and that `base_url` is correct
    -- exit 2
    ");
    let failing = Rig::new(
        Api::OpenaiChat,
        Script::replies([Reply::error(503, "Overloaded.")]).unwrap(),
    );
    insta::assert_snapshot!(failing.screen(&["models", "test"]), @"
    mock/gemini-3-scripted over openai-chat at http://127.0.0.1:PORT/v1
    list  1 model, not this one
    cache  declared as automatic, from 1024 tokens, for 5m (`--cache` tries it)
    failed  the provider returned status 503 (server_error): Overloaded.
    -- exit 1
    ");
}

/// DeepSeek and Kimi reject a tool loop with status 400 if their reasoning is not sent back.
#[test]
fn reasoning_is_sent_back_if_the_model_requires_it() {
    let script = [
        Reply::call("list_files", json!({"path": "."})).with_thinking("Look first."),
        Reply::text("Empty.").with_thinking("Nothing there."),
    ];
    let sent_back = |capabilities: &str| {
        let rig = rig(script.clone());
        let ran = rig.task(&[
            "look",
            "--set",
            &format!("models.\"mock/{MODEL}\".capabilities={capabilities}"),
        ]);
        assert_eq!(ran.code(), 0, "{}", ran.stderr());
        let bodies = rig.server.generation_requests();
        let body: Value = serde_json::from_slice(&bodies[1].body).unwrap();
        let messages = body["messages"].as_array().unwrap();
        messages
            .iter()
            .find(|message| message["role"] == "assistant")
            .unwrap()
            .get("reasoning_content")
            .cloned()
    };
    assert_eq!(
        sent_back("{ reasoning_back = true }"),
        Some(json!("Look first."))
    );
    assert_eq!(sent_back("{}"), None);
}

#[test]
fn model_roles_all_resolve_to_a_model() {
    let rig = rig([Reply::text("Hello.")]);
    let shown = rig.run(&[
        "models",
        "roles",
        "--json",
        "--set",
        "model_roles.title=[\"mock/small\", \"mock/other\"]",
    ]);
    let roles = shown.json();
    assert_eq!(roles.as_array().unwrap().len(), 12);
    let of = |name: &str| {
        roles
            .as_array()
            .unwrap()
            .iter()
            .find(|role| role["role"] == name)
            .unwrap()
            .clone()
    };
    assert_eq!(
        of("title"),
        json!({"role": "title", "models": ["mock/small", "mock/other"], "set": true, "for": "names of conversations at the terminal; without it, the first words of the prompt"})
    );
    let vision = of("vision");
    assert_eq!(
        (&vision["models"], &vision["set"]),
        (&json!([format!("mock/{MODEL}")]), &json!(false))
    );
    assert!(
        vision["for"].as_str().unwrap().contains("images"),
        "{vision}"
    );
    insta::assert_snapshot!(
        rig.screen(&["models", "roles", "--set", "model_roles.title=\"mok/small\""]),
        @"
    -- errors
    haft: `mok/small`: no provider `mok` is declared; did you mean `mock`? declared are: …
    -- exit 2
    "
    );
    insta::assert_snapshot!(rig.screen(&["models", "roles"]), @"
    ROLE  MODEL  THEN  FOR
    main  mock/gemini-3-scripted  the work, and every role that is not set
    code  mock/gemini-3-scripted (as main)  the coding agent; the next in the list while th…
    chat  mock/gemini-3-scripted (as main)  `haft chat`
    summary  mock/gemini-3-scripted (as main)  summaries of archived rounds
    sub_agent  mock/gemini-3-scripted (as main)  agents whose file names no model
    title  mock/gemini-3-scripted (as main)  names of conversations at the terminal; without…
    index  mock/gemini-3-scripted (as main)  descriptions of folders; the models of `summary…
    embedding  mock/gemini-3-scripted (as main)  vectors for collections; keywords only where it…
    vision  mock/gemini-3-scripted (as main)  descriptions of images for a main model that ta…
    planner  mock/gemini-3-scripted (as main)  answers in plan mode
    designer  mock/gemini-3-scripted (as main)  the built-in sub-agent `designer`; there is non…
    commit  mock/gemini-3-scripted (as main)  commit messages
    ");
}

#[test]
fn code_role_selects_the_model_unless_a_flag_does() {
    let rig = rig([Reply::text("Hello.")]);
    let asked = |arguments: &[&str]| {
        let before = rig.server.generation_requests().len();
        assert_eq!(rig.task(arguments).code(), 0);
        rig.server.generation_requests()[before]
            .decode()
            .unwrap()
            .model
    };
    let code = "model_roles.code=[\"mock/coder\"]";
    assert_eq!(asked(&["hi", "--set", code]), "coder");
    assert_eq!(asked(&["hi", "-m", "mock/chosen", "--set", code]), "chosen");
}

#[test]
fn api_key_is_read_from_the_keyring() {
    use std::os::unix::fs::PermissionsExt;
    let rig = rig([Reply::text("Hello.")]);
    let keyring = rig.home().join("bin");
    std::fs::create_dir(&keyring).unwrap();
    let program = keyring.join("secret-tool");
    // The real program prints the secret of an existing entry and fails for any other.
    let script = "#!/bin/sh\n[ \"$*\" = 'lookup service haft account mock' ] || exit 1\nprintf sk-from-keyring\n";
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let run = |entry: &str, path: &str| {
        let keys = format!("providers.mock.api_key_keyring=\"{entry}\"");
        let arguments = [
            "run",
            "hi",
            "--set",
            "providers.mock.api_key_env=\"\"",
            "--set",
            &keys,
        ];
        rig.command(&arguments).env("PATH", path).output().unwrap()
    };
    let found = run("haft/mock", &format!("{}:/usr/bin:/bin", keyring.display()));
    assert!(
        found.status.success(),
        "{}",
        String::from_utf8_lossy(&found.stderr)
    );
    let header = rig.server.generation_requests()[0]
        .header("authorization")
        .map(str::to_owned);
    assert_eq!(header.as_deref(), Some("Bearer sk-from-keyring"));
    let missing = run(
        "haft/other",
        &format!("{}:/usr/bin:/bin", keyring.display()),
    );
    let told = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert_eq!(missing.status.code(), Some(2));
    assert!(
        told.contains("store it with `secret-tool store --label=haft service haft account other`"),
        "{told}"
    );
    let told = String::from_utf8_lossy(&run("haft/mock", "/nonexistent").stderr).into_owned();
    assert!(told.contains("needs the program `secret-tool`"), "{told}");
}

/// Configures an overloaded main model and a second one, each on its own server.
fn configure_two_providers(rig: &Rig, second: &ScriptedServer, roles: &str) {
    let one = rig.server.base_url(Api::OpenaiChat);
    let two = second.base_url(Api::Anthropic);
    rig.configure(&format!(
        "[model_roles]\n{roles}\n\
         [providers.one]\napi = \"openai-chat\"\nbase_url = \"{one}\"\n\
         [providers.two]\napi = \"anthropic\"\nbase_url = \"{two}\"\n\
         [models.\"one/m\"]\nprice = {{ input = 1.0, output = 1.0 }}\n\
         [models.\"two/m\"]\nprice = {{ input = 2.0, output = 2.0 }}\n\
         [retry]\nattempts = 1\nbase_delay_ms = 10\n"
    ));
}

#[test]
fn fallback_replaces_an_overloaded_model() {
    let rig = Rig::new(
        Api::OpenaiChat,
        Script::turns([
            Reply::call("list_files", json!({"path": "."})),
            Reply::error(529, "Overloaded."),
        ])
        .unwrap(),
    );
    let usage = Usage {
        input: 1_000_000,
        ..Usage::default()
    };
    let second = ScriptedServer::builder(
        Script::replies([Reply::text("From the second.").with_usage(usage)]).unwrap(),
    )
    .start_in_thread()
    .unwrap();
    configure_two_providers(
        &rig,
        &second,
        "main = [\"one/m\", \"nobody-home/m\", \"two/m\"]",
    );
    let broken = rig.task(&["look"]);
    assert_eq!(
        broken.code(),
        2,
        "a name that leads nowhere is told before anything is sent"
    );
    configure_two_providers(
        &rig,
        &second,
        "main = [\"one/m\", \"mistral/mistral-medium-3.5\", \"two/m\"]",
    );
    let ran = rig.task(&["look"]);
    let events = ran.events();
    assert_eq!(
        (ran.code(), ran.result()["text"].clone()),
        (0, json!("From the second.")),
        "{}",
        ran.stdout()
    );
    assert!(second.refusals().is_empty(), "{:?}", second.refusals());
    let switched: Vec<_> = events_of_type(&events, "notice")
        .into_iter()
        .filter(|error| error["code"] == "model_switched")
        .collect();
    assert_eq!(switched.len(), 1);
    let words = switched[0]["message"].as_str().unwrap();
    assert!(
        words.starts_with("`one/m` cannot answer now") && words.ends_with("asking `two/m`"),
        "{words}"
    );
    let told: Vec<_> = events_of_type(&events, "error")
        .iter()
        .map(|error| error["message"].to_string())
        .collect();
    assert!(
        told.iter()
            .any(|message| message.contains("MISTRAL_API_KEY")),
        "the one without a key is told of: {told:?}"
    );
    let breaks = events_of_type(&events, "prefix_break");
    assert!(
        breaks.iter().any(|one| one["cause"] == "model_switched"),
        "{breaks:?}"
    );
    let last = events_of_type(&events, "usage").pop().unwrap();
    assert_eq!(last["model"], "two/m");
    assert!(
        (last["cost"]["total"].as_f64().unwrap() - 2.0).abs() < 0.01,
        "at its own price: {last}"
    );
    let exported = rig.export();
    let makers: Vec<_> = exported["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["llm_metadata"]["model_name"].clone())
        .collect();
    assert_eq!(
        makers.iter().filter_map(Value::as_str).collect::<Vec<_>>(),
        ["one/m", "two/m"]
    );
}

#[test]
fn fallback_is_not_used_for_rejected_requests() {
    let rig = Rig::new(
        Api::OpenaiChat,
        Script::replies([Reply::error(400, "Overloaded.")]).unwrap(),
    );
    let second = ScriptedServer::builder(Script::replies([Reply::text("No.")]).unwrap())
        .start_in_thread()
        .unwrap();
    configure_two_providers(&rig, &second, "main = [\"one/m\", \"two/m\"]");
    let ran = rig.task(&["look"]);
    assert_eq!(ran.result()["outcome"], "failed");
    assert!(second.generation_requests().is_empty());
}

#[test]
fn summary_role_writes_the_summaries() {
    let full = Usage {
        input: 190_000,
        output: 10,
        ..Usage::default()
    };
    let rig = Rig::new(
        Api::OpenaiChat,
        Script::turns([
            Reply::text("One."),
            Reply::text("Two."),
            Reply::text("Three.").with_usage(full),
            Reply::text("Four."),
        ])
        .unwrap(),
    );
    let summary = Reply::summary("The user counted.").with_usage(Usage {
        input: 1_000_000,
        ..Usage::default()
    });
    let second = ScriptedServer::builder(Script::replies([summary]).unwrap())
        .start_in_thread()
        .unwrap();
    configure_two_providers(&rig, &second, "main = \"one/m\"\nsummary = [\"two/m\"]");
    let keep = [
        "--set",
        "context.keep_rounds=1",
        "--set",
        "context.compact_frees=0.000001",
    ];
    for task in ["one", "two", "three"] {
        assert_eq!(rig.task(&[&["-c", task], &keep[..]].concat()).code(), 0);
    }
    let ran = rig.task(&[&["-c", "four"], &keep[..]].concat());
    assert_eq!(ran.code(), 0, "{}", ran.stdout());
    assert_eq!(second.generation_requests().len(), 1, "{}", ran.stdout());
    let usages = events_of_type(&ran.events(), "usage");
    assert_eq!(
        (&usages[0]["model"], &usages[1]["model"]),
        (&json!("two/m"), &json!("one/m"))
    );
    assert!((usages[0]["cost"]["total"].as_f64().unwrap() - 2.0).abs() < 0.01);
    assert_eq!(
        rig.server.generation_requests().len(),
        4,
        "the main model was asked for answers alone"
    );
}

#[test]
fn max_budget_ends_the_run_before_the_next_request() {
    let dear = |reply: Reply| {
        reply.with_usage(Usage {
            input: 1_000_000,
            ..Usage::default()
        })
    };
    let todo = Reply::call(
        "todo_write",
        json!({"todos": [{"content": "a", "status": "pending"}]}),
    );
    let nudged = [
        todo,
        dear(Reply::text("I think I am done.")),
        Reply::text("Never asked for."),
    ];
    let called = [
        dear(Reply::call("list_files", json!({"path": "."}))),
        Reply::text("Never asked for."),
    ];
    for (replies, expected) in [(nudged.to_vec(), 2), (called.to_vec(), 1)] {
        let rig = rig(replies);
        let ran = rig.task(&["--max-budget-usd", "2.5", "do it"]);
        assert_eq!(
            (ran.code(), ran.result()["code"].clone()),
            (4, json!("max_budget")),
            "{}",
            ran.stdout()
        );
        assert_eq!(rig.server.generation_requests().len(), expected);
    }
}

#[test]
fn cost_is_reported_per_request_and_class() {
    let first = Usage {
        input: 100_000,
        cache_write: 200_000,
        output: 1_000,
        ..Usage::default()
    };
    let second = Usage {
        input: 1_000,
        cached_input: 300_000,
        output: 2_000,
        ..Usage::default()
    };
    let call = Reply::call("list_files", json!({"path": "."}));
    let rig = rig([
        call.with_usage(first),
        Reply::text("Done.").with_usage(second),
    ]);
    rig.task(&["look"]);
    let shown = rig
        .run(&["conversations", "show", "--cost", "--json"])
        .json();
    assert_eq!(shown["requests"].as_array().unwrap().len(), 2);
    assert_eq!(shown["requests"][0]["usage"]["cache_write"], 200_000);
    let money = |value: &Value| value.as_f64().unwrap();
    assert!((money(&shown["requests"][0]["cost"]["cache_write"]) - 0.75).abs() < 1e-9);
    assert!((money(&shown["requests"][1]["cost"]["cached_input"]) - 0.09).abs() < 1e-9);
    let total = 0.3 + 0.75 + 0.015 + 0.003 + 0.09 + 0.03;
    assert!(
        (money(&shown["total"]["cost"]["total"]) - total).abs() < 1e-9,
        "{}",
        shown["total"]
    );
    insta::assert_snapshot!(rig.screen(&["conversations", "show", "--cost"]), @"
    MESSAGE  ROUND  MODEL  INPUT  CACHED  WRITTEN  OUTPUT  USD IN  CACHED  WRITTEN  OUT  TOTAL
    ID  1  mock/gemini-3-scripted  100000  0  200000  1000  0.3000  0.0000  0.7500  0.0150  1.0650
    ID  1  mock/gemini-3-scripted  1000  300000  0  2000  0.0030  0.0900  0.0000  0.0300  0.1230
                     total  101000  300000  200000  3000  0.3030  0.0900  0.7500  0.0450  1.1880
    ");
}

#[test]
fn count_reports_tokens_of_files() {
    let rig = rig([Reply::text("Hello.")]);
    rig.write("a.txt", "hello world");
    rig.write("b.txt", "one two three four");
    let counted = rig.run(&["count", "a.txt", "b.txt", "--json"]).json();
    assert_eq!(
        (&counted["files"][0]["tokens"], &counted["total"]),
        (&json!(2), &json!(6))
    );
    let scaled = rig
        .run(&[
            "count",
            "a.txt",
            "b.txt",
            "-m",
            "anthropic/claude-opus-5",
            "--json",
        ])
        .json();
    assert_eq!(
        (&scaled["files"][0]["tokens"], &scaled["total"]),
        (&json!(3), &json!(9))
    );
    insta::assert_snapshot!(rig.screen(&["count", "a.txt", "b.txt"]), @"
    TOKENS  BYTES  FILE
         2  11  a.txt
         4  18  b.txt
         6  29  total
    ");
    insta::assert_snapshot!(rig.screen(&["count", "nothing.txt"]), @"
    -- errors
    haft: cannot read `nothing.txt`: No such file or directory (os error 2)
    -- exit 2
    ");
}

#[test]
fn count_reads_standard_input() {
    use std::io::Write;
    let rig = rig([Reply::text("Hello.")]);
    let mut child = rig
        .command(&["count", "-", "--json"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"hello world")
        .unwrap();
    let counted: Value = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(counted["total"], 2);
}

#[test]
fn token_estimate_follows_the_billed_usage() {
    let rig = rig([
        Reply::call("list_files", json!({"path": "."})),
        Reply::call("list_files", json!({"path": "."})),
        Reply::text("Done."),
        Reply::text("Again."),
    ]);
    let events = rig.task(&["look"]).events();
    let tokens: Vec<_> = events_of_type(&events, "window")
        .iter()
        .map(|window| window["tokens"].as_u64().unwrap())
        .collect();
    let billed: Vec<_> = events_of_type(&events, "usage")
        .iter()
        .map(|usage| usage["usage"]["input"].as_u64().unwrap())
        .collect();
    let off = |index: usize| (tokens[index] as f64 / billed[index] as f64 - 1.0).abs();
    assert!(
        off(2) < off(0) * 0.6,
        "estimates {tokens:?}, billed {billed:?}"
    );
    let later = rig.task(&["-c", "again"]).events();
    let told = events_of_type(&later, "window")[0].clone();
    let paid = events_of_type(&later, "usage")[0].clone();
    let off_later =
        (told["tokens"].as_f64().unwrap() / paid["usage"]["input"].as_f64().unwrap() - 1.0).abs();
    assert!(
        off_later <= off(2) + 0.02,
        "it is remembered with the conversation: {off_later}"
    );
}

#[test]
fn readme_declaration_of_a_model_works_in_ten_lines() {
    let readme = include_str!("../../../../../README.md");
    let (_, rest) = readme.split_once("```toml\n").unwrap();
    let (block, _) = rest.split_once("```").unwrap();
    assert!(
        block.lines().filter(|line| !line.trim().is_empty()).count() <= 10,
        "{block}"
    );
    let rig = rig([Reply::text("Hello.")]);
    let base_url = rig.server.base_url(Api::OpenaiChat);
    let declared = block.lines().map(|line| {
        if line.starts_with("base_url") {
            format!("base_url = \"{base_url}\"\n")
        } else {
            format!("{line}\n")
        }
    });
    rig.configure(&declared.collect::<String>());
    let ran = rig.run(&["run", "hi"]);
    assert_eq!(
        (ran.code(), ran.stdout().as_str()),
        (0, "Hello.\n"),
        "{}",
        ran.stderr()
    );
}

#[test]
fn models_page_is_up_to_date() {
    let page = rig([Reply::text("Hello.")])
        .run(&["models", "list", "--markdown"])
        .stdout();
    let committed = include_str!("../../../../../docs/models.md");
    assert!(
        page == committed,
        "run `cargo run -p haft -- models list --markdown > docs/models.md`"
    );
}

const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5ErkJggg==";

/// A rig whose main model accepts no images, with `more` configuration.
fn rig_with_text_only_model(replies: impl IntoIterator<Item = Reply>, more: &str) -> Rig {
    let rig = Rig::new(Api::OpenaiChat, Script::replies(replies).unwrap());
    let base_url = rig.server.base_url(Api::OpenaiChat);
    let model = |name: &str, images: bool| {
        format!(
            "[models.\"mock/{name}\"]\ncontext_window = 200000\nmax_output_tokens = 1000\n\
             capabilities = {{ images = {images} }}\nprice = {{ input = 1.0, output = 1.0 }}\n"
        )
    };
    let models = [
        model("main", false),
        model("eyes", true),
        model("spare", true),
    ]
    .concat();
    rig.configure(&format!(
        "model = \"mock/main\"\n{more}[retry]\nattempts = 1\nbase_delay_ms = 10\n\
         [providers.mock]\napi = \"openai-chat\"\nbase_url = \"{base_url}\"\n{models}"
    ));
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(PIXEL)
        .unwrap();
    for name in ["shot.png", "same.png"] {
        rig.write(name, &bytes);
    }
    rig
}

fn reply_of_model(model: &str, results: usize, reply: Reply) -> Reply {
    reply.when(When {
        model: Some(model.into()),
        tool_results: Some(results),
        ..When::default()
    })
}

fn read_image_call(name: &str) -> Reply {
    Reply::call("read_file", json!({ "path": name }))
}

fn requests_to_model(rig: &Rig, model: &str) -> Vec<Seen> {
    let all = rig.server.generation_requests();
    all.iter()
        .map(|request| request.decode().unwrap())
        .filter(|seen| seen.model == model)
        .collect()
}

#[test]
fn image_is_described_once_for_a_text_only_model() {
    let usage = Usage {
        input: 1_000_000,
        ..Usage::default()
    };
    let rig = rig_with_text_only_model(
        [
            reply_of_model("main", 0, read_image_call("shot.png")),
            reply_of_model("main", 1, read_image_call("same.png")),
            reply_of_model("main", 2, Reply::text("A red button.")),
            reply_of_model("main", 3, Reply::text("Still red.")),
            reply_of_model(
                "eyes",
                0,
                Reply::text("A button that says OK.").with_usage(usage),
            )
            .times(1),
        ],
        "[model_roles]\nvision = \"mock/eyes\"\n",
    );
    let ran = rig.task(&["what is in shot.png?"]);
    assert_eq!(ran.code(), 0, "{}{}", ran.stdout(), ran.stderr());
    let eyes = requests_to_model(&rig, "eyes");
    assert_eq!(eyes.len(), 1, "the same picture is not described again");
    let pictures = |seen: &Seen| {
        let parts = seen.messages.iter().flat_map(|message| &message.parts);
        parts
            .filter(|part| matches!(part, SeenPart::Image { .. }))
            .count()
    };
    assert_eq!((pictures(&eyes[0]), eyes[0].tools.len()), (1, 0));
    let last = requests_to_model(&rig, "main").pop().unwrap();
    assert_eq!(
        (
            pictures(&last),
            format!("{last}").matches("A button that says OK.").count()
        ),
        (0, 2)
    );
    assert!(
        ran.result()["cost"]["total"].as_f64().unwrap() > 1.0,
        "what it cost is counted"
    );
    let paid = ran
        .events()
        .into_iter()
        .find(|event| event["type"] == "usage" && event["model"] == "mock/eyes");
    assert!(paid.is_some());
    // A later process doesn't ask for a description either.
    let script = [
        reply_of_model("main", 2, read_image_call("shot.png")),
        reply_of_model("main", 3, Reply::text("Still red.")),
    ];
    let rig = replace_script(rig, script);
    assert_eq!(rig.task(&["-c", "look again"]).code(), 0);
    assert!(requests_to_model(&rig, "eyes").is_empty());
    assert!(
        requests_to_model(&rig, "main")
            .pop()
            .unwrap()
            .to_string()
            .contains("A button that says OK.")
    );
}

/// Replaces the script, and keeps home, project and configuration.
fn replace_script(rig: Rig, replies: impl IntoIterator<Item = Reply>) -> Rig {
    let before = std::fs::read_to_string(rig.home().join("config.toml")).unwrap();
    let old = rig.server.base_url(Api::OpenaiChat);
    let rig = rig.with_script(Script::replies(replies).unwrap(), Api::OpenaiChat);
    rig.configure(&before.replace(&old, &rig.server.base_url(Api::OpenaiChat)));
    rig
}

#[test]
fn image_without_a_vision_model_raises_a_notice() {
    let say = || {
        [
            reply_of_model("main", 0, read_image_call("shot.png")),
            reply_of_model("main", 1, Reply::text("I cannot see it.")),
        ]
    };
    let told = |ran: &Ran, code: &str| -> Vec<Value> {
        ran.events()
            .into_iter()
            .filter(|event| event["code"] == code)
            .collect()
    };
    let rig = rig_with_text_only_model(say(), "");
    let ran = rig.task(&["look"]);
    let notices = told(&ran, "image_left_out");
    assert_eq!(
        (ran.code(), notices.len(), &notices[0]["type"]),
        (0, 1, &json!("notice")),
        "{}",
        ran.stdout()
    );
    assert!(
        notices[0]["message"]
            .as_str()
            .unwrap()
            .contains("`mock/main` takes none")
    );
    assert!(
        requests_to_model(&rig, "main")
            .pop()
            .unwrap()
            .last_message_contains("picture left out")
    );
    // A vision model that fails raises an error, and the next one of its role is asked.
    let failing = Reply::error(529, "overloaded").when(When {
        model: Some("eyes".into()),
        ..When::default()
    });
    let both = "[model_roles]\nvision = [\"mock/eyes\", \"mock/spare\"]\n";
    let spare = reply_of_model("spare", 0, Reply::text("A button."));
    let rig = rig_with_text_only_model(say().into_iter().chain([failing.clone(), spare]), both);
    let ran = rig.task(&["look"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    assert!(
        requests_to_model(&rig, "main")
            .pop()
            .unwrap()
            .to_string()
            .contains("A button.")
    );
    let rig = rig_with_text_only_model(
        say().into_iter().chain([failing]),
        "[model_roles]\nvision = \"mock/eyes\"\n",
    );
    let ran = rig.task(&["look"]);
    assert_eq!(
        (ran.code(), told(&ran, "vision").len()),
        (0, 1),
        "{}",
        ran.stdout()
    );
    // A model that accepts images gets them.
    let script = [
        reply_of_model("eyes", 0, read_image_call("shot.png")),
        reply_of_model("eyes", 1, Reply::text("A button.")),
    ];
    let rig = rig_with_text_only_model(script, "[model_roles]\nvision = \"mock/spare\"\n");
    assert_eq!(rig.task(&["-m", "mock/eyes", "look"]).code(), 0);
    assert!(
        requests_to_model(&rig, "spare").is_empty() && requests_to_model(&rig, "eyes").len() == 2
    );
}

#[test]
fn image_description_respects_the_budget() {
    let rig = rig_with_text_only_model(
        [
            reply_of_model("main", 0, read_image_call("shot.png")),
            reply_of_model("main", 1, Reply::text("I cannot see it.")),
            reply_of_model("eyes", 0, Reply::text("A button.")),
        ],
        "[model_roles]\nvision = \"mock/eyes\"\n",
    );
    let file = rig.home().join("config.toml");
    let config = std::fs::read_to_string(&file).unwrap();
    let priced =
        |usd: &str| format!("images = true }}\nprice = {{ input = {usd}, output = {usd} }}");
    let dear = config.replace(&priced("1.0"), &priced("9000.0"));
    assert_ne!(config, dear);
    rig.configure(&dear);
    let ran = rig.task(&["--max-budget-usd", "1", "look"]);
    assert!(
        requests_to_model(&rig, "eyes").is_empty(),
        "{}",
        ran.stdout()
    );
    assert!(ran.result()["cost"]["total"].as_f64().unwrap() <= 1.0);
}
