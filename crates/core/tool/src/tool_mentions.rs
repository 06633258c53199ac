//! Removes mentions of tools that the model has not read about from texts for the model.
//!
//! Code that composes a text at run time checks [`ToolNames`] before it mentions a tool. A fixed
//! text is passed through [`remove_unknown_mentions`], which drops every clause that mentions an
//! unknown tool.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The names of all of haft's tools, including those of extensions. A test compares this list with
/// the tools that exist.
pub const ALL_TOOL_NAMES: [&str; 47] = [
    "ac_mod_list",
    "ac_mod_read",
    "ac_mod_write",
    "apply_patch",
    "ask_followup_question",
    "attempt_completion",
    "background_task",
    "conversation_message_ids_read",
    "conversation_message_ids_write",
    "count_tokens",
    "edit_file",
    "execute_command",
    "extract_to_text",
    "glob",
    "list_code_definition_names",
    "list_files",
    "multi_edit",
    "note_add",
    "note_delete",
    "note_query",
    "note_update",
    "plan_mode_respond",
    "read_file",
    "recall",
    "replace_in_file",
    "run_named_subagents",
    "search_files",
    "session_interactive",
    "session_start",
    "session_stop",
    "talk_to",
    "talk_to_group",
    "todo_read",
    "todo_write",
    "tool_search",
    "undo_edit",
    "use_mcp_tool",
    "use_rag_tool",
    "use_skill",
    "use_tool",
    "useful_info_add",
    "useful_info_delete",
    "useful_info_list",
    "web_crawl",
    "web_search",
    "write_to_file",
    "write_tool",
];

/// The names of the tools that a model can use: offered tools, and deferred tools that
/// `tool_search` finds.
#[derive(Clone, Debug, Default)]
pub struct ToolNames(Arc<BTreeSet<String>>);

impl FromIterator<String> for ToolNames {
    fn from_iter<I: IntoIterator<Item = String>>(names: I) -> Self {
        Self(Arc::new(names.into_iter().collect()))
    }
}

impl ToolNames {
    /// True if the tool is offered to the model or can be found by it.
    pub fn contains(&self, tool: &str) -> bool {
        self.0.contains(tool)
    }

    /// Returns the hint `text`, which mentions `tool`, or an empty text if the tool is neither
    /// offered nor can be found.
    pub fn hint_if_known<'a>(&self, tool: &str, text: &'a str) -> &'a str {
        if self.contains(tool) { text } else { "" }
    }
}

/// Returns the text without the clauses that mention one of haft's tools for which `is_known`
/// returns false. A clause is a text in parentheses, a text between semicolons, or a whole
/// sentence.
pub fn remove_unknown_mentions(text: &str, is_known: impl Fn(&str) -> bool) -> Cow<'_, str> {
    let unknown: Vec<_> = ALL_TOOL_NAMES
        .into_iter()
        .filter(|name| !is_known(name))
        .collect();
    remove_mentions_of(text, &unknown)
}

/// Like [`remove_unknown_mentions`], but treats exactly the tools in `unknown` as unknown.
pub fn remove_mentions_of<'a>(text: &'a str, unknown: &[&str]) -> Cow<'a, str> {
    let mentions_unknown = |part: &str| {
        part.split('`')
            .skip(1)
            .step_by(2)
            .any(|name| unknown.contains(&name))
    };
    if !mentions_unknown(text) {
        return text.into();
    }
    let mut lines = Vec::new();
    for line in text.split('\n') {
        if !mentions_unknown(line) {
            lines.push(line.to_owned());
            continue;
        }
        let kept: String = split_sentences(line)
            .into_iter()
            .map(|sentence| remove_clauses(sentence, &mentions_unknown))
            .collect();
        // A removed list item leaves no empty line behind: that would split the list.
        if !kept.trim().is_empty() {
            lines.push(kept.trim_end().to_owned());
        }
    }
    lines.join("\n").into()
}

