//! The approval of the demo's only edit.

use std::io::{BufRead, IsTerminal as _, Write as _};

use async_trait::async_trait;
use haft_engine::{Approval, ApprovalReply, Approver};
use tokio_util::sync::CancellationToken;

use crate::commands::run::approve;
use crate::output;

/// Asks the user to approve the demo's edit. Without a terminal, approves the edit without asking.
pub(super) struct DemoApprover {
    /// Canceled when the user refuses.
    pub(super) refused: CancellationToken,
}

#[async_trait]
impl Approver for DemoApprover {
    async fn ask(&self, approval: &Approval) -> ApprovalReply {
        let question = approve::format_question(approval);
        let answer = tokio::task::spawn_blocking(move || ask_user(&question)).await;
        // If the terminal is gone, the edit is approved: the user did not refuse it, and it is part
        // of the demo.
        let reply = answer
            .ok()
            .and_then(Result::ok)
            .unwrap_or(ApprovalReply::Once);
        if matches!(reply, ApprovalReply::No { .. }) {
            self.refused.cancel();
        }
        reply
    }

    async fn save_rules(&self, _: &[String]) -> Result<(), String> {
        Ok(())
    }
}

fn ask_user(question: &str) -> anyhow::Result<ApprovalReply> {
    output::print_text(question)?;
    let stdin = std::io::stdin();
    let stdout = std::io::stdout();
    if !stdin.is_terminal() || !stdout.is_terminal() {
        return approve_without_user();
    }
    haft_tui::wait_and_discard_typed_ahead(&stdin);
    output::print_text(text!("demo-keys"))?;
    stdout.lock().flush()?;
    let mut line = String::new();
    if stdin.lock().read_line(&mut line)? == 0 {
        output::print_text("\n")?;
        return approve_without_user();
    }
    Ok(match line.trim() {
        "" => ApprovalReply::Once,
        words => match haft_messages::parse_yes_no(words) {
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

fn approve_without_user() -> anyhow::Result<ApprovalReply> {
    output::print_text_line(text!("demo-answered"))?;
    Ok(ApprovalReply::Once)
}
