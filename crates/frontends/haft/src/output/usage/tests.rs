use clap::Command;

use super::*;
use crate::cli::Cli;

/// Every page of help, short and long, with a paragraph on a line.
fn pages() -> Vec<(String, String)> {
    fn walk(command: &mut Command, path: &str, pages: &mut Vec<(String, String)>) {
        pages.push((path.to_owned(), command.render_help().to_string()));
        pages.push((path.to_owned(), command.render_long_help().to_string()));
        for inner in command.get_subcommands_mut() {
            let path = format!("{path} {}", inner.get_name());
            walk(inner, &path, pages);
        }
    }
    let mut definition = Cli::definition().term_width(0);
    definition.build();
    let mut pages = Vec::new();
    walk(&mut definition, "haft", &mut pages);
    assert!(pages.len() > 200, "{}", pages.len());
    pages
}

/// Lines of nothing but names: usage, an argument whose help follows below, patterns.
fn is_names(line: &str) -> bool {
    let line = line.trim();
    line.starts_with(['-', '<', '[', '+']) && !line.contains("  ")
        || line.starts_with("haft ")
        || line.starts_with("front, tail,")
}

#[test]
fn every_line_of_every_page_is_translated() {
    let mut missing = std::collections::BTreeSet::new();
    for (path, page) in pages() {
        // The help of `help` repeats the tree.
        if path.contains(" help") {
            continue;
        }
        for line in page
            .lines()
            .filter(|line| !is_names(line) && translated(line).is_none())
        {
            missing.insert(line.trim().to_owned());
        }
    }
    let missing: Vec<_> = missing.into_iter().collect();
    assert!(
        missing.is_empty(),
        "not in messages/zh-CN/help.txt:\n{}",
        missing.join("\n")
    );
}

#[test]
fn every_translation_is_used_and_chinese() {
    let all: String = pages().into_iter().map(|(_, page)| page).collect();
    let of_clap = include_str!("../../../messages/zh-CN/usage.txt");
    for (english, chinese) in SAID.iter() {
        assert!(
            all.contains(english) || of_clap.contains(english),
            "nothing says `{english}`"
        );
        let same = ["`library` or `user/library`", "- {}: {}"].contains(&english);
        assert!(
            same || chinese.chars().any(|c| c >= '\u{2e80}'),
            "{english}: {chinese}"
        );
        let codes = |text: &str| {
            let mut codes: Vec<_> = text
                .split('`')
                .skip(1)
                .step_by(2)
                .map(str::to_owned)
                .collect();
            codes.sort();
            codes
        };
        assert_eq!(codes(english), codes(chinese), "{english}");
    }
}

#[test]
fn errors_are_worded_whatever_they_are_about() {
    let worded = |line: &str| {
        let mut definition = Cli::definition();
        page(
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
    assert!(page(&own).starts_with("错误：`x` 不是命令\n"), "{own}");
}

/// The texts with a style, each with its codes.
fn styles(page: &str) -> Vec<String> {
    let spans = page
        .split(RESET)
        .filter_map(|piece| Some(piece[piece.find(STYLE)?..].to_owned()));
    // Headings are other words.
    let mut spans: Vec<_> = spans.filter(|span| !span.ends_with([':', '：'])).collect();
    spans.sort();
    spans
}

#[test]
fn chinese_help_has_the_styles_of_english_help() {
    fn walk(command: &mut Command, path: &str, compared: &mut usize) {
        for english in [command.render_help(), command.render_long_help()] {
            let english = english.ansi().to_string();
            let chinese = page(&english);
            assert_eq!(styles(&chinese), styles(&english), "{path}");
            assert_eq!(
                chinese.matches("\u{1b}[4m").count(),
                english.matches("\u{1b}[4m").count(),
                "{path}: headings"
            );
            assert!(!unstyled(&chinese).contains(STYLE), "{path}");
            *compared += 1;
        }
        for inner in command.get_subcommands_mut() {
            let path = format!("{path} {}", inner.get_name());
            walk(inner, &path, compared);
        }
    }
    let mut definition = Cli::definition().term_width(0);
    definition.build();
    let mut compared = 0;
    walk(&mut definition, "haft", &mut compared);
    assert!(compared > 200, "{compared}");
    let wrong = Cli::definition()
        .try_get_matches_from_mut(["haft", "run", "--modle", "x"])
        .unwrap_err();
    let shown = page(&wrong.render().ansi().to_string());
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
