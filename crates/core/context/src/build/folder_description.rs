//! Builds the request that asks a model for a new description of a folder after a turn changed
//! files in it.

use haft_types::{ModelSpec, PromptLanguage, Request, TokenCounter, prompt};
use minijinja::context;

use crate::build::system::render_template;
use crate::error::ContextError;
use crate::reduce::compaction::build_plain_request;

/// The facts that the model gets about a changed folder.
#[derive(Clone, Debug)]
pub struct FolderChange<'a> {
    /// The folder's path in the project.
    pub folder: &'a str,
    /// The previous description of the folder.
    pub before: Option<&'a str>,
    /// The names of the folder's entries.
    pub names: &'a [String],
    /// The changed files in the folder.
    pub files: &'a [ChangedFile],
    /// The user's request in the turn that changed the folder.
    pub task: &'a str,
    /// The agent's answer in the turn that changed the folder.
    pub answer: &'a str,
}

#[derive(Clone, Debug)]
pub struct ChangedFile {
    /// The file's path in the project.
    pub path: String,
    /// The kind of change, as one word.
    pub change: &'static str,
    /// The beginning of the file's current content; empty if the file was deleted or is not text.
    pub text: String,
}

/// Builds the request for a new description of the folder.
pub fn build_folder_description_request(
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
    let instructions = render_template(
        "active",
        prompt!("../../templates/active").text(language),
        &values,
    )?;
    let folder = render_template(
        "active_folder",
        prompt!("../../templates/active_folder").text(language),
        &values,
    )?;
    Ok(build_plain_request(
        &instructions,
        "active",
        &folder,
        model,
        counter,
    ))
}
