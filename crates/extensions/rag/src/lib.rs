//! Collections of documents that a model can query: folders with a full-text index, or a server
//! with a chat completions API.
//!
//! The index is a cache: it can be deleted at any time, is rebuilt from the folders, and is updated
//! before every answer. It contains no texts; passages are read from the files.
//!
//! This crate reads no environment variables and no home folder, gets the path of its index from
//! the caller, and connects only to servers that the user configured.
//!
//! Its server ([`serve_collections`]) gets the models that write answers from the caller, as
//! [`AnswerModel`].
//!
//! Start with [`Local`] (a collection over folders), [`Collection`] (a collection over folders or a
//! server), [`create_rag_tool`] (the tool that the model calls), and the modules `terms` and
//! `chunks` (pure functions that decide what is indexed).

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
mod terms;
mod tool;

pub use collection::{AskError, Collection, CollectionAnswer, CollectionKind};
pub use config::{CollectionConfig, CollectionConfigError, CollectionSource};
pub use error::RagError;
pub use extension::{ConfiguredCollections, RagExtension, create_local_collection};
pub use index::IndexUpdate;
pub use local::{CollectionStatus, Local, Passage, PassageResults};
pub use remote::{EmbeddingCost, Remote, RemoteAnswer, RemoteError};
pub use serve::{
    AnswerError, AnswerFuture, AnswerModel, AnswerPiece, AnswerPrompt, RagServer, ServedCollection,
    Token, WrittenAnswer, serve_collections,
};
pub use tool::create_rag_tool;
