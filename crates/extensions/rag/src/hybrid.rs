//! Searches a collection by keywords and by meaning: computes the missing embeddings, then fuses
//! both rankings.
//!
//! Invariant: if the embedding server fails, the question is answered by keywords alone, with a
//! note about the failure.

use std::sync::Arc;

use haft_text::Masker;

use crate::collection::AskError;
use crate::local::{Local, PassageResults};
use crate::remote::{EmbeddingCost, Remote, RemoteError};

/// The number of texts that are sent in one embedding request.
const BATCH_SIZE: usize = 32;
/// The maximum number of passages that are embedded before a question is answered. The remaining
/// passages are embedded when later questions are asked.
const MAX_NEW_VECTORS: usize = 2_048;
/// The maximum length of a text that is embedded, in characters. Many models reject longer texts.
const MAX_TEXT_CHARS: usize = 8_000;

/// Returns the best passages for a question, at most `top`, searching both by keywords and by
/// meaning.
pub(crate) async fn query_hybrid(
    local: &Arc<Local>,
    embedder: &Arc<Remote>,
    question: &str,
    top: usize,
) -> Result<PassageResults, AskError> {
    // This query updates the index. Its result is the answer if there are no embeddings.
    let by_words = Arc::clone(local);
    let asked = question.to_owned();
    let mut found = run_blocking(move || by_words.query(&asked, top)).await?;
    let without = match embed_pending_passages(local, embedder, &mut found.embedding).await? {
        Ok(without) => without,
        Err(why) => return Ok(add_failure_note(found, &why)),
    };
    if without > 0 {
        found.notes.push(format!(
            "{without} passages have no vector yet and are found by their words only"
        ));
    }
    let vector = match embedder.embed_texts(&[prepare_text(question)]).await {
        Ok((vectors, cost)) => {
            found.embedding.extend(cost);
            vectors.into_iter().next().unwrap_or_default()
        }
        Err(why) => return Ok(add_failure_note(found, &why)),
    };
    let both = Arc::clone(local);
    let asked = question.to_owned();
    let model = embedder.model().to_owned();
    found.passages = run_blocking(move || both.query_hybrid(&asked, &vector, &model, top)).await?;
    Ok(found)
}

fn add_failure_note(mut found: PassageResults, why: &RemoteError) -> PassageResults {
    found.notes.push(format!(
        "found by words alone, because the embedding model gave no vectors: {why}"
    ));
    found
}

/// Computes embeddings for at most [`MAX_NEW_VECTORS`] passages that have none yet. Returns the
/// number of passages that remain without an embedding.
async fn embed_pending_passages(
    local: &Arc<Local>,
    embedder: &Arc<Remote>,
    costs: &mut Vec<EmbeddingCost>,
) -> Result<Result<usize, RemoteError>, AskError> {
    let reader = Arc::clone(local);
    let model = embedder.model().to_owned();
    let (pending, all) =
        run_blocking(move || reader.find_pending_vectors(&model, MAX_NEW_VECTORS)).await?;
    for some in pending.chunks(BATCH_SIZE) {
        let texts: Vec<_> = some.iter().map(|one| prepare_text(&one.text)).collect();
        let vectors = match embedder.embed_texts(&texts).await {
            Ok((vectors, cost)) => {
                costs.extend(cost);
                vectors
            }
            Err(why) => return Ok(Err(why)),
        };
        let made: Vec<_> = some.iter().map(|one| one.hash).zip(vectors).collect();
        let writer = Arc::clone(local);
        let model = embedder.model().to_owned();
        run_blocking(move || writer.store_vectors(&model, &made)).await?;
    }
    Ok(Ok(all.saturating_sub(pending.len())))
}

/// Prepares a text for embedding: secrets are masked, and the text is cut to the maximum length.
fn prepare_text(text: &str) -> String {
    let masked = Masker::default().mask(text).into_owned();
    let end = masked
        .char_indices()
        .nth(MAX_TEXT_CHARS)
        .map_or(masked.len(), |(at, _)| at);
    // Some servers reject an empty text.
    if masked.trim().is_empty() {
        "-".to_owned()
    } else {
        masked[..end].to_owned()
    }
}

/// Runs `work` on a thread for blocking operations, because using the index means reading files and
/// waiting for locks.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, crate::RagError> + Send + 'static,
) -> Result<T, AskError> {
    let done = tokio::task::spawn_blocking(work).await;
    Ok(done.map_err(|error| AskError::Broken(error.to_string()))??)
}
