//! `haft mcp login`: logs in to a server in the browser.

use std::time::Duration;

use haft_mcp::McpError;
use tokio_util::sync::CancellationToken;

use crate::commands::mcp::McpNameArgs;
use crate::exit::{ProcessExit, usage_error};
use crate::haft::Haft;
use crate::output;

/// Time that the user has to log in on the page.
const PATIENCE: Duration = Duration::from_mins(10);

pub(super) async fn run(haft: &Haft, args: &McpNameArgs) -> anyhow::Result<ProcessExit> {
    let (mcp, _) = super::servers(haft, &args.common, None)?;
    let server = super::named(&mcp, &args.name)?;
    let failed =
        |reason: String| usage_error(text!("mcp-login-failed", server = server.name, reason));
    let challenge = match mcp
        .servers
        .ask_anew(&args.name, &CancellationToken::new())
        .await
    {
        Err(McpError::Login { challenge, .. }) => challenge,
        Err(error) => return Err(failed(error.to_string())),
        Ok(_) => {
            output::say(&text!("mcp-no-login", server = server.name))?;
            return Ok(ProcessExit::Completed);
        }
    };
    let tokens = haft.places()?.mcp_tokens();
    let login = haft_mcp::login(server, tokens, challenge.as_deref())
        .await
        .map_err(failed)?;
    output::print(&format!(
        "{}\n\n",
        text!("mcp-login-page", server = server.name, url = login.url())
    ))?;
    let finished = tokio::time::timeout(PATIENCE, login.finish()).await;
    finished
        .map_err(|_| failed(text!("mcp-login-timeout").into()))?
        .map_err(failed)?;
    output::say(&text!("mcp-logged-in", server = server.name))?;
    Ok(ProcessExit::Completed)
}
