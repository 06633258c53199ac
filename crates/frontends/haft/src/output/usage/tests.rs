use clap::Command;

use super::*;
use crate::cli::Cli;

/// A help text of the English definition, and the keys that may hold its translation.
struct HelpText {
    keys: Vec<String>,
    english: String,
    is_hidden: bool,
}

/// Collects every help text of a command and its subcommands.
fn help_texts(command: &Command, key: &str, texts: &mut Vec<HelpText>) {
    let mut add = |name: &str, text: Option<&clap::builder::StyledStr>, is_shared, is_hidden| {
        let Some(text) = text else {
            return;
        };
        let mut keys = vec![match name {
            "" => key.to_owned(),
            name => format!("{key}.{name}"),
        }];
        if is_shared {
            keys.push(format!("help-shared.{name}"));
        }
        texts.push(HelpText {
            keys,
            english: text.to_string(),
            is_hidden,
        });
    };
    let is_hidden = command.is_hide_set();
    add("", command.get_about(), false, is_hidden);
    add("long", command.get_long_about(), false, is_hidden);
    add("after", command.get_after_help(), false, is_hidden);
    add(
        "after-long",
        command.get_after_long_help(),
        false,
        is_hidden,
    );
    for arg in command.get_arguments() {
        let id = arg.get_id().as_str();
        let is_hidden = is_hidden || arg.is_hide_set();
        add(id, arg.get_help(), true, is_hidden);
        add(&format!("{id}-long"), arg.get_long_help(), true, is_hidden);
        if !arg.get_action().takes_values() {
            continue;
        }
        for value in arg.get_possible_values() {
            let name = format!("{id}-value-{}", value.get_name());
            let is_hidden = is_hidden || arg.is_hide_possible_values_set() || value.is_hide_set();
            add(&name, value.get_help(), true, is_hidden);
        }
    }
    for inner in command.get_subcommands() {
        let parent = if key == "help-haft" { "help" } else { key };
        help_texts(inner, &format!("{parent}-{}", inner.get_name()), texts);
    }
}

fn all_help_texts() -> Vec<HelpText> {
    let mut texts = Vec::new();
    help_texts(&Cli::definition(), "help-haft", &mut texts);
    assert!(texts.len() > 400, "{}", texts.len());
    texts
}

/// Returns the quoted names in a text, sorted.
fn quoted_names(text: &str) -> Vec<&str> {
    let mut names: Vec<_> = text.split('`').skip(1).step_by(2).collect();
    names.sort_unstable();
    names
}

#[test]
fn help_texts_have_a_translation_with_equal_names() {
    let mut missing = Vec::new();
    for text in all_help_texts().iter().filter(|text| !text.is_hidden) {
        let Some(chinese) = text.keys.iter().find_map(|key| help_message(key)) else {
            missing.push(format!("{} = {}", text.keys[0], text.english));
            continue;
        };
        assert_eq!(
            quoted_names(chinese),
            quoted_names(&text.english),
            "{}",
            text.keys[0]
        );
        let is_names = text.english == "`library` or `user/library`";
        assert!(
            is_names || chinese.chars().any(|c| c >= '\u{2e80}'),
            "{}: {chinese}",
            text.keys[0]
        );
    }
    assert!(
        missing.is_empty(),
        "not in messages/command_line/zh-CN/help.ftl:\n{}",
        missing.join("\n")
    );
}

#[test]
fn help_translations_are_all_used() {
    let texts = all_help_texts();
    let used: std::collections::HashSet<_> = texts.iter().flat_map(|text| &text.keys).collect();
    let mut message = "";
    for line in include_str!("../../../messages/command_line/zh-CN/help.ftl").lines() {
        let Some((name, _)) = line.split_once(" =") else {
            continue;
        };
        let key = match name.strip_prefix("    .") {
            Some(attribute) if message != "help-groups" => format!("{message}.{attribute}"),
            None if name.starts_with("help-") => {
                message = name;
                // A command without a translated description may have translated arguments.
                continue;
            }
            _ => continue,
        };
        assert!(used.contains(&key), "no help text has the key {key}");
    }
}

