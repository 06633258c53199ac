//! A collection by its name, whatever answers for it.

use std::sync::Arc;

use crate::local::{Local, Passage};
use crate::remote::{Remote, RemoteError};
use crate::{PassageResults, RagError, hybrid};

/// A collection the model can ask.
#[derive(Clone, Debug)]
pub struct Collection {
    /// Its name.
    pub name: String,
    /// What it is about.
    pub description: String,
    /// Who answers.
    pub kind: CollectionKind,
}

/// Who answers for a collection.
#[derive(Clone, Debug)]
pub enum CollectionKind {
    /// An index over folders.
    Local(Arc<Local>),
    /// A server.
    Remote(Arc<Remote>),
}

/// What a collection answered.
#[derive(Clone, Debug, PartialEq)]
pub enum CollectionAnswer {
    /// Passages of files.
    Passages(PassageResults),
    /// What a server said.
    Told {
        /// The answer.
        text: String,
        /// Its sources, where the server names them.
        sources: Vec<String>,
    },
}

/// Why a collection gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Its index or its folders.
    #[error(transparent)]
    Local(#[from] RagError),
    /// Its server.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// The search itself.
    #[error("the search broke off: {0}")]
    Broken(String),
}

impl Collection {
    /// The passages or the answer to a question; at most `top` passages.
    pub async fn ask(&self, question: &str, top: usize) -> Result<CollectionAnswer, AskError> {
        match &self.kind {
            CollectionKind::Local(local) => {
                if let Some(embedder) = &local.embedder {
                    let found = hybrid::query(local, embedder, question, top).await?;
                    return Ok(CollectionAnswer::Passages(found));
                }
                let local = Arc::clone(local);
                let question = question.to_owned();
                // The index reads files and waits for locks.
                let found = tokio::task::spawn_blocking(move || local.query(&question, top)).await;
                Ok(CollectionAnswer::Passages(
                    found.map_err(|error| AskError::Broken(error.to_string()))??,
                ))
            }
            CollectionKind::Remote(remote) => {
                let told = remote.ask(question).await?;
                Ok(CollectionAnswer::Told {
                    text: told.text,
                    sources: told.sources,
                })
            }
        }
    }
}

impl Passage {
    /// Where it stands, as editors and tools write it.
    pub fn source(&self) -> String {
        format!(
            "{}:{}-{}",
            self.path.display(),
            self.start_line,
            self.end_line
        )
    }
}
