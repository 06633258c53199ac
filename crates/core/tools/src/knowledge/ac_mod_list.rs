//! `ac_mod_list`: lists the folders that have a module document.

use haft_text::cut_lines;

use crate::files::walk;
use crate::files::walk::GitFolder;
use crate::knowledge::module_documents;
use crate::on_files::OnFiles;
use crate::paths;
use crate::prelude::*;
use crate::scope::FileScope;

const NAME: &str = "ac_mod_list";

static MANUAL: Manual = Manual {
    availability: Availability::Extension,
    ..Manual::for_group(Group::Knowledge)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AcModListParameters {
    /// The folder to look below; default the whole project.
    path: Option<String>,
}

pub(crate) fn define_tool() -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("ac_mod_list/prompt"),
        &MANUAL,
        Access::Read,
        derive_intent,
    )
    .on_files(list_modules)
}

fn derive_intent(arguments: &Value) -> Intent {
    // Without a path, the call reads the project, which is allowed except where a rule denies it.
    Intent::for_read(arguments, "path")
}

fn list_modules(scope: &FileScope, parameters: &AcModListParameters) -> CallResult {
    let folder = match &parameters.path {
        Some(path) => module_documents::resolve_module_folder(&scope.workspace, path)?,
        None => scope.workspace.root.clone(),
    };
    let name = paths::display_path(&scope.workspace, &folder);
    let mut builder = walk::build_walk(scope, &folder, GitFolder::Skipped);
    builder.hidden(false).sort_by_file_name(Ord::cmp);
    let mut found = Vec::new();
    for entry in builder.build().flatten() {
        if scope.cancel.is_cancelled() {
            return Err(ToolFailure::new(
                "cancelled",
                "looking for modules was cancelled".to_owned(),
            ));
        }
        if entry.file_name() == module_documents::DOCUMENT_NAME && entry.path().is_file() {
            let module = entry.path().parent().unwrap_or(entry.path());
            found.push((
                paths::display_path(&scope.workspace, module),
                module_documents::read_summary(entry.path()),
            ));
        }
    }
    let data = json!({
        "path": name,
        "total": found.len(),
        "modules": found.iter().map(|(path, about)| json!({ "path": path, "about": about })).collect::<Vec<_>>(),
    });
    if found.is_empty() {
        return Ok(
            Envelope::success(format!("There are no module documents below `{name}`."))
                .with_data(data)
                .into(),
        );
    }
    let line = |(path, about): &(String, Option<String>)| match about {
        Some(about) => format!("- `{path}`: {about}"),
        None => format!("- `{path}`"),
    };
    let lines: Vec<_> = found.iter().map(line).collect();
    Ok(
        Envelope::success(cut_lines(&lines.join("\n"), scope.limits.into()).text)
            .with_data(data)
            .into(),
    )
}

#[cfg(test)]
mod tests;
