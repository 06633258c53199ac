//! `haft context render`: the bytes of a body and nothing else.

use std::io::{ErrorKind, Write};

use super::logged::{Log, rebuild};
use super::next;
use crate::cli::RenderArgs;

pub(super) async fn run(args: &RenderArgs) -> anyhow::Result<()> {
    let look = &args.look;
    let body = if look.request.is_some() {
        let log = Log::open(look.conversation.as_deref(), &look.common).await?;
        let logged = log.request(look.request).await?;
        let encoding = log.encoding(logged.encoding.as_deref(), &logged.summary.model)?;
        let encoding = match look.api {
            Some(api) => encoding.over(api),
            None => encoding,
        };
        encoding.encode(&rebuild(&logged))
    } else {
        let next = next::next(look).await?;
        next.encoding.encode(&next.assembly.request)
    };
    let mut out = std::io::stdout().lock();
    match out.write_all(&body).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}
