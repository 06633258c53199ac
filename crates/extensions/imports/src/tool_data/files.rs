//! Builds the data for results of tools that read, change, and search files, and for to-do lists.

use serde_json::{Map, Value, json};

use super::ForeignArguments;

/// Builds the data of a `read_file` result. `text` contains numbered lines, whose numbers are
/// removed, or plain text that begins at the requested line.
pub(super) fn shape_read_result(arguments: &ForeignArguments, text: &str) -> Option<Value> {
    let path = arguments.file_path()?;
    // Some agents wrap the content of the file in JSON.
    let wrapped = serde_json::from_str::<Value>(text)
        .ok()
        .filter(Value::is_object);
    let text = wrapped
        .as_ref()
        .and_then(|value| value.get("result")?.as_str())
        .unwrap_or(text);
    // Some agents write the path above the content.
    let text = text
        .strip_prefix(path)
        .and_then(|rest| rest.strip_prefix("\n\n"))
        .unwrap_or(text);
    let mut page = NumberedLines::parse(text).unwrap_or_else(|| {
        let range = arguments
            .first_list(&["view_range"])
            .and_then(|range| range.first()?.as_u64());
        let first = arguments
            .first_number(&["offset", "start_line"])
            .or(range)
            .unwrap_or(1)
            .max(1);
        NumberedLines {
            first,
            count: text.lines().count() as u64,
            content: text.to_owned(),
            rest: String::new(),
        }
    });
    if text.starts_with("<path>") {
        // In this format, a space follows the colon after the line number.
        let lines = page
            .content
            .lines()
            .map(|line| line.strip_prefix(' ').unwrap_or(line));
        page.content = lines.flat_map(|line| [line, "\n"]).collect();
    }
    let last = (page.first + page.count).saturating_sub(1);
    let mut data = json!({ "path": path, "start_line": page.first, "end_line": last, "content": page.content });
    if !page.rest.is_empty() {
        data["note"] = page.rest.into();
    }
    Some(data)
}

/// A range of a file's lines, parsed from numbered lines, without the line numbers.
struct NumberedLines {
    first: u64,
    count: u64,
    content: String,
    /// The text before and after the numbered lines.
    rest: String,
}

impl NumberedLines {
    /// Parses lines of the form `12→text`, `12⇥text`, `12 | text`, or `12:text`. Returns `None` if
    /// the lines are not numbered consecutively.
    fn parse(text: &str) -> Option<Self> {
        let mut lines: Option<(u64, u64, String)> = None;
        let mut rest = Vec::new();
        let mut is_open = true;
        for line in text.lines() {
            let number = split_line_number(line).filter(|_| is_open);
            match (&mut lines, number) {
                (None, Some((first, line))) => lines = Some((first, 1, format!("{line}\n"))),
                (Some((first, count, content)), Some((number, line)))
                    if number == *first + *count =>
                {
                    *count += 1;
                    content.extend([line, "\n"]);
                }
                (None, None) => rest.push(line),
                (Some(_), _) => {
                    is_open = false;
                    rest.push(line);
                }
            }
        }
        let (first, count, content) = lines?;
        // A text in which only a few lines happen to begin with a number is not numbered.
        (rest.len() as u64 <= count + 12).then(|| Self {
            first,
            count,
            content,
            rest: rest.join("\n").trim().to_owned(),
        })
    }
}

fn split_line_number(line: &str) -> Option<(u64, &str)> {
    let line = line.trim_start_matches(' ');
    let end = line
        .find(|c: char| !c.is_ascii_digit())
        .filter(|end| *end > 0)?;
    let (number, rest) = line.split_at(end);
    let text = ["→", "\t", " | ", "| ", ":"]
        .iter()
        .find_map(|mark| rest.strip_prefix(mark));
    let text = text.or_else(|| (rest.trim_end() == " |").then_some(""))?;
    Some((number.parse().ok()?, text))
}

