//! Stores embeddings of passages and compares them with the embedding of a question.
//!
//! Invariant: an embedding is stored under the hash of its text and the name of its model, so
//! embeddings of other texts or models are never compared. Embeddings of removed texts are deleted.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use rusqlite::{TransactionBehavior, params};

use super::update::hash_chunk;
use super::{IndexHit, PassageIndex};
use crate::chunks::split_chunks;
use crate::files;

/// The constant that is added to the rank of a hit in reciprocal rank fusion. 60 is the usual
/// value.
const RANK_OFFSET: f64 = 60.0;

/// A passage that needs an embedding: its text, and the hash of the text.
pub(crate) struct PendingVector {
    pub(crate) hash: [u8; 32],
    pub(crate) text: String,
}

impl PassageIndex {
    /// Returns at most `limit` passages without an embedding of `model`, and the total number of
    /// such passages.
    pub(crate) fn find_pending_vectors(
        &self,
        model: &str,
        limit: usize,
    ) -> rusqlite::Result<(Vec<PendingVector>, usize)> {
        let mut statement = self.connection.prepare_cached(
            "SELECT chunk.hash, min(file.path) FROM chunk JOIN file ON file.id = chunk.file
             WHERE NOT EXISTS (SELECT 1 FROM vector WHERE vector.hash = chunk.hash AND vector.model = ?1)
             GROUP BY chunk.hash",
        )?;
        let rows = statement.query_map([model], |row| {
            Ok((row.get::<_, [u8; 32]>(0)?, row.get::<_, Vec<u8>>(1)?))
        })?;
        let mut wanted: BTreeMap<PathBuf, HashSet<[u8; 32]>> = BTreeMap::new();
        let mut all = 0;
        for row in rows {
            let (hash, path) = row?;
            all += 1;
            wanted
                .entry(PathBuf::from(OsString::from_vec(path)))
                .or_default()
                .insert(hash);
        }
        let mut pending = Vec::new();
        for (path, mut hashes) in wanted {
            // If the file has changed, its new passages get embeddings after the next index update.
            let text = files::read_file(&path)
                .and_then(|bytes| files::decode_text(&bytes))
                .unwrap_or_default();
            for chunk in split_chunks(&text) {
                let hash = hash_chunk(&chunk.text);
                if pending.len() < limit && hashes.remove(&hash) {
                    pending.push(PendingVector {
                        hash,
                        text: chunk.text,
                    });
                }
            }
            if pending.len() >= limit {
                break;
            }
        }
        Ok((pending, all))
    }

