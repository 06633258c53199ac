//! The request that asks a model to describe a folder anew after a turn changed files in it.

use haft_types::{ModelSpec, PromptLanguage, Request, TokenCounter, prompt};
use minijinja::context;

use crate::build::system::render_text;
use crate::error::ContextError;
use crate::reduce::compaction::plain_request;

/// What a model is told of a folder that changed.
#[derive(Clone, Debug)]
pub struct FolderChange<'a> {
    /// The folder, as the project knows it.
    pub folder: &'a str,
    /// What was written of it before.
    pub before: Option<&'a str>,
    /// The names in it.
    pub names: &'a [String],
    /// The files that changed.
    pub files: &'a [ChangedFile],
    /// What the user asked for.
    pub task: &'a str,
    /// What the agent answered.
    pub answer: &'a str,
}

/// A file that changed.
#[derive(Clone, Debug)]
pub struct ChangedFile {
    /// Its path in the project.
    pub path: String,
    /// What became of it, in one word.
    pub change: &'static str,
    /// Its beginning as it is now; empty when it is gone or is no text.
    pub text: String,
}

/// Makes the request.
pub fn active_request(
    change: &FolderChange<'_>,
    language: PromptLanguage,
    model: &ModelSpec,
    counter: &dyn TokenCounter,
) -> Result<Request, ContextError> {
    let file = |file: &ChangedFile| context! { path => &file.path, change => file.change, text => &file.text };
    let values = context! {
        folder => change.folder,
        before => change.before,
        names => change.names.to_vec(),
        files => change.files.iter().map(file).collect::<Vec<_>>(),
        task => change.task,
        answer => change.answer,
    };
    let instructions = render_text(
        "active",
        prompt!("../../templates/active").text(language),
        &values,
    )?;
    let folder = render_text(
        "active_folder",
        prompt!("../../templates/active_folder").text(language),
        &values,
    )?;
    Ok(plain_request(
        &instructions,
        "active",
        &folder,
        model,
        counter,
    ))
}
