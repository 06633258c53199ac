//! The context editor, which lists the messages of a conversation as they will be sent. Every edit
//! shows its price before it is made, and can be undone.

use haft_context::Quote;
use haft_store::Conversation;
use haft_text::{grouped, money};

use super::{Inspector, PageResult, address, navigation, page};
use crate::PageError;
use crate::actions::{EditQuery, EditQuote, EditableMessages, NextQuery, PageEdit};
use crate::markup::Markup;
use crate::server::{FormAnswer, FormFields};

/// The actions for selected messages.
const ACTIONS: [&str; 5] = ["drop", "pin", "mask", "restore", "summarise"];

fn action_name(action: &str) -> &'static str {
    match action {
        "drop" => text!("serve-edit-drop"),
        "pin" => text!("serve-edit-pin"),
        "mask" => text!("serve-edit-mask"),
        "restore" => text!("serve-edit-restore"),
        _ => text!("serve-edit-summarise"),
    }
}

impl Inspector {
    /// Renders the page that lists all messages, with the actions for selected ones.
    pub(super) async fn editor(
        &self,
        conversation: Conversation,
        notice: Markup,
    ) -> PageResult<String> {
        let EditableMessages {
            headings,
            rows,
            edits,
        } = (self.actions.messages)(conversation.clone()).await?;
        let to = address(&conversation.id, "/edit");
        let name = &conversation.name;
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
        let buttons = ACTIONS.map(|action| Markup::button(action, action_name(action)));
        let buttons = Markup::element("p", &[("class", "buttons")], buttons);
        let table = Markup::table(&headings, rows);
        let pieces = [
            Markup::plain("h1", name),
            notice,
            Markup::plain("p", text!("serve-edit-note")),
            self.undo(&to, edits),
            Markup::form(&to, &self.form_token, [buttons, table]),
            Markup::element(
                "p",
                &[],
                [Markup::link(
                    &address(&conversation.id, "/next"),
                    text!("serve-next"),
                )],
            ),
        ];
        Ok(page(name, navigation(&conversation, "/edit"), pieces))
    }

    fn undo(&self, to: &str, edits: usize) -> Markup {
        let edits_text = text!("serve-edit-count", number = grouped(edits as u64));
        let in_force = Markup::text(text!("serve-edits", edits = edits_text));
        let button = (edits > 0).then(|| Markup::button("undo", text!("serve-edit-undo")));
        Markup::form(
            to,
            &self.form_token,
            std::iter::once(in_force).chain(button),
        )
    }

    /// Renders the price of an edit, or makes the edit if the user has confirmed it.
    pub(super) async fn edit(
        &self,
        conversation: Conversation,
        form: &FormFields,
    ) -> PageResult<FormAnswer> {
        let keep = form.get("do") == "keep";
        let quoted = match requested_edit(form) {
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
            Ok(_) if keep => Ok(FormAnswer::See(address(&conversation.id, "/edit?done=yes"))),
            Ok(quote) => Ok(FormAnswer::Page(self.quote(&conversation, form, &quote))),
            Err(error) => {
                let notice = self.alert(&error.on_one_line());
                self.editor(conversation, notice)
                    .await
                    .map(FormAnswer::Page)
            }
        }
    }

    /// Renders the page that describes an edit and its price, with the button that makes the edit.
    fn quote(&self, conversation: &Conversation, form: &FormFields, quote: &EditQuote) -> String {
        let EditQuote {
            text,
            summary,
            quote,
        } = quote;
        let to = address(&conversation.id, "/edit");
        let wanted = if form.get("do") == "ask" {
            "summarise"
        } else {
            form.get("do")
        };
        let mut fields = vec![Markup::hidden("edit", wanted)];
        fields.extend(form.all("id").map(|id| Markup::hidden("id", id)));
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
        let mut buttons = vec![Markup::button("keep", text!("serve-edit-keep"))];
        if summary.is_some() {
            buttons.push(Markup::button("summarise", text!("serve-edit-again")));
            buttons.push(Markup::button("ask", text!("serve-edit-ask")));
        }
        buttons.push(Markup::link(&to, text!("serve-edit-cancel")));
        fields.push(Markup::element("p", &[("class", "buttons")], buttons));
        let name = &conversation.name;
        let pieces = [
            Markup::plain("h1", name),
            Markup::plain("h2", text!("serve-edit-quote")),
            Markup::plain("pre", self.masker.mask(text)),
            Markup::plain("p", foreseen(quote)),
            Markup::form(&to, &self.form_token, fields),
        ];
        page(name, navigation(conversation, "/edit"), pieces)
    }

    /// Renders the page of the request that would be sent next, with `input` as the prompt or a
    /// placeholder if `input` is blank.
    pub(super) async fn next(&self, conversation: Conversation, input: &str) -> PageResult<String> {
        let query = NextQuery {
            conversation: conversation.clone(),
            input: Some(input.to_owned()).filter(|input| !input.trim().is_empty()),
        };
        let made = (self.actions.next)(query).await?;
        let name = &conversation.name;
        let field = [("id", "input"), ("name", "input"), ("value", input)];
        let ask = Markup::element(
            "form",
            &[("action", &*address(&conversation.id, "/next"))],
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
        let headings = [
            text!("serve-layer"),
            text!("serve-owner"),
            text!("serve-tokens"),
            text!("serve-text"),
        ];
        let rows = made
            .segments
            .into_iter()
            .map(|cells| cells.map(Markup::text).to_vec());
        let summary = text!("serve-next-body", bytes = grouped(made.body.len() as u64));
        let body = Markup::element(
            "pre",
            &[("id", "body")],
            [Markup::text(self.masker.mask(&made.body))],
        );
        let pieces = [
            Markup::plain("h1", format!("{name}: {}", text!("serve-next"))),
            ask,
            Markup::table(&headings, rows),
            Markup::element("details", &[], [Markup::plain("summary", summary), body]),
        ];
        Ok(page(name, navigation(&conversation, "/next"), pieces))
    }
}

/// Returns the edit that the form requests.
fn requested_edit(form: &FormFields) -> PageResult<PageEdit> {
    let wanted = if form.get("do") == "keep" {
        form.get("edit")
    } else {
        form.get("do")
    };
    if wanted == "undo" {
        return Ok(PageEdit::Undo);
    }
    let ids: Vec<String> = form.all("id").map(str::to_owned).collect();
    let (Some(first), Some(last)) = (ids.first(), ids.last()) else {
        return Err(PageError::Action(text!("serve-edit-nothing").to_owned()));
    };
    Ok(match wanted {
        "drop" => PageEdit::Drop(ids),
        "pin" => PageEdit::Pin(ids),
        "mask" => PageEdit::Mask(ids),
        "restore" => PageEdit::Restore(ids),
        _ => {
            let ask_model = wanted == "ask";
            let text = form.get("text").replace("\r\n", "\n");
            PageEdit::Summarize {
                range: format!("{first}..{last}"),
                text: Some(text).filter(|text| !ask_model && !text.trim().is_empty()),
                ask_model,
            }
        }
    })
}

/// Describes the tokens and the cost of the next request, with and without the edit.
fn foreseen(quote: &Quote) -> String {
    let extra = quote.extra.map_or_else(String::new, |extra| {
        let sign = if extra < 0.0 { "−" } else { "+" };
        format!(", {sign}{}", money(extra.abs()))
    });
    text!(
        "serve-edit-foreseen",
        tokens = grouped(quote.usage.all_input()),
        otherwise = grouped(quote.otherwise.all_input()),
        cached = grouped(quote.usage.cached_input),
        written = grouped(quote.usage.cache_write),
        extra
    )
}
