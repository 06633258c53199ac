//! Renders the messages of a conversation: text as Markdown, calls as the terminal words them,
//! edits as diffs. Reminders that haft adds are not shown as words of the user.

use haft_messages::{CallHeadline, translate_result};
use haft_store::Conversation;
use haft_types::{ConversationId, Message, Origin, Part, Role, ToolCall, ToolResult, ToolStatus};
use serde_json::Value;

use super::call_diff::proposed_diff;
use super::glance::BreakList;
use super::page_frame::{ConversationTab, render_pager};
use super::{Inspector, PageResult, conversation_path};
use crate::localize_text;
use crate::markdown::render_markdown;
use crate::markup::Markup;

const MESSAGES_PER_PAGE: usize = 200;

/// The maximum number of characters of a summary line.
const MAX_SUMMARY_CHARS: usize = 160;

/// A piece of a user message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SaidPiece<'a> {
    /// Words of the user.
    Said(&'a str),
    /// The content of a reminder that haft added.
    Reminder(&'a str),
}

impl Inspector {
    pub(super) async fn render_dialogue(
        &self,
        conversation: Conversation,
        from: usize,
    ) -> PageResult<String> {
        let messages = self.store.messages(&conversation.id).await?;
        let shown: Vec<_> = messages
            .iter()
            .skip(from)
            .take(MESSAGES_PER_PAGE)
            .map(|one| self.render_message(Some(&conversation.id), one))
            .collect();
        let pager = render_pager(
            &conversation_path(&conversation.id, ""),
            from,
            MESSAGES_PER_PAGE,
            messages.len(),
        );
        let aside = Markup::element(
            "aside",
            &[("aria-label", text!("serve-glance"))],
            [
                self.render_glance(&conversation, BreakList::Open).await,
                self.render_conversation_tree(&conversation).await?,
            ],
        );
        let dialogue = Markup::element("div", &[("class", "dialogue")], shown);
        let messages = Markup::element("div", &[], [pager.clone(), dialogue, pager]);
        let pieces = [Markup::element(
            "div",
            &[("class", "split")],
            [aside, messages],
        )];
        Ok(self.build_conversation_page(&conversation, ConversationTab::Dialogue, None, pieces))
    }

    /// Renders a message. Thinking, calls and results are collapsed until the user opens them,
    /// except for the changes that a call makes to files. `stored` is the id of the conversation
    /// if it is stored; images are shown only in that case.
    pub(super) fn render_message(
        &self,
        stored: Option<&ConversationId>,
        message: &Message,
    ) -> Markup {
        let (class, who) = speaker(message);
        let at = message.created_at.strftime("%Y-%m-%d %H:%M:%S").to_string();
        let time = Markup::text_element("time", &at);
        let id = message.message_id.short_id().to_string();
        let heading = Markup::element(
            "header",
            &[],
            [
                Markup::text_element("h2", who),
                time,
                Markup::element("code", &[], [Markup::text(id)]),
            ],
        );
        let parts = message
            .content
            .iter()
            .enumerate()
            .map(|(index, part)| self.render_part(stored, message, index, part));
        Markup::element(
            "article",
            &[("class", class)],
            std::iter::once(heading).chain(parts),
        )
    }

    fn render_part(
        &self,
        stored: Option<&ConversationId>,
        message: &Message,
        index: usize,
        part: &Part,
    ) -> Markup {
        match part {
            Part::Text { text, .. } => match message.role {
                Role::User | Role::System => self.render_said(text),
                Role::Assistant | Role::Summary | Role::Tool => {
                    render_markdown(&self.masker.mask(text))
                }
            },
            Part::Thinking(thinking) => {
                let text = self.masker.mask(&thinking.text);
                let summary = text!(
                    "serve-thinking",
                    opening = first_line(&text).unwrap_or_default()
                );
                Markup::details("thinking", Markup::text(summary), [render_markdown(&text)])
            }
            Part::ToolCall(call) => self.render_call(call),
            Part::ToolResult(result) => self.render_result(result),
            Part::Image(_) => {
                let label = haft_inspect::part_to_text(part);
                let Some(id) = stored else {
                    return Markup::text_element("p", label);
                };
                let from = conversation_path(id, &format!("/{}/{index}", message.message_id))
                    .replacen("/c/", "/image/", 1);
                Markup::element(
                    "img",
                    &[("src", &from), ("alt", &label), ("loading", "lazy")],
                    [],
                )
            }
        }
    }

    /// Renders the text of a user or system message as it was typed. Reminders are collapsed.
    fn render_said(&self, text: &str) -> Markup {
        let pieces = split_reminders(text).into_iter().map(|piece| match piece {
            SaidPiece::Said(text) => Markup::element(
                "pre",
                &[("class", "said")],
                [Markup::text(self.masker.mask(text))],
            ),
            SaidPiece::Reminder(text) => {
                let text = self.masker.mask(text);
                let summary = text!(
                    "serve-reminder",
                    opening = first_line(&text).unwrap_or_default()
                );
                Markup::details(
                    "reminder",
                    Markup::text(summary),
                    [Markup::text_element("pre", text)],
                )
            }
        });
        Markup::concat(pieces)
    }

    /// Renders a call: what it does, and its arguments or its changes when it is opened. Changes
    /// are open at first.
    fn render_call(&self, call: &ToolCall) -> Markup {
        let call = call.resolve_indirect();
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
        let headline = CallHeadline::new(&call.name, &arguments);
        let object = self.masker.mask(&headline.object).into_owned();
        let line = first_line(&object).unwrap_or_default();
        let object_element = (!line.is_empty()).then(|| Markup::text_element("code", &line));
        let verb = headline.verb.trim_end_matches([':', '：']);
        let verb = Markup::element("span", &[("class", "verb")], [Markup::text(verb)]);
        let summary = Markup::join(std::iter::once(verb).chain(object_element), " ");
        if let Some(diff) = proposed_diff(&call.name, &arguments) {
            let diff = Markup::diff(&self.masker.mask(&diff));
            return Markup::open_details("call", summary, [diff]);
        }
        let whole = if arguments.is_null() {
            call.arguments.clone()
        } else {
            serde_json::to_string_pretty(&arguments).unwrap_or_default()
        };
        let name = Markup::text_element("p", &call.name);
        let whole = Markup::text_element("pre", self.masker.mask(&whole));
        Markup::details("call", summary, [name, whole])
    }

    fn render_result(&self, result: &ToolResult) -> Markup {
        let text = self.masker.mask(&result.envelope.text);
        let status = match result.envelope.status {
            ToolStatus::Success => ("ok", "✓", localize_text("ok")),
            ToolStatus::Partial => ("partial", "◐", localize_text("partial")),
            ToolStatus::Error => ("error", "✗", localize_text("error")),
        };
        let (class, sign, status) = status;
        let sign = Markup::element(
            "span",
            &[("class", "sign"), ("title", &status)],
            [Markup::text(sign)],
        );
        let opening = first_line(&translate_result(&text)).unwrap_or(status);
        let lines = text.lines().count();
        let more = (lines > 1).then(|| {
            Markup::element(
                "span",
                &[("class", "more")],
                [Markup::text(text!("serve-lines", number = lines))],
            )
        });
        let summary = [Some(sign), Some(Markup::text(opening)), more];
        let summary = Markup::join(summary.into_iter().flatten(), " ");
        let is_diff = text.lines().any(|line| line.starts_with("@@ -"));
        let whole = if is_diff {
            Markup::diff(&text)
        } else {
            Markup::text_element("pre", &text)
        };
        let name = Markup::text_element("p", &result.name);
        Markup::details(&format!("result {class}"), summary, [name, whole])
    }
}

/// Returns the class and the name of the speaker of a message.
fn speaker(message: &Message) -> (&'static str, String) {
    match (message.role, message.origin()) {
        (Role::User, Origin::Engine) => ("engine", text!("serve-from-program").to_owned()),
        (Role::User, Origin::Agent) => ("engine", text!("serve-from-agent").to_owned()),
        (Role::User, Origin::User | Origin::Joined) if is_only_reminders(message) => {
            ("engine", text!("serve-from-program").to_owned())
        }
        (Role::User, Origin::User | Origin::Joined) => ("user", localize_text(message.role)),
        (Role::Assistant, _) => ("assistant", localize_text(message.role)),
        (Role::Tool, _) => ("tool", localize_text(message.role)),
        (Role::System | Role::Summary, _) => ("engine", localize_text(message.role)),
    }
}

/// True if a message has text, and all of it is reminders.
fn is_only_reminders(message: &Message) -> bool {
    let mut texts = message
        .content
        .iter()
        .map(|part| match part {
            Part::Text { text, .. } => split_reminders(text)
                .iter()
                .all(|piece| matches!(piece, SaidPiece::Reminder(_))),
            Part::Thinking(_) | Part::ToolCall(_) | Part::ToolResult(_) | Part::Image(_) => false,
        })
        .peekable();
    texts.peek().is_some() && texts.all(|is_reminder| is_reminder)
}

/// Splits a message into the user's words and the reminders that haft added to them.
fn split_reminders(text: &str) -> Vec<SaidPiece<'_>> {
    const OPENING: &str = "<system-reminder>";
    const CLOSING: &str = "</system-reminder>";
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(OPENING) {
        let Some((reminder, after)) = after.split_once(CLOSING) else {
            break;
        };
        pieces.push(SaidPiece::Said(before.trim()));
        pieces.push(SaidPiece::Reminder(reminder.trim()));
        rest = after;
    }
    pieces.push(SaidPiece::Said(rest.trim()));
    pieces.retain(|piece| *piece != SaidPiece::Said(""));
    pieces
}

