//! Collections of documents a model can ask: folders behind an embedded full-text index, or a
//! server that speaks the chat protocol.
//!
//! The index is a cache: it can be deleted at any time and is made again from the folders, and it
//! is brought up to date before every answer. Texts are not kept in it; passages are read from the
//! files when they are shown. This crate reads no environment and no home folder, is told where its
//! index lies, and never reaches a server a user did not name.
//!
//! Read first: [`Local`] (a collection over folders), [`Collection`] (that or a server),
//! [`use_rag_tool`] (what the model calls), `words` and `chunks` (what is indexed, both pure
//! functions).

mod chunks;
mod collection;
mod config;
mod error;
mod extension;
mod files;
mod hybrid;
mod index;
mod local;
mod remote;
mod serve;
mod synonyms;
mod tool;
mod words;

pub use collection::{AskError, Collection, CollectionAnswer, CollectionKind};
pub use config::{CollectionConfig, CollectionConfigError, CollectionSource};
pub use error::RagError;
pub use extension::{ConfiguredCollections, RagExtension, local_collection};
pub use index::Update;
pub use local::{CollectionStatus, Local, Passage, PassageResults};
pub use remote::{EmbeddingCost, Remote, RemoteAnswer, RemoteError};
pub use serve::{Serving, Token, serve};
pub use tool::use_rag_tool;
