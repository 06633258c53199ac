//! English sentences by their form, and what they are in Chinese: for what others word (the parser
//! of the command line, errors of libraries), which has no key.
//!
//! Of two lines one is English and the other, indented, Chinese. `{}` stands for anything; `{1}` is
//! the first of these as it is, `{1?}` translated where that is possible, `{1!}` translated. A
//! period at the end may be there or not. Several sentences behind each other, as the reasons of a
//! verdict are, are each translated; what is not known stays as it is, so that nothing is left out.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use crate::{Language, spoken};

/// Sentences and their translations.
#[derive(Debug)]
pub struct Phrases {
    whole: HashMap<&'static str, &'static str>,
    /// Those with something in them: the most particular first, and last those that begin with
    /// anything.
    forms: Vec<(&'static str, &'static str)>,
}

impl Phrases {
    /// Reads such files.
    pub fn of(files: &[&'static str]) -> Self {
        let lines = files
            .iter()
            .flat_map(|file| file.lines())
            .filter(|line| !line.starts_with('#') && !line.is_empty());
        let lines: Vec<_> = lines.collect();
        let pairs = lines
            .chunks_exact(2)
            .filter_map(|pair| Some((*pair.first()?, pair.last()?.trim())));
        let (mut forms, whole): (Vec<_>, Vec<_>) =
            pairs.partition(|(english, _)| english.contains("{}"));
        let order = |form: &str| {
            (
                form.starts_with("{}"),
                std::cmp::Reverse(form.replace("{}", "").len()),
            )
        };
        forms.sort_by_key(|(form, _)| order(form));
        Self {
            whole: whole.into_iter().collect(),
            forms,
        }
    }

    /// Every sentence with its translation.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.whole
            .iter()
            .map(|(english, chinese)| (*english, *chinese))
            .chain(self.forms.iter().copied())
    }

    /// A text in Chinese: as a whole, or by the form it has.
    pub fn said(&self, english: &str) -> Option<String> {
        // Three of them say that there may be more.
        let stem = english
            .strip_suffix('.')
            .filter(|stem| !stem.ends_with('.'))
            .unwrap_or(english);
        let whole = self.whole.get(stem).map(|text| (*text).to_owned());
        let by_form = || {
            self.forms
                .iter()
                .find_map(|(form, text)| self.filled(text, &values(form, stem)?))
        };
        let end = if stem == english { "" } else { "。" };
        if english.is_empty() {
            Some(String::new())
        } else {
            Some(whole.or_else(by_form)? + end)
        }
    }

    /// The translation of a form with its values; nothing where one of them must be translated, and
    /// is not.
    fn filled(&self, template: &str, values: &[&str]) -> Option<String> {
        let mut parts = template.split('{');
        let mut text = parts.next()?.to_owned();
        for part in parts {
            let (slot, behind) = part.split_once('}')?;
            let number: usize = slot.trim_end_matches(['!', '?']).parse().ok()?;
            let value = values.get(number.checked_sub(1)?)?;
            let value_text = value.trim_start();
            // What stands inside may be a library's, too, whose phrases are read only then.
            let nested = || {
                if std::ptr::eq(self, &raw const *ERRORS) {
                    None
                } else {
                    ERRORS.told(value_text)
                }
            };
            let own = if slot.ends_with(['!', '?']) {
                self.told(value_text).or_else(nested)
            } else {
                None
            };
            text += &own.or_else(|| (!slot.ends_with('!')).then(|| (*value).to_owned()))?;
            text += behind;
        }
        Some(text)
    }

    /// A text in Chinese, be it several sentences; of these each as far as it is known.
    fn told(&self, english: &str) -> Option<String> {
        let parts: Vec<_> = apart(english).map(|part| (part, self.said(part))).collect();
        let known = parts.iter().filter(|(_, own)| own.is_some()).count();
        let joined = || {
            parts
                .iter()
                .map(|(part, own)| own.as_deref().unwrap_or(part))
                .collect::<Vec<_>>()
                .join("；")
        };
        let whole = if known == parts.len() {
            None
        } else {
            self.said(english)
        };
        whole.or_else(|| (known > 0).then(joined))
    }
}

/// What stands between two sentences.
const BETWEEN: &str = "; ";

/// The sentences one by one. What a command holds is quoted, and no end of a sentence.
fn apart(english: &str) -> impl Iterator<Item = &str> {
    let is_end = |at: &usize| english[..*at].matches('`').count().is_multiple_of(2);
    let ends: Vec<_> = english
        .match_indices(BETWEEN)
        .map(|(at, _)| at)
        .filter(is_end)
        .collect();
    let starts = std::iter::once(0).chain(ends.clone().into_iter().map(|end| end + BETWEEN.len()));
    starts
        .zip(ends.into_iter().chain([english.len()]))
        .map(|(start, end)| &english[start..end])
}

/// What stands in a text for each `{}` of a form; nothing where it has another form.
fn values<'a>(form: &str, text: &'a str) -> Option<Vec<&'a str>> {
    let mut parts = form.split("{}");
    let mut rest = text.strip_prefix(parts.next()?)?;
    let mut values = Vec::new();
    let parts: Vec<_> = parts.collect();
    for (at, part) in parts.iter().enumerate() {
        let is_last = at + 1 == parts.len();
        let (value, behind) = if is_last {
            (rest.strip_suffix(part)?, "")
        } else {
            rest.split_once(part)?
        };
        values.push(value);
        rest = behind;
    }
    Some(values)
}

