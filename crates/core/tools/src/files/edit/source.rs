//! Loads, checks and decodes files before they are changed.

use std::path::PathBuf;

use serde_json::Value;

use crate::failure::{Coded, ToolFailure};
use crate::files::disk::{self, DiskError, LoadedFile};
use crate::files::encoding::{DecodedText, decode_text, describe_binary, encode_text};
use crate::files::write_guard::{self, ChangeRefusal, ReadRequirement};
use crate::paths;
use crate::scope::FileScope;

/// The reason why the text of a file could not be changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SourceError {
    #[error("`{name}` is {kind}, not text, and cannot be edited")]
    Binary { name: String, kind: &'static str },
    #[error("nothing would change in `{name}`: the old and the new text are the same")]
    NoChange { name: String },
    #[error(
        "`{name}` is written in {encoding}, which has no `{character}`; use other characters, or convert the file first"
    )]
    Unencodable {
        name: String,
        encoding: &'static str,
        character: char,
    },
    #[error("`{name}` exists already; nothing was changed. {hint}")]
    Exists { name: String, hint: &'static str },
    #[error(transparent)]
    Refused(#[from] ChangeRefusal),
}

impl Coded for SourceError {
    fn code(&self) -> &'static str {
        match self {
            Self::Binary { .. } => "binary_file",
            Self::NoChange { .. } => "no_change",
            Self::Unencodable { .. } => "unencodable",
            Self::Exists { .. } => "exists",
            Self::Refused(refusal) => refusal.code(),
        }
    }
}

/// A loaded file that may be changed.
pub(crate) struct EditSource {
    pub(crate) path: PathBuf,
    pub(crate) name: String,
    pub(super) loaded: LoadedFile,
}

impl EditSource {
    /// Records that the model has seen the whole file. Returns the state for the result's context.
    pub(crate) fn record_seen(&self, scope: &FileScope) -> Value {
        scope.record_seen(&self.path, self.loaded.state)
    }

    /// Loads a file and checks that it may be changed.
    pub(crate) fn load(scope: &FileScope, given: &str) -> Result<Self, ToolFailure> {
        let path = paths::resolve_path(&scope.workspace, given)?;
        let name = paths::display_path(&scope.workspace, &path);
        let loaded = scope.apply_unsaved(&path, disk::load_file(&path, &name)?);
        write_guard::check_changeable(scope, &path, &name, &loaded, ReadRequirement::Proven)?;
        Ok(Self { path, name, loaded })
    }

    /// Decodes the text of the file. Fails if the file is a document or not text.
    pub(crate) fn into_text(self, scope: &FileScope) -> Result<EditableText, SourceError> {
        write_guard::reject_document(scope, &self.path, &self.name, &self.loaded)?;
        match decode_text(&self.loaded.bytes) {
            Some(decoded) => Ok(EditableText {
                source: self,
                decoded,
            }),
            None => Err(SourceError::Binary {
                kind: describe_binary(&self.loaded.bytes),
                name: self.name,
            }),
        }
    }
}

/// A decoded text file that may be changed.
pub(crate) struct EditableText {
    pub(crate) source: EditSource,
    pub(super) decoded: DecodedText,
}

impl EditableText {
    pub(crate) fn as_str(&self) -> &str {
        &self.decoded.text
    }

    /// Encodes `text` in the encoding of this file.
    pub(super) fn encode(&self, text: &str) -> Result<Vec<u8>, SourceError> {
        let DecodedText { encoding, mark, .. } = self.decoded;
        encode_text(text, encoding, mark).map_err(|character| SourceError::Unencodable {
            name: self.source.name.clone(),
            encoding: encoding.name(),
            character,
        })
    }
}

/// A path at which no file exists.
pub(crate) struct FreePath {
    pub(crate) path: PathBuf,
    pub(crate) name: String,
}

impl FreePath {
    /// Resolves a path, failing if a file or folder already exists there; `hint` is appended to
    /// that error message.
    pub(crate) fn resolve(
        scope: &FileScope,
        given: &str,
        hint: &'static str,
    ) -> Result<Self, ToolFailure> {
        let path = paths::resolve_path(&scope.workspace, given)?;
        let name = paths::display_path(&scope.workspace, &path);
        match disk::open_file(&path, &name) {
            Err(DiskError::NotFound { .. }) => Ok(Self { path, name }),
            Err(DiskError::Folder { .. }) | Ok(_) => Err(SourceError::Exists { name, hint }.into()),
            Err(error) => Err(error.into()),
        }
    }
}
