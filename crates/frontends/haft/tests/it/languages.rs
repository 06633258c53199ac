//! Chinese for people, and output for programs that does not depend on the language.

use haft_testkit::{Reply, Script};
use haft_types::Api;

use crate::rig::{Ran, Rig};
use crate::terminal::Terminal;

const CHINESE: (&str, &str) = ("LANG", "zh_CN.UTF-8");

fn rig() -> Rig {
    Rig::new(
        Api::OpenaiChat,
        Script::replies([Reply::text("Hello."), Reply::text("Bye.")]).unwrap(),
    )
}

fn run_with_variable(rig: &Rig, variable: (&str, &str), arguments: &[&str]) -> Ran {
    Ran(rig
        .command(arguments)
        .env(variable.0, variable.1)
        .output()
        .unwrap())
}

fn has_chinese(text: &str) -> bool {
    text.chars().any(|c| ('\u{3000}'..='\u{ffef}').contains(&c))
}

#[test]
fn doctor_is_chinese_for_people_and_english_in_json() {
    let rig = rig();
    rig.configure("model");
    let message = |arguments: &[&str]| {
        let told = run_with_variable(&rig, CHINESE, arguments).stdout();
        told.split(['\n', '}'])
            .find(|line| line.contains("config.toml:"))
            .expect(&told)
            .to_owned()
    };
    assert!(message(&["doctor"]).contains("键没有值"));
    assert!(!has_chinese(&message(&["doctor", "--json"])));
}

#[test]
fn json_output_is_equal_in_every_language() {
    let rig = rig();
    assert_eq!(rig.task(&["hi"]).code(), 0);
    for arguments in [
        &["doctor", "--json"] as &[&str],
        &["models", "roles", "--json"],
        &["models", "list", "--json"],
        &["tools", "list", "--json"],
        &["rules", "list", "--json"],
        &["hooks", "--json"],
        &["mcp", "list", "--json"],
        &["trust", "--show", "--json"],
        &["conversations", "show", "--json"],
        &["context", "show", "--json"],
        &["context", "report", "--json"],
        &["context", "why", "--json"],
        &[
            "permissions",
            "explain",
            "--tool",
            "read_file",
            "--args",
            "{}",
            "--json",
        ],
        &["jobs", "show", "none", "--json"],
        &["config", "schema"],
        &["conversations", "export"],
        &["events"],
    ] {
        let plain = rig.run(arguments);
        let chinese = run_with_variable(&rig, CHINESE, arguments);
        assert_eq!(plain.stdout(), chinese.stdout(), "{arguments:?}");
        assert_eq!(plain.code(), chinese.code(), "{arguments:?}");
    }
    // Only the effective language differs.
    let arguments = ["config", "--json"];
    let [mut plain, mut chinese] = [
        rig.run(&arguments).json(),
        run_with_variable(&rig, CHINESE, &arguments).json(),
    ];
    plain.as_object_mut().unwrap().remove("language");
    chinese.as_object_mut().unwrap().remove("language");
    assert_eq!(plain, chinese);
}

#[test]
fn events_and_stored_messages_are_english() {
    let rig = rig();
    let events = run_with_variable(
        &rig,
        CHINESE,
        &["run", "--output-format", "stream-json", "hi"],
    );
    assert_eq!(events.code(), 0, "{}", events.stderr());
    assert!(!has_chinese(&events.stdout()), "{}", events.stdout());
    assert_eq!(
        run_with_variable(&rig, CHINESE, &["run", "-c", "bye"]).code(),
        0
    );
    assert!(!has_chinese(&rig.export().to_string()));
    let sent = rig
        .server
        .generation_requests()
        .iter()
        .map(|request| request.json().unwrap().to_string())
        .collect::<String>();
    assert!(!has_chinese(&sent), "{sent}");
}

#[test]
fn language_setting_takes_precedence_over_the_locale() {
    let rig = rig();
    let says = |variable, arguments: &[&str]| run_with_variable(&rig, variable, arguments).stdout();
    let chinese = "还没有后台作业";
    let english = "No runs in the background yet";
    assert!(says(CHINESE, &["jobs"]).starts_with(chinese));
    assert!(says(("LC_ALL", "zh_TW"), &["jobs"]).starts_with(chinese));
    assert!(says(("HAFT_LANGUAGE", "zh-CN"), &["jobs"]).starts_with(chinese));
    assert!(says(("LC_ALL", "C"), &["jobs"]).starts_with(english));
    assert!(says(CHINESE, &["jobs", "list", "--set", "language=en"]).starts_with(english));
    assert_eq!(rig.run(&["config", "set", "language", "zh-CN"]).code(), 0);
    assert!(says(("LANG", "en_US.UTF-8"), &["jobs"]).starts_with(chinese));
    assert_eq!(rig.run(&["config", "get", "language"]).stdout(), "zh-CN\n");
}

