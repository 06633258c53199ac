//! `haft context render`: prints only the body of a request, byte for byte. Secrets are masked, and
//! a note on stderr reports the masking.

use std::borrow::Cow;
use std::io::{ErrorKind, Write};

use super::next;
use super::opened_log::open_log;
use crate::commands::context::{LookArgs, RenderArgs};
use crate::haft::Haft;
use crate::output;

pub(super) async fn run(haft: &Haft, args: &RenderArgs) -> anyhow::Result<()> {
    let look = &args.look;
    let body = if look.request.is_some() {
        load_sent_body(haft, look).await?
    } else {
        build_next_body(haft, look).await?
    };
    print_body(haft, body)
}

/// Returns the body of the selected request in the log, or of the last request if none is selected.
pub(super) async fn load_sent_body(haft: &Haft, look: &LookArgs) -> anyhow::Result<Vec<u8>> {
    let log = open_log(haft, look.conversation.as_deref(), &look.common).await?;
    Ok(log.body(look.request, look.api).await?)
}

/// Returns the body of the request that would be sent next.
pub(super) async fn build_next_body(haft: &Haft, look: &LookArgs) -> anyhow::Result<Vec<u8>> {
    let next = next::build_next_request(haft, look).await?;
    Ok(next
        .encoding
        .encode_request(&next.assembly.request)
        .to_vec())
}

/// Prints a request body byte for byte, except for masked secrets.
pub(super) fn print_body(haft: &Haft, body: Vec<u8>) -> anyhow::Result<()> {
    let masker = haft.masker();
    let body = match std::str::from_utf8(&body).map(|text| masker.mask(text)) {
        Ok(Cow::Owned(text)) => {
            output::print_to_stderr(&format!("haft: {}", text!("context-secrets-masked")));
            text.into_bytes()
        }
        Ok(Cow::Borrowed(_)) | Err(_) => body,
    };
    let mut out = std::io::stdout().lock();
    match out.write_all(&body).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}
