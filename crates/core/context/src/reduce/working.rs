//! Finds the newest views of the files being worked on, which pruning leaves alone: the model is
//! likely to change such a file again, and an edit needs its text.
//!
//! ```text
//! read a.rs   …   edit a.rs   …        the read stays, although the edit has made it obsolete
//! ```
//!
//! A file is being worked on if it was changed in the running round or the four before, by an edit
//! or by a command. Files that were only read there come after those. The view is the newest read of
//! the whole file, or the call that wrote the whole file; of a file that was only read in parts, it
//! is the newest parts.

use std::collections::{HashMap, HashSet};

use haft_types::{Role, ToolStatus};

use crate::build::rounds::{CLEARED_OWNER, MASKED_OWNER, TimelineItem};
use crate::reduce::superseded::{CallSubject, calls_by_id};

/// The maximum number of files that are kept in view.
const MAX_FILES: usize = 8;
/// The maximum number of partial reads of one file that are kept in view.
const MAX_PARTS: usize = 4;
/// Rounds before the running one whose changes count.
const ROUNDS: u32 = 4;

/// The newest views of one file, collected from the end of the conversation.
#[derive(Default)]
struct FileViews {
    /// True if the file was changed in the rounds that count.
    is_changed: bool,
    /// True if the file was read in the rounds that count.
    is_read: bool,
    /// The indices of the messages that show the whole file or parts of it, newest first.
    shown_by: Vec<usize>,
    /// True once the newest view of the whole file was found. Older views then don't count.
    is_whole: bool,
}

/// Returns the indices of the messages that show files being worked on, up to `budget` tokens in
/// total. If these messages exceed the budget, the views of the least recently used files are
/// dropped.
pub(crate) fn find_working_views(items: &[TimelineItem], budget: u64) -> HashSet<usize> {
    let calls = calls_by_id(items);
    let running = items.last().map_or(0, |item| item.round);
    let mut files: HashMap<String, FileViews> = HashMap::new();
    // Most recently used first.
    let mut used = Vec::new();
    for (index, item) in items.iter().enumerate().rev() {
        if item.role() != Role::Tool {
            continue;
        }
        let message = &item.entry.message;
        for result in message.tool_results() {
            if result.envelope.status != ToolStatus::Success {
                continue;
            }
            let call = calls
                .get(&(item.block, result.tool_call_id.as_str()))
                .copied();
            for subject in CallSubject::from_call_and_result(call, result, &message.metadata) {
                match subject {
                    CallSubject::Read { path, from, to } => {
                        let file = used_file(&mut files, &mut used, path);
                        file.is_read |= item.round + ROUNDS >= running;
                        if file.is_whole
                            || item.owner == MASKED_OWNER
                            || item.owner == CLEARED_OWNER
                        {
                            continue;
                        }
                        if from <= 1 && to == u64::MAX {
                            file.is_whole = true;
                            // Parts that were read later show what has changed since.
                            file.shown_by.push(index);
                        } else if file.shown_by.len() < MAX_PARTS {
                            file.shown_by.push(index);
                        }
                    }
                    CallSubject::Edit { paths } => {
                        let writes_whole = call.is_some_and(CallSubject::writes_whole_file);
                        for path in paths {
                            let file = used_file(&mut files, &mut used, path);
                            file.is_changed |= item.round + ROUNDS >= running;
                            if writes_whole && !file.is_whole {
                                file.is_whole = true;
                                let call = items[..index]
                                    .iter()
                                    .rposition(|one| one.role() == Role::Assistant);
                                file.shown_by.extend(call);
                            }
                        }
                    }
                    CallSubject::Run { .. } => {}
                }
            }
        }
    }
    let mut left = budget;
    let mut stays = HashSet::new();
    let by_use = || used.iter().filter_map(|path| files.get(path));
    let changed = by_use().filter(|file| file.is_changed);
    // What is read is often changed next.
    let read = by_use().filter(|file| file.is_read && !file.is_changed);
    for file in changed.chain(read).take(MAX_FILES) {
        for index in &file.shown_by {
            let tokens = u64::from(items[*index].entry.tokens);
            if stays.contains(index) {
                continue;
            }
            if let Some(rest) = left.checked_sub(tokens) {
                left = rest;
                stays.insert(*index);
            }
        }
    }
    stays
}

fn used_file<'a>(
    files: &'a mut HashMap<String, FileViews>,
    used: &mut Vec<String>,
    path: String,
) -> &'a mut FileViews {
    if !files.contains_key(&path) {
        used.push(path.clone());
    }
    files.entry(path).or_default()
}
