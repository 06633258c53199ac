//! The local web page of haft: HTTP on loopback, who may read it, and markup in which nothing can
//! run.
//!
//! What the pages say is the front end's business ([`Site`]); this crate must not read a store. It
//! refuses whoever has no token, other host names (a page elsewhere whose name was bound to this
//! machine), other origins, and forms that the site did not write; and it sends a policy under
//! which no script, style or image from elsewhere is loaded.
//!
//! Read first: [`serve`], [`Site`], [`Markup`].

mod guard;
mod markup;
mod server;

pub use guard::AccessToken;
pub use markup::{Markup, document, redirect_page};
pub use server::{FormAnswer, FormFields, PageRequest, Site, SiteImage, path_segment, serve};
