//! Permission rules: a tool and a pattern for its calls.

use std::fmt;
use std::path::Path;

use super::domain::DomainPattern;
use super::pattern::{CommandPattern, PathPattern};

/// The tool that runs command lines.
pub(super) const EXECUTE_TOOL: &str = "execute_command";

/// Tools whose pattern in a rule is a command line.
const COMMAND_TOOLS: [&str; 3] = [EXECUTE_TOOL, "background_task", "session_start"];
/// Tools that read the files named by their path argument.
pub(super) const READ_TOOLS: [&str; 10] = [
    "ac_mod_list",
    "ac_mod_read",
    "count_tokens",
    "extract_to_text",
    "glob",
    "list_code_definition_names",
    "list_files",
    "read_file",
    "search_files",
    "useful_info_add",
];
/// Tools that write the files named by their path argument.
pub(super) const WRITE_TOOLS: [&str; 9] = [
    "ac_mod_write",
    "apply_patch",
    "edit_file",
    "extract_to_text",
    "multi_edit",
    "replace_in_file",
    "undo_edit",
    "write_to_file",
    "write_tool",
];
/// Tools that send requests to hosts; their pattern in a rule is `domain:example.com`.
pub(super) const HOST_TOOLS: [&str; 3] = ["use_rag_tool", "web_crawl", "web_search"];
/// The prefix of the names by which rules refer to tools of MCP servers: `mcp__server__tool`.
const SERVER_TOOL_PREFIX: &str = "mcp__";
/// Pairs of a tool name of another agent and haft's name for that tool.
const FOREIGN_TOOL_NAMES: [(&str, &str); 11] = [
    ("Bash", EXECUTE_TOOL),
    ("Edit", "edit_file"),
    ("Glob", "glob"),
    ("Grep", "search_files"),
    ("LS", "list_files"),
    ("MultiEdit", "multi_edit"),
    ("Read", "read_file"),
    ("WebFetch", "web_crawl"),
    ("WebSearch", "web_search"),
    ("Write", "write_to_file"),
    ("str_replace", "edit_file"),
];

/// The reason why a rule cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// The text is not `tool` or `tool(pattern)`.
    #[error(
        "`{0}` is not a rule; write `tool` or `tool(pattern)`, such as `execute_command(git status:*)`"
    )]
    Shape(String),
    /// The rule has a pattern, but its tool takes no pattern.
    #[error(
        "`{rule}`: `{tool}` takes no pattern; write `{tool}` alone, or the name of a tool that runs commands or is about files"
    )]
    NoPattern { rule: String, tool: String },
    /// The pattern does not consist of the literal words of one command.
    #[error(
        "`{rule}` does not name the words of one command ({why}); quote what is special to the shell, and write `:*` at the end for any further words"
    )]
    Words {
        rule: String,
        /// The reason, as a phrase for the error message.
        why: String,
    },
    /// The pattern does not name a host.
    #[error(
        "`{0}` names no host; write `domain:example.com`, or `domain:*.example.com` for every host below it, and names of other scripts as they are sent (`xn--…`)"
    )]
    Domain(String),
    /// The path pattern is invalid.
    #[error("`{rule}` has a pattern that cannot be read: {why}")]
    Glob {
        rule: String,
        /// The reason, as a phrase for the error message.
        why: String,
    },
}

/// A rule: a tool and a pattern for its calls.
#[derive(Clone, Debug)]
pub struct PermissionRule {
    text: String,
    tool: String,
    pattern: CallPattern,
}

/// The pattern in a rule for a tool, which limits the calls that the rule covers.
#[derive(Clone, Debug)]
pub(super) enum CallPattern {
    /// The rule covers all calls of the tool.
    Any,
    /// The rule covers calls that run a matching command.
    Command(CommandPattern),
    /// The rule covers calls that use a matching file.
    Path(Box<PathPattern>),
    /// The rule covers calls that send requests to a matching host.
    Domain(DomainPattern),
}

impl PermissionRule {
    /// Converts a rule of another agent that haft cannot express into a rule that covers at least
    /// as much: the words of the command before the first non-literal word, or the whole tool. Only
    /// rules that ask or deny may be widened.
    pub fn widen_foreign_rule(rule: &str) -> Option<String> {
        let (tool, inside) = rule.split_once('(')?;
        let words: Vec<_> = inside.strip_suffix(')')?.split_whitespace().collect();
        let by_words = (1..words.len())
            .rev()
            .map(|count| format!("{tool}({}:*)", words[..count].join(" ")));
        by_words
            .chain([tool.trim().to_owned()])
            .find(|wider| Self::parse(wider, None).is_ok())
    }

