//! Answers questions from local folders.
//!
//! Invariant: answers reflect the current content of the folders. The index is updated first, and
//! the passages are read from the files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_text::Masker;

use crate::error::RagError;
use crate::files;
use crate::index::{
    self, IndexCondition, IndexHit, IndexUpdate, PassageIndex, PendingVector, fuse_rankings,
};
use crate::remote::{EmbeddingCost, Remote};

/// The maximum number of passages from one file in an answer.
const MAX_PASSAGES_PER_FILE: usize = 2;
/// The number of hits that are taken from each of the two rankings, by keywords and by embedding,
/// before they are fused.
const FUSION_CANDIDATES: usize = 50;

/// A collection of the files in local folders, which are searched through an index.
#[derive(Clone, Debug)]
pub struct Local {
    folders: Vec<PathBuf>,
    index: PathBuf,
    /// The server that computes embeddings, if the collection uses them.
    pub(crate) embedder: Option<Arc<Remote>>,
}

/// A passage of a file that answers a question.
#[derive(Clone, Debug, PartialEq)]
pub struct Passage {
    pub path: PathBuf,
    /// The first line of the passage, from 1.
    pub start_line: usize,
    /// The last line of the passage, inclusive.
    pub end_line: usize,
    /// The text of the passage, with secrets masked.
    pub text: String,
    /// The relevance of the passage; higher is better. Scores are comparable only within one
    /// answer.
    pub score: f64,
}

/// The passages that answer a question, with notes about the index and the costs of embeddings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PassageResults {
    /// The passages, grouped by file. The passages of the best file come first.
    pub passages: Vec<Passage>,
    /// Messages for the user about the index, such as missing folders.
    pub notes: Vec<String>,
    /// The cost of each embedding request whose price is known.
    pub embedding: Vec<EmbeddingCost>,
}

/// The number of files in a collection, and the size of its index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CollectionStatus {
    /// The number of indexed files that contain text.
    pub files: u64,
    pub passages: u64,
    /// The size of the index database, in bytes.
    pub bytes: u64,
}

impl Local {
    /// Creates a collection over `folders`. Its index is stored in the file `index`.
    pub fn new(folders: Vec<PathBuf>, index: PathBuf) -> Self {
        Self {
            folders,
            index,
            embedder: None,
        }
    }

    /// Sets the server that computes embeddings. The collection is then searched by meaning as well
    /// as by keywords.
    #[must_use]
    pub fn with_embedder(self, embedder: Arc<Remote>) -> Self {
        Self {
            embedder: Some(embedder),
            ..self
        }
    }

    pub fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// Updates the index to the current content of the folders. Returns the numbers of updated
    /// files, and messages for the user.
    pub fn update(&self) -> Result<(IndexUpdate, Vec<String>), RagError> {
        let (update, notes) = self.run_with_index(|index| index.update(&self.folders))?;
        let notes = self.collect_notes(&update, notes)?;
        Ok((update, notes))
    }

