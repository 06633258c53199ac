//! Finds the passages that answer a question.
//!
//! Files are ranked first, mostly as a whole and a little by their best passage, because a question
//! is answered by a file about its subject rather than by a file that mentions it. Each text is
//! scored by BM25 three times: for the words of the question, for adjacent words of the question
//! that occur near each other, and for synonyms. The last two weigh less. Then the best passages of
//! the best files are selected.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use super::PassageIndex;
use crate::{synonyms, terms};

/// The weight of a question's word in the path of a file, relative to a word in the text.
const PATH_WEIGHT: f64 = 2.0;
/// The additional weight of a question's word if it occurs in a heading or definition.
const NAMES_WEIGHT: f64 = 1.0;
/// The additional weight of a question's word if it occurs in a comment. It is zero, because
/// indexing comments twice only makes a well-documented file longer, so that each of its words
/// counts less.
const COMMENTS_WEIGHT: f64 = 0.0;
/// The weight of a file's complete text in the file's score, from 0 to 1. The rest of the score
/// comes from the file's best passage.
const WHOLE_FILE_WEIGHT: f64 = 0.85;
/// The weight of two adjacent words of the question if they also occur near each other in a text,
/// relative to a single word.
const NEAR_WEIGHT: f64 = 0.4;
/// The maximum number of words between two words that count as near each other.
const MAX_NEAR_DISTANCE: usize = 8;
/// The weight of synonyms, relative to the words of the question.
const SYNONYM_WEIGHT: f64 = 0.3;
/// The maximum number of rows that one query of the database returns.
const MAX_CANDIDATES: i64 = 1_000;
/// The maximum number of a question's terms that are used for the search. Further terms are
/// ignored.
const MAX_TERMS: usize = 48;

/// The location and score of a passage that answers a question.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct IndexHit {
    pub(crate) path: PathBuf,
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// The score of the file or, in a vector search, of the passage. Higher is better.
    pub(crate) score: f64,
}

/// A question, converted to expressions of SQLite's full-text search.
struct IndexQuery {
    words: String,
    near: String,
    synonyms: String,
}

impl IndexQuery {
    /// Converts a question to search expressions. Returns `None` if the question contains no word.
    fn parse(question: &str) -> Option<Self> {
        let mut terms = terms::split_question_terms(question);
        terms.truncate(MAX_TERMS);
        let mut near = String::new();
        for pair in terms.windows(2) {
            if let [one, other] = pair
                && one != other
            {
                let or = if near.is_empty() { "" } else { " OR " };
                // Writing to a String cannot fail.
                let _ = write!(near, "{or}NEAR(\"{one}\" \"{other}\", {MAX_NEAR_DISTANCE})");
            }
        }
        let same = join_with_or(&synonyms::find_synonyms(&terms));
        terms.sort();
        terms.dedup();
        (!terms.is_empty()).then(|| Self {
            words: join_with_or(&terms),
            near,
            synonyms: same,
        })
    }
}

fn join_with_or<T: AsRef<str>>(terms: &[T]) -> String {
    terms
        .iter()
        .map(|term| format!("\"{}\"", term.as_ref()))
        .collect::<Vec<_>>()
        .join(" OR ")
}

impl PassageIndex {
    /// Returns the best passages for a question, with at most `limit_per_file` passages from each
    /// file. The passages of the best file come first.
    pub(crate) fn search(
        &self,
        question: &str,
        limit: usize,
        limit_per_file: usize,
    ) -> rusqlite::Result<Vec<IndexHit>> {
        let Some(question) = IndexQuery::parse(question) else {
            return Ok(Vec::new());
        };
        let mut hits = Vec::new();
        for (file, score) in self.rank_files(&question)? {
            if hits.len() >= limit {
                break;
            }
            hits.extend(self.find_best_passages(
                &question,
                file,
                score,
                limit_per_file.min(limit - hits.len()),
            )?);
        }
        Ok(hits)
    }

