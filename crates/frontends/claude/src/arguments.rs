//! Translates Claude Code's command line to haft's. Flags that haft has under the same name are
//! passed on; the others become [`ClaudeOptions`].
//!
//! Both spellings of a name are accepted (`--allowedTools`, `--allowed-tools`).
//!
//! Invariant: a flag that restricts a run, or selects the messages it sends, is either obeyed or
//! refused. Only flags that are safe to ignore are ignored, each with a notice.

#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::iter::Peekable;
use std::path::Path;
use std::slice::Iter;

use crate::{CLAUDE_CODE_VERSION, ClaudeNotice, ClaudeOptions};

/// Flags without a value that are passed to haft unchanged.
const PASSED_SWITCHES: [&str; 5] = [
    "continue",
    "fork-session",
    "verbose",
    "include-partial-messages",
    "print",
];
/// Flags with a value that are passed to haft unchanged.
const PASSED_VALUES: [&str; 10] = [
    "output-format",
    "input-format",
    "model",
    "max-turns",
    "max-budget-usd",
    "system-prompt",
    "system-prompt-file",
    "append-system-prompt",
    "json-schema",
    "agent",
];
/// Flags without a value that haft ignores.
const IGNORED_SWITCHES: [&str; 8] = [
    "chrome",
    "debug-to-stderr",
    "disable-slash-commands",
    "ide",
    "include-hook-events",
    "no-chrome",
    "no-session-persistence",
    "replay-user-messages",
];
/// Flags with a value that haft ignores.
const IGNORED_VALUES: [&str; 9] = [
    "effort",
    "thinking",
    "thinking-display",
    "max-thinking-tokens",
    "task-budget",
    "plugin-dir",
    "debug-file",
    "name",
    "prompt-suggestions",
];
/// Flags that change the sent or stored data in ways that haft does not support. They are refused,
/// because a run that ignores them would differ from the run that was requested.
const REFUSED_FLAGS: [&str; 5] = [
    "resume-session-at",
    "resume-drops-turn",
    "session-mirror",
    "from-pr",
    "append-system-prompt-file",
];

/// The result of parsing a command line in Claude Code's syntax.
#[derive(Debug, PartialEq)]
pub enum ClaudeCommandLine {
    /// The command line contains a flag that haft neither supports nor may ignore.
    Refused(String),
    /// The translated command line.
    Lowered {
        /// The arguments for haft, starting with the program's name.
        args: Vec<OsString>,
        /// The options for which haft has no flags.
        options: Box<ClaudeOptions>,
    },
}

/// Returns the answer to `claude --version`, for programs that check the version before they use
/// Claude Code. Returns `None` if the program's name is not `claude` or `args` does not request the
/// version.
pub fn version_line(args: &[OsString]) -> Option<String> {
    let (program, rest) = args.split_first()?;
    let is_wanted = is_claude_program(program)
        && rest
            .first()
            .is_some_and(|first| first == "-v" || first == "--version");
    is_wanted.then(|| {
        format!(
            "{} (haft {} as Claude Code)\n",
            CLAUDE_CODE_VERSION,
            env!("CARGO_PKG_VERSION")
        )
    })
}

fn is_claude_program(program: &OsStr) -> bool {
    Path::new(program)
        .file_name()
        .is_some_and(|name| name == "claude")
}

/// Translates the arguments of this process to haft's if they are meant for Claude Code; otherwise
/// returns `None`. `own` is haft's command-line definition.
pub fn lower_arguments(args: &[OsString], own: &clap::Command) -> Option<ClaudeCommandLine> {
    let (program, rest) = args.split_first()?;
    let as_claude = is_claude_program(program);
    let has_compat_flag = rest.iter().any(|arg| arg == "--compat=claude")
        || rest
            .windows(2)
            .any(|pair| pair[0] == "--compat" && pair[1] == "claude");
    let command = rest
        .first()
        .and_then(|first| own.find_subcommand(first))
        .map(clap::Command::get_name);
    match command {
        // `claude mcp list` is haft's own command.
        Some(name) if name != "run" || !has_compat_flag => return None,
        _ if !as_claude && !has_compat_flag => return None,
        _ => {}
    }
    let rest = if command.is_some() { &rest[1..] } else { rest };
    let driven = rest.iter().any(|arg| arg == "--input-format=stream-json")
        || rest
            .windows(2)
            .any(|pair| pair[0] == "--input-format" && pair[1] == "stream-json");
    let mut reader = ArgumentReader {
        rest: rest.iter().peekable(),
        own,
        reads_stdin: driven,
        lowered: Lowered::default(),
    };
    reader.read_all();
    // A caller of `haft run` expects haft's tool names.
    reader.lowered.options.renames_tools = command.is_none();
    Some(reader.lowered.finish(program, as_claude))
}

/// The translation of the arguments read so far.
#[derive(Default)]
struct Lowered {
    args: Vec<OsString>,
    prompt: Vec<OsString>,
    options: ClaudeOptions,
    refused: Option<String>,
    /// True if the run prints its result and exits, even at a terminal.
    headless: bool,
}

