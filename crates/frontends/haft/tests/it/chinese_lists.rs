//! Lists, results and reports in Chinese, with no English except names.

use std::collections::HashSet;

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::json;

use crate::rig::Rig;
use crate::serve::ServedPage;

pub(crate) const CHINESE: (&str, &str) = ("LANG", "zh_CN.UTF-8");

/// Words that are also used in Chinese texts: programs, commands, options, keys, modes and units.
const NAMES: &str = "haft token bug shell man git schema plan ask accept edits auto yolo allow deny mock anthropic \
    openai chat openai-chat test path command help context inspect cost compact clear resume rewind undo redo commit diff model mode \
    files conversations agents commands rules mcp models permissions quit init exit touch add remove edit dry-run \
    stdout stderr running knowledge dialogue web true false null main code summary prune title index embedding vision \
    planner designer input project master landlock min none front tail default recorded execute";

/// Returns the English words of a text: lowercase, outside backticks, and not among `NAMES`.
pub(crate) fn english_words(text: &str) -> Vec<String> {
    let names: HashSet<&str> = NAMES.split_whitespace().collect();
    // A truncated name is not in the list.
    let cut = text
        .split('…')
        .map(|part| part.trim_end_matches(|c: char| c.is_ascii_alphabetic()))
        .collect::<Vec<_>>();
    let text = cut.join("…");
    let plain = text.lines().flat_map(|line| line.split('`').step_by(2));
    let words = plain.flat_map(|part| part.split(|c: char| c.is_whitespace() || !c.is_ascii()));
    let words = words.map(|word| word.trim_matches(|c: char| !c.is_ascii_alphanumeric()));
    // An id consists of eight hexadecimal digits, which can all be letters.
    let is_id = |word: &str| word.len() == 8 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_english = |word: &&str| {
        word.len() > 2
            && !is_id(word)
            && word.bytes().all(|byte| byte.is_ascii_lowercase())
            && !names.contains(word)
    };
    words.filter(is_english).map(str::to_owned).collect()
}

/// Regression: layers, roles, states and sources in tables were in English.
#[test]
fn tables_and_lists_are_chinese() {
    let write = Reply::call("write_to_file", json!({"path": "a.txt", "content": "一\n"}));
    let rig = Rig::new(
        Api::Anthropic,
        Script::replies([write, Reply::text("好。")]).unwrap(),
    )
    .with([CHINESE]);
    std::fs::create_dir_all(rig.project().join(".haft/rules")).unwrap();
    rig.write(".haft/rules/a.md", "---\ndescription: 甲\n---\n乙\n");
    rig.write(".haft/hooks.toml", "");
    assert_eq!(rig.run(&["trust"]).code(), 0);
    assert_eq!(
        rig.run(&["run", "--permission-mode", "yolo", "写"]).code(),
        0
    );
    for arguments in [
        &["context", "report"][..],
        &["context", "replay"],
        &["context", "why"],
        &["conversations", "show", "--cost"],
        &["conversations", "stats"],
        &["changes"],
        &["changes", "--diff"],
    ] {
        let ran = rig.run(arguments);
        let said = format!("{}{}", ran.stdout(), ran.stderr());
        let own: Vec<_> = said
            .lines()
            .filter(|line| !line.contains("/tmp/") && !line.starts_with("    "))
            .collect();
        assert_eq!(
            english_words(&own.join("\n")),
            Vec::<String>::new(),
            "{arguments:?}: {said}"
        );
    }
}

/// Content that was sent stays unchanged; its role and its layer are shown in Chinese.
#[test]
fn layers_and_roles_are_chinese() {
    let write = Reply::call("write_to_file", json!({"path": "a.txt", "content": "一\n"}));
    let rig = Rig::new(
        Api::Anthropic,
        Script::replies([write, Reply::text("好。")]).unwrap(),
    )
    .with([CHINESE]);
    assert_eq!(
        rig.run(&["run", "--permission-mode", "yolo", "写"]).code(),
        0
    );
    for (arguments, told) in [
        (
            &["context", "show"][..],
            &["系统", "历史", "当前", "用户", "助手", "工具"][..],
        ),
        (
            &["context", "show", "--full"],
            &["--- 1 系统 系统 ", " token"],
        ),
        (&["context", "diff"], &["历史", "工具（"]),
        (
            &["context", "edit", "list"],
            &["调用 write_to_file", "write_to_file 的结果", "用户", "历史"],
        ),
        (
            &["conversations", "show"],
            &[" 用户 ", " 助手 ", " 工具 ", "← write_to_file (成功)"],
        ),
    ] {
        let said = rig.run(arguments).stdout();
        for text in told {
            assert!(said.contains(text), "{arguments:?}: {text}: {said}");
        }
        let rows = if arguments.contains(&"--full") {
            ""
        } else {
            &*said
        };
        let heads = rows
            .lines()
            .map(|line| line.split_whitespace().take(5).collect::<Vec<_>>());
        for word in heads.flatten() {
            assert!(
                !["system", "history", "current", "user", "assistant", "tool"].contains(&word),
                "{arguments:?}: {said}"
            );
        }
    }
}

