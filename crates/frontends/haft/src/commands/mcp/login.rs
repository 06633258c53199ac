//! `haft mcp login`.

use std::time::Duration;

use haft_mcp::McpError;
use tokio_util::sync::CancellationToken;

use crate::commands::mcp::McpNameArgs;
use crate::exit::{ProcessExit, usage_error};
use crate::{output, wiring};

/// How long a person may take on the page.
const PATIENCE: Duration = Duration::from_mins(10);

pub(super) async fn run(args: &McpNameArgs) -> anyhow::Result<ProcessExit> {
    let (mcp, _) = super::servers(&args.common, None)?;
    let server = super::named(&mcp, &args.name)?;
    let failed = |reason: String| usage_error(format!("cannot log in to `{}`: {reason}", server.name));
    let challenge = match mcp.servers.ask_anew(&args.name, &CancellationToken::new()).await {
        Err(McpError::Login { challenge, .. }) => challenge,
        Err(error) => return Err(failed(error.to_string())),
        Ok(_) => {
            output::print(&format!("`{}` answers; there is no login to be made.\n", server.name))?;
            return Ok(ProcessExit::Completed);
        }
    };
    let tokens = wiring::places()?.mcp_tokens();
    let login = haft_mcp::login(server, tokens, challenge.as_deref()).await.map_err(failed)?;
    output::print(&format!("Visit this page to log in to `{}`:\n\n{}\n\n", server.name, login.url()))?;
    let finished = tokio::time::timeout(PATIENCE, login.finish()).await;
    finished.map_err(|_| failed("nobody came back from the page within 10 minutes".into()))?.map_err(failed)?;
    output::print(&format!("Logged in to `{}`. `haft mcp test {}` tries it.\n", server.name, server.name))?;
    Ok(ProcessExit::Completed)
}