#[test]
fn translate_page_translates_every_error() {
    let worded = |line: &str| {
        let mut definition = Cli::definition();
        translate_page(
            &definition
                .try_get_matches_from_mut(line.split_whitespace())
                .unwrap_err()
                .to_string(),
        )
    };
    for (line, parts) in [
        (
            "haft models show",
            vec!["缺少以下必需的参数：", "<NAME>", "用法：haft models show"],
        ),
        ("haft models frob", vec!["未知命令 'frob'"]),
        (
            "haft run --modle x",
            vec!["未知参数 '--modle'", "提示：有相近的参数：'--model'"],
        ),
        (
            "haft run --output-format xml x",
            vec![
                "'--output-format <OUTPUT_FORMAT>' 的值 'xml' 无效",
                "[可选值：text",
            ],
        ),
        (
            "haft run --max-turns many x",
            vec!["'--max-turns <N>' 的值 'many' 无效：不是整数"],
        ),
        ("haft run --agent", vec!["'--agent <NAME>' 需要一个值"]),
        ("haft run -c -c x", vec!["不能重复使用"]),
    ] {
        let said = worded(line);
        assert!(
            said.starts_with("错误：") && said.contains("更多信息请加 '--help' 查看。"),
            "{line}: {said}"
        );
        for part in parts {
            assert!(said.contains(part), "{line}: {part} in {said}");
        }
        for left in ["error:", "Usage:", "tip:", "For more"] {
            assert!(!said.contains(left), "{line}: {said}");
        }
    }
    let own = Cli::definition()
        .error(ErrorKind::InvalidSubcommand, "`x` 不是命令")
        .to_string();
    assert!(
        translate_page(&own).starts_with("错误：`x` 不是命令\n"),
        "{own}"
    );
}

/// Returns the styled texts of a page with their codes, except headings.
fn styles(page: &str) -> Vec<String> {
    let spans = page
        .split(RESET)
        .filter_map(|piece| Some(piece[piece.find(STYLE_START)?..].to_owned()));
    let mut spans: Vec<_> = spans.filter(|span| !span.ends_with([':', '：'])).collect();
    spans.sort();
    spans
}

#[test]
fn chinese_help_has_the_styles_of_english_help() {
    fn walk(english: &mut Command, chinese: &mut Command, path: &str, compared: &mut usize) {
        let pages = [
            (english.render_help(), chinese.render_help()),
            (english.render_long_help(), chinese.render_long_help()),
        ];
        for (english, chinese) in pages {
            let english = english.ansi().to_string();
            let chinese = translate_page(&chinese.ansi().to_string());
            assert_eq!(styles(&chinese), styles(&english), "{path}");
            assert_eq!(
                chinese.matches("\u{1b}[4m").count(),
                english.matches("\u{1b}[4m").count(),
                "{path}: headings"
            );
            assert!(!strip_styles(&chinese).contains(STYLE_START), "{path}");
            *compared += 1;
        }
        for (english, chinese) in english
            .get_subcommands_mut()
            .zip(chinese.get_subcommands_mut())
        {
            let path = format!("{path} {}", english.get_name());
            walk(english, chinese, &path, compared);
        }
    }
    let mut english = Cli::definition().term_width(0);
    let mut chinese = translate_definition(&english);
    english.build();
    chinese.build();
    let mut compared = 0;
    walk(&mut english, &mut chinese, "haft", &mut compared);
    assert!(compared > 200, "{compared}");
    let wrong = Cli::definition()
        .try_get_matches_from_mut(["haft", "run", "--modle", "x"])
        .unwrap_err();
    let shown = translate_page(&wrong.render().ansi().to_string());
    assert!(
        shown.starts_with("\u{1b}[1m\u{1b}[31m错误：\u{1b}[0m"),
        "{shown:?}"
    );
    assert!(
        shown.contains("'\u{1b}[33m--modle\u{1b}[0m'")
            && shown.contains("\u{1b}[32m提示：\u{1b}[0m"),
        "{shown:?}"
    );
}
