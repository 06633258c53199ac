//! Parses tool calls and results that auto-coder wrote into the text of messages, as XML.
//!
//! ```text
//! <read_file>                       <tool_result tool_name="read_file" success="true">
//! <path>a.py</path>                 <message>Read a.py.</message>
//! </read_file>                      <content>print(1)</content>
//!                                   </tool_result>
//! ```
//!
//! Values are not escaped, so a value may contain tags, and a call in a code fence is a quotation.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// The tools of auto-coder whose calls are recognized even without a result.
const TOOL_NAMES: [&str; 36] = [
    "ac_mod_list",
    "ac_mod_read",
    "ac_mod_write",
    "ask_followup_question",
    "attempt_completion",
    "background_task",
    "conversation_message_ids_read",
    "conversation_message_ids_write",
    "count_tokens",
    "execute_command",
    "extract_to_text",
    "list_code_definition_names",
    "list_files",
    "note_add",
    "note_delete",
    "note_query",
    "note_update",
    "plan_mode_respond",
    "read_file",
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
    "use_mcp_tool",
    "use_rag_tool",
    "useful_info_add",
    "useful_info_delete",
    "web_crawl",
    "web_search",
    "write_to_file",
];

/// A piece of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ReplyPiece {
    Text(String),
    Thinking(String),
    Call {
        name: String,
        /// The arguments as a JSON object of strings.
        arguments: String,
    },
}

/// A tool result in the text of a user message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TextResult {
    pub(super) tool: String,
    pub(super) success: bool,
    /// The line about the result.
    pub(super) message: String,
    pub(super) content: String,
}

/// The results of a message, and the text after them, which auto-coder adds itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ResultMessage {
    pub(super) results: Vec<TextResult>,
    pub(super) rest: String,
}

/// Splits a reply into pieces. `answered` are the tools with results in the next message: their
/// calls are recognized whatever the name, and also in a code fence if fewer calls than results are
/// found outside.
pub(super) fn split_reply(text: &str, answered: &[String]) -> Vec<ReplyPiece> {
    let names: BTreeSet<&str> = TOOL_NAMES
        .into_iter()
        .chain(answered.iter().map(String::as_str))
        .collect();
    let pieces = split_with_fences(text, &names, FencedCalls::AreText);
    if count_calls(&pieces) >= answered.len() {
        return pieces;
    }
    let all = split_with_fences(text, &names, FencedCalls::AreCalls);
    if count_calls(&all) == answered.len() {
        all
    } else {
        pieces
    }
}

fn count_calls(pieces: &[ReplyPiece]) -> usize {
    let is_call = |piece: &&ReplyPiece| matches!(piece, ReplyPiece::Call { .. });
    pieces.iter().filter(is_call).count()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FencedCalls {
    AreText,
    AreCalls,
}

fn split_with_fences(text: &str, names: &BTreeSet<&str>, fenced: FencedCalls) -> Vec<ReplyPiece> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        let is_quoted =
            fenced == FencedCalls::AreText && (in_fence(&plain) || plain.ends_with('`'));
        let found = if is_quoted {
            None
        } else {
            read_thinking(rest).or_else(|| read_call(rest, names))
        };
        if let Some((piece, length)) = found {
            push_text(&mut pieces, &plain);
            plain.clear();
            pieces.push(piece);
            rest = &rest[length..];
        } else {
            plain.push('<');
            rest = &rest[1..];
        }
    }
    plain.push_str(rest);
    push_text(&mut pieces, &plain);
    pieces
}

fn push_text(pieces: &mut Vec<ReplyPiece>, text: &str) {
    let text = text.trim();
    // A fence around a call is left without content.
    let is_fence = text.starts_with("```") && !text.contains('\n');
    if !text.is_empty() && !is_fence {
        pieces.push(ReplyPiece::Text(text.to_owned()));
    }
}

/// True if the end of the text is in a code fence.
fn in_fence(text: &str) -> bool {
    let fences = text
        .lines()
        .filter(|line| line.trim_start().starts_with("```"));
    fences.count() % 2 == 1
}

