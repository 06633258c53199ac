//! `haft context show`: prints a request segment by segment.

use std::fmt::Write as _;

use haft_text::{Masker, grouped};
use serde_json::json;

use super::logged::RequestLogReader;
use super::segments::{RequestView, TextExtent};
use super::text::{Countable, count, opening, whole_text};
use super::{next, render};
use crate::commands::context::ShowArgs;
use crate::haft::Haft;
use crate::output::{self, TextTable};

pub(super) async fn run(haft: &Haft, args: &ShowArgs) -> anyhow::Result<()> {
    let look = &args.look;
    let next_is_meant = next::is_meant(look, args.next)?;
    if args.raw {
        let body = if next_is_meant {
            render::next(haft, look).await?
        } else {
            render::sent(haft, look).await?
        };
        return render::print(haft, body);
    }
    if next_is_meant {
        let next = next::next(haft, look).await?;
        let spec = &next.encoding.spec;
        return print(
            haft,
            &RequestView::next(&next.assembly.request, spec.full_name(), spec.api),
            None,
            args,
        );
    }
    let log = RequestLogReader::open(haft, look.conversation.as_deref(), &look.common).await?;
    let logged = log.request(look.request).await?;
    print(haft, &RequestView::logged(&logged), Some(&log), args)
}

fn print(
    haft: &Haft,
    shown: &RequestView<'_>,
    log: Option<&RequestLogReader>,
    args: &ShowArgs,
) -> anyhow::Result<()> {
    let settings = haft.load(&args.look.common)?;
    let replaced = &settings.config.prompt.sections;
    let masker = haft.masker();
    if args.json {
        let extent = if args.full {
            TextExtent::All
        } else {
            TextExtent::First
        };
        let mut json = json!({
            "conversation_id": log.map(|log| &log.conversation.id),
            "request": shown.number,
            "model": shown.model,
            "api": shown.api,
            "tokens": shown.tokens,
            "tools": shown.tools.iter().map(|tool| &tool.name).collect::<Vec<_>>(),
            "tool_tokens": shown.tool_tokens(),
            "segments": shown.segments.iter().map(|segment| segment.json(extent, &masker)).collect::<Vec<_>>(),
        });
        if !replaced.is_empty() {
            json["replaced_sections"] = json!(replaced);
        }
        return output::print_json(&json);
    }
    let of = log.map_or_else(String::new, |log| {
        text!(
            "context-request-place",
            requests = log.requests,
            conversation = log.conversation.id
        )
    });
    let heading = text!(
        "context-show-heading",
        request = format_args!("{}{of}", shown.title()),
        model = shown.model,
        api = shown.api,
        tokens = grouped(shown.tokens),
        tools = count(shown.tools.len(), Countable::Tool),
        tool_tokens = grouped(shown.tool_tokens()),
    );
    let mut text = format!("{heading}\n\n");
    for (section, file) in replaced {
        let section = json!(section);
        let line = text!(
            "context-replaced-section",
            section = section.as_str().unwrap_or_default(),
            file
        );
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{line}");
    }
    if args.full {
        whole(shown, &masker, &mut text);
    } else {
        text.push_str(&table(shown, &masker));
    }
    output::print(&text)
}

/// Marks the segments up to which the provider's cache can find the prefix again.
const BOUNDARY: &str = "|";

fn table(shown: &RequestView<'_>, masker: &Masker) -> String {
    let mut table = TextTable::new(&[
        "#",
        text!("table-layer"),
        text!("table-owner"),
        text!("table-id"),
        text!("table-role"),
        text!("table-tokens"),
        text!("table-cache"),
        text!("table-text"),
    ]);
    for (index, segment) in shown.segments.iter().enumerate() {
        table.row(vec![
            (index + 1).to_string(),
            output::localised(segment.layer),
            output::localised(segment.owner),
            segment.message.message_id.short().to_string(),
            output::localised(segment.message.role),
            grouped(segment.tokens),
            if segment.boundary {
                BOUNDARY.to_owned()
            } else {
                String::new()
            },
            opening(segment.message, masker),
        ]);
    }
    table.to_string()
}

fn whole(shown: &RequestView<'_>, masker: &Masker, text: &mut String) {
    for (index, segment) in shown.segments.iter().enumerate() {
        let boundary = if segment.boundary {
            text!("context-cache-boundary")
        } else {
            ""
        };
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "--- {} {} {} {} {} ({}{boundary})",
            index + 1,
            output::localised(segment.layer),
            output::localised(segment.owner),
            segment.message.message_id.short(),
            output::localised(segment.message.role),
            text!("edits-tokens", tokens = grouped(segment.tokens)),
        );
        text.push_str(&whole_text(segment.message, masker));
    }
}
