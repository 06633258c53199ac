//! The approval of the demo's only edit.

use std::io::{BufRead, IsTerminal as _, Write as _};

use async_trait::async_trait;
use haft_engine::{Approval, ApprovalReply, Approver};
use tokio_util::sync::CancellationToken;

use crate::commands::run::approve;
use crate::output;

/// Asks the user if there is a terminal, and approves by itself otherwise.
pub(super) struct DemoApprover {
    /// Canceled when the user refuses.
    pub(super) refused: CancellationToken,
}

#[async_trait]
impl Approver for DemoApprover {
    async fn ask(&self, approval: &Approval) -> ApprovalReply {
        let question = approve::question(approval);
        let answer = tokio::task::spawn_blocking(move || answer(&question)).await;
        // A terminal that went away is not a refusal, and the edit is the demo's own.
        let reply = answer
            .ok()
            .and_then(Result::ok)
            .unwrap_or(ApprovalReply::Once);
        if matches!(reply, ApprovalReply::No { .. }) {
            self.refused.cancel();
        }
        reply
    }

    async fn remember(&self, _: &[String]) -> Result<(), String> {
        Ok(())
    }
}

fn answer(question: &str) -> anyhow::Result<ApprovalReply> {
    output::print(question)?;
    let stdin = std::io::stdin();
    let stdout = std::io::stdout();
    if !stdin.is_terminal() || !stdout.is_terminal() {
        return answer_alone();
    }
    haft_tui::discard_typed_ahead(&stdin);
    output::print(text!("demo-keys"))?;
    stdout.lock().flush()?;
    let mut line = String::new();
    if stdin.lock().read_line(&mut line)? == 0 {
        output::print("\n")?;
        return answer_alone();
    }
    Ok(match line.trim() {
        "" => ApprovalReply::Once,
        words => match haft_messages::agreement(words) {
            Some(true) => ApprovalReply::Once,
            Some(false) => ApprovalReply::No {
                reason: String::new(),
            },
            None => ApprovalReply::No {
                reason: words.to_owned(),
            },
        },
    })
}

fn answer_alone() -> anyhow::Result<ApprovalReply> {
    output::say(text!("demo-answered"))?;
    Ok(ApprovalReply::Once)
}
