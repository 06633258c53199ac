//! A collection asked by words and by meaning: vectors are made for what has none, then both
//! rankings become one.
//!
//! Invariant: where the server that makes vectors does not answer, the question is answered by
//! words alone, and that is said.

use std::sync::Arc;

use haft_text::Masker;

use crate::collection::AskError;
use crate::local::{Local, PassageResults};
use crate::remote::{EmbeddingCost, Remote, RemoteError};

/// So many texts are sent at once.
const AT_ONCE: usize = 32;
/// So many passages get a vector before one question is answered; the others later.
const MOST: usize = 2_048;
/// More of a passage than this says nothing new of it, and many models take no more.
const MOST_CHARACTERS: usize = 8_000;

/// The passages that answer a question best.
pub(crate) async fn query(
    local: &Arc<Local>,
    embedder: &Arc<Remote>,
    question: &str,
    top: usize,
) -> Result<PassageResults, AskError> {
    // Brings the index up to date, and is the answer where there are no vectors.
    let by_words = Arc::clone(local);
    let asked = question.to_owned();
    let mut found = blocking(move || by_words.query(&asked, top)).await?;
    let without = match make_vectors(local, embedder, &mut found.embedding).await? {
        Ok(without) => without,
        Err(why) => return Ok(by_words_alone(found, &why)),
    };
    if without > 0 {
        found.notes.push(format!(
            "{without} passages have no vector yet and are found by their words only"
        ));
    }
    let vector = match embedder.embed(&[sent(question)]).await {
        Ok((vectors, cost)) => {
            found.embedding.extend(cost);
            vectors.into_iter().next().unwrap_or_default()
        }
        Err(why) => return Ok(by_words_alone(found, &why)),
    };
    let both = Arc::clone(local);
    let asked = question.to_owned();
    let model = embedder.model().to_owned();
    found.passages = blocking(move || both.query_both(&asked, &vector, &model, top)).await?;
    Ok(found)
}

fn by_words_alone(mut found: PassageResults, why: &RemoteError) -> PassageResults {
    found.notes.push(format!(
        "found by words alone, because the embedding model gave no vectors: {why}"
    ));
    found
}

/// Makes vectors for passages that have none, and says how many are still without.
async fn make_vectors(
    local: &Arc<Local>,
    embedder: &Arc<Remote>,
    costs: &mut Vec<EmbeddingCost>,
) -> Result<Result<usize, RemoteError>, AskError> {
    let reader = Arc::clone(local);
    let model = embedder.model().to_owned();
    let (pending, all) = blocking(move || reader.pending(&model, MOST)).await?;
    for some in pending.chunks(AT_ONCE) {
        let texts: Vec<_> = some.iter().map(|one| sent(&one.text)).collect();
        let vectors = match embedder.embed(&texts).await {
            Ok((vectors, cost)) => {
                costs.extend(cost);
                vectors
            }
            Err(why) => return Ok(Err(why)),
        };
        let made: Vec<_> = some.iter().map(|one| one.hash).zip(vectors).collect();
        let writer = Arc::clone(local);
        let model = embedder.model().to_owned();
        blocking(move || writer.keep_vectors(&model, &made)).await?;
    }
    Ok(Ok(all.saturating_sub(pending.len())))
}

/// What is sent of a text: no secrets, and not more than says something.
fn sent(text: &str) -> String {
    let masked = Masker::default().mask(text).into_owned();
    let end = masked
        .char_indices()
        .nth(MOST_CHARACTERS)
        .map_or(masked.len(), |(at, _)| at);
    // Some servers refuse an empty text.
    if masked.trim().is_empty() {
        "-".to_owned()
    } else {
        masked[..end].to_owned()
    }
}

/// The index reads files and waits for locks.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, crate::RagError> + Send + 'static,
) -> Result<T, AskError> {
    let done = tokio::task::spawn_blocking(work).await;
    Ok(done.map_err(|error| AskError::Broken(error.to_string()))??)
}
