//! Opens the request log of the conversation that a command names.

use haft_inspect::RequestLogReader;

use crate::cli::options::Common;
use crate::commands::conversations;
use crate::exit::usage_error;
use crate::haft::Haft;
use crate::output;

/// Opens the log of the named conversation, or of the current one. Returns a usage error if it has
/// no requests.
pub(super) async fn open_log(
    haft: &Haft,
    name: Option<&str>,
    common: &Common,
) -> anyhow::Result<RequestLogReader> {
    let log = open_any_log(haft, name, common).await?;
    if log.requests == 0 {
        return Err(usage_error(text!(
            "context-no-requests",
            id = log.conversation.id
        )));
    }
    log.imported_note().iter().for_each(|note| print_note(note));
    Ok(log)
}

/// Like [`open_log`], but accepts a conversation without requests, and prints no note if the
/// conversation was imported.
pub(super) async fn open_any_log(
    haft: &Haft,
    name: Option<&str>,
    common: &Common,
) -> anyhow::Result<RequestLogReader> {
    let settings = haft.load(common)?;
    let store = settings.open_store()?;
    let conversation = conversations::find_named_or_current(haft, store.as_ref(), name).await?;
    let environment = settings.environment().clone();
    Ok(RequestLogReader::for_conversation(
        store,
        environment,
        settings.config,
        conversation,
        print_note,
    )
    .await?)
}

/// Prints a note about the log on stderr.
pub(super) fn print_note(note: &str) {
    output::print_to_stderr(&format!("haft: {note}"));
}
