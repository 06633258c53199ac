//! Renders the context editor, which lists the messages of a conversation as they will be sent.
//! Every edit shows its price before it is made, and can be undone.

use haft_context::Quote;
use haft_store::Conversation;
use haft_text::{format_dollars, format_thousands};

use super::glance::BreakList;
use super::page_frame::{ConversationTab, render_pager};
use super::{Inspector, PageResult, conversation_path, to_sentence_case};
use crate::PageError;
use crate::actions::{EditQuery, EditQuote, EditableMessages, EditableQuery, NextQuery, PageEdit};
use crate::markup::{Column, Markup};
use crate::server::{FormAnswer, FormFields};

/// The maximum number of messages on a page of the editor.
const MESSAGES_PER_PAGE: usize = 200;

/// The names of the edits that can be applied to selected messages.
const ACTIONS: [&str; 5] = ["drop", "pin", "mask", "restore", "summarise"];

fn action_label(action: &str) -> &'static str {
    match action {
        "drop" => text!("serve-edit-drop"),
        "pin" => text!("serve-edit-pin"),
        "mask" => text!("serve-edit-mask"),
        "restore" => text!("serve-edit-restore"),
        _ => text!("serve-edit-summarise"),
    }
}

impl Inspector {
    /// Renders the context editor: the page that lists messages and offers edits of selected
    /// messages. `from` is the position of the first message; without it, the newest messages are
    /// listed.
    pub(super) async fn render_editor(
        &self,
        conversation: Conversation,
        notice: Markup,
        from: Option<usize>,
    ) -> PageResult<String> {
        let messages = usize::try_from(conversation.messages).unwrap_or(usize::MAX);
        let last_page = messages.saturating_sub(1) / MESSAGES_PER_PAGE * MESSAGES_PER_PAGE;
        let from = from.unwrap_or(last_page);
        let listed = (self.actions.messages)(EditableQuery {
            conversation: conversation.clone(),
            from,
            count: MESSAGES_PER_PAGE,
        });
        // The requests are compared meanwhile, and the comparison is wanted until the page is done.
        let (listed, _comparison) = tokio::join!(listed, self.analyze_log(&conversation));
        let EditableMessages {
            headings,
            rows,
            all,
            edits,
        } = listed?;
        let headings: Vec<_> = headings.into_iter().map(to_sentence_case).collect();
        let to = conversation_path(&conversation.id, "/edit");
        let rows = rows.into_iter().map(|cells| {
            let mut cells = cells.into_iter();
            let id = cells.next().unwrap_or_default();
            let tick = Markup::element(
                "input",
                &[("type", "checkbox"), ("name", "id"), ("value", &id)],
                [],
            );
            let first = Markup::element("label", &[], [tick, Markup::text(format!(" {id}"))]);
            std::iter::once(first)
                .chain(cells.map(|cell| Markup::text(self.masker.mask(&cell))))
                .collect()
        });
        let buttons = ACTIONS.map(|action| Markup::button(action, action_label(action)));
        let buttons = Markup::element("p", &[("class", "buttons sticky")], buttons);
        let table = Markup::table(&describe_columns(&headings), rows);
        let pager = render_pager(&to, from, MESSAGES_PER_PAGE, all);
        let pieces = [
            self.render_glance(&conversation, BreakList::Closed).await,
            notice,
            Markup::text_element("p", text!("serve-edit-note")),
            self.render_undo_form(&to, edits),
            pager.clone(),
            Markup::form(&to, &self.form_token, [buttons, table]),
            pager,
        ];
        Ok(self.build_conversation_page(&conversation, ConversationTab::Editor, None, pieces))
    }

    fn render_undo_form(&self, to: &str, edits: usize) -> Markup {
        let edits_text = text!("serve-edit-count", number = format_thousands(edits as u64));
        let in_force = Markup::text(text!("serve-edits", edits = edits_text));
        let button = (edits > 0).then(|| Markup::button("undo", text!("serve-edit-undo")));
        Markup::form(
            to,
            &self.form_token,
            std::iter::once(in_force).chain(button),
        )
    }

