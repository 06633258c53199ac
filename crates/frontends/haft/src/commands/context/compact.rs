//! `haft context compact`: archives older rounds at the user's request.

use haft_engine::CompactionOutcome;
use haft_types::{CompactionPhase, Event, EventBody};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::cli::options::RunArgs;
use crate::commands::context::CompactArgs;
use crate::commands::run;
use crate::haft::Haft;
use crate::output;

pub(super) async fn run(haft: &Haft, args: &CompactArgs) -> anyhow::Result<()> {
    let settings = haft.load(&args.output.common)?;
    let asked = RunArgs {
        model: args.model.clone(),
        resume: args.conversation.clone(),
        resume_current: args.conversation.is_none(),
        ..RunArgs::default()
    };
    let plan = run::lower_args(&asked, &settings, haft.project(None)?, None)?;
    let mut session = settings.open_session(plan).await?;
    let mut why = None;
    let mut tell = |event: &Event| {
        if let EventBody::Compaction { phase, message, .. } = &event.body {
            match phase {
                CompactionPhase::Failed => why = Some(message.clone()),
                CompactionPhase::Started | CompactionPhase::Finished => {
                    output::print_to_stderr(&format!(
                        "haft: {}",
                        haft_messages::translate_error(message)
                    ));
                }
            }
        }
    };
    let compacted = session
        .compact_now(args.focus.as_deref(), &mut tell, &CancellationToken::new())
        .await?;
    for line in session.close().await {
        output::print_to_stderr(&format!("haft: {line}"));
    }
    let (outcome, rounds) = match &compacted {
        CompactionOutcome::Archived { rounds, .. } => ("archived", *rounds),
        CompactionOutcome::NothingToArchive => ("too_few_rounds", 0),
        CompactionOutcome::NotWorthIt => ("not_worth_it", 0),
        CompactionOutcome::Failed => anyhow::bail!(why.unwrap_or_else(|| compacted.to_string())),
    };
    if args.output.json {
        let id = &session.conversation().id;
        let message = compacted.to_string();
        return output::print_json(
            &json!({ "conversation_id": id, "outcome": outcome, "rounds": rounds, "message": message }),
        );
    }
    output::print_text(&format!("{}\n", output::localize_text(compacted)))
}