#[test]
fn language_setting_rejects_unknown_values() {
    let rig = rig();
    for ran in [
        rig.run(&["models", "list", "--set", "language=fr"]),
        run_with_variable(&rig, ("HAFT_LANGUAGE", "klingon"), &["models", "list"]),
        rig.run(&["config", "set", "language", "zh"]),
    ] {
        let said = ran.stderr();
        assert_eq!(ran.code(), 2, "{said}");
        assert!(said.contains("`en`") && said.contains("`zh-CN`"), "{said}");
    }
}

#[test]
fn doctor_and_demo_are_chinese() {
    let rig = rig();
    let doctor = run_with_variable(&rig, CHINESE, &["doctor"]);
    assert_eq!(doctor.code(), 0);
    assert!(
        doctor.stdout().contains("config.toml 有效"),
        "{}",
        doctor.stdout()
    );
    let demo = run_with_variable(&rig, CHINESE, &["demo"]);
    let said = demo.stdout();
    assert_eq!(demo.code(), 0, "{said}{}", demo.stderr());
    for text in [
        "中有一个带缺陷的小项目",
        "任务：",
        "现在的测试结果：",
        "次请求：输入",
    ] {
        assert!(said.contains(text), "{text}: {said}");
    }
}

#[test]
fn columns_line_up_in_chinese() {
    let rig = rig();
    assert_eq!(rig.task(&["hi"]).code(), 0);
    let report = run_with_variable(&rig, CHINESE, &["context", "report"]).stdout();
    let rows = report.lines().skip(3).take_while(|line| !line.is_empty());
    let places: Vec<_> = rows
        .filter_map(|line| Some(haft_text::display_width(line.split_once('%')?.0)))
        .collect();
    assert!(
        places.len() > 4 && places.iter().all(|place| *place == places[0]),
        "{report}"
    );
    let table = run_with_variable(&rig, CHINESE, &["tools", "list"]).stdout();
    let column = |line: &str, at: &str| {
        line.find(at)
            .map(|end| haft_text::display_width(&line[..end]))
    };
    let mut lines = table.lines();
    let heading = column(lines.next().unwrap(), "分组");
    assert!(
        heading.is_some()
            && lines
                .any(|line| line.starts_with("read_file ") && column(line, "files ") == heading),
        "{table}"
    );
}

#[test]
fn trust_question_and_start_screen_are_chinese() {
    for (answer, standing) in [
        ("是\r", "trusted"),
        ("y\r", "trusted"),
        ("否\r", "untrusted"),
    ] {
        let rig = Rig::untrusted(
            Api::Anthropic,
            Script::replies([Reply::text("Hello.")]).unwrap(),
        );
        rig.write("AGENTS.md", "Always say Moo.");
        let mut terminal = Terminal::start_with(&rig, &[], (80, 40), &[CHINESE]);
        terminal.until_text("信任此目录吗？");
        assert!(
            terminal.text().contains("将会读取的文件：\n  AGENTS.md"),
            "{}",
            terminal.text()
        );
        terminal.press(answer);
        terminal.until_text("/help");
        assert_eq!(
            rig.run(&["trust", "--show", "--json"]).json()["standing"],
            standing,
            "{answer:?}"
        );
        terminal.press("/help\r");
        terminal.until_text("显示快捷键和命令");
        terminal.press("你好\r");
        terminal.until_text("Hello.");
        terminal.press("\u{4}");
        assert_eq!(terminal.wait_for_exit().0, 0);
    }
}

/// Regression: a notice that does not end with `。` was joined to its hint by an English period.
#[test]
fn notice_and_hint_are_chinese_sentences() {
    let rig = Rig::untrusted(
        Api::OpenaiChat,
        Script::replies([Reply::text("Hello.")]).unwrap(),
    );
    rig.write("AGENTS.md", "Always say Moo.");
    let said = run_with_variable(&rig, CHINESE, &["run", "hi"]).stderr();
    assert!(
        said.contains("工具和服务器。运行 `haft trust` 可信任它。"),
        "{said}"
    );
    let said = run_with_variable(&rig, CHINESE, &["run", "-r", "deadbeef", "x"]).stderr();
    assert!(
        said.contains("没有会话 `deadbeef`；用 `haft conversations list --all` 查看"),
        "{said}"
    );
}

/// Regression: the relation between a rule and its example was in English.
#[test]
fn permission_rule_error_about_its_example_is_chinese() {
    let rig = rig();
    rig.configure(
        "model = \"mock/m\"\n[[permissions.rules]]\nrule = \"execute_command(ls:*)\"\ndecision = \"allow\"\n\
         no_match = [\"ls -l\"]\n",
    );
    let said = run_with_variable(&rig, CHINESE, &["run", "hi"]).stderr();
    assert!(said.contains("应当不匹配它的示例 `ls -l`"), "{said}");
}

