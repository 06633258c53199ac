//! `haft useful`: the file ranges that are sent with every request of a conversation.

use std::path::Path;
use std::str::FromStr;

use clap::{Args, Subcommand};
use haft_store::Conversation;
use haft_tool::OutputLimits;
use haft_tools::{AddedRange, NewUsefulItem, StoredUseful, UsefulItem};

use super::conversations;
use super::notes::to_command_error;
use crate::cli::options::{Common, JsonArgs};
use crate::exit::{ProcessExit, usage_error};
use crate::haft::Haft;
use crate::output::{self, TextTable};
use crate::wiring;

#[derive(Debug, Args)]
pub(crate) struct UsefulArgs {
    /// Lists when absent.
    #[command(subcommand)]
    pub(crate) command: Option<UsefulCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum UsefulCommand {
    /// List the file ranges in the context.
    List {
        #[command(flatten)]
        of: ConversationArg,
        #[command(flatten)]
        output: JsonArgs,
    },
    /// Show the current lines of a file range, as the model sees them.
    Show {
        /// The range's number, as `list` shows it.
        number: u32,
        #[command(flatten)]
        of: ConversationArg,
        #[command(flatten)]
        output: JsonArgs,
    },
    /// Add a file range: its current lines are sent with every request.
    Add {
        /// The file.
        path: String,
        /// The lines, such as `10-20` or `7`.
        lines: LineSpan,
        /// A short reason why the lines matter.
        description: String,
        #[command(flatten)]
        of: ConversationArg,
        #[command(flatten)]
        output: JsonArgs,
    },
    /// Remove a file range from the context, but not the file.
    Remove {
        /// The range's number, as `list` shows it.
        number: u32,
        #[command(flatten)]
        of: ConversationArg,
        #[command(flatten)]
        common: Common,
    },
}

/// The conversation that the command works on.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ConversationArg {
    /// An id, the beginning of one, or a name; the current conversation when absent.
    #[arg(long, value_name = "ID")]
    pub(crate) conversation: Option<String>,
}

/// A range of lines, counted from 1. Both `start` and `end` are part of the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineSpan {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl FromStr for LineSpan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || text!("useful-bad-lines").to_owned();
        let (start, end) = text.split_once('-').unwrap_or((text, text));
        let number = |text: &str| text.trim().parse::<u32>().map_err(|_| wrong());
        let start = number(start)?;
        let end = number(end)?;
        if start == 0 || end < start {
            Err(wrong())
        } else {
            Ok(Self { start, end })
        }
    }
}

pub(crate) fn run(haft: &Haft, command: Option<UsefulCommand>) -> anyhow::Result<ProcessExit> {
    let all = UsefulCommand::List {
        of: ConversationArg::default(),
        output: JsonArgs::default(),
    };
    let command = command.unwrap_or(all);
    wiring::build_runtime()?.block_on(async {
        match command {
            UsefulCommand::List { of, output } => list_ranges(haft, &of, &output).await,
            UsefulCommand::Show { number, of, output } => {
                show_range(haft, number, &of, &output).await
            }
            UsefulCommand::Add {
                path,
                lines,
                description,
                of,
                output: JsonArgs { json, common },
            } => {
                let (conversation, useful) = open_ranges(haft, &of, &common).await?;
                let cwd = haft.project(None)?.cwd;
                let root = Path::new(&conversation.namespace);
                let new = locate_range(&cwd, root, &path, lines, &description)?;
                let added = useful.add(new).await.map_err(to_command_error)?;
                if json {
                    output::print_json(&serde_json::to_value(&added)?)
                } else {
                    output::print_text(&added_range_to_text(&added))
                }
            }
            UsefulCommand::Remove { number, of, common } => {
                let (_, useful) = open_ranges(haft, &of, &common).await?;
                let item = useful.delete(number).await.map_err(to_command_error)?;
                output::print_text(&sanitize_text(&format!(
                    "{}\n",
                    text!("useful-removed", item = format_item(&item))
                )))
            }
        }
    })?;
    Ok(ProcessExit::Completed)
}

async fn open_ranges(
    haft: &Haft,
    of: &ConversationArg,
    common: &Common,
) -> anyhow::Result<(Conversation, StoredUseful)> {
    let settings = haft.load(common)?;
    let store = settings.open_store()?;
    let conversation =
        conversations::find_named_or_current(haft, store.as_ref(), of.conversation.as_deref())
            .await?;
    let useful = StoredUseful::open(store, conversation.id.clone()).await?;
    let max_ranges = settings.config.limits.useful_ranges;
    Ok((conversation, useful.with_max_ranges(max_ranges)))
}