/// Regression: the error of a failed call was shown as the model receives it.
#[test]
fn call_errors_are_shown_in_chinese_and_sent_in_english() {
    for (tool, arguments, told, sent) in [
        (
            "read_file",
            json!({"path": "b.txt"}),
            "`b.txt` 不存在",
            "`b.txt` does not exist",
        ),
        (
            "read_file",
            json!({"path": 5}),
            "参数无效：类型不对",
            "invalid arguments for `read_file`",
        ),
        (
            "edit_file",
            json!({"path": "a.txt", "old_text": "x", "new_text": "y"}),
            "中没有要替换的文本",
            "`old_text` is not in",
        ),
        (
            "execute_command",
            json!({"command": "exit 3"}),
            "退出码 3。没有输出",
            "Exit code 3. No output.",
        ),
        (
            "nothing",
            json!({}),
            "没有工具 `nothing`",
            "There is no tool `nothing`.",
        ),
    ] {
        let replies = [Reply::call(tool, arguments), Reply::text("好。")];
        let rig = Rig::new(Api::OpenaiChat, Script::replies(replies).unwrap()).with([CHINESE]);
        rig.write("a.txt", "一\n二\n");
        let said = rig
            .run(&["run", "--permission-mode", "yolo", "做"])
            .stderr();
        assert!(said.contains(told) && !said.contains(sent), "{said}");
        assert!(said.contains("权限模式 `yolo` 下没有沙箱"), "{said}");
        let requests = rig.server.generation_requests();
        let last = requests.last().unwrap().json().unwrap().to_string();
        assert!(last.contains(sent), "{last}");
    }
}

/// Regression: the results of workflow steps were shown in English.
#[cfg(feature = "workflows")]
#[test]
fn workflow_results_are_chinese() {
    let replies = [Reply::text("好。"), Reply::error(400, "400")];
    let rig = Rig::new(Api::OpenaiChat, Script::replies(replies).unwrap()).with([CHINESE]);
    std::fs::create_dir_all(rig.project().join(".haft/workflows")).unwrap();
    let steps = "steps:\n  - name: a\n    prompt: 甲\n  - name: b\n    needs: [a]\n    prompt: 乙\n  - name: c\n    needs: [b]\n    prompt: 丙\n";
    rig.write(".haft/workflows/w.yaml", steps);
    assert_eq!(rig.run(&["trust"]).code(), 0);
    let said = rig.run(&["workflows", "run", "w"]).stderr();
    assert!(said.contains("3 个步骤中已完成 1 个。`b` 失败："), "{said}");
    assert!(
        said.contains("`c` 没有开始，因为它需要 `b`；`haft workflows run w --continue` 可继续。"),
        "{said}"
    );
    assert_eq!(english_words(&said), Vec::<String>::new(), "{said}");
    rig.write(
        ".haft/workflows/w.yaml",
        steps.replace("needs: [a]", "needs: [z]"),
    );
    assert_eq!(rig.run(&["trust"]).code(), 0);
    let said = rig.run(&["workflows", "run", "w"]).stderr();
    assert!(
        said.contains("w.yaml，第 ") && said.contains("但没有这个步骤"),
        "{said}"
    );
}

/// Regression: the error about a missing page was in English.
#[test]
fn page_refusals_are_chinese() {
    let rig = Rig::new(
        Api::Anthropic,
        Script::replies([Reply::text("好。")]).unwrap(),
    )
    .with([CHINESE]);
    let served = ServedPage::start(&rig);
    for (path, headers, why) in [
        ("/", String::new(), "请打开 `haft serve` 显示的地址"),
        ("/x", served.cookie(), "没有这个页面"),
        (
            "/",
            format!("{}origin: http://evil.example\r\n", served.cookie()),
            "其他网页不能读取或修改本页面",
        ),
    ] {
        let answer = served.get(path, &headers);
        assert!(answer.contains(why), "{answer}");
    }
}