    /// Parses a rule. `home` replaces `~` in patterns.
    pub fn parse(text: &str, home: Option<&Path>) -> Result<Self, RuleError> {
        let shape = || RuleError::Shape(text.to_owned());
        let trimmed = text.trim();
        let (name, inside) = match trimmed.split_once('(') {
            Some((name, rest)) => (name.trim(), Some(rest.strip_suffix(')').ok_or_else(shape)?)),
            None => (trimmed, None),
        };
        let of_server = name.starts_with(SERVER_TOOL_PREFIX);
        let named = |c: char| {
            // Servers may use any characters in tool names.
            c.is_ascii_alphanumeric()
                || "_-.".contains(c)
                || of_server && !c.is_whitespace() && c != ')'
        };
        if name.is_empty() || !name.chars().all(named) {
            return Err(shape());
        }
        let tool = FOREIGN_TOOL_NAMES
            .iter()
            .find(|(classic, _)| *classic == name)
            .map_or(name, |(_, tool)| tool);
        let pattern = match inside.map(str::trim) {
            None | Some("" | "*") => CallPattern::Any,
            Some(inside) if COMMAND_TOOLS.contains(&tool) => {
                CallPattern::Command(CommandPattern::parse(inside).map_err(|why| {
                    RuleError::Words {
                        rule: text.to_owned(),
                        why,
                    }
                })?)
            }
            Some(inside) if READ_TOOLS.contains(&tool) || WRITE_TOOLS.contains(&tool) => {
                CallPattern::Path(Box::new(PathPattern::parse(inside, home).map_err(
                    |why| RuleError::Glob {
                        rule: text.to_owned(),
                        why,
                    },
                )?))
            }
            Some(inside) if HOST_TOOLS.contains(&tool) => CallPattern::Domain(
                DomainPattern::parse(inside).ok_or_else(|| RuleError::Domain(text.to_owned()))?,
            ),
            Some(_) => {
                return Err(RuleError::NoPattern {
                    rule: text.to_owned(),
                    tool: tool.to_owned(),
                });
            }
        };
        Ok(Self {
            text: trimmed.to_owned(),
            tool: tool.to_owned(),
            pattern,
        })
    }

    /// Returns the tool's own name.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// Returns the rule as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn pattern(&self) -> &CallPattern {
        &self.pattern
    }

    /// Returns the command pattern, if the rule has one.
    pub(super) fn command_pattern(&self) -> Option<&CommandPattern> {
        match &self.pattern {
            CallPattern::Command(command) => Some(command),
            CallPattern::Any | CallPattern::Path(_) | CallPattern::Domain(_) => None,
        }
    }

    /// Returns true if the rule covers every call of `tool`.
    pub(super) fn covers_all_calls_of(&self, tool: &str) -> bool {
        match &self.pattern {
            CallPattern::Any => self.tool == tool,
            CallPattern::Command(_) | CallPattern::Path(_) | CallPattern::Domain(_) => false,
        }
    }

    /// Returns true if the rule covers this tool of an MCP server: by the full name, by a prefix
    /// that ends in `*`, or by the server's name.
    pub(super) fn covers_server_tool(&self, server: &str, tool: &str) -> bool {
        let Some(named) = self.tool.strip_prefix(SERVER_TOOL_PREFIX) else {
            return false;
        };
        let whole = format!("{server}__{tool}");
        match named.strip_suffix('*') {
            // A prefix must contain the whole server name: `mcp__a*` is not a rule for the server
            // `ab`.
            Some(beginning) => {
                beginning.starts_with(&format!("{server}__")) && whole.starts_with(beginning)
            }
            None => named == whole || named == server,
        }
    }

    /// Returns the host pattern, if the rule is for `tool` and has one.
    pub(super) fn domain_pattern_for(&self, tool: &str) -> Option<&DomainPattern> {
        match &self.pattern {
            CallPattern::Domain(domain) if self.tool == tool => Some(domain),
            CallPattern::Any
            | CallPattern::Command(_)
            | CallPattern::Path(_)
            | CallPattern::Domain(_) => None,
        }
    }

    /// Returns the path pattern, if the rule is for one of `tools` and has a path pattern.
    pub(super) fn path_pattern_for(&self, tools: &[&str]) -> Option<&PathPattern> {
        match &self.pattern {
            CallPattern::Path(path) if tools.contains(&self.tool.as_str()) => Some(path),
            CallPattern::Any
            | CallPattern::Command(_)
            | CallPattern::Path(_)
            | CallPattern::Domain(_) => None,
        }
    }
}

impl fmt::Display for PermissionRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