/// Regression: the state of an item was read out in English, and `_` in its text as a blank.
#[test]
fn plain_mode_reads_out_a_todo_list_in_chinese() {
    let items = [("Call a_b", "in_progress"), ("Test it", "pending")];
    let items =
        items.map(|(content, status)| serde_json::json!({"content": content, "status": status}));
    let todo = Reply::call("todo_write", serde_json::json!({ "todos": items }));
    let replies = [todo]
        .into_iter()
        .chain(std::iter::repeat_n(Reply::text("Hello."), 5));
    let rig = Rig::new(Api::OpenaiChat, Script::replies(replies).unwrap());
    let mut terminal = Terminal::start_with(&rig, &["--plain"], (80, 40), &[CHINESE]);
    terminal.until_text("你：");
    terminal.press("hi\r");
    terminal.until_text("待办，进行中：Call a_b");
    terminal.until_text("待办，未开始：Test it");
}

/// Words of the parser and of untranslated help texts.
const LEFT_ENGLISH: [&str; 9] = [
    "Usage:",
    "Options:",
    "Commands:",
    "Arguments:",
    "error:",
    "tip:",
    "Print ",
    "possible values",
    "default:",
];

#[test]
fn help_and_usage_errors_are_chinese() {
    let rig = rig();
    let both = |arguments: &[&str]| {
        let english = rig.run(arguments);
        let chinese = Ran(rig.command(arguments).envs([CHINESE]).output().unwrap());
        assert_eq!(chinese.code(), english.code(), "{arguments:?}");
        (format!("{}{}", chinese.stdout(), chinese.stderr()), chinese)
    };
    for arguments in [
        &["--help"][..],
        &["-h"],
        &["models", "--help"],
        &["models", "add", "-h"],
        &["run", "--help"],
        &["help", "context", "replay"],
        &["completions", "--help"],
    ] {
        let (said, ran) = both(arguments);
        assert!(
            ran.stderr().is_empty() && said.contains("用法："),
            "{arguments:?}: {said}"
        );
        for left in LEFT_ENGLISH {
            assert!(!said.contains(left), "{arguments:?}: {left} in {said}");
        }
        for line in said.lines() {
            assert!(
                haft_text::display_width(line) <= 104,
                "{arguments:?}: {line}"
            );
        }
    }
    for (arguments, part) in [
        (&["run", "--modle", "x", "y"][..], "--model"),
        (&["models", "frobnicate"], "frobnicate"),
        (&["models", "show"], "<NAME>"),
        (&["run", "--compat", "xml", "x"], "claude"),
        (&["run", "--max-turns", "many", "x"], "many"),
        (&["run", "--agent"], "--agent"),
        (&["undo", "--all", "--call", "x"], "--call"),
        (
            &["run", "--max-turns", "0", "x"],
            "0 不在 1..=4294967295 范围内",
        ),
        (
            &["run", "--permission-mode", "wild", "x"],
            "`wild` 不是权限模式",
        ),
        (&["run", "--output-format", "yaml", "x"], "stream-json"),
        (&["demo", "--api", "x"], "`x` 不是 API"),
        (&["count"], "<FILE>...\n"),
    ] {
        let (said, ran) = both(arguments);
        assert!(
            ran.stdout().is_empty() && said.starts_with("错误：") && said.contains(part),
            "{arguments:?}: {said}"
        );
        for left in LEFT_ENGLISH {
            assert!(!said.contains(left), "{arguments:?}: {left} in {said}");
        }
    }
}

