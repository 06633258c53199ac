//! The context editor of the page: what is sent, message by message. Every change shows its price
//! before, and can be undone after.

use std::path::{Path, PathBuf};

use haft_context::Quote;
use haft_serve::{FormAnswer, FormFields, Markup};
use haft_store::Conversation;
use haft_text::grouped;

use super::super::edit::{self, EditHow, EditKind, PreparedEdit, SummariseArgs};
use super::super::text::{Countable, count, masked, money};
use super::super::{LookArgs, next};
use super::{Inspector, address, apart, navigation, page};
use crate::exit::{in_one_line, usage_error};

/// What can be done with the messages that are ticked.
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

/// A request that would be sent, as a page shows it.
struct ForeseenRequest {
    /// Layer, owner, tokens and text of each segment.
    segments: Vec<[String; 4]>,
    body: String,
}

/// The folder of a conversation's project.
pub(super) fn folder_of(conversation: &Conversation) -> Option<PathBuf> {
    Some(PathBuf::from(&conversation.namespace))
        .filter(|folder| folder.is_absolute() && Path::is_dir(folder))
}

impl Inspector {
    fn edit_how(&self, conversation: &Conversation) -> EditHow {
        EditHow {
            conversation: Some(conversation.id.to_string()),
            cwd: folder_of(conversation),
            common: self.common.clone(),
            ..EditHow::default()
        }
    }

    /// Every message, and what can be done with those that are ticked.
    pub(super) async fn editor(
        &self,
        conversation: Conversation,
        notice: Markup,
    ) -> anyhow::Result<String> {
        let how = self.edit_how(&conversation);
        let (lines, edits) = apart(move || async move { edit::listed(&how).await }).await?;
        let to = address(&conversation.id, "/edit");
        let name = &conversation.name;
        let rows = lines.into_iter().map(|cells| {
            let mut cells = cells.into_iter();
            let id = cells.next().unwrap_or_default();
            let tick = Markup::element(
                "input",
                &[("type", "checkbox"), ("name", "id"), ("value", &id)],
                [],
            );
            let first = Markup::element("label", &[], [tick, Markup::text(format!(" {id}"))]);
            std::iter::once(first)
                .chain(cells.map(|cell| Markup::text(masked(&cell))))
                .collect()
        });
        let buttons = ACTIONS.map(|action| Markup::button(action, action_name(action)));
        let buttons = Markup::element("p", &[("class", "buttons")], buttons);
        let table = Markup::table(&edit::list_headings(), rows);
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
        let in_force = Markup::text(text!("serve-edits", edits = count(edits, Countable::Edit)));
        let button = (edits > 0).then(|| Markup::button("undo", text!("serve-edit-undo")));
        Markup::form(
            to,
            &self.form_token,
            std::iter::once(in_force).chain(button),
        )
    }

    /// Shows what an edit costs, or makes it.
    pub(super) async fn edit(
        &self,
        conversation: Conversation,
        form: &FormFields,
    ) -> anyhow::Result<FormAnswer> {
        let how = self.edit_how(&conversation);
        let sent = form.clone();
        let keep = form.get("do") == "keep";
        let prepared = apart(move || async move {
            let mut edit = prepared(how, &sent).await?;
            if keep {
                edit.keep().await?;
            }
            Ok((
                edit.text(),
                edit.summary_text().map(str::to_owned),
                *edit.quote(),
            ))
        });
        match prepared.await {
            Ok(_) if keep => Ok(FormAnswer::See(address(&conversation.id, "/edit?done=yes"))),
            Ok((text, summary, quote)) => {
                let quote = self.quote(&conversation, form, &text, summary.as_deref(), &quote);
                Ok(FormAnswer::Page(quote))
            }
            Err(error) => {
                let attributes = [("class", "broken"), ("role", "alert")];
                let notice = Markup::element(
                    "p",
                    &attributes,
                    [Markup::text(masked(&in_one_line(&error)))],
                );
                self.editor(conversation, notice)
                    .await
                    .map(FormAnswer::Page)
            }
        }
    }

    /// What an edit does and costs, and the button that makes it.
    fn quote(
        &self,
        conversation: &Conversation,
        form: &FormFields,
        text: &str,
        summary: Option<&str>,
        quote: &Quote,
    ) -> String {
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
            Markup::plain("pre", masked(text)),
            Markup::plain("p", foreseen(quote)),
            Markup::form(&to, &self.form_token, fields),
        ];
        page(name, navigation(conversation, "/edit"), pieces)
    }

    /// The request that would be sent next, with this prompt or a stand-in for one.
    pub(super) async fn next(
        &self,
        conversation: Conversation,
        input: &str,
    ) -> anyhow::Result<String> {
        let look = LookArgs {
            conversation: Some(conversation.id.to_string()),
            input: Some(input.to_owned()).filter(|input| !input.trim().is_empty()),
            cwd: folder_of(&conversation),
            quiet: true,
            common: self.common.clone(),
            ..LookArgs::default()
        };
        let made = apart(move || async move {
            let next = next::next(&look).await?;
            let request = &next.assembly.request;
            let body = String::from_utf8_lossy(&next.encoding.encode(request)).into_owned();
            let segments = request.segments.iter().map(|one| {
                let text = super::super::text::opening(&one.entry.message);
                [
                    crate::output::localised(one.layer),
                    crate::output::localised(one.owner),
                    grouped(one.entry.tokens),
                    text,
                ]
            });
            Ok(ForeseenRequest {
                segments: segments.collect(),
                body,
            })
        });
        let made = made.await?;
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
        let body = Markup::element("pre", &[("id", "body")], [Markup::text(masked(&made.body))]);
        let pieces = [
            Markup::plain("h1", format!("{name}: {}", text!("serve-next"))),
            ask,
            Markup::table(&headings, rows),
            Markup::element("details", &[], [Markup::plain("summary", summary), body]),
        ];
        Ok(page(name, navigation(&conversation, "/next"), pieces))
    }
}

/// The edit that a form asks for, with its price.
async fn prepared(how: EditHow, form: &FormFields) -> anyhow::Result<PreparedEdit> {
    let wanted = if form.get("do") == "keep" {
        form.get("edit")
    } else {
        form.get("do")
    };
    if wanted == "undo" {
        return PreparedEdit::undo(&how, 1).await;
    }
    let ids: Vec<String> = form.all("id").map(str::to_owned).collect();
    let (Some(first), Some(last)) = (ids.first(), ids.last()) else {
        return Err(usage_error(text!("serve-edit-nothing")));
    };
    let kind = match wanted {
        "drop" => EditKind::Drop,
        "pin" => EditKind::Pin,
        "mask" => EditKind::Mask,
        "restore" => EditKind::Restore,
        _ => {
            let text =
                Some(form.get("text").replace("\r\n", "\n")).filter(|text| !text.trim().is_empty());
            let ids = vec![format!("{first}..{last}")];
            let ask = wanted == "ask";
            let text = text.filter(|_| !ask);
            return PreparedEdit::summary(&SummariseArgs {
                ids,
                text,
                no_model: !ask,
                how,
            })
            .await;
        }
    };
    PreparedEdit::of(&how, kind, &ids).await
}

/// What the next request would be with an edit, and without.
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
