//! What strace saw, line by line.

use std::collections::HashMap;

use crate::jail::MARK;

/// Something that succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A program was started.
    Program { path: String, words: Vec<String> },
    /// A file was opened: the program that did it, the path the kernel says it has, and how.
    Opened {
        by: String,
        path: String,
        writes: bool,
    },
    /// Something else was changed.
    Changed { by: String, call: String },
}

/// The events of each line, in order. What happened before the first mark and after the last is
/// left out.
pub(crate) fn read(trace: &str) -> Vec<Vec<Event>> {
    let mut lines: Vec<Vec<Event>> = Vec::new();
    let mut unfinished: HashMap<&str, String> = HashMap::new();
    let mut programs: HashMap<String, String> = HashMap::new();
    for entry in trace.lines() {
        let Some((pid, call)) = entry.split_once(' ') else {
            continue;
        };
        let call = call.trim_start();
        let whole = if let Some(begun) = call.strip_suffix(" <unfinished ...>") {
            unfinished.insert(pid, begun.to_owned());
            continue;
        } else if let Some((_, rest)) = call
            .strip_prefix("<... ")
            .and_then(|rest| rest.split_once(" resumed>"))
        {
            format!("{}{rest}", unfinished.remove(pid).unwrap_or_default())
        } else {
            call.to_owned()
        };
        if whole.contains(MARK) && whole.starts_with("openat") {
            lines.push(Vec::new());
            programs.clear();
            continue;
        }
        let by = programs
            .get(pid)
            .cloned()
            .unwrap_or_else(|| "bash".to_owned());
        if let (Some(line), Some(event)) = (lines.last_mut(), event(&whole, by)) {
            if let Event::Program { words, .. } = &event {
                programs.insert(pid.to_owned(), words.first().cloned().unwrap_or_default());
            }
            line.push(event);
        }
    }
    lines.pop();
    lines
}

fn event(call: &str, by: String) -> Option<Event> {
    let (name, rest) = call.split_once('(')?;
    let (arguments, result) = rest.rsplit_once(" = ")?;
    if result.starts_with('-') || result.starts_with('?') {
        return None;
    }
    match name {
        "execve" | "execveat" => {
            let mut strings = strings(arguments);
            let path = if strings.is_empty() {
                String::new()
            } else {
                strings.remove(0)
            };
            Some(Event::Program {
                path,
                words: strings,
            })
        }
        "open" | "openat" | "openat2" | "creat" => {
            // `3</the/path>`: the kernel's own idea of what was opened.
            let path = result
                .split_once('<')
                .and_then(|(_, path)| path.rsplit_once('>'))
                .map_or("", |(path, _)| path);
            let writes = name == "creat"
                || ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"]
                    .iter()
                    .any(|flag| arguments.contains(flag));
            Some(Event::Opened {
                by,
                path: unescaped(path),
                writes,
            })
        }
        _ => Some(Event::Changed {
            by,
            call: call.to_owned(),
        }),
    }
}

/// The strings among the arguments of a call.
fn strings(arguments: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = arguments;
    while let Some(start) = rest.find('"') {
        rest = &rest[start + 1..];
        let mut end = 0;
        let bytes = rest.as_bytes();
        while end < bytes.len() && bytes[end] != b'"' {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        let end = end.min(rest.len());
        found.push(unescaped(&rest[..end]));
        rest = rest.get(end + 1..).unwrap_or_default();
    }
    found
}

/// Without strace's escapes.
fn unescaped(text: &str) -> String {
    let mut plain = Vec::new();
    let mut bytes = text.bytes().peekable();
    while let Some(one) = bytes.next() {
        if one != b'\\' {
            plain.push(one);
            continue;
        }
        match bytes.next() {
            Some(b'n') => plain.push(b'\n'),
            Some(b't') => plain.push(b'\t'),
            Some(b'r') => plain.push(b'\r'),
            Some(b'v') => plain.push(0x0B),
            Some(b'f') => plain.push(0x0C),
            Some(digit @ b'0'..=b'7') => {
                let mut code = u32::from(digit - b'0');
                let mut digits = 1;
                while digits < 3
                    && let Some(next @ b'0'..=b'7') = bytes.peek().copied()
                {
                    code = code * 8 + u32::from(next - b'0');
                    bytes.next();
                    digits += 1;
                }
                plain.push(code as u8);
            }
            Some(other) => plain.push(other),
            None => {}
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}
