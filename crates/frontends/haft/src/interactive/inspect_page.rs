//! `/inspect`: the page of `haft serve` for the open conversation, while haft runs.

use std::net::SocketAddr;

use tokio_util::sync::CancellationToken;

use super::TuiSession;

/// The address of the page, and the token that opens it.
pub(super) struct OpenPage {
    address: SocketAddr,
    token: String,
}

impl TuiSession<'_> {
    /// Shows the address of the page for this conversation. The page closes when haft exits.
    pub(super) async fn show_page_address(
        &mut self,
        quit: &CancellationToken,
    ) -> anyhow::Result<()> {
        let page = match self.page.take() {
            Some(page) => page,
            None => self.open_page(quit).await?,
        };
        let place = self.session.as_ref().map_or_else(String::new, |session| {
            format!("c/{}", session.conversation().id)
        });
        let url = format!("http://{}/{place}?token={}", page.address, page.token);
        self.page = Some(page);
        self.show_text(&text!("interactive-inspect", url));
        Ok(())
    }

    #[cfg(not(feature = "serve"))]
    async fn open_page(&self, _: &CancellationToken) -> anyhow::Result<OpenPage> {
        Err(crate::exit::usage_error(text!(
            "cli-not-in-build",
            command = "serve",
            feature = "serve"
        )))
    }

    #[cfg(feature = "serve")]
    async fn open_page(&self, quit: &CancellationToken) -> anyhow::Result<OpenPage> {
        use std::net::Ipv4Addr;
        use std::sync::Arc;

        use haft_serve::{AccessToken, serve};
        use tokio::net::TcpListener;
        use uuid::Uuid;

        use crate::commands::context::build_inspector;

        let store = self.settings.open_store()?;
        let token = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
        let access = AccessToken::new(token.clone());
        let site = Arc::new(build_inspector(
            self.haft,
            store,
            &self.settings,
            &self.args.common,
            access.form_token(),
            None,
        ));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        tokio::spawn(serve(
            listener,
            site,
            access,
            quit.clone().cancelled_owned(),
        ));
        Ok(OpenPage { address, token })
    }
}