impl Lowered {
    fn finish(mut self, program: &OsStr, as_claude: bool) -> ClaudeCommandLine {
        if let Some(flag) = self.refused {
            return ClaudeCommandLine::Refused(flag);
        }
        let mut args = vec![program.to_owned()];
        if self.headless || !as_claude {
            args.extend(["run", "--compat", "claude"].map(OsString::from));
        } else {
            // At a terminal no program reads messages.
            self.args.retain(|arg| arg != "--include-partial-messages");
        }
        args.append(&mut self.args);
        if !self.prompt.is_empty() {
            args.push("--".into());
            args.append(&mut self.prompt);
        }
        ClaudeCommandLine::Lowered {
            args,
            options: Box::new(self.options),
        }
    }
}

struct ArgumentReader<'a> {
    rest: Peekable<Iter<'a, OsString>>,
    own: &'a clap::Command,
    /// True if prompts arrive on standard input.
    reads_stdin: bool,
    lowered: Lowered,
}

impl ArgumentReader<'_> {
    fn read_all(&mut self) {
        while let Some(arg) = self.rest.next() {
            let Some(text) = arg.to_str() else {
                self.lowered.prompt.push(arg.clone());
                continue;
            };
            match text {
                "--" => self.lowered.prompt.extend(self.rest.by_ref().cloned()),
                "-p" => self.lowered.headless = true,
                "-c" => self.lowered.args.push("--continue".into()),
                "-r" => self.read_resume(None),
                "-d" => self.ignore_flag("--debug"),
                _ => match text.strip_prefix("--") {
                    Some(flag) => {
                        let (name, inline) = flag
                            .split_once('=')
                            .map_or((flag, None), |(name, value)| (name, Some(value)));
                        self.read_flag(&to_kebab_case(name), inline);
                    }
                    None if text.starts_with('-') && text.len() > 1 => {
                        self.read_haft_flag(text, None);
                    }
                    None => self.lowered.prompt.push(arg.clone()),
                },
            }
        }
    }

    fn read_flag(&mut self, name: &str, inline: Option<&str>) {
        match name {
            "compat" => drop(self.take_value(inline)),
            "print" => self.lowered.headless = true,
            "resume" => self.read_resume(inline),
            "allowed-tools" => {
                let rules = self.take_values(inline);
                self.lowered
                    .options
                    .allow
                    .extend(rules.iter().flat_map(|text| split_rules(text)));
            }
            "disallowed-tools" => {
                let rules = self.take_values(inline);
                self.lowered
                    .options
                    .deny
                    .extend(rules.iter().flat_map(|text| split_rules(text)));
            }
            "tools" => {
                let names = self.take_values(inline);
                let all = names.iter().flat_map(|text| split_rules(text)).collect();
                self.lowered.options.tools = Some(all);
            }
            "add-dir" => {
                let folders = self.take_values(inline);
                let flags = folders
                    .into_iter()
                    .map(|folder| OsString::from(format!("--add-dir={folder}")));
                self.lowered.args.extend(flags);
            }
            "mcp-config" => {
                let given = self.take_values(inline);
                self.lowered.options.mcp_config.extend(given);
            }
            "strict-mcp-config" => self.lowered.options.strict_mcp_config = true,
            "settings" => {
                let given = self.take_value(inline);
                self.lowered.options.settings.extend(given);
            }
            "setting-sources" => {
                let sources = self.take_value(inline).unwrap_or_default();
                let named = sources
                    .split(',')
                    .map(str::trim)
                    .filter(|source| !source.is_empty());
                self.lowered.options.setting_sources = Some(named.map(str::to_owned).collect());
            }
            "agents" => self.lowered.options.agents = self.take_value(inline),
            "fallback-model" => self.lowered.options.fallback_model = self.take_value(inline),
            "session-id" => self.lowered.options.session_id = self.take_value(inline),
            "permission-mode" => self.read_permission_mode(inline),
            "permission-prompt-tool" => self.read_prompt_tool(inline),
            "dangerously-skip-permissions" => {
                self.lowered.options.bypass_allowed = true;
                self.pass_flag("--permission-mode", "bypassPermissions");
            }
            _ => self.read_listed_flag(name, inline),
        }
    }

    /// Handles a flag that needs no code of its own: one that is passed on, refused or ignored.
    fn read_listed_flag(&mut self, name: &str, inline: Option<&str>) {
        if name == "allow-dangerously-skip-permissions" {
            self.lowered.options.bypass_allowed = true;
        } else if PASSED_SWITCHES.contains(&name) {
            self.lowered.args.push(format!("--{name}").into());
        } else if PASSED_VALUES.contains(&name) {
            let value = self.take_value(inline).unwrap_or_default();
            self.lowered.headless |= ["output-format", "input-format"].contains(&name);
            self.pass_flag(&format!("--{name}"), &value);
        } else if REFUSED_FLAGS.contains(&name) {
            self.lowered.refused.get_or_insert(format!("--{name}"));
        } else if IGNORED_SWITCHES.contains(&name) {
            self.ignore_flag(&format!("--{name}"));
        } else if name == "betas" {
            // The flag takes several values, and none of them is the prompt.
            drop(self.take_values(inline));
            self.ignore_flag("--betas");
        } else if IGNORED_VALUES.contains(&name) {
            drop(self.take_value(inline));
            self.ignore_flag(&format!("--{name}"));
        } else {
            self.read_haft_flag(&format!("--{name}"), inline);
        }
    }

    /// Handles one of haft's own flags, or an unknown flag, which is ignored.
    fn read_haft_flag(&mut self, flag: &str, inline: Option<&str>) {
        let run = self.own.find_subcommand("run").unwrap_or(self.own);
        let is_meant = |arg: &&clap::Arg| match flag.strip_prefix("--") {
            Some(long) => arg.get_long() == Some(long),
            None => arg
                .get_short()
                .is_some_and(|short| flag == format!("-{short}")),
        };
        // Flags that haft has in addition to those of `run`.
        let help = ["-h", "--help", "-V"].contains(&flag);
        match run.get_arguments().find(is_meant) {
            Some(known) if known.get_action().takes_values() => {
                let value = self.take_value(inline).unwrap_or_default();
                self.lowered.args.extend([flag.into(), value.into()]);
            }
            Some(_) => self.lowered.args.push(flag.into()),
            None if help => self.lowered.args.push(flag.into()),
            None => {
                // If prompts arrive on standard input, the next argument cannot be the prompt.
                if self.reads_stdin && inline.is_none() {
                    drop(self.take_unless_flag());
                }
                self.ignore_flag(flag);
            }
        }
    }

    fn pass_flag(&mut self, flag: &str, value: &str) {
        self.lowered.args.push(format!("{flag}={value}").into());
    }

    fn ignore_flag(&mut self, flag: &str) {
        self.lowered
            .options
            .notices
            .push(ClaudeNotice::IgnoredFlag(flag.to_owned()));
    }

    /// Handles `--resume`. Without a value, the user chooses the conversation.
    fn read_resume(&mut self, inline: Option<&str>) {
        let value = match inline {
            Some(value) => Some(value.to_owned()),
            None => self.take_unless_flag(),
        };
        match value {
            Some(value) => self.pass_flag("--resume", &value),
            None => self.lowered.args.push("--resume".into()),
        }
    }

    fn read_permission_mode(&mut self, inline: Option<&str>) {
        let mode = self.take_value(inline).unwrap_or_default();
        match mode.as_str() {
            // A call that no rule allows is denied without asking.
            "dontAsk" => {
                self.lowered.options.never_asks = true;
                self.pass_flag("--permission-mode", "ask");
            }
            "bypassPermissions" => {
                self.lowered.options.bypass_allowed = true;
                self.pass_flag("--permission-mode", &mode);
            }
            _ => self.pass_flag("--permission-mode", &mode),
        }
    }

    fn read_prompt_tool(&mut self, inline: Option<&str>) {
        match self.take_value(inline).as_deref() {
            Some("stdio") => self.lowered.options.asks_client = true,
            other => {
                let tool = other.unwrap_or_default();
                self.lowered
                    .options
                    .notices
                    .push(ClaudeNotice::PromptTool(tool.to_owned()));
            }
        }
    }

    /// Returns the value of a flag that requires one.
    fn take_value(&mut self, inline: Option<&str>) -> Option<String> {
        match inline {
            Some(value) => Some(value.to_owned()),
            None => self
                .rest
                .next()
                .map(|value| value.to_string_lossy().into_owned()),
        }
    }

    /// Returns the values of a flag that takes several: all arguments up to the next flag.
    fn take_values(&mut self, inline: Option<&str>) -> Vec<String> {
        if let Some(value) = inline {
            return vec![value.to_owned()];
        }
        // The first argument is a value even if it looks like a flag.
        let mut all: Vec<String> = self.take_value(None).into_iter().collect();
        all.extend(std::iter::from_fn(|| self.take_unless_flag()));
        all
    }

    /// Returns the next argument unless it is a flag.
    fn take_unless_flag(&mut self) -> Option<String> {
        let next = self
            .rest
            .next_if(|next| !next.as_encoded_bytes().starts_with(b"-"))?;
        Some(next.to_string_lossy().into_owned())
    }
}

/// Converts `allowedTools` to `allowed-tools`. Names that are in this form already do not change.
fn to_kebab_case(name: &str) -> String {
    let mut text = String::with_capacity(name.len() + 4);
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            text.push('-');
        }
        text.push(c.to_ascii_lowercase());
    }
    text
}

/// Splits rules at commas and whitespace outside parentheses.
fn split_rules(text: &str) -> Vec<String> {
    let mut depth = 0_u32;
    let parts = text.split(|c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && (c == ',' || c.is_whitespace())
    });
    parts
        .filter(|part| !part.is_empty())
        .map(str::to_owned)
        .collect()
}
