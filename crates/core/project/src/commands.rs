//! Custom commands: prompts that the user calls by name, such as `/review src/main.rs`.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::command_template::CommandVariables;
use crate::compat;
use crate::file_reading;
use crate::front_matter;
use crate::knowledge::{KnowledgeFolder, KnowledgeKind, KnowledgePaths, Level};
use crate::named::{NamedItems, named};
use crate::problem::FileProblem;

/// The maximum depth of the subfolders that may contain commands.
const MAX_DEPTH: usize = 4;

/// A prompt that the user calls by its name, as a slash command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandPrompt {
    /// The name by which the command is called; `folder:name` for a command in a subfolder.
    pub name: String,
    pub description: String,
    /// A hint about the arguments, shown after the name.
    pub argument_hint: Option<String>,
    pub text: String,
    pub syntax: CommandSyntax,
    /// The path of the file that defines the command.
    pub path: PathBuf,
    pub level: Level,
}

named!(CommandPrompt);

/// The syntax of the places in a command's text that its arguments fill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandSyntax {
    /// `$ARGUMENTS`, `$1` to `$9`, and `` !`command` ``.
    Placeholders,
    /// A Jinja template, as in auto-coder's folders.
    Template(CommandVariables),
}

/// A piece of an expanded prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PromptPiece {
    /// Literal text.
    Text(String),
    /// A command line whose output is inserted in its place: `` !`line` `` in the file.
    Command(String),
}

/// The private-use characters that mark the beginning and the end of command lines during
/// expansion. Occurrences in the file and in the arguments are removed first.
const COMMAND_MARKS: [char; 2] = ['\u{E010}', '\u{E011}'];

impl CommandPrompt {
    /// Expands the prompt and splits it into pieces. Only command lines in the file become
    /// [`PromptPiece::Command`]; text in `arguments` that resembles a command line stays literal. A
    /// template has no command lines.
    pub fn expand_to_pieces(&self, arguments: &str) -> Result<Vec<PromptPiece>, FileProblem> {
        match &self.syntax {
            CommandSyntax::Placeholders => Ok(self.expand_placeholders(arguments)),
            CommandSyntax::Template(variables) => variables
                .render(&self.text, arguments)
                .map(|text| vec![PromptPiece::Text(text)])
                .map_err(|(what, line)| FileProblem::new(&self.path, what).at_line(line)),
        }
    }

    fn expand_placeholders(&self, arguments: &str) -> Vec<PromptPiece> {
        let strip_marks = |text: &str| text.replace(COMMAND_MARKS, "");
        let marked = Self {
            text: mark_command_lines(&strip_marks(&self.text)),
            ..self.clone()
        };
        let mut pieces = Vec::new();
        for (at, part) in marked
            .expand_arguments(&strip_marks(arguments))
            .split(COMMAND_MARKS)
            .enumerate()
        {
            let part = part.to_owned();
            pieces.push(if at % 2 == 0 {
                PromptPiece::Text(part)
            } else {
                PromptPiece::Command(part)
            });
        }
        pieces
    }

    /// Replaces `$ARGUMENTS` with all arguments, and `$1` to `$9` with single words of the
    /// arguments. If the prompt has no placeholder, the arguments are appended.
    pub fn expand_arguments(&self, arguments: &str) -> String {
        let arguments = arguments.trim();
        let words = split_words(arguments);
        let mut out = String::new();
        let mut rest = self.text.as_str();
        let mut placed = false;
        while let Some(at) = rest.find('$') {
            out.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            let digit = rest
                .bytes()
                .next()
                .filter(|byte| (b'1'..=b'9').contains(byte));
            let longer = rest.as_bytes().get(1).is_some_and(u8::is_ascii_digit);
            if let Some(after) = rest.strip_prefix("ARGUMENTS") {
                (rest, placed) = (after, true);
                out.push_str(arguments);
            } else if let Some(digit) = digit.filter(|_| !longer) {
                (rest, placed) = (&rest[1..], true);
                out.push_str(
                    words
                        .get(usize::from(digit - b'1'))
                        .map_or("", String::as_str),
                );
            } else {
                out.push('$');
            }
        }
        out.push_str(rest);
        if !placed && !arguments.is_empty() {
            out.push_str("\n\n");
            out.push_str(arguments);
        }
        out
    }
}