    /// Updates the index, and returns the best passages for a question, at most `top`, searching by
    /// keywords.
    pub fn query(&self, question: &str, top: usize) -> Result<PassageResults, RagError> {
        let ((update, hits), notes) = self.run_with_index(|index| {
            let update = match index.update(&self.folders) {
                // Another process has been updating the index for a long time, so the question is
                // answered from the current index.
                Err(error)
                    if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) =>
                {
                    None
                }
                other => Some(other?),
            };
            Ok((update, index.search(question, top, MAX_PASSAGES_PER_FILE)?))
        })?;
        let notes = match update {
            Some(update) => self.collect_notes(&update, notes)?,
            None if hits.is_empty() => return Err(RagError::Busy(self.index.clone())),
            None => {
                vec!["another process is changing the index; what is new may be missing".to_owned()]
            }
        };
        let passages = hits.into_iter().filter_map(read_passage).collect();
        Ok(PassageResults {
            passages,
            notes,
            ..PassageResults::default()
        })
    }

    /// Returns at most `limit` passages without an embedding of `model`, and the total number of
    /// such passages.
    pub(crate) fn find_pending_vectors(
        &self,
        model: &str,
        limit: usize,
    ) -> Result<(Vec<PendingVector>, usize), RagError> {
        Ok(self
            .run_with_index(|index| index.find_pending_vectors(model, limit))?
            .0)
    }

    pub(crate) fn store_vectors(
        &self,
        model: &str,
        made: &[([u8; 32], Vec<f32>)],
    ) -> Result<(), RagError> {
        self.run_with_index(|index| index.store_vectors(model, made))
            .map(drop)
    }

    /// Returns the best passages for a question, at most `top`, searching by keywords and by the
    /// question's embedding.
    pub(crate) fn query_hybrid(
        &self,
        question: &str,
        vector: &[f32],
        model: &str,
        top: usize,
    ) -> Result<Vec<Passage>, RagError> {
        let (hits, _) = self.run_with_index(|index| {
            let words =
                index.search(question, top.max(FUSION_CANDIDATES), MAX_PASSAGES_PER_FILE)?;
            let meaning = index.find_nearest_passages(
                model,
                vector,
                top.max(FUSION_CANDIDATES),
                MAX_PASSAGES_PER_FILE,
            )?;
            Ok(fuse_rankings([words, meaning], top, MAX_PASSAGES_PER_FILE))
        })?;
        Ok(hits.into_iter().filter_map(read_passage).collect())
    }

    /// Returns the size of the index. The index is not updated.
    pub fn status(&self) -> Result<CollectionStatus, RagError> {
        let Ok(about) = std::fs::metadata(&self.index) else {
            return Ok(CollectionStatus::default());
        };
        let ((files, passages), _) =
            self.run_with_index(|index| index.count_files_and_passages())?;
        Ok(CollectionStatus {
            files,
            passages,
            bytes: about.len(),
        })
    }

    /// Removes the index. The files in the folders are not touched.
    pub fn remove_index(&self) -> Result<(), RagError> {
        if self.index.exists() {
            index::remove_index(&self.index)
        } else {
            Ok(())
        }
    }

    /// Runs `work` on the index. If the index turns out to be damaged, it is recreated and updated,
    /// and `work` is run again.
    fn run_with_index<T>(
        &self,
        mut work: impl FnMut(&mut PassageIndex) -> rusqlite::Result<T>,
    ) -> Result<(T, Vec<String>), RagError> {
        const RECREATED_NOTE: &str =
            "the index was damaged or of another version and was made again";
        let (mut index, opened) = PassageIndex::open(&self.index)?;
        let mut notes = match opened {
            IndexCondition::Sound => Vec::new(),
            IndexCondition::Recreated => vec![RECREATED_NOTE.to_owned()],
        };
        let done = match work(&mut index) {
            Err(error) if index::is_damage_error(&error) => {
                drop(index);
                notes = vec![RECREATED_NOTE.to_owned()];
                let mut index = PassageIndex::recreate(&self.index)?;
                // `work` needs the content of the index.
                index
                    .update(&self.folders)
                    .map_err(|source| index::index_error(&self.index, source))?;
                work(&mut index)
            }
            other => other,
        };
        Ok((
            done.map_err(|source| index::index_error(&self.index, source))?,
            notes,
        ))
    }

    fn collect_notes(
        &self,
        update: &IndexUpdate,
        mut notes: Vec<String>,
    ) -> Result<Vec<String>, RagError> {
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

/// Reads the passage of a search hit. Returns `None` if the file no longer exists.
fn read_passage(hit: IndexHit) -> Option<Passage> {
    let text = files::decode_text(&read_regular_file(&hit.path)?)?;
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

/// Reads a file. Returns `None` if the file was replaced by a link since it was indexed.
fn read_regular_file(path: &Path) -> Option<Vec<u8>> {
    path.symlink_metadata()
        .ok()
        .filter(std::fs::Metadata::is_file)?;
    files::read_file(path)
}
