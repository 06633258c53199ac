//! `useful_info_add`: keeps a range of lines of a file in view.

use std::fmt::Write as _;

use haft_tool::OutputLimits;

use crate::files::excerpt::{ExcerptError, read_excerpt};
use crate::knowledge::useful::{AddedRange, NewUsefulItem, StoredUseful};
use crate::knowledge::useful_info_list;
use crate::knowledge::{check_note_text, failure_from_port, get_session_value, to_one_line};
use crate::on_files::run_off_thread;
use crate::paths;
use crate::prelude::*;
use crate::scope::FileScope;

const NAME: &str = "useful_info_add";

static MANUAL: Manual = Manual {
    availability: Availability::Extension,
    ..Manual::for_group(Group::Knowledge)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UsefulInfoAddParameters {
    /// The file.
    path: String,
    /// The first line, from 1.
    #[schemars(range(min = 1))]
    start_line: u32,
    /// The last line, included. Keep the range short.
    #[schemars(range(min = 1))]
    end_line: u32,
    /// Why it matters, in a few words.
    description: String,
}

pub(crate) fn define_tool() -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("useful_info_add/prompt"),
        &MANUAL,
        Access::State,
        |arguments| Intent::for_read(arguments, "path"),
    )
    .with_function(|context, parameters| Box::pin(add_range(context, parameters)))
}

async fn add_range(context: &ToolContext, parameters: UsefulInfoAddParameters) -> CallResult {
    let description = to_one_line(check_note_text("description", &parameters.description)?);
    let new = run_off_thread(context, move |scope| {
        fit_range_to_file(scope, &parameters, description)
    })
    .await?;
    let added = get_session_value::<StoredUseful>(context)?
        .add(new)
        .await
        .map_err(|error| failure_from_port(&error, "try again"))?;
    Ok(build_envelope(&added).into())
}

/// Checks the range against the current file, and shortens it if the file ends before the range
/// does.
fn fit_range_to_file(
    scope: &FileScope,
    parameters: &UsefulInfoAddParameters,
    description: String,
) -> Result<NewUsefulItem, ToolFailure> {
    let UsefulInfoAddParameters {
        path,
        start_line,
        end_line,
        ..
    } = parameters;
    if *start_line == 0 || end_line < start_line {
        let message = format!(
            "`start_line` and `end_line` count from 1, with `start_line` not after `end_line` (got {start_line} and {end_line})"
        );
        return Err(ToolFailure::new("invalid_range", message));
    }
    let resolved = paths::resolve_path(&scope.workspace, path)?;
    let text = read_excerpt(
        &resolved,
        *start_line as usize..=*end_line as usize,
        OutputLimits::default(),
    )
    .map_err(|error| excerpt_failure(path, &error))?;
    // If the file ends before the range does, the excerpt has fewer lines.
    let lines = u32::try_from(text.lines().count()).unwrap_or(u32::MAX);
    Ok(NewUsefulItem {
        path: scope.workspace.display_path(&resolved),
        start_line: *start_line,
        end_line: start_line.saturating_add(lines.saturating_sub(1)),
        description,
    })
}

fn excerpt_failure(path: &str, error: &ExcerptError) -> ToolFailure {
    let message = match error {
        ExcerptError::TooLong => {
            let OutputLimits { lines, bytes } = OutputLimits::default();
            format!(
                "the range of `{path}` has more than {lines} lines or {bytes} bytes; choose the part you need"
            )
        }
        ExcerptError::Missing
        | ExcerptError::Link
        | ExcerptError::Binary(_)
        | ExcerptError::Beyond { .. }
        | ExcerptError::Unreadable(_) => {
            format!("lines of `{path}` cannot be kept in view: {error}")
        }
    };
    ToolFailure::new(error.code(), message)
}

fn build_envelope(added: &AddedRange) -> Envelope {
    let AddedRange {
        item,
        merged,
        dropped,
    } = added;
    let mut text = format!("Kept in view: {}", useful_info_list::format_range(item));
    match merged {
        0 => {}
        1 => text.push_str("\nIt touched a known range and is one range with it now."),
        more => {
            let _ = write!(
                text,
                "\nIt touched {more} known ranges and is one range with them now."
            );
        }
    }
    if !dropped.is_empty() {
        let numbers: Vec<_> = dropped.iter().map(u32::to_string).collect();
        let _ = write!(
            text,
            "\nToo many ranges: the oldest is no longer kept ({}).",
            numbers.join(", ")
        );
    }
    Envelope::success(text).with_data(json!({ "item": item, "merged": merged, "dropped": dropped }))
}

#[cfg(test)]
mod tests;
