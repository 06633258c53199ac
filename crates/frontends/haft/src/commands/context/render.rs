//! `haft context render`: prints only the body of a request, byte for byte. Secrets are masked, and
//! a note on stderr reports the masking.

use std::borrow::Cow;
use std::io::{ErrorKind, Write};

use haft_types::Api;

use super::request_log::{RequestLogReader, rebuild_request};
use super::{next, proxy_records};
use crate::commands::context::{LookArgs, RenderArgs};
use crate::exit::usage_error;
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
    let log = RequestLogReader::open(haft, look.conversation.as_deref(), &look.common).await?;
    load_logged_body(&log, look.request, look.api).await
}

/// Returns the body of a request of the log, in the protocol it was sent with unless `api` is
/// given.
pub(super) async fn load_logged_body(
    log: &RequestLogReader,
    number: Option<u64>,
    api: Option<Api>,
) -> anyhow::Result<Vec<u8>> {
    if let Some(note) = log.imported_note() {
        return Err(usage_error(text!("context-imported-no-body", note)));
    }
    let logged = log.sent_request(number).await?;
    if let Some(body) = proxy_records::recorded_body(&logged) {
        return Ok(body);
    }
    let encoding = log.find_encoding(logged.encoding.as_deref(), &logged.summary.model)?;
    let encoding = match api {
        Some(api) => encoding.with_api(api),
        None => encoding,
    };
    Ok(encoding
        .encode_request(&rebuild_request(&logged, encoding.spec.tool_protocol))
        .to_vec())
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
