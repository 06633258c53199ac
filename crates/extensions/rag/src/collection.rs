//! Defines a named collection that a model can query. It is answered by a local index or by a
//! server.

use std::sync::Arc;

use crate::local::{Local, Passage};
use crate::remote::{Remote, RemoteError};
use crate::{PassageResults, RagError, hybrid};

/// A named collection of documents that the model can query.
#[derive(Clone, Debug)]
pub struct Collection {
    pub name: String,
    /// A description of the subject. The model selects a collection by this text.
    pub description: String,
    /// The model, as `provider/model`, that writes the answers of `haft rag serve` from passages.
    /// `None` for a collection on a server.
    pub model: Option<String>,
    pub kind: CollectionKind,
}

/// Determines what answers questions to a collection: an index or a server.
#[derive(Clone, Debug)]
pub enum CollectionKind {
    /// An index over local folders.
    Local(Arc<Local>),
    /// A server that answers questions.
    Remote(Arc<Remote>),
}

/// The answer of a collection to a question: passages of files, or a text from a server.
#[derive(Clone, Debug, PartialEq)]
pub enum CollectionAnswer {
    /// Passages of files, which a collection over local folders returns.
    Passages(PassageResults),
    /// The text that a server returned.
    Text {
        text: String,
        /// The sources on which the text is based. Empty if the server does not report them.
        sources: Vec<String>,
    },
}

/// The reason why a question could not be answered.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The collection over local folders could not be used.
    #[error(transparent)]
    Local(#[from] RagError),
    /// The request to the server failed.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// The task that ran the search panicked or was aborted.
    #[error("the search broke off: {0}")]
    Broken(String),
}

impl Collection {
    /// Answers a question. A server returns text; an index returns at most `top` passages.
    pub async fn ask_question(
        &self,
        question: &str,
        top: usize,
    ) -> Result<CollectionAnswer, AskError> {
        match &self.kind {
            CollectionKind::Local(local) => {
                if let Some(embedder) = &local.embedder {
                    let found = hybrid::query_hybrid(local, embedder, question, top).await?;
                    return Ok(CollectionAnswer::Passages(found));
                }
                let local = Arc::clone(local);
                let question = question.to_owned();
                // The query reads files and waits for locks.
                let found = tokio::task::spawn_blocking(move || local.query(&question, top)).await;
                Ok(CollectionAnswer::Passages(
                    found.map_err(|error| AskError::Broken(error.to_string()))??,
                ))
            }
            CollectionKind::Remote(remote) => {
                let told = remote.ask_question(question).await?;
                Ok(CollectionAnswer::Text {
                    text: told.text,
                    sources: told.sources,
                })
            }
        }
    }
}

impl Passage {
    /// Formats the location of the passage as `PATH:FIRST-LAST`.
    pub fn source(&self) -> String {
        format!(
            "{}:{}-{}",
            self.path.display(),
            self.start_line,
            self.end_line
        )
    }
}
