//! A named collection that a model can query, answered by a local index or a server.

use std::sync::Arc;

use crate::local::{Local, Passage};
use crate::remote::{Remote, RemoteError};
use crate::{PassageResults, RagError, hybrid};

/// A collection that the model can query.
#[derive(Clone, Debug)]
pub struct Collection {
    pub name: String,
    /// The subject of the collection. The model selects a collection by this text.
    pub description: String,
    pub kind: CollectionKind,
}

/// The source of a collection's answers.
#[derive(Clone, Debug)]
pub enum CollectionKind {
    /// An index over local folders.
    Local(Arc<Local>),
    /// A server that answers questions.
    Remote(Arc<Remote>),
}

/// The answer of a collection.
#[derive(Clone, Debug, PartialEq)]
pub enum CollectionAnswer {
    /// Passages of files.
    Passages(PassageResults),
    /// The answer of a server.
    Text {
        text: String,
        /// The sources, if the server reports them.
        sources: Vec<String>,
    },
}

/// An error of a query.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// An error of the index or the folders.
    #[error(transparent)]
    Local(#[from] RagError),
    /// An error of the server.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// The search task panicked or was aborted.
    #[error("the search broke off: {0}")]
    Broken(String),
}

impl Collection {
    /// Answers a question with text, or with at most `top` passages.
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
    /// Formats the location as `PATH:FIRST-LAST`.
    pub fn source(&self) -> String {
        format!(
            "{}:{}-{}",
            self.path.display(),
            self.start_line,
            self.end_line
        )
    }
}
