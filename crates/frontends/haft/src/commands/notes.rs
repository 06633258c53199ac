//! `haft notes`: notes on folders and files of the project.

use std::fmt::Write as _;
use std::sync::Arc;

use clap::{Args, Subcommand};
use haft_agent::{Project, WallClock};
use haft_tool::PortError;
use haft_tools::{Note, StoredNotes};

use crate::cli::options::{Common, JsonArgs};
use crate::exit::{ProcessExit, usage_error};
use crate::haft::Haft;
use crate::output::{self, TextTable};
use crate::wiring;

#[derive(Debug, Args)]
pub(crate) struct NotesArgs {
    /// Lists when absent.
    #[command(subcommand)]
    pub(crate) command: Option<NotesCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum NotesCommand {
    /// List all notes of this project.
    List(JsonArgs),
    /// Show the notes on a path, on the folders above it and on everything below it.
    Show {
        /// A folder or file.
        path: String,
        #[command(flatten)]
        output: JsonArgs,
    },
    /// Add a note on a folder or file; the model sees it when it works there.
    Add {
        /// The folder or file.
        path: String,
        /// The note.
        text: String,
        #[command(flatten)]
        output: JsonArgs,
    },
    /// Remove a note.
    Remove {
        /// The note's id, as `list` shows it.
        id: String,
        #[command(flatten)]
        common: Common,
    },
}

pub(crate) fn run(haft: &Haft, command: Option<NotesCommand>) -> anyhow::Result<ProcessExit> {
    let command = command.unwrap_or(NotesCommand::List(JsonArgs::default()));
    wiring::build_runtime()?.block_on(async {
        match command {
            NotesCommand::List(output) => list_notes(haft, &output).await,
            NotesCommand::Show { path, output } => show_notes(haft, &path, &output).await,
            NotesCommand::Add { path, text, output } => add_note(haft, &path, &text, &output).await,
            NotesCommand::Remove { id, common } => {
                let (_, notes) = open_notes(haft, &common).await?;
                let note = notes.delete(&id).await.map_err(to_command_error)?;
                output::print_text(&text!("notes-deleted", note = format_note(&note)))
            }
        }
    })?;
    Ok(ProcessExit::Completed)
}

async fn open_notes(haft: &Haft, common: &Common) -> anyhow::Result<(Project, StoredNotes)> {
    let settings = haft.load(common)?;
    let store = settings.open_store()?;
    let project = haft.project(None)?;
    let notes = StoredNotes::open(
        store,
        &project.namespace(),
        project.root.clone(),
        Arc::new(WallClock),
    )
    .await?;
    Ok((project, notes))
}

async fn list_notes(haft: &Haft, args: &JsonArgs) -> anyhow::Result<()> {
    let (_, notes) = open_notes(haft, &args.common).await?;
    let notes = notes.list().await.map_err(to_command_error)?;
    if args.json {
        return output::print_json(&serde_json::to_value(&notes)?);
    }
    output::print_text(&format_notes(notes))
}

/// Formats notes as a table for people.
pub(crate) fn format_notes(notes: Vec<Note>) -> String {
    if notes.is_empty() {
        return format!("{}\n", text!("notes-none"));
    }
    let mut table = TextTable::new(&[
        text!("table-id"),
        text!("table-path"),
        text!("table-note"),
        text!("table-updated"),
    ]);
    for Note {
        id,
        path,
        note,
        updated_at,
    } in notes
    {
        table.add_row(vec![
            id,
            path,
            note,
            updated_at.strftime("%Y-%m-%d %H:%M").to_string(),
        ]);
    }
    table.to_string()
}

async fn show_notes(haft: &Haft, given: &str, args: &JsonArgs) -> anyhow::Result<()> {
    let (project, notes) = open_notes(haft, &args.common).await?;
    // A path that was deleted may still have notes, under the name that `list` shows.
    let path = path_in_project(&project, given)?.unwrap_or_else(|| given.to_owned());
    let mut notes = notes.list().await.map_err(to_command_error)?;
    notes.retain(|note| note.concerns(&path));
    if args.json {
        return output::print_json(&serde_json::to_value(&notes)?);
    }
    let mut text = String::new();
    for note in &notes {
        text.push_str(&format_note(note));
    }
    if notes.is_empty() {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}", text!("notes-none-about", path));
    }
    output::print_text(&text)
}

async fn add_note(haft: &Haft, given: &str, text: &str, args: &JsonArgs) -> anyhow::Result<()> {
    let (project, notes) = open_notes(haft, &args.common).await?;
    let note = store_note(&project, &notes, given, text).await?;
    if args.json {
        return output::print_json(&serde_json::to_value(&note)?);
    }
    output::print_text(&text!("notes-added", note = format_note(&note)))
}

/// Adds a note on a file or folder, and returns a sentence about it.
pub(crate) async fn add_to_notes(
    project: &Project,
    notes: &StoredNotes,
    given: &str,
    text: &str,
) -> anyhow::Result<String> {
    let note = store_note(project, notes, given, text).await?;
    Ok(text!("notes-added", note = format_note(&note)))
}

async fn store_note(
    project: &Project,
    notes: &StoredNotes,
    given: &str,
    text: &str,
) -> anyhow::Result<Note> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.is_empty() {
        return Err(usage_error(text!("notes-empty")));
    }
    let missing = || usage_error(text!("notes-no-path", given));
    let path = path_in_project(project, given)?.ok_or_else(missing)?;
    notes.add(&path, &text).await.map_err(to_command_error)
}

/// Returns the path of a file or folder relative to the project, as notes name it, or `None` if the
/// file or folder does not exist.
fn path_in_project(project: &Project, given: &str) -> anyhow::Result<Option<String>> {
    let path = match project.cwd.join(given).canonicalize() {
        Ok(path) => path,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(usage_error(text!("notes-unreadable", given, error))),
    };
    let outside = |_| {
        usage_error(text!(
            "notes-outside",
            given,
            project = project.root.display()
        ))
    };
    let relative = path.strip_prefix(&project.root).map_err(outside)?;
    Ok(Some(if relative.as_os_str().is_empty() {
        ".".to_owned()
    } else {
        relative.display().to_string()
    }))
}

pub(crate) fn format_note(note: &Note) -> String {
    format!("{} `{}`: {}\n", note.id, note.path, note.note)
}

/// Converts an error about an unknown name into a usage error. Other errors stay failures.
pub(crate) fn to_command_error(error: PortError) -> anyhow::Error {
    match error {
        PortError::Unknown { .. } => usage_error(text!("notes-unknown", error)),
        PortError::Store(_) => error.into(),
    }
}