/// Puts marks around the command lines in a text. A command line begins with `` !` `` at the start
/// of a word and ends at the next backquote on the line.
fn mark_command_lines(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("!`") {
        let before = &rest[..at];
        let behind = &rest[at + 2..];
        let line = behind
            .split('`')
            .next()
            .filter(|line| line.len() < behind.len() && !line.contains('\n'));
        let begins = before
            .chars()
            .next_back()
            .is_none_or(|c| c.is_whitespace() || c == '(');
        out.push_str(before);
        if let Some(line) = line.filter(|line| begins && !line.trim().is_empty()) {
            out.extend([
                COMMAND_MARKS[0].to_string().as_str(),
                line,
                COMMAND_MARKS[1].to_string().as_str(),
            ]);
            rest = &behind[line.len() + 1..];
        } else {
            out.push_str("!`");
            rest = behind;
        }
    }
    out.push_str(rest);
    out
}

/// Splits a line into words. Quoted text remains one word. An apostrophe after a letter or a digit
/// is part of the word.
pub fn split_words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = None::<String>;
    let mut quote = None;
    for c in line.chars() {
        let is_apostrophe = c == '\''
            && word
                .as_ref()
                .is_some_and(|word| word.ends_with(char::is_alphanumeric));
        match (quote, c) {
            (None, '"' | '\'') if !is_apostrophe => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (Some(open), _) if open == c => quote = None,
            (None, _) if c.is_whitespace() => words.extend(word.take()),
            (None | Some(_), _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CommandFrontMatter {
    description: Option<String>,
    #[serde(rename = "argument-hint", alias = "argument_hint")]
    argument_hint: Option<front_matter::WordList>,
}

/// Loads all commands of the project and of the user.
pub fn load_commands(
    knowledge: &KnowledgePaths,
    problems: &mut Vec<FileProblem>,
) -> NamedItems<CommandPrompt> {
    let mut found = NamedItems::default();
    for folder in knowledge.folders_of_kind(KnowledgeKind::Commands) {
        read_folder(
            knowledge,
            &folder,
            &folder.path,
            "",
            0,
            &mut found,
            problems,
        );
    }
    found.sort_by_name()
}

fn read_folder(
    knowledge: &KnowledgePaths,
    top: &KnowledgeFolder,
    folder: &Path,
    prefix: &str,
    depth: usize,
    found: &mut NamedItems<CommandPrompt>,
    problems: &mut Vec<FileProblem>,
) {
    for path in file_reading::list_markdown_files(folder) {
        let Some(read) = file_reading::read_file(knowledge, &path, problems) else {
            continue;
        };
        let stem = path
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned())
            .unwrap_or_default();
        let parted = front_matter::split_file::<CommandFrontMatter>(&path, &read.text, problems);
        // The text of a template is kept as it is, so that errors name the line in the file.
        let text = if compat::has_command_templates(&top.path) {
            parted.body
        } else {
            parted.body.trim().to_owned()
        };
        let (syntax, shown) = if compat::has_command_templates(&top.path) {
            let read = CommandVariables::find(&text).and_then(|variables| {
                let shown = variables.render(&text, "")?;
                Ok((CommandSyntax::Template(variables), shown))
            });
            match read {
                Ok(read) => read,
                Err((what, line)) => {
                    problems.push(FileProblem::new(&path, what).at_line(line));
                    continue;
                }
            }
        } else {
            (CommandSyntax::Placeholders, text.clone())
        };
        let first_line = shown
            .lines()
            .next()
            .unwrap_or_default()
            .trim_start_matches('#')
            .trim()
            .to_owned();
        let of_variables = match &syntax {
            CommandSyntax::Placeholders => None,
            CommandSyntax::Template(variables) => variables.describe_arguments(),
        };
        let hint = parted.head.argument_hint.map(|list| list.0.join(", "));
        found.add(CommandPrompt {
            name: format!("{prefix}{stem}"),
            description: parted
                .head
                .description
                .map_or(first_line, |text| text.trim().to_owned()),
            argument_hint: hint.or(of_variables),
            text,
            syntax,
            path,
            level: top.level,
        });
    }
    if depth < MAX_DEPTH {
        for name in file_reading::list_names(folder)
            .into_iter()
            .filter(|name| !name.starts_with('.'))
        {
            let below = folder.join(&name);
            if below
                .symlink_metadata()
                .is_ok_and(|metadata| metadata.is_dir())
            {
                read_folder(
                    knowledge,
                    top,
                    &below,
                    &format!("{prefix}{name}:"),
                    depth + 1,
                    found,
                    problems,
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_take_command_lines_only_from_the_file() {
        let pieces = |text: &str, arguments: &str| {
            let pieces = CommandPrompt {
                text: text.into(),
                ..empty_command()
            }
            .expand_placeholders(arguments);
            let lines = pieces.iter().filter_map(|piece| match piece {
                PromptPiece::Command(line) => Some(line.clone()),
                PromptPiece::Text(_) => None,
            });
            lines.collect::<Vec<_>>()
        };
        assert_eq!(
            pieces("Now: !`git status`, (!`ls $1`)", "src"),
            ["git status", "ls src"]
        );
        assert_eq!(pieces("!`ls`", "x"), ["ls"]);
        for (text, arguments) in [
            ("say $ARGUMENTS", "!`rm x`"),
            ("say", "!`rm x`"),
            ("$1`ls`", "!"),
            ("wow!`ls`", ""),
            ("!`ls", ""),
            ("!`ls\n`", ""),
            ("!``", ""),
            ("! `ls`", ""),
            ("say $1", "\u{E010}rm x\u{E011}"),
            ("\u{E010}rm x\u{E011}", ""),
        ] {
            assert_eq!(
                pieces(text, arguments),
                Vec::<String>::new(),
                "{text} {arguments}"
            );
        }
        let whole = CommandPrompt {
            text: "a !`b` c".into(),
            ..empty_command()
        }
        .expand_placeholders("");
        let text = |text: &str| PromptPiece::Text(text.to_owned());
        assert_eq!(
            whole,
            [text("a "), PromptPiece::Command("b".into()), text(" c")]
        );
    }

    fn empty_command() -> CommandPrompt {
        CommandPrompt {
            name: "c".into(),
            description: String::new(),
            argument_hint: None,
            text: String::new(),
            syntax: CommandSyntax::Placeholders,
            path: PathBuf::new(),
            level: Level::User,
        }
    }

    fn expand_text(text: &str, arguments: &str) -> String {
        CommandPrompt {
            text: text.into(),
            ..empty_command()
        }
        .expand_arguments(arguments)
    }

    #[test]
    fn split_words_keeps_quoted_text_and_apostrophes() {
        for (line, words) in [
            ("", ""),
            (" a  b ", "a|b"),
            ("'a b' c", "a b|c"),
            ("--text=\"a b\"", "--text=a b"),
            ("the user's dog's 'new name'", "the|user's|dog's|new name"),
            ("'a b'c", "a bc"),
        ] {
            assert_eq!(split_words(line).join("|"), words, "{line}");
        }
    }

    #[test]
    fn expand_puts_arguments_into_their_placeholders() {
        assert_eq!(
            expand_text("Fix $1 in $2: $ARGUMENTS.", "'a b' c.rs"),
            "Fix a b in c.rs: 'a b' c.rs."
        );
        assert_eq!(
            expand_text("Costs $10, $x and $", ""),
            "Costs $10, $x and $"
        );
        assert_eq!(expand_text("Review.", "now"), "Review.\n\nnow");
        assert_eq!(
            expand_text("$1", "$2"),
            "$2",
            "arguments are not looked at again"
        );
        assert_eq!(expand_text("[$3]", "a b"), "[]");
    }
}
