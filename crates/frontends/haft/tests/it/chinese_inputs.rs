//! A hundred Chinese inputs (mixed scripts, emoji, full-width forms, characters outside the basic
//! plane) in everything except the terminal: counting, front matter of rules, search, summaries,
//! the gate, mentions and runs. The terminal has its own tests with these inputs.

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::Rig;

const INPUTS: &str = include_str!("../../../../testkit/fixtures/chinese_inputs.txt");

fn rig() -> Rig {
    Rig::new(
        Api::OpenaiChat,
        Script::turns([Reply::text("好的。")]).unwrap(),
    )
}

/// Returns the longest run of Chinese characters in a text.
fn longest_han_run(text: &str) -> String {
    let is_han = |c: char| {
        ('\u{4e00}'..='\u{9fff}').contains(&c) || ('\u{20000}'..='\u{323af}').contains(&c)
    };
    let runs = text.split(|c| !is_han(c));
    runs.max_by_key(|run| run.chars().count())
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn count_and_rules_list_accept_chinese() {
    let rig = rig();
    assert_eq!(INPUTS.lines().count(), 100);
    let mut arguments = vec!["count".to_owned(), "--json".to_owned()];
    for (at, input) in INPUTS.lines().enumerate() {
        let name = format!("{at:03}.txt");
        rig.write(&name, input);
        arguments.push(name);
        rig.write(
            &format!(".haft/rules/{at:03}.md"),
            format!("---\ndescription: {}\n---\n{input}\n", json!(input)),
        );
    }
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let counted = rig.run(&arguments).json();
    for (input, file) in INPUTS.lines().zip(counted["files"].as_array().unwrap()) {
        let tokens = usize::try_from(file["tokens"].as_u64().unwrap()).unwrap();
        assert!((1..=input.len()).contains(&tokens), "{input}: {tokens}");
    }
    assert_eq!(rig.run(&["trust"]).code(), 0);
    let listed = rig.run(&["rules", "list", "--json"]).json();
    assert_eq!(listed["problems"], json!([]));
    for (at, input) in INPUTS.lines().enumerate() {
        assert_eq!(listed["rules"][at]["description"], input);
    }
}

#[test]
fn conversations_search_finds_chinese_words() {
    let rig = rig();
    let messages: Vec<Value> = INPUTS
        .lines()
        .map(|input| json!({"role": "user", "content": input}))
        .collect();
    rig.write("chat.json", json!({"messages": messages}).to_string());
    assert_eq!(rig.run(&["conversations", "import", "chat.json"]).code(), 0);
    let searched = INPUTS
        .lines()
        .filter(|input| longest_han_run(input).chars().count() > 1);
    for input in searched.step_by(3) {
        let found = rig
            .run(&[
                "conversations",
                "search",
                "--json",
                "--limit",
                "200",
                &longest_han_run(input),
            ])
            .json();
        let texts: Vec<_> = found
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|hit| hit["snippet"]["text"].as_str())
            .collect();
        assert!(
            texts
                .iter()
                .any(|text| text.contains(&longest_han_run(input))),
            "{input}: {} in {texts:?}",
            longest_han_run(input)
        );
    }
}

#[test]
fn gate_judges_chinese_file_names_like_english_ones() {
    let rig = rig();
    let decided = |line: &str| {
        rig.run(&["permissions", "explain", "--json", line]).json()["decision"].clone()
    };
    let read = decided("cat 'notes.txt'");
    let removed = decided("rm -rf 'notes.txt'");
    assert_ne!(removed, "allow");
    // Invisible characters need approval in every script: blanks of unusual width, joiners,
    // variation selectors.
    let hides = |c: char| {
        matches!(
            c,
            '\u{ad}' | '\u{200b}' | '\u{200d}' | '\u{3000}' | '\u{fe0f}' | '\u{e0100}'
                ..='\u{e01ef}'
        )
    };
    for input in INPUTS
        .lines()
        .filter(|input| !input.contains(['\'', '/', '!']))
        .step_by(4)
    {
        let expected = if input.contains(hides) {
            json!("ask")
        } else {
            read.clone()
        };
        assert_eq!(decided(&format!("cat '{input}'")), expected, "{input}");
        assert_eq!(decided(&format!("rm -rf '{input}'")), removed, "{input}");
    }
    // Full-width characters that resemble operators are part of the file name: nothing is piped.
    assert_eq!(decided("cat 甲｜乙；丙＆丁"), decided("cat notes.txt"));
}

#[test]
fn run_sends_chinese_unchanged_and_resolves_mentions() {
    for input in INPUTS.lines().step_by(9) {
        let rig = rig();
        rig.write("src/主程序.rs", "fn main() {}\n");
        let prompt = format!("{input}，看@src/主程序.rs，谢谢");
        let ran = rig.task(&[&prompt]);
        assert_eq!(ran.code(), 0, "{input}: {}", ran.stderr());
        let body: Value =
            serde_json::from_slice(&rig.server.generation_requests()[0].body).unwrap();
        let sent = body["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
        let typed = json!(prompt).to_string();
        assert!(sent.contains(typed.trim_matches('"')), "{input}: {sent}");
        assert!(
            sent.matches("src/主程序.rs").count() > 1,
            "the mention is pointed out: {sent}"
        );
    }
}

#[test]
fn compact_summarizes_in_chinese_without_losing_inputs() {
    for (language, asks) in [("en", "Write in Chinese."), ("zh-CN", "正文使用中文。")] {
        let rig = Rig::new(
            Api::OpenaiChat,
            Script::turns([Reply::summary(
                "用户给出了一百个输入，均已回答。没有遗留问题，也没有修改任何文件。",
            )])
            .unwrap(),
        );
        let round = |input| {
            [
                json!({"role": "user", "content": input}),
                json!({"role": "assistant", "content": "好的。"}),
            ]
        };
        let messages: Vec<Value> = INPUTS.lines().flat_map(round).collect();
        rig.write("chat.json", json!({"messages": messages}).to_string());
        assert_eq!(rig.run(&["conversations", "import", "chat.json"]).code(), 0);
        let id = rig.run(&["conversations", "list", "--json"]).json()[0]["id"]
            .as_str()
            .unwrap()
            .to_owned();
        let prompts = format!("context.prompt_language={language}");
        let options = ["--set", "context.keep_rounds=1", "--set", &prompts];
        let ran = rig.run(&[&["context", "compact", "--json", &id], &options[..]].concat());
        assert_eq!(ran.code(), 0, "{}", ran.stderr());
        let report = ran.json();
        assert_eq!(
            (&report["outcome"], &report["rounds"]),
            (&json!("archived"), &json!(99)),
            "{report}"
        );
        let asked = rig
            .server
            .generation_requests()
            .pop()
            .unwrap()
            .decode()
            .unwrap();
        assert!(asked.system.contains(asks), "{}", asked.system);
        let session = asked.to_string();
        for input in INPUTS.lines().take(99) {
            assert!(
                session.contains(input),
                "{language}: {input} is not in what is summarised"
            );
        }
        let stored = rig.run(&["conversations", "export", &id]).json();
        let summaries = stored["messages"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|message| message["role"] == "summary");
        let texts: Vec<_> = summaries.map(ToString::to_string).collect();
        assert!(
            texts.len() == 1 && texts[0].contains("用户给出了一百个输入，均已回答。"),
            "{texts:?}"
        );
    }
}
