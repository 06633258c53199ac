//! A collection over folders of this machine.
//!
//! Invariant: an answer is about what the folders hold now: the index is brought up to date first,
//! and the passages are read from the files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_text::Masker;

use crate::error::RagError;
use crate::files;
use crate::index::{self, IndexCondition, IndexHit, PassageIndex, PendingVector, Update, fused};
use crate::remote::{EmbeddingCost, Remote};

/// No more passages of one file than this answer a question.
const OF_A_FILE: usize = 2;
/// So many of each ranking are looked at where there are two.
const FUSED: usize = 50;

/// A collection over folders.
#[derive(Clone, Debug)]
pub struct Local {
    folders: Vec<PathBuf>,
    index: PathBuf,
    /// Makes vectors, where the collection has them.
    pub(crate) embedder: Option<Arc<Remote>>,
}

/// A passage that answers a question.
#[derive(Clone, Debug, PartialEq)]
pub struct Passage {
    /// The file.
    pub path: PathBuf,
    /// Its first line, from 1.
    pub start_line: usize,
    /// Its last line.
    pub end_line: usize,
    /// The lines, with secrets masked.
    pub text: String,
    /// How well it answers; more is better, and comparable within one answer only.
    pub score: f64,
}

/// What answers a question.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PassageResults {
    /// The passages, the best file first.
    pub passages: Vec<Passage>,
    /// What the user should know of the index.
    pub notes: Vec<String>,
    /// What the requests for vectors cost, where that is known.
    pub embedding: Vec<EmbeddingCost>,
}

/// How large a collection is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CollectionStatus {
    /// Files with text in them.
    pub files: u64,
    /// Passages.
    pub passages: u64,
    /// Bytes of the index.
    pub bytes: u64,
}

impl Local {
    /// The collection over these folders, with its index in this file.
    pub fn new(folders: Vec<PathBuf>, index: PathBuf) -> Self {
        Self {
            folders,
            index,
            embedder: None,
        }
    }

    /// The same, asked by meaning as well as by words: this server makes the vectors.
    #[must_use]
    pub fn with_embedder(self, embedder: Arc<Remote>) -> Self {
        Self {
            embedder: Some(embedder),
            ..self
        }
    }

    /// Its folders.
    pub fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// Brings the index up to date.
    pub fn update(&self) -> Result<(Update, Vec<String>), RagError> {
        let (update, notes) = self.with_index(|index| index.update(&self.folders))?;
        let notes = self.notes(&update, notes)?;
        Ok((update, notes))
    }

    /// The passages that answer a question best, at most `top`.
    pub fn query(&self, question: &str, top: usize) -> Result<PassageResults, RagError> {
        let ((update, hits), notes) = self.with_index(|index| {
            let update = match index.update(&self.folders) {
                // Another process is at it for long: what is there already must do.
                Err(error)
                    if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) =>
                {
                    None
                }
                other => Some(other?),
            };
            Ok((update, index.search(question, top, OF_A_FILE)?))
        })?;
        let notes = match update {
            Some(update) => self.notes(&update, notes)?,
            None if hits.is_empty() => return Err(RagError::Busy(self.index.clone())),
            None => {
                vec!["another process is changing the index; what is new may be missing".to_owned()]
            }
        };
        let passages = hits.into_iter().filter_map(passage).collect();
        Ok(PassageResults {
            passages,
            notes,
            ..PassageResults::default()
        })
    }

    /// Passages without a vector of this model, at most so many, and how many there are in all.
    pub(crate) fn pending(
        &self,
        model: &str,
        most: usize,
    ) -> Result<(Vec<PendingVector>, usize), RagError> {
        Ok(self.with_index(|index| index.pending(model, most))?.0)
    }

    pub(crate) fn keep_vectors(
        &self,
        model: &str,
        made: &[([u8; 32], Vec<f32>)],
    ) -> Result<(), RagError> {
        self.with_index(|index| index.keep_vectors(model, made))
            .map(drop)
    }

    /// The passages that answer a question best, by its words and by its vector.
    pub(crate) fn query_both(
        &self,
        question: &str,
        vector: &[f32],
        model: &str,
        top: usize,
    ) -> Result<Vec<Passage>, RagError> {
        let (hits, _) = self.with_index(|index| {
            let words = index.search(question, top.max(FUSED), OF_A_FILE)?;
            let meaning = index.nearest(model, vector, top.max(FUSED), OF_A_FILE)?;
            Ok(fused([words, meaning], top, OF_A_FILE))
        })?;
        Ok(hits.into_iter().filter_map(passage).collect())
    }

    /// How large it is, as far as it is indexed; nothing is indexed for it.
    pub fn status(&self) -> Result<CollectionStatus, RagError> {
        let Ok(about) = std::fs::metadata(&self.index) else {
            return Ok(CollectionStatus::default());
        };
        let ((files, passages), _) = self.with_index(|index| index.counts())?;
        Ok(CollectionStatus {
            files,
            passages,
            bytes: about.len(),
        })
    }

    /// Removes the index. The folders are not touched.
    pub fn forget(&self) -> Result<(), RagError> {
        if self.index.exists() {
            index::forget(&self.index)
        } else {
            Ok(())
        }
    }

    /// Works with the index; one that proves to be damaged is made again first.
    fn with_index<T>(
        &self,
        mut work: impl FnMut(&mut PassageIndex) -> rusqlite::Result<T>,
    ) -> Result<(T, Vec<String>), RagError> {
        const REMADE: &str = "the index was damaged or of another version and was made again";
        let (mut index, opened) = PassageIndex::open(&self.index)?;
        let mut notes = match opened {
            IndexCondition::Sound => Vec::new(),
            IndexCondition::Remade => vec![REMADE.to_owned()],
        };
        let done = match work(&mut index) {
            Err(error) if index::is_damage(&error) => {
                drop(index);
                notes = vec![REMADE.to_owned()];
                let mut index = PassageIndex::remake(&self.index)?;
                // What was asked of it needs what was in it.
                index
                    .update(&self.folders)
                    .map_err(|source| index::failed(&self.index, source))?;
                work(&mut index)
            }
            other => other,
        };
        Ok((
            done.map_err(|source| index::failed(&self.index, source))?,
            notes,
        ))
    }

    fn notes(&self, update: &Update, mut notes: Vec<String>) -> Result<Vec<String>, RagError> {
        if update.missing.len() == self.folders.len() {
            return Err(RagError::NoFolder(update.missing.clone()));
        }
        notes.extend(
            update
                .missing
                .iter()
                .map(|folder| format!("the folder `{}` is not there", folder.display())),
        );
        Ok(notes)
    }
}

/// Reads what was found; none when the file is gone by now.
fn passage(hit: IndexHit) -> Option<Passage> {
    let text = files::text(&read_now(&hit.path)?)?;
    let lines = text
        .lines()
        .skip(hit.start.saturating_sub(1))
        .take(hit.end + 1 - hit.start);
    let text = lines.collect::<Vec<_>>().join("\n");
    Some(Passage {
        text: Masker::default().mask(&text).into_owned(),
        path: hit.path,
        start_line: hit.start,
        end_line: hit.end,
        score: hit.score,
    })
}

/// A file that became a link since it was indexed is not followed.
fn read_now(path: &Path) -> Option<Vec<u8>> {
    path.symlink_metadata()
        .ok()
        .filter(std::fs::Metadata::is_file)?;
    files::read(path)
}