    /// Returns the ids and scores of the files that match the question. The best file comes first.
    fn rank_files(&self, question: &IndexQuery) -> rusqlite::Result<Vec<(i64, f64)>> {
        let mut passages: HashMap<i64, f64> = HashMap::new();
        let mut owner = self
            .connection
            .prepare_cached("SELECT file FROM chunk WHERE id = ?1")?;
        for (id, score) in self.score_rows("passage", question)? {
            let best = passages
                .entry(owner.query_row([id], |row| row.get(0))?)
                .or_default();
            *best = best.max(score);
        }
        let mut files: Vec<(i64, f64)> = self
            .score_rows("whole", question)?
            .into_iter()
            .map(|(file, whole)| {
                (
                    file,
                    WHOLE_FILE_WEIGHT * whole
                        + (1.0 - WHOLE_FILE_WEIGHT) * passages.get(&file).copied().unwrap_or(0.0),
                )
            })
            .collect();
        files.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        Ok(files)
    }

    /// Scores the rows of `table` that match words of the question.
    fn score_rows(
        &self,
        table: &str,
        question: &IndexQuery,
    ) -> rusqlite::Result<HashMap<i64, f64>> {
        // BM25 in SQLite returns smaller numbers for better matches.
        let mut statement = self.connection.prepare_cached(&format!(
            "SELECT rowid, -bm25({table}, ?2, ?3, ?4, 1.0) AS score FROM {table} WHERE {table} MATCH ?1
             ORDER BY score DESC LIMIT ?5"
        ))?;
        let mut scores: HashMap<i64, f64> = HashMap::new();
        for (expression, counts) in [
            (&question.words, 1.0),
            (&question.near, NEAR_WEIGHT),
            (&question.synonyms, SYNONYM_WEIGHT),
        ] {
            if expression.is_empty() {
                continue;
            }
            let first = scores.is_empty();
            let rows = statement.query_map(
                (
                    expression,
                    PATH_WEIGHT,
                    NAMES_WEIGHT,
                    COMMENTS_WEIGHT,
                    MAX_CANDIDATES,
                ),
                |row| Ok((row.get::<_, i64>(0)?, row.get::<_, f64>(1)?)),
            )?;
            for row in rows {
                let (id, score) = row?;
                if first {
                    scores.insert(id, counts * score);
                } else if let Some(known) = scores.get_mut(&id) {
                    *known += counts * score;
                }
            }
        }
        Ok(scores)
    }

    /// Returns the best passages of one file for a question.
    fn find_best_passages(
        &self,
        question: &IndexQuery,
        file: i64,
        score: f64,
        limit: usize,
    ) -> rusqlite::Result<Vec<IndexHit>> {
        let (path, first, last): (Vec<u8>, i64, i64) = self
            .connection
            .prepare_cached(
                "SELECT path, (SELECT min(id) FROM chunk WHERE file = ?1), (SELECT max(id) FROM chunk WHERE file = ?1)
                 FROM file WHERE id = ?1",
            )?
            .query_row([file], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        let path = PathBuf::from(OsString::from_vec(path));
        let mut statement = self.connection.prepare_cached(
            "SELECT chunk.start, chunk.\"end\"
             FROM (SELECT rowid AS id, bm25(passage, ?2, ?3, ?4, 1.0) AS score FROM passage
                   WHERE passage MATCH ?1 AND rowid BETWEEN ?5 AND ?6 ORDER BY score LIMIT ?7) AS found
             JOIN chunk ON chunk.id = found.id WHERE chunk.file = ?8 ORDER BY found.score, chunk.id",
        )?;
        let parameters = (
            &question.words,
            PATH_WEIGHT,
            NAMES_WEIGHT,
            COMMENTS_WEIGHT,
            first,
            last,
            limit as u32,
            file,
        );
        let rows = statement.query_map(parameters, |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
        })?;
        rows.map(|row| {
            let (start, end) = row?;
            Ok(IndexHit {
                path: path.clone(),
                start: start as usize,
                end: end as usize,
                score,
            })
        })
        .collect()
    }
}
