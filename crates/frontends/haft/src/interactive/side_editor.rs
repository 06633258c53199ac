//! Opens a text in the user's editor.

use std::process::Command;

/// Opens `text` in `$VISUAL` or `$EDITOR`, in a file whose name ends with `ending`, and returns the
/// edited text.
pub(crate) fn edit_text(text: &str, ending: &str) -> Result<String, String> {
    let named = ["VISUAL", "EDITOR"]
        .into_iter()
        .filter_map(std::env::var_os)
        .find(|name| !name.is_empty());
    let editor = named.unwrap_or_else(|| "vi".into());
    let to_message = |error: std::io::Error| {
        text!(
            "interactive-editor-failed",
            editor = editor.display(),
            error
        )
    };
    // `haft_files` is not used, because it would create a missing temporary folder. `tempfile`
    // creates files with mode 0600.
    let file = tempfile::Builder::new()
        .prefix("haft-")
        .suffix(ending)
        .tempfile()
        .map_err(to_message)?;
    std::fs::write(file.path(), text).map_err(to_message)?;
    // Editors are named with their options, as in `code --wait`.
    let line = format!("{} \"$1\"", editor.display());
    let status = Command::new("/bin/sh")
        .args(["-c", &line, "sh"])
        .arg(file.path())
        .status()
        .map_err(to_message)?;
    if !status.success() {
        return Err(text!(
            "interactive-editor-ended",
            editor = editor.display(),
            status
        ));
    }
    std::fs::read_to_string(file.path()).map_err(to_message)
}
