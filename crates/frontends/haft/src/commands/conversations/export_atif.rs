//! `haft conversations export --format atif`: prints one conversation as a trajectory in Harbor's
//! format, or writes all of them to a folder.
//!
//! ```text
//! DIR/ID.json          each conversation
//! DIR/ID/images/N.png  its images
//! ```

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use haft_imports::{AtifTrajectory, convert_to_atif};
use haft_store::{ConversationDocument, ConversationScope, Store};

use super::ExportArgs;
use super::export::{ExportFolder, document_file_name, load_document};
use super::find_conversation;
use crate::exit::usage_error;
use crate::output;

pub(super) async fn export_conversations(
    store: &dyn Store,
    args: &ExportArgs,
) -> anyhow::Result<()> {
    match (&args.id, &args.all) {
        (_, Some(folder)) => export_all(store, &ExportFolder::create(folder)?, folder).await,
        (Some(id), None) => {
            let conversation = find_conversation(store, id).await?;
            print_trajectory(&load_document(store, &conversation.id).await?)
        }
        // The command line parser rejects this case.
        (None, None) => Err(usage_error(text!("conversations-export-which"))),
    }
}

fn print_trajectory(document: &ConversationDocument) -> anyhow::Result<()> {
    let Some(trajectory) = convert(document, None)? else {
        return Err(usage_error(text!(
            "conversations-export-empty",
            id = document.id
        )));
    };
    if trajectory.omitted_images > 0 {
        output::print_to_stderr(&text!(
            "conversations-export-images",
            count = trajectory.omitted_images
        ));
    }
    output::print_exact(&haft_text::escape_json(
        &(serde_json::to_string_pretty(&trajectory.json)? + "\n"),
    ))
}

async fn export_all(
    store: &dyn Store,
    target: &ExportFolder,
    folder: &std::path::Path,
) -> anyhow::Result<()> {
    let mut count = 0;
    for one in store.list(ConversationScope::Everywhere).await? {
        let document = load_document(store, &one.id).await?;
        let name = document_file_name(&one.id);
        let image_folder = format!("{}/images", name.trim_end_matches(".json"));
        // A conversation without messages is no trajectory.
        let Some(trajectory) = convert(&document, Some(&image_folder))? else {
            continue;
        };
        for (path, image) in &trajectory.images {
            target.write_file(path, &BASE64_STANDARD.decode(&image.data)?)?;
        }
        target.write_json(&name, &trajectory.json)?;
        count += 1;
    }
    output::print_text_line(&text!(
        "conversations-exported",
        count,
        folder = folder.display()
    ))
}

fn convert(
    document: &ConversationDocument,
    image_folder: Option<&str>,
) -> anyhow::Result<Option<AtifTrajectory>> {
    Ok(convert_to_atif(
        document,
        env!("CARGO_PKG_VERSION"),
        image_folder,
    )?)
}