    /// Stores embeddings that `model` computed, and deletes the embeddings of passages that no
    /// longer exist.
    pub(crate) fn store_vectors(
        &mut self,
        model: &str,
        made: &[([u8; 32], Vec<f32>)],
    ) -> rusqlite::Result<()> {
        let writing = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        for (hash, vector) in made {
            let bytes: Vec<u8> = vector.iter().flat_map(|part| part.to_le_bytes()).collect();
            writing
                .prepare_cached(
                    "INSERT OR REPLACE INTO vector (hash, model, dimension, parts) VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute(params![hash, model, vector.len() as u32, bytes])?;
        }
        writing.execute(
            "DELETE FROM vector WHERE hash NOT IN (SELECT hash FROM chunk)",
            [],
        )?;
        writing.commit()
    }

    /// Returns the passages whose embeddings are nearest to the embedding of the question, with at
    /// most `limit_per_file` passages from each file. The nearest passage comes first.
    pub(crate) fn find_nearest_passages(
        &self,
        model: &str,
        question: &[f32],
        limit: usize,
        limit_per_file: usize,
    ) -> rusqlite::Result<Vec<IndexHit>> {
        let mut statement = self.connection.prepare_cached(
            "SELECT file.path, chunk.start, chunk.\"end\", vector.parts
             FROM vector JOIN chunk ON chunk.hash = vector.hash JOIN file ON file.id = chunk.file
             WHERE vector.model = ?1 AND vector.dimension = ?2",
        )?;
        let rows = statement.query_map(params![model, question.len() as u32], |row| {
            let path = PathBuf::from(OsString::from_vec(row.get(0)?));
            let start: i64 = row.get(1)?;
            let end: i64 = row.get(2)?;
            let score = cosine_similarity(question, row.get_ref(3)?.as_blob()?);
            Ok(IndexHit {
                path,
                start: start as usize,
                end: end as usize,
                score,
            })
        })?;
        let mut hits = rows.collect::<Result<Vec<_>, _>>()?;
        hits.sort_by(|one, other| {
            other
                .score
                .total_cmp(&one.score)
                .then_with(|| hit_location(one).cmp(&hit_location(other)))
        });
        Ok(limit_hits_per_file(hits, limit, limit_per_file))
    }
}

fn hit_location(hit: &IndexHit) -> (&PathBuf, usize) {
    (&hit.path, hit.start)
}

fn cosine_similarity(question: &[f32], bytes: &[u8]) -> f64 {
    let parts = bytes
        .chunks_exact(4)
        .map(|part| f32::from_le_bytes([part[0], part[1], part[2], part[3]]));
    let mut product = 0.0_f64;
    let mut own = 0.0_f64;
    let mut other = 0.0_f64;
    for (one, two) in question.iter().zip(parts) {
        let one = f64::from(*one);
        let two = f64::from(two);
        product += one * two;
        own += one * one;
        other += two * two;
    }
    if own == 0.0 || other == 0.0 {
        0.0
    } else {
        product / (own * other).sqrt()
    }
}

/// Merges two rankings by reciprocal rank fusion: a hit that ranks high in either ranking also
/// ranks high in the result.
pub(crate) fn fuse_rankings(
    rankings: [Vec<IndexHit>; 2],
    limit: usize,
    limit_per_file: usize,
) -> Vec<IndexHit> {
    let mut hits: Vec<IndexHit> = Vec::new();
    let mut known: HashMap<(PathBuf, usize), usize> = HashMap::new();
    for ranking in rankings {
        for (rank, hit) in ranking.into_iter().enumerate() {
            let score = 1.0 / (RANK_OFFSET + rank as f64 + 1.0);
            let at = *known
                .entry((hit.path.clone(), hit.start))
                .or_insert(hits.len());
            match hits.get_mut(at) {
                Some(earlier) => earlier.score += score,
                None => hits.push(IndexHit { score, ..hit }),
            }
        }
    }
    // The sort is stable: if two hits have equal scores, the hit from the first ranking comes
    // first.
    hits.sort_by(|one, other| other.score.total_cmp(&one.score));
    limit_hits_per_file(hits, limit, limit_per_file)
}

fn limit_hits_per_file(hits: Vec<IndexHit>, limit: usize, limit_per_file: usize) -> Vec<IndexHit> {
    let mut taken: HashMap<PathBuf, usize> = HashMap::new();
    let fits = |hit: &IndexHit| {
        let count = taken.entry(hit.path.clone()).or_default();
        *count += 1;
        *count <= limit_per_file
    };
    hits.into_iter().filter(fits).take(limit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(name: &str, start: usize) -> IndexHit {
        IndexHit {
            path: name.into(),
            start,
            end: start,
            score: 0.0,
        }
    }

    #[test]
    fn fused_puts_hits_of_both_rankings_first() {
        let words = vec![hit("a", 1), hit("b", 1), hit("c", 1)];
        let meaning = vec![hit("d", 1), hit("b", 1)];
        let names: Vec<_> = fuse_rankings([words, meaning], 10, 2)
            .into_iter()
            .map(|hit| hit.path.display().to_string())
            .collect();
        assert_eq!(names, ["b", "a", "d", "c"]);
        let many = vec![hit("a", 1), hit("a", 2), hit("a", 3), hit("b", 1)];
        assert_eq!(fuse_rankings([many, Vec::new()], 10, 2).len(), 3);
    }

    #[test]
    fn cosine_compares_directions() {
        let bytes = |vector: &[f32]| -> Vec<u8> {
            vector.iter().flat_map(|part| part.to_le_bytes()).collect()
        };
        assert!((cosine_similarity(&[1.0, 0.0], &bytes(&[5.0, 0.0])) - 1.0).abs() < 1e-9);
        assert!(cosine_similarity(&[1.0, 0.0], &bytes(&[0.0, 2.0])).abs() < 1e-9);
        assert!(cosine_similarity(&[0.0, 0.0], &bytes(&[1.0, 2.0])).abs() < 1e-9);
    }
}
