//! `haft context show`: prints a request segment by segment.

use std::fmt::Write as _;

use haft_inspect::{
    Countable, RequestLogReader, RequestView, TextExtent, format_count, full_message_text,
    message_opening,
};
use haft_text::{Masker, format_thousands};
use serde_json::json;

use super::opened_log::open_log;
use super::{next, render};
use crate::commands::context::ShowArgs;
use crate::haft::Haft;
use crate::output::{self, TextTable};

pub(super) async fn run(haft: &Haft, args: &ShowArgs) -> anyhow::Result<()> {
    let look = &args.look;
    let show_next = next::is_next_requested(look, args.next)?;
    if args.raw {
        let body = if show_next {
            render::build_next_body(haft, look).await?
        } else {
            render::load_sent_body(haft, look).await?
        };
        return render::print_body(haft, body);
    }
    if show_next {
        let next = next::build_next_request(haft, look).await?;
        let spec = &next.encoding.spec;
        return print_request(
            haft,
            &RequestView::from_next(&next.assembly.request, spec.full_name(), spec.api),
            None,
            args,
        );
    }
    let log = open_log(haft, look.conversation.as_deref(), &look.common).await?;
    let logged = log.request(look.request).await?;
    print_request(haft, &RequestView::from_logged(&logged), Some(&log), args)
}

fn print_request(
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
            "segments": shown.segments.iter().map(|segment| segment.to_json(extent, &masker)).collect::<Vec<_>>(),
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
        tokens = format_thousands(shown.tokens),
        tools = format_count(shown.tools.len(), Countable::Tool),
        tool_tokens = format_thousands(shown.tool_tokens()),
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
        write_whole_segments(shown, &masker, &mut text);
    } else {
        text.push_str(&segments_to_table(shown, &masker));
    }
    output::print_text(&text)
}

/// The mark beside each segment that ends a prefix the provider's cache can find again.
const BOUNDARY: &str = "|";

fn segments_to_table(shown: &RequestView<'_>, masker: &Masker) -> String {
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
        table.add_row(vec![
            (index + 1).to_string(),
            output::localize_text(segment.layer),
            output::localize_text(segment.owner),
            segment.message.message_id.short_id().to_string(),
            output::localize_text(segment.message.role),
            format_thousands(segment.tokens),
            if segment.boundary {
                BOUNDARY.to_owned()
            } else {
                String::new()
            },
            message_opening(segment.message, masker),
        ]);
    }
    table.to_string()
}

fn write_whole_segments(shown: &RequestView<'_>, masker: &Masker, text: &mut String) {
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
            output::localize_text(segment.layer),
            output::localize_text(segment.owner),
            segment.message.message_id.short_id(),
            output::localize_text(segment.message.role),
            text!("edits-tokens", tokens = format_thousands(segment.tokens)),
        );
        text.push_str(&full_message_text(segment.message, masker));
    }
}