    /// Makes an edit if the user has already confirmed its price; otherwise renders the page that
    /// shows the price.
    pub(super) async fn handle_edit(
        &self,
        conversation: Conversation,
        form: &FormFields,
    ) -> PageResult<FormAnswer> {
        let keep = form.get("do") == "keep";
        let quoted = match parse_edit(form) {
            Ok(edit) => {
                let conversation = conversation.clone();
                (self.actions.edit)(EditQuery {
                    conversation,
                    edit,
                    keep,
                })
                .await
            }
            Err(error) => Err(error),
        };
        match quoted {
            Ok(_) if keep => Ok(FormAnswer::Redirect(conversation_path(
                &conversation.id,
                "/edit?done=yes",
            ))),
            Ok(quote) => Ok(FormAnswer::Page(self.render_quote(
                &conversation,
                form,
                &quote,
            ))),
            Err(error) => {
                let notice = self.render_alert(&error.to_one_line());
                self.render_editor(conversation, notice, None)
                    .await
                    .map(FormAnswer::Page)
            }
        }
    }

    /// Renders the page that describes an edit and its price, with a button for confirming the
    /// edit.
    fn render_quote(
        &self,
        conversation: &Conversation,
        form: &FormFields,
        quote: &EditQuote,
    ) -> String {
        let EditQuote {
            text,
            summary,
            quote,
        } = quote;
        let to = conversation_path(&conversation.id, "/edit");
        let action = if form.get("do") == "ask" {
            "summarise"
        } else {
            form.get("do")
        };
        let mut fields = vec![Markup::hidden_field("edit", action)];
        fields.extend(form.get_all("id").map(|id| Markup::hidden_field("id", id)));
        if let Some(summary) = summary {
            let label = Markup::element(
                "label",
                &[("for", "text")],
                [Markup::text(text!("serve-edit-text"))],
            );
            let attributes = [("id", "text"), ("name", "text"), ("rows", "12")];
            let area = Markup::element(
                "textarea",
                &attributes,
                [Markup::text(format!("\n{summary}"))],
            );
            fields.push(Markup::element("p", &[("class", "field")], [label, area]));
        }
        let mut buttons = vec![Markup::primary_button("keep", text!("serve-edit-keep"))];
        if summary.is_some() {
            buttons.push(Markup::button("summarise", text!("serve-edit-again")));
            buttons.push(Markup::button("ask", text!("serve-edit-ask")));
        }
        buttons.push(Markup::link(&to, text!("serve-edit-cancel")));
        fields.push(Markup::element("p", &[("class", "buttons")], buttons));
        let pieces = [
            Markup::text_element("pre", self.masker.mask(text)),
            Markup::text_element("p", describe_quote(quote)),
            Markup::form(&to, &self.form_token, fields),
        ];
        let title = text!("serve-edit-quote");
        self.build_conversation_page(conversation, ConversationTab::Editor, Some(title), pieces)
    }