/// Builds the data of an edit result: the removed and added lines.
pub(super) fn shape_edit_result(arguments: &ForeignArguments) -> Option<Value> {
    let path = arguments.file_path()?;
    let mut added = 0;
    let mut removed = 0;
    let mut applied = 0;
    let mut diff = Vec::new();
    let blocks = arguments.first_text(&["diff"]).map(parse_search_blocks);
    let single = std::slice::from_ref(arguments.0.get("edit").unwrap_or(&arguments.0));
    let list = blocks
        .as_ref()
        .or_else(|| arguments.first_list(&["edits", "edit"]));
    for change in list.map_or(single, Vec::as_slice) {
        let text = |names: &[&str]| {
            names
                .iter()
                .find_map(|name| change.get(name)?.as_str())
                .unwrap_or_default()
        };
        let old = text(&[
            "old_string",
            "old_str",
            "oldString",
            "oldText",
            "old_text",
            "search",
            "before",
            "old",
        ]);
        let new = text(&[
            "new_string",
            "new_str",
            "newString",
            "newText",
            "new_text",
            "replace",
            "insert_text",
            "after",
            "new",
        ]);
        let (gone, come) = changed_lines(old, new);
        applied += 1;
        removed += gone.len();
        added += come.len();
        diff.push("@@".to_owned());
        diff.extend(gone.iter().map(|line| format!("-{line}")));
        diff.extend(come.iter().map(|line| format!("+{line}")));
    }
    let diff = diff.join("\n");
    Some(json!({
        "path": path, "change": "edited", "applied": applied, "added": added, "removed": removed, "diff": diff,
    }))
}

/// Returns the changes that a text consisting of SEARCH and REPLACE blocks describes.
fn parse_search_blocks(text: &str) -> Vec<Value> {
    let blocks = text.split("<<<<<<< SEARCH\n").skip(1);
    let halves = blocks.filter_map(|block| {
        block
            .split(">>>>>>> REPLACE")
            .next()?
            .split_once("=======\n")
    });
    halves
        .map(|(old, new)| json!({ "old": old, "new": new }))
        .collect()
}

/// Returns the lines of both texts without the lines at the beginning and end that the texts have
/// in common.
fn changed_lines<'a>(old: &'a str, new: &'a str) -> (Vec<&'a str>, Vec<&'a str>) {
    let old: Vec<_> = old.lines().collect();
    let new: Vec<_> = new.lines().collect();
    let same = old
        .iter()
        .zip(&new)
        .take_while(|(one, other)| one == other)
        .count();
    let old = &old[same..];
    let new = &new[same..];
    let tail = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take_while(|(one, other)| one == other)
        .count();
    (
        old[..old.len() - tail].to_vec(),
        new[..new.len() - tail].to_vec(),
    )
}

/// Builds the data of the result of a call that wrote a whole file.
pub(super) fn shape_write_result(arguments: &ForeignArguments, text: &str) -> Option<Value> {
    let path = arguments.file_path()?;
    let content = arguments
        .first_text(&["content", "file_text", "contents"])
        .unwrap_or_default();
    let is_old = text.contains("updated") || text.contains("overwr");
    let change = if is_old { "overwritten" } else { "created" };
    Some(
        json!({ "path": path, "change": change, "lines": content.lines().count(), "bytes": content.len() }),
    )
}

/// Builds the data of the result of a patch in codex's format: the patched files, each with its
/// changes.
pub(super) fn shape_patch_result(arguments: &ForeignArguments) -> Option<Value> {
    const FILE_MARKERS: [(&str, &str); 3] = [
        ("*** Add File: ", "created"),
        ("*** Update File: ", "edited"),
        ("*** Delete File: ", "deleted"),
    ];
    let mut files: Vec<Map<String, Value>> = Vec::new();
    let mut diffs: Vec<Vec<&str>> = Vec::new();
    for line in arguments.first_text(&["input", "patch"])?.lines() {
        let begun = FILE_MARKERS
            .iter()
            .find_map(|(mark, change)| Some((line.strip_prefix(mark)?, *change)));
        if let Some((path, change)) = begun {
            files.push(Map::from_iter([
                ("path".into(), path.into()),
                ("change".into(), change.into()),
            ]));
            diffs.push(Vec::new());
        } else if let (Some(to), Some(file)) =
            (line.strip_prefix("*** Move to: "), files.last_mut())
        {
            let from = file.insert("path".into(), to.into());
            file.insert("change".into(), "moved".into());
            file.extend(from.map(|from| ("from".to_owned(), from)));
        } else if let (false, Some(diff)) = (line.starts_with("*** "), diffs.last_mut()) {
            diff.push(line);
        }
    }
    for (file, diff) in files
        .iter_mut()
        .zip(diffs)
        .filter(|(_, diff)| !diff.is_empty())
    {
        let count = |mark: char| diff.iter().filter(|line| line.starts_with(mark)).count();
        file.insert("added".into(), count('+').into());
        file.insert("removed".into(), count('-').into());
        file.insert("diff".into(), diff.join("\n").into());
    }
    (!files.is_empty()).then(|| json!({ "files": files }))
}