/// Returns the words of a line that reveal an English sentence, except those between backticks.
fn english_words_in(line: &str) -> Vec<&str> {
    let words = [
        "the", "is", "are", "was", "not", "cannot", "no", "of", "to", "and", "with", "for", "in",
        "it", "there", "this", "which", "give", "check", "use", "expected", "unknown", "invalid",
    ];
    let plain = line.split('`').step_by(2);
    plain
        .flat_map(|part| part.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-'))
        .filter(|word| words.contains(word))
        .collect()
}

/// The errors of `bad_input.rs` that occur without a model.
#[test]
fn command_line_errors_are_entirely_chinese() {
    let mock = "model = \"mock/m\"\n[providers.mock]\napi = \"openai-chat\"\nbase_url = \"http://127.0.0.1:9/v1\"\n";
    let keyed = format!("{mock}api_key_env = \"MOCK_API_KEY\"\n");
    for (config, arguments) in [
        (Some(keyed.as_str()), &["run", "hi"][..]),
        (Some(mock), &["run", "hi"]),
        (Some(""), &["run", "hi"]),
        (
            Some("model = \"a/b\"\n[retry]\natempts = 3\n"),
            &["run", "hi"],
        ),
        (Some("[context]\nwarn_at = 7.0\n"), &["run", "hi"]),
        (None, &["run", "-m", "mokc/x", "hi"]),
        (None, &["run", "-m", "gpt", "hi"]),
        (None, &["run", "--cwd", "nowhere", "hi"]),
        (None, &["run", " "]),
        (None, &["run"]),
        (None, &["fix it"]),
        (None, &["run", "-c"]),
        (None, &["run", "-r", "deadbeef", "x"]),
        (None, &["run", "--agent", "nobody", "x"]),
        (None, &["conversations", "export", "deadbeef"]),
        (None, &["run", "--allowed-tools", "read_file,nope", "hi"]),
        (None, &["run", "--set", "nonsense=1", "hi"]),
        (None, &["run", "--set", "context.reminders=nowhere", "hi"]),
        (None, &["run", "--allow", "read_file(", "hi"]),
        (None, &["models", "show", "gpt"]),
        (None, &["config", "set", "permissions.mode", "wild"]),
    ] {
        let rig = rig();
        if let Some(config) = config {
            rig.configure(config);
        }
        let ran = run_with_variable(&rig, CHINESE, arguments);
        let said = ran.stderr();
        assert_ne!(ran.code(), 0, "{arguments:?}");
        assert!(has_chinese(&said), "{arguments:?}: {said}");
        for line in said.lines() {
            assert_eq!(
                english_words_in(line),
                Vec::<&str>::new(),
                "{arguments:?}: {said}"
            );
        }
    }
}

/// Returns the message of every library error, with `{}` for each variable.
fn library_error_forms() -> Vec<String> {
    let is_shown = |path: &str| {
        let crates = [
            "agent",
            "model",
            "store",
            "project",
            "engine",
            "sandbox",
            "context",
            "permission",
            "types",
            "tool",
            "tools",
        ];
        path.starts_with("crates/extensions/")
            || crates
                .iter()
                .any(|name| path.starts_with(&format!("crates/core/{name}/")))
    };
    let mut forms = Vec::new();
    for source in crate::budgets::sources()
        .into_iter()
        .filter(|source| is_shown(&source.path))
    {
        for part in source.text.split("#[error(").skip(1) {
            // A string literal that continues in the next line.
            let joined: Vec<_> = part.split("\\\n").map(str::trim_start).collect();
            let joined = joined.concat();
            let Some(literal) = joined.trim_start().strip_prefix('"') else {
                continue;
            };
            let mut form = String::new();
            let mut characters = literal.chars();
            while let Some(c) = characters.next() {
                match c {
                    '"' => break,
                    '\\' => form.extend(characters.next().filter(|c| *c != 'n')),
                    '{' => {
                        characters.by_ref().take_while(|c| *c != '}').for_each(drop);
                        form.push_str("{}");
                    }
                    c => form.push(c),
                }
            }
            forms.push(form);
        }
    }
    assert!(forms.len() > 100, "{}", forms.len());
    forms
}

/// Returns the English texts of libraries that have a translation, with `{}` for each variable.
fn translated_forms() -> Vec<String> {
    let file = include_str!("../../../messages/messages/en/library.ftl");
    let values = file
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(" = "));
    values
        .map(|(_, value)| {
            let mut form = String::new();
            for (index, part) in value.split('{').enumerate() {
                if index == 0 {
                    form.push_str(part);
                    continue;
                }
                let (placeable, literal) = part.split_once(" }").unwrap();
                match placeable.trim_start().strip_prefix('"') {
                    Some(quoted) => form.push_str(quoted.strip_suffix('"').unwrap()),
                    None => form.push_str("{}"),
                }
                form.push_str(literal);
            }
            form
        })
        .collect()
}

#[test]
fn library_errors_all_have_a_translation() {
    let english = translated_forms();
    // The first form only adds a position, and the second wraps another error.
    let is_missing = |form: &&String| {
        !["{}:{}:{}: {}", "{}"].contains(&form.as_str()) && !english.contains(form)
    };
    let mut forms = library_error_forms();
    let sources = crate::budgets::sources();
    let prefix = sources
        .iter()
        .find(|source| source.path == "crates/core/context/src/cache/prefix.rs")
        .unwrap();
    let causes = prefix
        .text
        .split("impl fmt::Display for Cause")
        .nth(1)
        .unwrap()
        .split("\n}")
        .next()
        .unwrap();
    forms.extend(causes.split('"').skip(1).step_by(2).map(str::to_owned));
    let missing: Vec<_> = forms.iter().filter(is_missing).collect();
    assert!(
        missing.is_empty(),
        "not in crates/frontends/messages/messages/en/library.ftl: {missing:#?}"
    );
}
