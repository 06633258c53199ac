//! Opens a text in the user's editor.

use std::process::Stdio;

use haft_agent::{HostEnvironment, own_shell_command};

/// Opens `text` in `$VISUAL` or `$EDITOR`, in a file whose name ends with `ending`, and returns the
/// edited text. The editor is started like haft's other helper programs: in `/`, and not looked up
/// in folders that the model can write.
pub(crate) fn edit_text(
    environment: &HostEnvironment,
    text: &str,
    ending: &str,
) -> Result<String, String> {
    let named = ["VISUAL", "EDITOR"]
        .into_iter()
        .find_map(|name| environment.trimmed_variable(name));
    let editor = named.as_deref().unwrap_or("vi");
    let to_message = |error: std::io::Error| text!("interactive-editor-failed", editor, error);
    // Not `haft_files`, which would create a missing temporary folder. `tempfile` creates files
    // with mode 0600.
    let file = tempfile::Builder::new()
        .prefix("haft-")
        .suffix(ending)
        .tempfile()
        .map_err(to_message)?;
    // The editor starts in another folder.
    let path = std::path::absolute(file.path()).map_err(to_message)?;
    std::fs::write(&path, text).map_err(to_message)?;
    // Editors are named with their options, as in `code --wait`.
    let line = format!("{editor} \"$1\"");
    let mut command = own_shell_command(environment, &line).map_err(to_message)?;
    let status = command
        .arg("sh")
        .arg(&path)
        .stdin(Stdio::inherit())
        .status()
        .map_err(to_message)?;
    if !status.success() {
        let status = super::side_actions::describe_exit(status).unwrap_or_default();
        return Err(text!("interactive-editor-ended", editor, status));
    }
    std::fs::read_to_string(&path).map_err(to_message)
}
