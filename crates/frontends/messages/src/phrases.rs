//! English sentences by their form, and what they are in Chinese: for what others word (the parser of the command line, errors of
//! libraries), which has no key.
//!
//! Of two lines one is English and the other, indented, Chinese. `{}` stands for anything; `{1}` is the first of these as it is,
//! `{1?}` translated where that is possible, `{1!}` translated. A period at the end may be there or not.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use crate::{Language, spoken};

/// Sentences and their translations.
#[derive(Debug)]
pub struct Phrases {
    whole: HashMap<&'static str, &'static str>,
    /// Those with something in them, the most particular first.
    forms: Vec<(&'static str, &'static str)>,
}

impl Phrases {
    /// Reads such files.
    pub fn of(files: &[&'static str]) -> Self {
        let lines =
            files.iter().flat_map(|file| file.lines()).filter(|line| !line.starts_with('#') && !line.is_empty());
        let lines: Vec<_> = lines.collect();
        let pairs = lines.chunks_exact(2).filter_map(|pair| Some((*pair.first()?, pair.last()?.trim())));
        let (mut forms, whole): (Vec<_>, Vec<_>) = pairs.partition(|(english, _)| english.contains("{}"));
        forms.sort_by_key(|(form, _)| std::cmp::Reverse(form.replace("{}", "").len()));
        Self { whole: whole.into_iter().collect(), forms }
    }

    /// Every sentence with its translation.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.whole.iter().map(|(english, chinese)| (*english, *chinese)).chain(self.forms.iter().copied())
    }

    /// A text in Chinese: as a whole, or by the form it has.
    pub fn said(&self, english: &str) -> Option<String> {
        let stem = english.strip_suffix('.').unwrap_or(english);
        let whole = self.whole.get(stem).map(|text| (*text).to_owned());
        let by_form = || self.forms.iter().find_map(|(form, text)| self.filled(text, &values(form, stem)?));
        let end = if stem == english { "" } else { "。" };
        if english.is_empty() { Some(String::new()) } else { Some(whole.or_else(by_form)? + end) }
    }

    /// The translation of a form with its values; nothing where one of them must be translated, and is not.
    fn filled(&self, template: &str, values: &[&str]) -> Option<String> {
        let mut parts = template.split('{');
        let mut text = parts.next()?.to_owned();
        for part in parts {
            let (slot, behind) = part.split_once('}')?;
            let number: usize = slot.trim_end_matches(['!', '?']).parse().ok()?;
            let value = values.get(number.checked_sub(1)?)?;
            let own = self.said(value.trim_start()).filter(|_| slot.ends_with(['!', '?']));
            text += &own.or_else(|| (!slot.ends_with('!')).then(|| (*value).to_owned()))?;
            text += behind;
        }
        Some(text)
    }
}

/// What stands in a text for each `{}` of a form; nothing where it has another form.
fn values<'a>(form: &str, text: &'a str) -> Option<Vec<&'a str>> {
    let mut parts = form.split("{}");
    let mut rest = text.strip_prefix(parts.next()?)?;
    let mut values = Vec::new();
    let parts: Vec<_> = parts.collect();
    for (at, part) in parts.iter().enumerate() {
        let is_last = at + 1 == parts.len();
        let (value, behind) = if is_last { (rest.strip_suffix(part)?, "") } else { rest.split_once(part)? };
        values.push(value);
        rest = behind;
    }
    Some(values)
}

/// What libraries say when something fails.
static ERRORS: LazyLock<Phrases> = LazyLock::new(|| Phrases::of(&[include_str!("../errors.zh-CN.txt")]));

/// An error of a library in the language of this process; as it is where it has no translation.
pub fn error_text(english: &str) -> Cow<'_, str> {
    match spoken() {
        Language::English => english.into(),
        Language::Chinese => ERRORS.said(english).map_or_else(|| english.into(), Cow::Owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_to_the_context_and_to_tasks_is_said_in_chinese() {
        for (english, chinese) in [
            ("old results were cleared: 1200 tokens less are sent", "已清除旧的结果：少发送 1200 token"),
            (
                "Archiving 3 older rounds (41200 tokens; ≈9,000 tokens, $0.0200 to write again)…",
                "正在归档 3 个较早的轮次（41200 token；要重新写入 ≈9,000 token，$0.0200）…",
            ),
            ("Archiving 1 older step (900 tokens)…", "正在归档 1 个较早的步骤（900 token）…"),
            ("3 older rounds are archived behind a summary.", "3 个较早的轮次已归档为摘要。"),
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
            ("there is no MCP server `x`; there is only `y`", "没有 MCP 服务器 `x`；只有 `y`"),
        ] {
            assert_eq!(ERRORS.said(english).as_deref(), Some(chinese));
        }
    }
}
