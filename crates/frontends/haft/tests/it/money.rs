//! A budget in dollars: the requests it allows, their cost, and the error if a price is missing.

use haft_testkit::{Reply, Script, When};
use haft_types::{Api, Usage};
use serde_json::{Value, json};

use crate::rig::{Ran, Rig};

/// The output limit of every model here. It is too small to be reduced further, so a reply can use
/// the whole reservation.
const MAX_OUTPUT_TOKENS: u64 = 1_000;

/// The highest usage of a reply: the whole output limit, and more input than was estimated.
fn max_usage() -> Usage {
    Usage {
        input: 5_000,
        cache_write: 6_000,
        output: MAX_OUTPUT_TOKENS,
        ..Usage::default()
    }
}

/// Configures models by name, with a price per million tokens or without a price.
fn configure_models(rig: &Rig, models: &[(&str, Option<f64>)], more: &str) {
    let base_url = rig.server.base_url(Api::Anthropic);
    let model = |(name, price): &(&str, Option<f64>)| {
        let price = price.map_or_else(String::new, |price| {
            format!(
                "price = {{ input = {price}, cached_input = {}, cache_write = {}, output = {} }}\n",
                price / 10.0,
                price * 1.25,
                price * 5.0
            )
        });
        format!(
            "[models.\"mock/{name}\"]\ncontext_window = 200000\nmax_output_tokens = {MAX_OUTPUT_TOKENS}\n{price}"
        )
    };
    let models: String = models.iter().map(model).collect();
    rig.configure(&format!(
        "model = \"mock/main\"\n{more}\n[retry]\nbase_delay_ms = 10\nattempts = 1\n[providers.mock]\napi = \"anthropic\"\nbase_url = \"{base_url}\"\n{models}"
    ));
}

fn reply_of_model(model: &str, results: usize, reply: Reply) -> Reply {
    reply.when(When {
        model: Some(model.into()),
        tool_results: Some(results),
        ..When::default()
    })
}

fn list_files_reply(model: &str, results: usize) -> Reply {
    reply_of_model(
        model,
        results,
        Reply::call("list_files", json!({"path": format!("{results}")})).with_usage(max_usage()),
    )
}

fn add_agent(rig: &Rig, name: &str) {
    std::fs::create_dir_all(rig.project().join(".haft/agents")).unwrap();
    let text = format!(
        "---\nname: {name}\ndescription: Looks closely\nmodel: mock/{name}\n---\nYou look.\n"
    );
    rig.write(&format!(".haft/agents/{name}.md"), text);
}

fn start_agents_call(agents: &[&str]) -> Reply {
    let entries: String = agents
        .iter()
        .map(|name| format!("  - name: {name}\n    task: Look.\n"))
        .collect();
    Reply::call(
        "run_named_subagents",
        json!({"subagents": format!("mode: parallel\nsubagents:\n{entries}")}),
    )
}

/// Returns the cost of all requests, from the usage in the events and the configured prices.
fn total_cost(ran: &Ran, prices: &[(&str, Option<f64>)]) -> f64 {
    let cost = |event: &Value| {
        let model = event["model"].as_str().unwrap().trim_start_matches("mock/");
        let price = prices
            .iter()
            .find(|(name, _)| *name == model)
            .and_then(|(_, price)| *price)
            .unwrap_or(0.0);
        let tokens = |class: &str| event["usage"][class].as_u64().unwrap() as f64;
        (tokens("input")
            + tokens("cached_input") / 10.0
            + tokens("cache_write") * 1.25
            + tokens("output") * 5.0)
            * price
            / 1e6
    };
    ran.events()
        .iter()
        .filter(|event| event["type"] == "usage")
        .map(cost)
        .sum()
}

/// Returns a pseudo-random number below `most`, equal in every run.
fn draw_number(seed: &mut u64, most: u64) -> u64 {
    *seed = seed
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) % most
}

#[test]
fn max_budget_is_never_exceeded() {
    let mut exhausted = 0;
    for case in 0..10_u64 {
        let mut seed = case + 1;
        let prices = [
            ("main", Some(1.0 + draw_number(&mut seed, 5) as f64)),
            ("alpha", Some(1.0 + draw_number(&mut seed, 20) as f64)),
            ("beta", Some(1.0 + draw_number(&mut seed, 20) as f64)),
            ("backup", Some(1.0 + draw_number(&mut seed, 8) as f64)),
            ("gamma", None),
        ];
        // The main model fails now and then; the first fallback has no price, the second one has.
        let mut replies = vec![];
        if draw_number(&mut seed, 2) == 0 {
            replies.push(
                Reply::error(529, "overloaded")
                    .when(When {
                        model: Some("main".into()),
                        ..When::default()
                    })
                    .times(2),
            );
        }
        for model in ["main", "backup", "gamma"] {
            replies.push(reply_of_model(
                model,
                0,
                start_agents_call(&["alpha", "beta", "gamma"]).with_usage(max_usage()),
            ));
            replies.extend((1..4).map(|turn| list_files_reply(model, turn)));
            replies.push(reply_of_model(
                model,
                4,
                Reply::text("Done.").with_usage(max_usage()),
            ));
        }
        for model in ["alpha", "beta"] {
            replies.extend((0..6).map(|turn| list_files_reply(model, turn)));
            replies.push(reply_of_model(
                model,
                6,
                Reply::text("Seen.").with_usage(max_usage()),
            ));
        }
        let rig = Rig::new(Api::Anthropic, Script::replies(replies).unwrap());
        configure_models(
            &rig,
            &prices,
            "[model_roles]\ncode = [\"mock/main\", \"mock/gamma\", \"mock/backup\"]\n",
        );
        for name in ["alpha", "beta", "gamma"] {
            add_agent(&rig, name);
        }
        assert_eq!(rig.run(&["trust"]).code(), 0);
        let limit = 0.05 + draw_number(&mut seed, 150) as f64 / 100.0;
        let ran = rig.task(&["--max-budget-usd", &limit.to_string(), "look around"]);
        let total = total_cost(&ran, &prices);
        assert!(
            total <= limit + 1e-9,
            "case {case}: ${total} at a limit of ${limit}\n{}",
            ran.stderr()
        );
        let told = ran.result()["cost"]["total"].as_f64().unwrap_or(0.0);
        assert!(
            (told - total).abs() < 1e-6,
            "case {case}: told ${told}, spent ${total}"
        );
        let asked = |request: &haft_testkit::Recorded| request.decode().unwrap().model == "gamma";
        assert!(
            !rig.server.generation_requests().iter().any(asked),
            "case {case}: a model without a price was asked"
        );
        assert!(
            [0, 4].contains(&ran.code()),
            "case {case}: {}",
            ran.stderr()
        );
        exhausted += u32::from(ran.code() == 4);
    }
    assert!(exhausted > 0, "no limit was ever reached");
}