/// Builds the data of a text search result. Lines of the form `path:line:text` are parsed; all
/// other lines are kept as text.
pub(super) fn shape_search_result(arguments: &ForeignArguments, text: &str) -> Option<Value> {
    let regex = arguments.first_text(&["pattern", "regex", "query"])?;
    let path = arguments
        .first_text(&["path", "dir_path", "directory"])
        .unwrap_or(".");
    let none = text.starts_with("No matches found") || text.starts_with("No files found");
    let lines = text.lines().filter(|line| {
        let is_heading = line.starts_with("Found ") && line.split_whitespace().count() <= 6;
        let is_separator = line.trim().is_empty() || *line == "--";
        !none && !is_heading && !is_separator
    });
    let lines: Vec<Value> = lines
        .map(|line| parse_search_hit(line).unwrap_or_else(|| line.into()))
        .collect();
    let mut files: Vec<&str> = lines
        .iter()
        .filter_map(|line| line.get("path")?.as_str())
        .collect();
    files.sort_unstable();
    files.dedup();
    let mut data = json!({ "path": path, "regex": regex, "matches": lines.len(), "files": files.len(), "lines": lines });
    if let Some(pattern) = arguments.first_text(&["glob", "file_pattern", "include"]) {
        data["file_pattern"] = pattern.into();
    }
    Some(data)
}

fn parse_search_hit(line: &str) -> Option<Value> {
    let (path, rest) = line.split_once(':')?;
    let (number, text) = rest.split_once(':')?;
    let number: u64 = number.parse().ok()?;
    let is_path = !path.is_empty() && !path.contains(char::is_whitespace);
    is_path.then(|| json!({ "path": path, "line": number, "text": text }))
}

/// Builds the data of a file name search result. `text` contains one name per line.
pub(super) fn shape_glob_result(arguments: &ForeignArguments, text: &str) -> Option<Value> {
    let pattern = arguments.first_text(&["pattern", "file_name", "glob"])?;
    let is_none = text.starts_with("No files found");
    let lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !is_none && !line.is_empty());
    let (notes, entries): (Vec<&str>, Vec<&str>) =
        lines.partition(|line| line.starts_with('(') || line.starts_with("Found "));
    let mut data = json!({ "pattern": pattern, "total": entries.len(), "entries": entries });
    if notes.iter().any(|note| note.contains("truncated")) {
        data["truncated"] = true.into();
    }
    Some(data)
}

/// Builds the data of a folder listing. `text` contains one entry per line; folder names end with a
/// slash.
pub(super) fn shape_list_result(arguments: &ForeignArguments, text: &str) -> Value {
    let path = arguments
        .first_text(&["path", "dir_path", "directory", "target_directory"])
        .unwrap_or(".");
    let name = |line: &'_ str| line.trim().trim_start_matches("- ").to_owned();
    let entries: Vec<String> = text
        .lines()
        .filter(|line| {
            !line.trim().is_empty() && !line.starts_with("NOTE:") && !line.ends_with(':')
        })
        .map(name)
        .collect();
    let folders = entries.iter().filter(|entry| entry.ends_with('/')).count();
    let files = entries.len() - folders;
    json!({ "path": path, "total": entries.len(), "files": files, "folders": folders, "entries": entries })
}

/// Builds the data of a to-do list from the arguments of the call.
pub(super) fn shape_todo_result(arguments: &ForeignArguments) -> Option<Value> {
    let item = |item: &Value| {
        let text = |names: &[&str]| {
            names
                .iter()
                .find_map(|name| item.get(name)?.as_str())
                .map(str::to_owned)
        };
        let content = text(&["content", "step", "description", "text", "title"])?;
        let status = text(&["status"])?;
        let status = match status.as_str() {
            "todo" => "pending".to_owned(),
            "done" => "completed".to_owned(),
            _ => status,
        };
        Some((content, status))
    };
    let items: Vec<_> = arguments
        .first_list(&["todos", "plan", "items", "task_list"])?
        .iter()
        .filter_map(item)
        .collect();
    let count = |wanted: &str| items.iter().filter(|(_, status)| status == wanted).count();
    let shown: Vec<Value> = items
        .iter()
        .map(|(content, status)| json!({ "content": content, "status": status }))
        .collect();
    Some(json!({
        "items": shown, "pending": count("pending"), "in_progress": count("in_progress"), "completed": count("completed"),
    }))
}