/// Splits a line into sentences, each with its trailing white space.
fn split_sentences(line: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut start = 0;
    for (at, c) in line.char_indices() {
        let end = at + c.len_utf8();
        let ends_sentence = match c {
            '.' => {
                line[end..].starts_with(' ') && !line[..at].ends_with('.') || line[end..].is_empty()
            }
            '。' => true,
            _ => false,
        };
        let in_quotes = !line[..at].matches('`').count().is_multiple_of(2);
        if ends_sentence && !in_quotes {
            let end = end + line[end..].len() - line[end..].trim_start().len();
            sentences.push(&line[start..end]);
            start = end;
        }
    }
    sentences.push(&line[start..]);
    sentences.retain(|sentence| !sentence.is_empty());
    sentences
}

/// Returns the sentence without the clauses that mention an unknown tool. The result is empty if
/// the first clause mentions an unknown tool.
fn remove_clauses(sentence: &str, names_one: &dyn Fn(&str) -> bool) -> String {
    if !names_one(sentence) {
        return sentence.to_owned();
    }
    let mut text = sentence.to_owned();
    for (open, close) in [(" (", ')'), ("（", '）')] {
        while let Some(start) = text.match_indices(open).map(|(at, _)| at).find(|at| {
            text[*at..]
                .find(close)
                .is_some_and(|length| names_one(&text[*at..*at + length]))
        }) {
            let Some(length) = text[start..].find(close) else {
                break;
            };
            text.replace_range(start..start + length + close.len_utf8(), "");
        }
    }
    let mut clauses = Vec::new();
    let mut rest = text.as_str();
    while let Some((at, mark)) = ["; ", "；"]
        .iter()
        .filter_map(|mark| Some((rest.find(mark)?, *mark)))
        .min()
    {
        clauses.push((&rest[..at], mark));
        rest = &rest[at + mark.len()..];
    }
    clauses.push((rest, ""));
    if clauses.first().is_none_or(|(first, _)| names_one(first)) {
        return String::new();
    }
    let body = rest.trim_end();
    let end = body
        .chars()
        .next_back()
        .filter(|last| ['.', '。'].contains(last));
    let space = &rest[body.len()..];
    let kept: Vec<_> = clauses
        .iter()
        .filter(|(clause, _)| !names_one(clause))
        .collect();
    let ends_itself = kept
        .last()
        .is_some_and(|(clause, mark)| mark.is_empty() && *clause == rest);
    let mut whole = String::new();
    for (index, (clause, mark)) in kept.iter().enumerate() {
        whole.push_str(clause);
        if index + 1 < kept.len() {
            whole.push_str(mark);
        }
    }
    if !ends_itself {
        whole.extend(end);
        whole.push_str(space);
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without_tools<'a>(text: &'a str, unknown: &[&str]) -> Cow<'a, str> {
        remove_unknown_mentions(text, |name| !unknown.contains(&name))
    }

    #[test]
    fn without_unknown_tools_removes_clauses_that_name_them() {
        for (text, kept) in [
            (
                "Read it. If you need help, ask with `ask_followup_question`.",
                "Read it.",
            ),
            (
                "Ask with `ask_followup_question`. Then go on.",
                "Then go on.",
            ),
            (
                "Delete a note; otherwise use `ask_followup_question`.",
                "Delete a note.",
            ),
            (
                "One; two with `ask_followup_question`; three. Four.",
                "One; three. Four.",
            ),
            ("`a`, `b` (arguments: `ask_followup_question`)", "`a`, `b`"),
            (
                "- one\n- use `ask_followup_question`\n- two",
                "- one\n- two",
            ),
            (
                "删除笔记；否则用 `ask_followup_question`。再继续。",
                "删除笔记。再继续。",
            ),
            ("用 `ask_followup_question` 提问。再继续。", "再继续。"),
            (
                "Read `read_file` and v1.2 as is.",
                "Read `read_file` and v1.2 as is.",
            ),
        ] {
            assert_eq!(without_tools(text, &["ask_followup_question"]), kept);
            assert_eq!(
                without_tools(text, &[]),
                text,
                "nothing is left out where every tool is known"
            );
        }
    }

    #[test]
    fn without_unknown_tools_keeps_names_of_other_programs() {
        assert_eq!(
            without_tools("Use `grep` or `search_files`.", &["grep"]),
            "Use `grep` or `search_files`."
        );
    }
}
