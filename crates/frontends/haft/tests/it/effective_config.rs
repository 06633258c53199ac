//! The effective configuration: variables without effect, default values, and all errors of a file.

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::{Ran, Rig};

fn rig() -> Rig {
    Rig::new(
        Api::Anthropic,
        Script::replies(std::iter::repeat_n(Reply::text("Done."), 4)).unwrap(),
    )
}

fn run_with_variables(rig: &Rig, variables: &[(&str, &str)], arguments: &[&str]) -> Ran {
    Ran(rig
        .command(arguments)
        .envs(variables.iter().copied())
        .output()
        .unwrap())
}

#[test]
fn variables_without_effect_are_reported_with_a_suggestion() {
    let rig = rig();
    let variables = [("HAFT_STORE_BACKUPS", "3"), ("HAFT_ZEBRA", "1")];
    let warning = "haft: the environment variable `HAFT_STORE_BACKUPS` has no effect; did you mean `HAFT_STORE__BACKUPS`?";
    for arguments in [
        &["run", "hi"][..],
        &["config", "show"],
        &["conversations", "list"],
        &["models", "list"],
    ] {
        let ran = run_with_variables(&rig, &variables, arguments);
        assert_eq!(ran.code(), 0, "{arguments:?}: {}", ran.stderr());
        assert_eq!(
            ran.stderr().matches(warning).count(),
            1,
            "{arguments:?}: {}",
            ran.stderr()
        );
        assert_eq!(
            ran.stderr().matches("`HAFT_ZEBRA`").count(),
            1,
            "{}",
            ran.stderr()
        );
        assert!(
            !ran.stdout().contains("HAFT_STORE_BACKUPS"),
            "{arguments:?}"
        );
    }
    let ran = run_with_variables(
        &rig,
        &variables,
        &["run", "--output-format", "stream-json", "hi"],
    );
    let notices: Vec<_> = ran
        .events()
        .into_iter()
        .filter(|event| event["code"] == "unknown_variable")
        .collect();
    assert_eq!(notices.len(), 2, "{notices:?}");
    assert_eq!(notices[0]["type"], "notice");
    assert!(
        notices[0]["message"]
            .as_str()
            .unwrap()
            .contains("`HAFT_STORE__BACKUPS`"),
        "{notices:?}"
    );
    let doctor = run_with_variables(&rig, &variables, &["doctor", "--json"]).json();
    let row = doctor["checks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|check| check["name"] == "environment")
        .unwrap();
    assert_eq!(row["health"], "warning", "{row}");
    assert_eq!(row["details"].as_array().unwrap().len(), 2, "{row}");
}

#[test]
fn variables_that_the_configuration_names_are_not_reported() {
    let rig = rig();
    let file = rig.home().join("config.toml");
    let before = std::fs::read_to_string(&file).unwrap();
    let named = before.replace(
        "[providers.mock]\n",
        "[providers.mock]\napi_key_env = \"HAFT_MOCK_KEY\"\n",
    );
    assert_ne!(named, before);
    std::fs::write(&file, named).unwrap();
    let ran = run_with_variables(&rig, &[("HAFT_MOCK_KEY", "k")], &["run", "hi"]);
    assert_eq!(
        (ran.code(), ran.stderr().contains("HAFT_MOCK_KEY")),
        (0, false),
        "{}",
        ran.stderr()
    );
}

/// The variables that pages, tests, benches and deployment files use.
#[test]
fn variables_that_the_repository_uses_are_known() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let mut names = std::collections::BTreeSet::new();
    for entry in ignore::WalkBuilder::new(&root).hidden(false).build() {
        let path = entry.unwrap().into_path();
        // These files name variables that do not exist.
        let is_counterexample = [
            "effective_config.rs",
            "config/variables.rs",
            "CHANGELOG.md",
            "/.git/",
        ];
        if is_counterexample
            .iter()
            .any(|part| path.to_string_lossy().contains(part))
        {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        for (at, _) in text.match_indices("HAFT_") {
            let is_word = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
            let rest: String = text[at..].chars().take_while(|c| is_word(*c)).collect();
            let is_variable =
                text[..at].ends_with(['"', '`', '$', '{', ' ', '\n', '(']) && !rest.contains("__");
            if is_variable && rest.len() > "HAFT_".len() && !rest.ends_with('_') {
                names.insert(rest);
            }
        }
    }
    for not_a_variable in [
        "HAFT_CONFIG",
        "HAFT_BINARY",
        "HAFT_BLESS",
        "HAFT_STORE_BACKUPS",
    ] {
        names.remove(not_a_variable);
    }
    assert!(
        names.contains("HAFT_POSTGRES") && names.contains("HAFT_MCP_TOKEN"),
        "{names:?}"
    );
    let rig = rig();
    for name in names.into_iter().filter(|name| {
        ![
            "HAFT_HOME",
            "HAFT_MODEL",
            "HAFT_LANGUAGE",
            "HAFT_LOG_LEVEL",
            "HAFT_COMPLETE",
        ]
        .contains(&name.as_str())
    }) {
        let ran = run_with_variables(&rig, &[(&name, "x")], &["config", "get", "retry.attempts"]);
        assert_eq!(ran.stderr(), "", "{name}");
    }
}

#[test]
fn config_shows_values_in_force_with_their_reason() {
    let rig = rig();
    insta::assert_snapshot!(rig.screen(&["config", "get", "context.safe_zone"]), @"
    131072
    -- errors
    haft: `context.safe_zone`: default for models with known prices and a cache lifetime under 30 minutes; 131,072 tokens for the main model
    ");
    let json = rig.run(&["config", "get", "context", "--json"]).json();
    assert_eq!(json["context.prune_to"]["value"], json!(0.3));
    assert_eq!(json["context.compress"]["origin"], "built-in");
    let reason = json["context.compress"]["reason"].as_str().unwrap();
    assert!(
        reason.contains("cache lifetime under 30 minutes"),
        "{reason}"
    );
    let shown = rig.run(&["config", "show", "--origin"]).stdout();
    let line = shown
        .lines()
        .find(|line| line.starts_with("context.safe_zone = "))
        .unwrap();
    assert!(
        line.contains("# built-in: default for models with known prices"),
        "{line}"
    );
    insta::assert_snapshot!(
        rig.screen(&["config", "get", "context.prune_keep", "--set", "context.safe_zone=\"0.5\""]),
        @"
    6
    -- errors
    haft: `context.prune_keep`: default for models with known prices and a cache lifetime under 30 minutes
    "
    );
    let report = {
        rig.run(&["run", "hi"]);
        rig.run(&["context", "report", "--json"]).json()
    };
    assert_eq!(report["settings"]["safe_zone_tokens"], 131_072, "{report}");
    assert!(
        report["settings"]["reason"]
            .as_str()
            .unwrap()
            .contains("cache lifetime"),
        "{report}"
    );
    let text = rig.run(&["context", "report"]).stdout();
    assert!(
        text.contains("pruned above 131,072 tokens") && text.contains("cache lifetime"),
        "{text}"
    );
}

#[test]
fn config_get_follows_model_window_prices_locale_and_machine() {
    let rig = rig();
    let cheap = "[models.\"mock/cheap\"]\ncontext_window = 160000\nmax_output_tokens = 8192\n\
                 [models.\"mock/long\"]\ncontext_window = 200000\nmax_output_tokens = 8192\n\
                 price = { input = 3.0, output = 15.0 }\ncache = { ttl = \"1h\" }\n";
    let file = rig.home().join("config.toml");
    let before = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{before}{cheap}")).unwrap();
    let zone = |model: &str| {
        let ran = rig.run(&[
            "config",
            "get",
            "context.safe_zone",
            "--set",
            &format!("model=mock/{model}"),
        ]);
        (ran.stdout().trim().to_owned(), ran.stderr())
    };
    assert_eq!(zone("cheap").0, "0.8");
    assert!(
        zone("cheap").1.contains("without known prices")
            && zone("cheap").1.contains("121,446 tokens"),
        "{}",
        zone("cheap").1
    );
    assert_eq!(zone("long").0, "102400");
    assert!(
        zone("long").1.contains("30 minutes or more"),
        "{}",
        zone("long").1
    );
    let language = run_with_variables(
        &rig,
        &[("LANG", "en_US.UTF-8")],
        &["config", "get", "language"],
    );
    insta::assert_snapshot!(rig.mask(&language), @"
    en
    -- errors
    haft: `language`: the locale, LANG=en_US.UTF-8
    ");
    let sandbox = rig.run(&["config", "get", "sandbox.mode"]);
    assert!(
        ["namespace\n", "landlock\n", "off\n"].contains(&sandbox.stdout().as_str()),
        "{}",
        sandbox.stdout()
    );
    assert!(
        sandbox.stderr().contains("this machine has"),
        "{}",
        sandbox.stderr()
    );
    for (key, value) in [
        ("model_roles.summary", json!(["mock/gemini-3-scripted"])),
        ("tools.offer", json!(["default"])),
        (
            "models.\"anthropic/claude-opus-5\".context_window",
            json!(1_000_000),
        ),
        ("models.\"mock/cheap\".tool_protocol", json!("native")),
        ("models.\"mock/cheap\".cache.ttl", json!("5m")),
        (
            "providers.anthropic.api_key_env",
            json!("ANTHROPIC_API_KEY"),
        ),
    ] {
        assert_eq!(
            rig.run(&["config", "get", key, "--json"]).json(),
            value,
            "{key}"
        );
        let all = rig
            .run(&["config", "get", key, "--json", "--origin"])
            .json();
        assert!(
            all[key]["reason"]
                .as_str()
                .is_some_and(|reason| !reason.is_empty()),
            "{key}: {all}"
        );
    }
}

/// Every key has a value or an explanation of what applies without one.
#[test]
fn config_get_prints_a_value_or_a_reason_for_every_key() {
    let rig = rig();
    let schema: Value = rig.run(&["config", "schema"]).json();
    let mut all = Vec::new();
    collect_keys(&schema, "", &mut all);
    assert!(all.len() > 80, "{all:?}");
    for key in all {
        let ran = rig.run(&["config", "get", &key]);
        let value = ran.stdout().trim().to_owned();
        let told = ran
            .stderr()
            .lines()
            .any(|line| line.contains(&key) && line.len() > key.len() + 25);
        assert!(
            !value.is_empty() || told,
            "{key}: {} {}",
            ran.code(),
            ran.stderr()
        );
    }
}

#[test]
fn config_get_of_an_unknown_key_suggests_a_known_one() {
    let rig = rig();
    insta::assert_snapshot!(rig.screen(&["config", "get", "context.safezone"]), @"
    -- errors
    haft: `context.safezone` is not a configuration key; did you mean `context.safe_zone`?
    -- exit 2
    ");
    insta::assert_snapshot!(rig.screen(&["config", "get", "nothing"]), @"
    -- errors
    haft: `nothing` is not a configuration key
    -- exit 2
    ");
}

#[test]
fn config_set_rejects_a_value_of_the_wrong_type() {
    let rig = rig();
    insta::assert_snapshot!(rig.screen(&["config", "get", "retry.attempts", "--set", "retry.attempts=many"]), @r#"
    -- errors
    haft: `--set retry.attempts=many`: invalid type: string "many", expected i32
    -- exit 2
    "#);
    insta::assert_snapshot!(rig.screen(&["config", "get", "retry.attempts", "--set", "retry.atempts=3"]), @"
    -- errors
    haft: `--set retry.atempts=3`: unknown key `atempts`; did you mean `attempts`?
    -- exit 2
    ");
}

#[test]
fn config_get_of_a_flag_names_the_flag_as_origin() {
    let rig = rig();
    insta::assert_snapshot!(rig.screen(&["config", "get", "retry.attempts", "--origin", "--set", "retry.attempts=9"]), @"retry.attempts = 9  # flag --set");
}

#[test]
fn config_file_errors_are_all_reported() {
    let rig = rig();
    let before = std::fs::read_to_string(rig.home().join("config.toml")).unwrap();
    let first = before.lines().count() + 1;
    rig.configure(&format!(
        "{before}atempts = 3\nmax_delay_ms = \"x\"\n[web]\ncrawl = 1\nserch = 2\n[nothing]\n[permissions]\nallow = [\"a b\"]\n"
    ));
    let ran = rig.run(&["run", "hi"]);
    insta::assert_snapshot!(rig.mask(&ran), @r#"
    -- errors
    haft: HOME/config.toml:11:1: unknown key `atempts`; did you mean `attempts`?
    haft: HOME/config.toml:12:16: invalid type: string "x", expected u64
    haft: HOME/config.toml:14:9: invalid type: integer `1`, expected a boolean
    haft: HOME/config.toml:15:1: unknown key `serch`; did you mean `search`?
    haft: HOME/config.toml:16:2: unknown key `nothing`; the keys here are model, providers, models, model_aliases, currency_rates, model_roles, context, roles, prompt, permissions, tools, store, retry, sandbox, hooks, limits, groups, mcp_servers, rag, web, worker, language, log_level, tui
    haft: HOME/config.toml:18:10: permissions: `a b` is not a rule; write `tool` or `tool(pattern)`, such as `execute_command(git status:*)`
    -- exit 2
    "#);
    let places: Vec<_> = ran
        .stderr()
        .lines()
        .map(|line| {
            assert!(line.starts_with("haft: "), "{line}");
            line.split("config.toml:")
                .nth(1)
                .unwrap()
                .split(':')
                .next()
                .unwrap()
                .parse::<usize>()
                .unwrap()
                - first
        })
        .collect();
    assert_eq!(places, [0, 1, 3, 4, 5, 7], "{}", ran.stderr());
    let doctor = rig.run(&["doctor", "--json"]).json();
    let row = &doctor["checks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|check| check["name"] == "configuration")
        .unwrap();
    assert_eq!(row["details"].as_array().unwrap().len(), 5, "{row}");
}

#[test]
fn config_file_errors_do_not_cause_further_errors() {
    let rig = rig();
    let before = std::fs::read_to_string(rig.home().join("config.toml")).unwrap();
    for (wrong, count) in [
        ("[providers.own]\napi = \"x\"\n", 1),
        (
            "[providers.own]\napi = \"x\"\n[providers.other]\nbase_url = \"http://x\"\n",
            2,
        ),
        (
            "[[hooks.stop]]\nhooks = [{ command = 1 }, { timeout = 2 }]\n",
            2,
        ),
    ] {
        rig.configure(&format!("{before}{wrong}"));
        let ran = rig.run(&["run", "hi"]);
        assert_eq!(
            (ran.code(), ran.stderr().lines().count()),
            (2, count),
            "{wrong}: {}",
            ran.stderr()
        );
    }
}

#[test]
fn tools_that_need_a_setting_name_it() {
    let rig = rig();
    insta::assert_snapshot!(rig.screen(&["run", "--allowed-tools", "web_crawl", "hi"]), @"
    -- errors
    haft: the tool `web_crawl` is not available here; it needs `web.crawl = true`
    -- exit 2
    ");
    let script = [
        Reply::call("web_crawl", json!({"url": "https://example.com/"})),
        Reply::text("Done."),
    ];
    let rig = Rig::new(Api::Anthropic, Script::replies(script).unwrap());
    let ran = rig.task(&["look it up"]);
    let result = ran
        .events()
        .into_iter()
        .find(|event| event["type"] == "tool_result")
        .unwrap();
    assert!(
        result["text"]
            .as_str()
            .unwrap()
            .contains("`web.crawl = true`"),
        "{result}"
    );
}

#[test]
fn nudges_name_no_tool_that_is_not_offered() {
    let calls = || Reply::call("read_file", json!({"path": "absent.txt"}));
    let script = [calls(), calls(), calls(), Reply::text("Done.")];
    let rig = Rig::new(Api::Anthropic, Script::replies(script).unwrap());
    let ran = rig.task(&["look"]);
    assert!(
        ran.events().iter().any(|event| event["code"] == "nudge"),
        "{}",
        ran.stdout()
    );
    for request in rig.server.generation_requests() {
        let body = request.json().unwrap();
        assert!(
            !body.to_string().contains("ask_followup_question"),
            "{body}"
        );
    }
}

/// With one tool offered, requests name none of haft's other tools.
#[test]
fn requests_name_no_tool_that_is_not_offered() {
    let reads = Reply::call("read_file", json!({"path": "absent.txt"}));
    let script = [reads.clone(), reads, Reply::text("Done.")];
    let rig = Rig::new(Api::Anthropic, Script::replies(script).unwrap());
    rig.write("a.txt", "text");
    rig.write(
        ".haft/rules/style.md",
        "---\ndescription: Style\n---\nUse tabs.\n",
    );
    rig.run(&["trust"]);
    rig.task(&["--allowed-tools", "read_file", "look at @a.txt and @.haft/"]);
    let all = haft_tool::ALL_TOOL_NAMES;
    for request in rig.server.generation_requests() {
        let body = request.json().unwrap();
        let text = json!([body["system"], body["tools"], body["messages"]]).to_string();
        for name in all.into_iter().filter(|name| *name != "read_file") {
            assert!(!text.contains(&format!("`{name}`")), "{name}: {text}");
        }
    }
}

/// Texts for the model name a tool only after a check that the tool is offered, or in the tool's
/// own files.
#[test]
fn sources_name_tools_only_where_they_are_offered() {
    // Each of these texts is sent only if its tool is offered, or describes rules and not calls.
    let conditional = [
        "crates/core/context/src/build/mentions.rs",
        "crates/core/engine/src/calls/guidance.rs",
        "crates/core/engine/src/calls/one_call.rs",
        "crates/core/engine/src/ports/skills.rs",
        "crates/core/permission/src/line.rs",
        "crates/core/project/src/external/page.rs",
        "crates/core/tool/src/deferred.rs",
        "crates/core/tool/src/selection.rs",
        "crates/core/tool/src/tool_search/deferred_catalogue.rs",
        "crates/extensions/mcp/src/server_document.rs",
    ];
    let folders = [
        "tools",
        "tool",
        "engine",
        "context",
        "project",
        "permission",
    ]
    .map(|name| format!("crates/core/{name}/"));
    for source in crate::budgets::sources() {
        let is_told = source.path.starts_with("crates/extensions/")
            || folders
                .iter()
                .any(|folder| source.path.starts_with(folder.as_str()));
        if !is_told || conditional.contains(&source.path.as_str()) {
            continue;
        }
        let lines: Vec<_> = source.text.lines().collect();
        for (at, line) in lines
            .iter()
            .enumerate()
            .filter(|(_, line)| !line.trim_start().starts_with("//"))
        {
            for name in haft_tool::ALL_TOOL_NAMES {
                if !line.contains(&format!("`{name}`")) || source.path.contains(name) {
                    continue;
                }
                // Without whitespace, a call looks alike on one line and on several.
                let above: String = lines[at.saturating_sub(10)..=at]
                    .join("\n")
                    .split_whitespace()
                    .collect();
                let asks = above.contains(&format!("hint_if_known(\"{name}\""))
                    || above.contains(&format!("contains(\"{name}\")"))
                    || above.contains("RecallTool::Offered");
                assert!(asks, "{}:{}: {line}", source.path, at + 1);
            }
        }
    }
}

#[test]
fn all_tool_names_lists_every_tool() {
    let rig = rig();
    let listed = rig.run(&["tools", "list", "--json"]).json();
    let mut names: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect();
    // These tools need agents, skills, plan mode, deferred tools, servers, collections, the web or a
    // setting.
    for more in [
        "plan_mode_respond",
        "run_named_subagents",
        "talk_to",
        "talk_to_group",
        "tool_search",
        "use_mcp_tool",
        "use_rag_tool",
        "use_skill",
        "use_tool",
        "web_crawl",
        "web_search",
        "write_tool",
    ] {
        if !names.iter().any(|name| name == more) {
            names.push(more.to_owned());
        }
    }
    names.sort();
    assert_eq!(names, haft_tool::ALL_TOOL_NAMES);
}

fn collect_keys(node: &Value, path: &str, all: &mut Vec<String>) {
    for (name, field) in node["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        if field["properties"].is_object() {
            collect_keys(field, &path, all);
        } else {
            all.push(path);
        }
    }
}