/// Returns the first line with words, shortened.
fn first_line(text: &str) -> Option<String> {
    let line = text.lines().find(|line| !line.trim().is_empty())?;
    Some(line.trim().chars().take(MAX_SUMMARY_CHARS).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_reminders_separates_the_words_of_the_user() {
        let reminder = |text: &str| format!("<system-reminder>\n{text}\n</system-reminder>");
        let (one, two) = (reminder("one"), reminder("two"));
        let cases = [
            ("fix it".to_owned(), vec![SaidPiece::Said("fix it")]),
            (one.clone(), vec![SaidPiece::Reminder("one")]),
            (
                format!("fix it\n\n{one}\n{two}"),
                vec![
                    SaidPiece::Said("fix it"),
                    SaidPiece::Reminder("one"),
                    SaidPiece::Reminder("two"),
                ],
            ),
            (
                format!("{one}\nfix it"),
                vec![SaidPiece::Reminder("one"), SaidPiece::Said("fix it")],
            ),
            // A tag without its end is the user's.
            (
                "what is <system-reminder>?".to_owned(),
                vec![SaidPiece::Said("what is <system-reminder>?")],
            ),
            (" \n".to_owned(), vec![]),
        ];
        for (text, expected) in cases {
            assert_eq!(split_reminders(&text), expected, "{text}");
        }
    }
}
