//! `haft mcp login`: logs in to a server in the browser.

use std::time::Duration;

use haft_mcp::McpError;
use tokio_util::sync::CancellationToken;

use crate::commands::mcp::McpNameArgs;
use crate::exit::{ProcessExit, usage_error};
use crate::haft::Haft;
use crate::output;

/// The time limit for the user's login in the browser.
const LOGIN_TIMEOUT: Duration = Duration::from_mins(10);

pub(super) async fn run(haft: &Haft, args: &McpNameArgs) -> anyhow::Result<ProcessExit> {
    let (mcp, _) = super::load_servers(haft, &args.common, None)?;
    let server = super::find_server(&mcp, &args.name)?;
    let failed =
        |reason: String| usage_error(text!("mcp-login-failed", server = server.name, reason));
    let challenge = match mcp
        .servers
        .refetch_listing(&args.name, &CancellationToken::new())
        .await
    {
        Err(McpError::Login { challenge, .. }) => challenge,
        Err(error) => return Err(failed(error.to_string())),
        Ok(_) => {
            output::print_text_line(&text!("mcp-no-login", server = server.name))?;
            return Ok(ProcessExit::Completed);
        }
    };
    let tokens = haft.places()?.mcp_tokens_folder();
    let login = haft_mcp::begin_login(server, tokens, challenge.as_deref())
        .await
        .map_err(failed)?;
    output::print_text(&format!(
        "{}\n\n",
        text!("mcp-login-page", server = server.name, url = login.url())
    ))?;
    let finished = tokio::time::timeout(LOGIN_TIMEOUT, login.finish()).await;
    finished
        .map_err(|_| failed(text!("mcp-login-timeout").into()))?
        .map_err(failed)?;
    output::print_text_line(&text!("mcp-logged-in", server = server.name))?;
    Ok(ProcessExit::Completed)
}