/// What libraries say when something fails.
static ERRORS: LazyLock<Phrases> =
    LazyLock::new(|| Phrases::of(&[include_str!("../errors.zh-CN.txt")]));

/// An error of a library in the language of this process; as it is where it has no translation.
pub fn error_text(english: &str) -> Cow<'_, str> {
    match spoken() {
        _ if english.is_empty() => english.into(),
        Language::English => english.into(),
        Language::Chinese => ERRORS
            .told(english)
            .map_or_else(|| english.into(), Cow::Owned),
    }
}

/// What a call that failed, or a command, says to the model, as people read it. Behind a heading
/// such as `--- stdout ---` a program speaks: there only what is added in brackets is haft's.
pub fn result_text(english: &str) -> Cow<'_, str> {
    if spoken() == Language::English {
        return english.into();
    }
    let mut is_output = false;
    let lines = english.lines().map(|line| {
        is_output |= line.starts_with("--- ");
        if is_output && !line.starts_with('[') {
            line.into()
        } else {
            error_text(line)
        }
    });
    lines.collect::<Vec<_>>().join("\n").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_translated_one_by_one() {
        let known = "no rule allows `a; b`; `sh` is a shell that reads commands from its input; something new: `c; d";
        assert_eq!(apart(known).count(), 3);
        assert_eq!(
            ERRORS.told(known).as_deref(),
            Some("没有规则允许 `a; b`；`sh` 是从输入读取命令的 shell；something new: `c; d")
        );
        assert_eq!(
            ERRORS
                .told("no rule allows `a`; no rule allows `b`")
                .as_deref(),
            Some("没有规则允许 `a`；没有规则允许 `b`")
        );
        assert_eq!(ERRORS.told("something; new"), None);
    }

    /// Every form tried inside every other would take longer than anybody waits.
    #[test]
    fn a_long_chain_of_errors_is_read_in_a_moment() {
        for part in [
            "cannot read `a`: ",
            "x: ",
            "a; ",
            "`a` (b; c), ",
            "model a: window b, ",
        ] {
            let chain = part.repeat(200) + "at last";
            assert!(
                ERRORS
                    .told(&chain)
                    .is_none_or(|told| told.contains("at last")),
                "{part}"
            );
        }
    }

    #[test]
    fn what_is_done_to_the_context_and_to_tasks_is_said_in_chinese() {
        for (english, chinese) in [
            (
                "old results were cleared: 1200 tokens less are sent",
                "已清除旧的结果：少发送 1200 token",
            ),
            (
                "Archiving 3 older rounds (41200 tokens; ≈9,000 tokens, $0.0200 to write again)…",
                "正在归档 3 个较早的轮次（41200 token；要重新写入 ≈9,000 token，$0.0200）…",
            ),
            (
                "Archiving 1 older step (900 tokens)…",
                "正在归档 1 个较早的步骤（900 token）…",
            ),
            (
                "3 older rounds are archived behind a summary.",
                "3 个较早的轮次已归档为摘要。",
            ),
            (
                "2 older rounds could not be archived (no summary within 120 s). Only recent history is sent, and what \
                 must be kept of the rest, word for word; nothing is lost.",
                "2 个较早的轮次没能归档（120 秒内没有得到摘要）。只发送最近的历史，其余部分中必须保留的内容按原文发送；\
                 没有丢失任何内容。",
            ),
            (
                "the cache is cold: ≈41,200 tokens, $0.1545 to write again",
                "缓存已过期：要重新写入 ≈41,200 token，$0.1545",
            ),
            (
                "t1 (make (all)) failed: exit code 2 after 1 min 3 s.",
                "t1（make (all)）失败：退出码 2，用时 1 min 3 s。",
            ),
            (
                "An interrupted change of 2 files (`a`, `b`) was rolled back: everything is as it was before.",
                "已回滚一次中断的修改，涉及 2 个文件（`a`, `b`）：全部恢复原样。",
            ),
            (
                "there is no MCP server `x`; there is only `y`",
                "没有 MCP 服务器 `x`；只有 `y`",
            ),
            ("Exit code 2. No output.", "退出码 2。没有输出。"),
            (
                "cannot run the program: `/tmp/a` is hidden by the sandbox, in which `/tmp` is a private folder; move it to \
                 another folder, or add that path to `[sandbox] readable`",
                "无法运行程序：`/tmp/a` 被沙箱隐藏：沙箱内的 `/tmp` 是私有目录；请把它移到其他目录，或把该路径加入 `[sandbox] readable`",
            ),
            (
                "`old_text` is not in `a.rs`; nothing was changed. Nothing similar was found: read the file and \
                 copy the lines from there.",
                "`a.rs` 中没有 `old_text`；没有修改任何内容。没有找到相似的内容：请读取文件，照抄其中的行。",
            ),
            (
                "`x` needs the user's permission (no rule allows `a`; no rule allows `b`), and nobody can be asked in this run \
                 (permission mode `ask`). The user can allow it with `haft permissions add \"x\"`, or \
                 `--permission-mode auto` (all commands, inside the sandbox).",
                "`x` 需要用户许可（没有规则允许 `a`；没有规则允许 `b`），而本次运行无法询问任何人（权限模式 `ask`）。可以这样允许：\
                 `haft permissions add \"x\"`，或 `--permission-mode auto`（沙箱内的所有命令）。",
            ),
        ] {
            assert_eq!(ERRORS.told(english).as_deref(), Some(chinese));
        }
    }
}