fn read_thinking(text: &str) -> Option<(ReplyPiece, usize)> {
    let inner = text.strip_prefix("<thinking>")?;
    let (thought, _) = inner.split_once("</thinking>")?;
    let length = "<thinking>".len() + thought.len() + "</thinking>".len();
    Some((ReplyPiece::Thinking(thought.trim().to_owned()), length))
}

/// Reads a complete call at the start of `text`. Returns the call and its length.
fn read_call(text: &str, names: &BTreeSet<&str>) -> Option<(ReplyPiece, usize)> {
    let name = read_opening_tag(text).filter(|name| names.contains(name))?;
    let close = format!("</{name}>");
    let mut at = name.len() + 2;
    let mut arguments = Map::new();
    loop {
        at += leading_space(&text[at..]);
        let rest = &text[at..];
        if rest.starts_with(&close) {
            let piece = ReplyPiece::Call {
                name: name.to_owned(),
                arguments: Value::Object(arguments).to_string(),
            };
            return Some((piece, at + close.len()));
        }
        let parameter = read_opening_tag(rest).filter(|tag| !arguments.contains_key(*tag))?;
        let start = at + parameter.len() + 2;
        let (value, length) = read_value(&text[start..], parameter, &close, &arguments)?;
        arguments.insert(parameter.to_owned(), trim_newlines(value).into());
        at = start + length;
    }
}

/// Reads the value of a parameter up to the closing tag that is followed by the tool's closing tag
/// or by another parameter. Returns the value, and its length with the tag.
fn read_value<'a>(
    text: &'a str,
    parameter: &str,
    tool_close: &str,
    given: &Map<String, Value>,
) -> Option<(&'a str, usize)> {
    let close = format!("</{parameter}>");
    text.match_indices(&close).find_map(|(end, _)| {
        let after = &text[end + close.len()..];
        let after = &after[leading_space(after)..];
        let ends = after.starts_with(tool_close)
            || read_opening_tag(after).is_some_and(|next| {
                next != parameter
                    && !given.contains_key(next)
                    && after.contains(&format!("</{next}>"))
            });
        ends.then(|| (&text[..end], end + close.len()))
    })
}

/// Returns the name in the opening tag at the start of `text`.
fn read_opening_tag(text: &str) -> Option<&str> {
    let (name, _) = text.strip_prefix('<')?.split_once('>')?;
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then_some(name)
}

fn leading_space(text: &str) -> usize {
    text.len() - text.trim_start().len()
}

/// Removes one newline at each end.
fn trim_newlines(text: &str) -> &str {
    let text = text.strip_prefix('\n').unwrap_or(text);
    text.strip_suffix('\n').unwrap_or(text)
}

/// Parses a user message that begins with tool results. Returns `None` for all other messages.
pub(super) fn read_results(text: &str) -> Option<ResultMessage> {
    let mut results = Vec::new();
    let mut rest = text.trim_start();
    while let Some((result, after)) = read_result(rest) {
        results.push(result);
        rest = after.trim_start();
    }
    (!results.is_empty()).then(|| ResultMessage {
        results,
        rest: rest.trim_end().to_owned(),
    })
}

/// Reads the result at the start of `text`. Returns it with the text behind it.
fn read_result(text: &str) -> Option<(TextResult, &str)> {
    let (attributes, body) = text.strip_prefix("<tool_result ")?.split_once('>')?;
    let tool = read_attribute(attributes, "tool_name")?.to_owned();
    let success = read_attribute(attributes, "success")? == "true";
    let (message, after_message) = match body.trim_start().strip_prefix("<message>") {
        Some(inner) => inner.split_once("</message>")?,
        None => ("", body),
    };
    let (content, after) = match after_message.trim_start().strip_prefix("<content>") {
        Some(inner) => split_content(inner)?,
        None => after_message.split_once("</tool_result>")?,
    };
    let result = TextResult {
        tool,
        success,
        message: message.trim().to_owned(),
        content: trim_newlines(content).to_owned(),
    };
    Some((result, after))
}

/// Splits off the content of a result, which may contain its own closing tags: the content ends at
/// the first ones that the end of the text or another result follows, else at the last ones.
fn split_content(inner: &str) -> Option<(&str, &str)> {
    let mut last = None;
    for (end, tag) in inner.match_indices("</content>") {
        let after = inner[end + tag.len()..].trim_start();
        let Some(after) = after.strip_prefix("</tool_result>") else {
            continue;
        };
        let next = after.trim_start();
        last = Some((&inner[..end], after));
        if next.is_empty() || next.starts_with("<tool_result ") {
            break;
        }
    }
    last
}