#[test]
fn max_budget_is_rejected_for_a_model_without_price() {
    let rig = Rig::new(
        Api::Anthropic,
        Script::replies([Reply::text("Hello.")]).unwrap(),
    );
    configure_models(&rig, &[("main", None)], "");
    for limit in ["0.0001", "100"] {
        let ran = rig.task(&["--max-budget-usd", limit, "hello"]);
        assert_eq!(ran.code(), 2, "{}", ran.stdout());
        assert!(
            ran.stderr().contains("`mock/main` has no price"),
            "{}",
            ran.stderr()
        );
        assert!(
            ran.stderr().contains("--max-total-tokens"),
            "{}",
            ran.stderr()
        );
    }
    assert!(rig.server.generation_requests().is_empty());
    // A token limit works instead.
    let ran = rig.task(&[
        "--max-budget-usd",
        "1",
        "--max-total-tokens",
        "100000",
        "hello",
    ]);
    assert_eq!(
        (ran.code(), ran.result()["cost"].clone()),
        (0, Value::Null),
        "{}",
        ran.stderr()
    );
}

#[test]
fn sub_agent_without_price_does_not_start_under_a_budget() {
    let replies = || {
        [
            reply_of_model("main", 0, start_agents_call(&["gamma"])),
            reply_of_model("main", 1, Reply::text("Done.")),
            reply_of_model("gamma", 0, Reply::text("Seen.")),
        ]
    };
    let rig = Rig::new(Api::Anthropic, Script::replies(replies()).unwrap());
    configure_models(&rig, &[("main", Some(3.0)), ("gamma", None)], "");
    add_agent(&rig, "gamma");
    assert_eq!(rig.run(&["trust"]).code(), 0);
    let ran = rig.task(&["--max-budget-usd", "5", "look"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    let events = ran.events();
    let told = events
        .iter()
        .find(|event| event["type"] == "tool_result")
        .unwrap();
    assert!(
        told["text"]
            .as_str()
            .unwrap()
            .contains("`mock/gamma` has no price"),
        "{told}"
    );
    assert_eq!(
        ran.result()["cost"].get("incomplete"),
        None,
        "{}",
        ran.result()
    );
    // Without a budget the sub-agent runs, and its cost is reported as missing.
    let rig = rig.with_script(Script::replies(replies()).unwrap(), Api::Anthropic);
    configure_models(&rig, &[("main", Some(3.0)), ("gamma", None)], "");
    let cost = rig.task(&["look"]).result()["cost"].clone();
    assert!(
        cost["incomplete"] == true && cost["total"].as_f64().unwrap() > 0.0,
        "{cost}"
    );
}

#[test]
fn small_budget_shortens_replies_before_it_ends_the_run() {
    let rig = Rig::new(
        Api::Anthropic,
        Script::replies([Reply::text("Hello.")]).unwrap(),
    );
    let base_url = rig.server.base_url(Api::Anthropic);
    rig.configure(&format!(
        "model = \"mock/main\"\n[providers.mock]\napi = \"anthropic\"\nbase_url = \"{base_url}\"\n[models.\"mock/main\"]\nmax_output_tokens = 64000\n\
         price = {{ input = 1.0, output = 10.0 }}\n"
    ));
    // The whole output alone could cost $0.64.
    let ran = rig.task(&["--max-budget-usd", "0.2", "hello"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    let body: Value = serde_json::from_slice(&rig.server.generation_requests()[0].body).unwrap();
    let most = body["max_tokens"].as_u64().unwrap();
    assert!((1_024..20_000).contains(&most), "{most}");
    let ran = rig.task(&["--max-budget-usd", "0.005", "hello"]);
    assert_eq!(
        (ran.code(), ran.result()["code"].clone()),
        (4, json!("max_budget")),
        "{}",
        ran.stderr()
    );
    assert_eq!(
        rig.server.generation_requests().len(),
        1,
        "nothing was sent"
    );
}

#[test]
fn goal_accepts_max_total_tokens() {
    let rig = Rig::new(
        Api::Anthropic,
        Script::replies([Reply::call(
            "attempt_completion",
            json!({"result": "Reached."}),
        )])
        .unwrap(),
    );
    configure_models(&rig, &[("main", Some(3.0))], "");
    let ran = rig.task(&["--goal", "--max-total-tokens", "1000000", "reach it"]);
    assert_eq!(
        (ran.code(), ran.result()["outcome"].clone()),
        (0, json!("completed")),
        "{}",
        ran.stderr()
    );
}
