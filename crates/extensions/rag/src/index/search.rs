//! Which passages answer a question.
//!
//! Files are ranked first, mostly as a whole and a little by their best passage: a question is
//! answered by a file that is about it, not by one that mentions it. Each is scored by BM25 three
//! times: for the words of the question, for words of the question that stand near each other, and
//! for words of the same meaning; the last two count less. Then the best passages of the best files
//! are taken.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use super::PassageIndex;
use crate::{synonyms, words};

/// How much a word in the path counts against one in the text,
const PATH: f64 = 2.0;
/// and one in a heading or definition, which stands in the text as well.
const NAMES: f64 = 1.0;
/// Comments stand in the text. Once more in a column of their own they only make a file longer, so
/// that each word of one that explains everything at length counts less.
const COMMENTS: f64 = 0.0;
/// What the file as a whole counts; its best passage counts the rest.
const WHOLE: f64 = 0.85;
/// What words near each other add.
const NEAR: f64 = 0.4;
/// So many words may lie between them.
const DISTANCE: usize = 8;
/// What words of the same meaning add.
const SYNONYMS: f64 = 0.3;
/// So many of the best are looked at each time.
const CANDIDATES: i64 = 1_000;
/// A question has no more terms than this.
const MOST_TERMS: usize = 48;

/// A passage that answers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct IndexHit {
    pub(crate) path: PathBuf,
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// How well its file answers; more is better.
    pub(crate) score: f64,
}

/// What a row is scored by, in the index's language.
struct IndexQuery {
    words: String,
    near: String,
    same: String,
}

impl IndexQuery {
    /// None when there is no word in it.
    fn read(question: &str) -> Option<Self> {
        let mut terms = words::question_terms(question);
        terms.truncate(MOST_TERMS);
        let mut near = String::new();
        for pair in terms.windows(2) {
            if let [one, other] = pair
                && one != other
            {
                let or = if near.is_empty() { "" } else { " OR " };
                // Writing to a String cannot fail.
                let _ = write!(near, "{or}NEAR(\"{one}\" \"{other}\", {DISTANCE})");
            }
        }
        let same = any_of(&synonyms::of(&terms));
        terms.sort();
        terms.dedup();
        (!terms.is_empty()).then(|| Self {
            words: any_of(&terms),
            near,
            same,
        })
    }
}

fn any_of<T: AsRef<str>>(terms: &[T]) -> String {
    terms
        .iter()
        .map(|term| format!("\"{}\"", term.as_ref()))
        .collect::<Vec<_>>()
        .join(" OR ")
}

impl PassageIndex {
    /// The passages that answer a question best, the best file first and at most `of_a_file` of
    /// each.
    pub(crate) fn search(
        &self,
        question: &str,
        most: usize,
        of_a_file: usize,
    ) -> rusqlite::Result<Vec<IndexHit>> {
        let Some(question) = IndexQuery::read(question) else {
            return Ok(Vec::new());
        };
        let mut hits = Vec::new();
        for (file, score) in self.best_files(&question)? {
            if hits.len() >= most {
                break;
            }
            hits.extend(self.passages(&question, file, score, of_a_file.min(most - hits.len()))?);
        }
        Ok(hits)
    }

    /// Files by how well they answer, the best first.
    fn best_files(&self, question: &IndexQuery) -> rusqlite::Result<Vec<(i64, f64)>> {
        let mut passages: HashMap<i64, f64> = HashMap::new();
        let mut owner = self
            .connection
            .prepare_cached("SELECT file FROM chunk WHERE id = ?1")?;
        for (id, score) in self.scored("passage", question)? {
            let best = passages
                .entry(owner.query_row([id], |row| row.get(0))?)
                .or_default();
            *best = best.max(score);
        }
        let mut files: Vec<(i64, f64)> = self
            .scored("whole", question)?
            .into_iter()
            .map(|(file, whole)| {
                (
                    file,
                    WHOLE * whole + (1.0 - WHOLE) * passages.get(&file).copied().unwrap_or(0.0),
                )
            })
            .collect();
        files.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        Ok(files)
    }

    /// The rows of a table that hold words of the question, each with its score.
    fn scored(&self, table: &str, question: &IndexQuery) -> rusqlite::Result<HashMap<i64, f64>> {
        // FTS5 gives the better match the smaller number.
        let mut statement = self.connection.prepare_cached(&format!(
            "SELECT rowid, -bm25({table}, ?2, ?3, ?4, 1.0) AS score FROM {table} WHERE {table} MATCH ?1
             ORDER BY score DESC LIMIT ?5"
        ))?;
        let mut scores: HashMap<i64, f64> = HashMap::new();
        for (expression, counts) in [
            (&question.words, 1.0),
            (&question.near, NEAR),
            (&question.same, SYNONYMS),
        ] {
            if expression.is_empty() {
                continue;
            }
            let first = scores.is_empty();
            let rows = statement
                .query_map((expression, PATH, NAMES, COMMENTS, CANDIDATES), |row| {
                    Ok((row.get::<_, i64>(0)?, row.get::<_, f64>(1)?))
                })?;
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

    /// The best passages of a file.
    fn passages(
        &self,
        question: &IndexQuery,
        file: i64,
        score: f64,
        most: usize,
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
            PATH,
            NAMES,
            COMMENTS,
            first,
            last,
            most as u32,
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
