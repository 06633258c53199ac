//! Opens the page in the user's browser.
//!
//! Invariant: no secret is in a command line or an environment, which other users of the machine
//! can read. The browser opens a file that only the user can read; the file redirects the browser
//! to the site with a ticket that is valid for one visit.

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use haft_agent::{HostEnvironment, own_command};
use haft_serve::{AccessToken, build_redirect_page};
use tempfile::TempDir;

/// The time after which an unused ticket is rejected.
const TICKET_TIMEOUT: Duration = Duration::from_mins(2);

/// A browser that was started and has not loaded the page yet. Its folder is removed on drop.
pub(super) struct BrowserOpening {
    folder: TempDir,
}

impl BrowserOpening {
    /// Starts the browser on a file in `state` that leads to `url`. The error is a sentence for the
    /// user.
    pub(super) fn start(
        environment: &HostEnvironment,
        state: &Path,
        url: &str,
    ) -> Result<Self, String> {
        let program = if cfg!(target_os = "macos") {
            "open"
        } else {
            "xdg-open"
        };
        let failed = |error: std::io::Error| text!("serve-cannot-open", program, error);
        let mut command = own_command(environment, program).map_err(failed)?;
        // The browser starts in another folder.
        let state = std::path::absolute(state).map_err(failed)?;
        let folder = write_redirect(&state, url).map_err(failed)?;
        command
            .arg(folder.path().join(REDIRECT_FILE))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = command.spawn().map_err(failed)?;
        // A child that is not waited for stays in the process table.
        std::thread::spawn(move || child.wait());
        Ok(Self { folder })
    }

    /// Waits until the browser has used the ticket or the ticket has expired, then removes the
    /// file.
    pub(super) async fn finish(self, access: AccessToken) {
        // The outcome makes no difference: afterwards the ticket is worthless.
        let _ = tokio::time::timeout(TICKET_TIMEOUT, access.wait_for_redemption()).await;
        access.revoke_ticket();
        drop(self.folder);
    }
}

const REDIRECT_FILE: &str = "open.html";

fn write_redirect(state: &Path, url: &str) -> std::io::Result<TempDir> {
    let folder = haft_files::create_temporary_folder(state, "serve-")?;
    let mut file = haft_files::create_new(&folder.path().join(REDIRECT_FILE))?;
    file.write_all(build_redirect_page(url).as_bytes())?;
    Ok(folder)
}