    /// Renders the page that shows the request that a conversation would send next. If `input` is
    /// blank, a placeholder is used as the prompt.
    pub(super) async fn render_next_request(
        &self,
        conversation: Conversation,
        input: &str,
    ) -> PageResult<String> {
        let query = NextQuery {
            conversation: conversation.clone(),
            input: Some(input.to_owned()).filter(|input| !input.trim().is_empty()),
        };
        let (details, _comparison) =
            tokio::join!((self.actions.next)(query), self.analyze_log(&conversation));
        let details = details?;
        let field = [("id", "input"), ("name", "input"), ("value", input)];
        let ask = Markup::element(
            "form",
            &[("action", &*conversation_path(&conversation.id, "/next"))],
            [
                Markup::element(
                    "label",
                    &[("for", "input")],
                    [Markup::text(text!("serve-next-input"))],
                ),
                Markup::element("input", &field, []),
                Markup::element("button", &[], [Markup::text(text!("serve-next-show"))]),
            ],
        );
        let columns = [
            Column::text(text!("serve-layer")).explained(text!("serve-layer-meaning")),
            Column::text(text!("serve-owner")).explained(text!("serve-owner-meaning")),
            Column::figure(text!("serve-tokens")),
            Column::prose(text!("serve-text")),
        ];
        let all = details.segments.len();
        // The newest segments are at the end.
        let rows = details
            .segments
            .into_iter()
            .skip(all.saturating_sub(MESSAGES_PER_PAGE))
            .map(|cells| cells.map(Markup::text).to_vec());
        let summary = text!(
            "serve-next-body",
            bytes = format_thousands(details.body.len() as u64)
        );
        let body = Markup::element(
            "pre",
            &[("id", "body")],
            [Markup::text(self.masker.mask(&details.body))],
        );
        let pieces = [
            self.render_glance(&conversation, BreakList::Closed).await,
            ask,
            Markup::table(&columns, rows),
            Markup::details("", Markup::text(summary), [body]),
        ];
        Ok(self.build_conversation_page(&conversation, ConversationTab::Next, None, pieces))
    }
}

/// Returns the columns of the table of messages. The headings are those of `haft context edit
/// list`: id, role, layer, tokens, age, cache, removing, saves, edited, text.
fn describe_columns<'a>(headings: &'a [String]) -> Vec<Column<'a>> {
    let column = |(index, heading): (usize, &'a String)| match index {
        2 => Column::text(heading).explained(text!("serve-layer-meaning")),
        3 | 4 => Column::figure(heading),
        5 => Column::text(heading).explained(text!("serve-edit-cache-meaning")),
        6 => Column::figure(heading).explained(text!("serve-edit-removing-meaning")),
        7 => Column::figure(heading).explained(text!("serve-edit-saves-meaning")),
        9 => Column::prose(heading),
        _ => Column::text(heading),
    };
    headings.iter().enumerate().map(column).collect()
}

/// Parses the edit that a submitted form describes.
fn parse_edit(form: &FormFields) -> PageResult<PageEdit> {
    let action = if form.get("do") == "keep" {
        form.get("edit")
    } else {
        form.get("do")
    };
    if action == "undo" {
        return Ok(PageEdit::Undo);
    }
    let ids: Vec<String> = form.get_all("id").map(str::to_owned).collect();
    let (Some(first), Some(last)) = (ids.first(), ids.last()) else {
        return Err(PageError::Action(text!("serve-edit-nothing").to_owned()));
    };
    Ok(match action {
        "drop" => PageEdit::Drop(ids),
        "pin" => PageEdit::Pin(ids),
        "mask" => PageEdit::Mask(ids),
        "restore" => PageEdit::Restore(ids),
        _ => {
            let ask_model = action == "ask";
            let text = form.get("text").replace("\r\n", "\n");
            PageEdit::Summarize {
                range: format!("{first}..{last}"),
                text: Some(text).filter(|text| !ask_model && !text.trim().is_empty()),
                ask_model,
            }
        }
    })
}

/// Describes the effect of an edit: the tokens of the next request with and without it, and the
/// difference in cost.
fn describe_quote(quote: &Quote) -> String {
    let extra = quote.extra.map_or_else(String::new, |extra| {
        let sign = if extra < 0.0 { "−" } else { "+" };
        format!(", {sign}{}", format_dollars(extra.abs()))
    });
    text!(
        "serve-edit-foreseen",
        tokens = format_thousands(quote.usage.all_input()),
        otherwise = format_thousands(quote.otherwise.all_input()),
        cached = format_thousands(quote.usage.cached_input),
        otherwise_cached = format_thousands(quote.otherwise.cached_input),
        written = format_thousands(quote.usage.cache_write),
        otherwise_written = format_thousands(quote.otherwise.cache_write),
        extra
    )
}