fn read_attribute<'a>(attributes: &'a str, name: &str) -> Option<&'a str> {
    ['"', '\''].into_iter().find_map(|quote| {
        let (_, value) = attributes.split_once(&format!("{name}={quote}"))?;
        Some(value.split_once(quote)?.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, arguments: &str) -> ReplyPiece {
        ReplyPiece::Call {
            name: name.to_owned(),
            arguments: arguments.to_owned(),
        }
    }

    fn text(text: &str) -> ReplyPiece {
        ReplyPiece::Text(text.to_owned())
    }

    #[test]
    fn split_reply_finds_calls_between_text() {
        let reply = "<thinking>\nHm.\n</thinking>\nI look.\n<read_file>\n<path>a.py</path>\n</read_file>\n<read_file>\n<path>b.py</path>\n<start_line>2</start_line>\n</read_file>";
        assert_eq!(
            split_reply(reply, &[]),
            [
                ReplyPiece::Thinking("Hm.".into()),
                text("I look."),
                call("read_file", r#"{"path":"a.py"}"#),
                call("read_file", r#"{"path":"b.py","start_line":"2"}"#),
            ]
        );
    }

    #[test]
    fn split_reply_keeps_values_that_contain_tags() {
        let reply = "<write_to_file>\n<path>x.md</path>\n<content>\n<read_file>\n<path>a</path>\n</read_file>\n</content> in text & <b>\n\n</content>\n</write_to_file>";
        assert_eq!(
            split_reply(reply, &[]),
            [call(
                "write_to_file",
                r#"{"path":"x.md","content":"<read_file>\n<path>a</path>\n</read_file>\n</content> in text & <b>\n"}"#
            )]
        );
    }

    #[test]
    fn split_reply_leaves_quotations_and_broken_calls_in_the_text() {
        for reply in [
            "Write `<read_file>\n<path>a</path>\n</read_file>`.",
            "Like so:\n```xml\n<read_file>\n<path>a</path>\n</read_file>\n```\nDone.",
            "<read_file>\n<path>a</path>",
            "<read_file>\n<path>a\n</read_file>",
            "<unknown_tool>\n<path>a</path>\n</unknown_tool>",
            "1 < 2 and <b>3</b>",
        ] {
            assert_eq!(split_reply(reply, &[]), [text(reply)], "{reply}");
        }
        // The results show that these were calls.
        let fenced = "So:\n```xml\n<read_file>\n<path>a</path>\n</read_file>\n```";
        assert_eq!(
            split_reply(fenced, &["read_file".into()]),
            [text("So:\n```xml"), call("read_file", r#"{"path":"a"}"#)]
        );
        let own = "<deploy>\n<where>here</where>\n</deploy>";
        assert_eq!(
            split_reply(own, &["deploy".into()]),
            [call("deploy", r#"{"where":"here"}"#)]
        );
    }

    #[test]
    fn read_results_reads_every_result_and_the_rest() {
        let message = "<tool_result tool_name='read_file' success='true'><message>Read.</message><content>\n<content>x</content>\n</tool_result>!\n</content></tool_result>\n<tool_result success=\"false\" tool_name=\"execute_command\">\n<message>No.</message>\n</tool_result>\n\n[[REMINDER: 10 tokens]]";
        let read = read_results(message).unwrap();
        assert_eq!(
            read.results,
            [
                TextResult {
                    tool: "read_file".into(),
                    success: true,
                    message: "Read.".into(),
                    content: "<content>x</content>\n</tool_result>!".into(),
                },
                TextResult {
                    tool: "execute_command".into(),
                    success: false,
                    message: "No.".into(),
                    content: String::new(),
                },
            ]
        );
        assert_eq!(read.rest, "[[REMINDER: 10 tokens]]");
        for other in [
            "Why?",
            "See <tool_result tool_name='x' success='true'>",
            "<tool_result>",
        ] {
            assert_eq!(read_results(other), None, "{other}");
        }
    }
}