async fn list_ranges(haft: &Haft, of: &ConversationArg, args: &JsonArgs) -> anyhow::Result<()> {
    let (_, useful) = open_ranges(haft, of, &args.common).await?;
    let items = useful.list().await.map_err(to_command_error)?;
    if args.json {
        return output::print_json(&serde_json::to_value(&items)?);
    }
    output::print_text(&format_ranges(items))
}

/// Formats ranges as a table for people.
pub(crate) fn format_ranges(items: Vec<UsefulItem>) -> String {
    if items.is_empty() {
        return format!("{}\n", text!("useful-none"));
    }
    let mut table = TextTable::new(&[
        text!("table-number"),
        text!("table-file"),
        text!("table-lines"),
        text!("table-description"),
    ]);
    for UsefulItem {
        number,
        path,
        start_line,
        end_line,
        description,
    } in items
    {
        table.add_row(vec![
            number.to_string(),
            path,
            format!("{start_line}-{end_line}"),
            description,
        ]);
    }
    table.to_string()
}

async fn show_range(
    haft: &Haft,
    number: u32,
    of: &ConversationArg,
    args: &JsonArgs,
) -> anyhow::Result<()> {
    let (conversation, useful) = open_ranges(haft, of, &args.common).await?;
    let items = useful.list().await.map_err(to_command_error)?;
    let found = items.into_iter().find(|item| item.number == number);
    let item = found.ok_or_else(|| usage_error(text!("useful-unknown", number)))?;
    let path = Path::new(&conversation.namespace).join(&item.path);
    let range = item.start_line as usize..=item.end_line as usize;
    let text = haft_tools::read_excerpt(&path, range, OutputLimits::default());
    if args.json {
        let mut value = serde_json::to_value(&item)?;
        value["text"] = text.ok().into();
        return output::print_json(&value);
    }
    let text = text.unwrap_or_else(|error| text!("useful-unreadable", error));
    output::print_text(&sanitize_text(&format!(
        "{}\n\n{}\n",
        format_item(&item),
        text.trim_end()
    )))
}

/// Reads the range from the file `given`, a path relative to `cwd`, and returns it as a new item.
/// The path of the item is relative to the project's `root` if the file lies in the project.
pub(crate) fn locate_range(
    cwd: &Path,
    root: &Path,
    given: &str,
    lines: LineSpan,
    description: &str,
) -> anyhow::Result<NewUsefulItem> {
    let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
    if description.is_empty() {
        return Err(usage_error(text!("useful-no-description")));
    }
    let path = cwd
        .join(given)
        .canonicalize()
        .map_err(|error| usage_error(format!("`{given}`: {error}")))?;
    let range = lines.start as usize..=lines.end as usize;
    let text = haft_tools::read_excerpt(&path, range, OutputLimits::default())
        .map_err(|error| usage_error(text!("useful-refused", given, error)))?;
    // There are fewer lines than requested if the file ends earlier.
    let shown = u32::try_from(text.lines().count())?;
    Ok(NewUsefulItem {
        path: path
            .strip_prefix(root)
            .unwrap_or(&path)
            .display()
            .to_string(),
        start_line: lines.start,
        end_line: lines.start.saturating_add(shown.saturating_sub(1)),
        description,
    })
}

pub(crate) fn added_range_to_text(added: &AddedRange) -> String {
    let AddedRange {
        item,
        merged,
        dropped,
    } = added;
    let mut text = format!("{}\n", text!("useful-added", item = format_item(item)));
    if *merged > 0 {
        text.extend([text!("useful-merged"), "\n"]);
    }
    if !dropped.is_empty() {
        text.extend([text!("useful-evicted"), "\n"]);
    }
    sanitize_text(&text)
}

pub(crate) fn format_item(item: &UsefulItem) -> String {
    let UsefulItem {
        number,
        path,
        start_line,
        end_line,
        description,
    } = item;
    text!(
        "useful-line",
        number,
        path,
        start_line,
        end_line,
        description
    )
}

fn sanitize_text(text: &str) -> String {
    haft_text::sanitize(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_span_parses_one_number_or_two() {
        assert_eq!("7".parse(), Ok(LineSpan { start: 7, end: 7 }));
        assert_eq!("10-20".parse(), Ok(LineSpan { start: 10, end: 20 }));
        for wrong in [
            "",
            "0",
            "0-3",
            "5-4",
            "a",
            "1-",
            "-3",
            "1-2-3",
            "99999999999",
        ] {
            assert!(wrong.parse::<LineSpan>().is_err(), "{wrong}");
        }
    }
}
