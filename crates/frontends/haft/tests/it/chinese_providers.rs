//! The built-in providers of China with their built-in settings, at the address of the scripted
//! server.

use haft_testkit::{Reply, Script};
use haft_types::{Api, Usage};
use serde_json::{Value, json};

use crate::rig::{Ran, Rig};

/// A provider's model, the variable of its key, true if its reasoning is sent back, and the name of
/// the field that limits replies.
const MODELS: [(&str, &str, bool, &str); 7] = [
    (
        "deepseek-cn/deepseek-flash",
        "DEEPSEEK_API_KEY",
        true,
        "max_tokens",
    ),
    ("glm-cn/glm-5.3", "ZHIPUAI_API_KEY", true, "max_tokens"),
    (
        "kimi-cn/kimi-k3",
        "MOONSHOT_API_KEY",
        true,
        "max_completion_tokens",
    ),
    (
        "hunyuan/hy3-preview",
        "TOKENHUB_API_KEY",
        true,
        "max_tokens",
    ),
    (
        "qwen-cn/qwen3.8-max",
        "DASHSCOPE_API_KEY",
        false,
        "max_tokens",
    ),
    (
        "doubao/doubao-seed-2-0-code-preview-260215",
        "ARK_API_KEY",
        false,
        "max_completion_tokens",
    ),
    (
        "siliconflow-cn/deepseek-ai/DeepSeek-V4-Flash",
        "SILICONFLOW_API_KEY",
        false,
        "max_tokens",
    ),
];

fn run_with_model(rig: &Rig, model: &str, variable: &str, more: &[&str]) -> Ran {
    let provider = model.split('/').next().unwrap();
    let api = if provider.starts_with("minimax") {
        Api::Anthropic
    } else {
        Api::OpenaiChat
    };
    let address = format!(
        "providers.{provider}.base_url=\"{}\"",
        rig.server.base_url(api)
    );
    let limit = format!("models.\"{model}\".max_output_tokens=4096");
    let mut arguments = vec![
        "run",
        "--output-format",
        "stream-json",
        "--permission-mode",
        "yolo",
        "-m",
        model,
    ];
    arguments.extend(["--set", &address, "--set", &limit]);
    arguments.extend(more);
    Ran(rig.command(&arguments).env(variable, "k").output().unwrap())
}

fn two_step_script() -> Script {
    let look = Reply::call("list_files", json!({"path": "."})).with_thinking("先看看。");
    Script::turns([look, Reply::text("空的。").with_thinking("什么都没有。")]).unwrap()
}

#[test]
fn requests_have_the_fields_of_each_provider() {
    for (model, variable, back, limit) in MODELS {
        let rig = Rig::new(Api::OpenaiChat, two_step_script());
        let ran = run_with_model(&rig, model, variable, &["看看目录"]);
        assert_eq!(ran.code(), 0, "{model}: {}{}", ran.stdout(), ran.stderr());
        let requests = rig.server.generation_requests();
        let body: Value = serde_json::from_slice(&requests[1].body).unwrap();
        assert!(body.get(limit).is_some(), "{model}: {limit} in {body}");
        let messages = body["messages"].as_array().unwrap();
        let reply = messages
            .iter()
            .find(|message| message["role"] == "assistant")
            .unwrap();
        let expected = back.then(|| json!("先看看。"));
        assert_eq!(reply.get("reasoning_content").cloned(), expected, "{model}");
        assert_eq!(body["model"], model.split_once('/').unwrap().1);
    }
}

#[test]
fn minimax_uses_the_anthropic_api_and_gets_its_thinking_back() {
    let rig = Rig::new(Api::Anthropic, two_step_script());
    let ran = run_with_model(
        &rig,
        "minimax-cn/MiniMax-M2.7",
        "MINIMAX_API_KEY",
        &["看看目录"],
    );
    assert_eq!(ran.code(), 0, "{}{}", ran.stdout(), ran.stderr());
    let body = String::from_utf8(rig.server.generation_requests()[1].body.to_vec()).unwrap();
    assert!(
        body.contains("\"thinking\":\"先看看。\"") && body.contains("cache_control"),
        "{body}"
    );
}

#[test]
fn prices_in_yuan_are_shown_in_yuan_and_converted_for_budgets() {
    let usage = Usage {
        input: 1_000_000,
        cached_input: 1_000_000,
        output: 100_000,
        ..Usage::default()
    };
    let script = || Script::turns([Reply::text("好。").with_usage(usage)]).unwrap();
    let model = "glm-cn/glm-5.3";
    let variable = "ZHIPUAI_API_KEY";
    let rig = Rig::new(Api::OpenaiChat, script());
    let cost = |ran: &Ran| ran.result()["cost"]["total"].as_f64();
    let unrated = run_with_model(&rig, model, variable, &["你好"]);
    assert_eq!(
        (unrated.code(), cost(&unrated)),
        (0, None),
        "{}",
        unrated.stdout()
    );
    let refused = run_with_model(&rig, model, variable, &["你好", "--max-budget-usd", "5"]);
    assert_eq!(refused.code(), 2);
    assert!(
        refused.stderr().contains("[currency_rates]"),
        "{}",
        refused.stderr()
    );
    let rig = Rig::new(Api::OpenaiChat, script());
    let rate = [
        "你好",
        "--max-budget-usd",
        "50",
        "--set",
        "currency_rates.CNY=8.0",
    ];
    let rated = run_with_model(&rig, model, variable, &rate);
    let expected = (8.0 + 2.0 + 2.8) / 8.0;
    assert!(
        cost(&rated).is_some_and(|cost| (cost - expected).abs() < 1e-9),
        "{}",
        rated.stdout()
    );

    let listed = rig
        .command(&["models", "list"])
        .env(variable, "k")
        .output()
        .unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let row = listed.lines().find(|line| line.starts_with(model)).unwrap();
    assert!(
        row.contains("¥8") && row.contains("¥2 ") && row.contains("¥28"),
        "{row}"
    );
    let shown = rig.run(&["models", "show", model, "--json"]).json();
    let value = |key: &str| shown["values"][format!("models.\"{model}\".{key}")]["value"].clone();
    assert_eq!(
        (value("currency"), value("price.input")),
        (json!("CNY"), json!(8.0))
    );
}
