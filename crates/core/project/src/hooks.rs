//! Loads hooks, which are commands that run at certain points of a run, from the user and from
//! trusted projects.
//!
//! Hooks are read from the user's `[hooks]` section, from that section of the project's
//! `.haft/config.toml`, and from Claude Code's project settings. This module runs nothing.
//! Invariant: [`load_hooks`] loads nothing of an untrusted project; [`load_project_hooks`] is for
//! displaying a project's hooks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use haft_types::HookPoint;
use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::compat::claude_settings_files;
use crate::file_reading;
use crate::knowledge::{KnowledgePaths, Level};
use crate::problem::FileProblem;

/// The maximum timeout of a hook, in seconds.
const MAX_TIMEOUT_SECONDS: u64 = 600;

/// `[hooks]`: groups of commands for each hook point.
pub type HooksConfig = BTreeMap<HookPoint, Vec<HookGroup>>;

/// Hook commands that share a matcher.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HookGroup {
    /// A regular expression that must match the whole subject, such as the name of a tool. An empty
    /// text or `*` matches every subject.
    #[serde(default)]
    pub matcher: String,
    /// The hook commands, in the order in which they run.
    pub hooks: Vec<HookCommand>,
}

/// The command line of a hook, with its settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HookCommand {
    #[serde(default, rename = "type")]
    pub kind: HookKind,
    /// The command line, which is run with `/bin/sh`.
    pub command: String,
    /// The timeout of the hook, in seconds.
    #[serde(default = "default_timeout")]
    pub timeout: u64,
    /// True if the hook is run in the sandbox of commands. Only the user's own hooks may be run
    /// outside the sandbox.
    #[serde(default = "default_sandbox")]
    pub sandbox: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookKind {
    #[default]
    Command,
    /// A shell command that expects the input and output format of Claude Code.
    #[serde(skip)]
    ClaudeCommand,
}

/// The default timeout of a hook, in seconds.
fn default_timeout() -> u64 {
    60
}

fn default_sandbox() -> bool {
    true
}

/// A hook that was loaded from a configuration file.
#[derive(Clone, Debug)]
pub struct Hook {
    /// The point at which the hook runs.
    pub point: HookPoint,
    /// The pattern that selects the subjects for which the hook runs.
    pub matcher: Matcher,
    /// The command line, which is run with `/bin/sh`.
    pub command: String,
    pub timeout: Duration,
    /// True if the hook runs in the sandbox of commands.
    pub sandboxed: bool,
    pub level: Level,
    /// The configuration file that declares the hook.
    pub path: PathBuf,
    /// The program whose tool names, hook point names and data formats the hook uses.
    pub dialect: HookDialect,
}

/// The program whose names for tools and hook points a hook uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookDialect {
    /// The hook uses haft's names of tools and hook points.
    Haft,
    /// The hook uses Claude Code's names of tools and hook points, and haft's names for those that
    /// Claude Code lacks.
    Claude,
}

/// A pattern that selects the subjects for which a hook runs, such as tool names.
#[derive(Clone, Debug)]
pub struct Matcher {
    text: String,
    /// The compiled pattern; `None` if every subject matches.
    pattern: Option<Regex>,
}

impl Matcher {
    /// Compiles a regular expression that must match the whole subject. `*` and the empty text
    /// match every subject.
    pub fn new(text: &str) -> Result<Self, String> {
        let pattern = match text {
            "" | "*" => None,
            text => Some(Regex::new(&format!("^(?:{text})$")).map_err(|error| error.to_string())?),
        };
        Ok(Self {
            text: text.to_owned(),
            pattern,
        })
    }

    /// Returns the pattern as written in the configuration.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// True if the pattern matches at least one of `names`, the names of one subject.
    pub fn matches(&self, names: &[&str]) -> bool {
        self.pattern
            .as_ref()
            .is_none_or(|pattern| names.iter().any(|name| pattern.is_match(name)))
    }
}

/// Loads the hooks of the user, followed by the hooks of the project if the project is trusted.
pub fn load_hooks(
    knowledge: &KnowledgePaths,
    user: &HooksConfig,
    user_file: &Path,
    problems: &mut Vec<FileProblem>,
) -> Vec<Hook> {
    let source = HookSource {
        level: Level::User,
        path: user_file,
        text: "",
    };
    let mut found = collect_hooks(user, source, problems);
    if knowledge.trusted {
        found.extend(load_project_hooks(knowledge, problems));
    }
    found
}

/// Loads the hooks of a project, even if the project is not trusted.
pub fn load_project_hooks(
    knowledge: &KnowledgePaths,
    problems: &mut Vec<FileProblem>,
) -> Vec<Hook> {
    let mut found = Vec::new();
    let own = knowledge.root.join(".haft/config.toml");
    if let Some(text) = read_if_present(knowledge, &own, problems) {
        let place = HookSource {
            level: Level::Project,
            path: &own,
            text: &text,
        };
        match toml::from_str::<ProjectConfigFile>(&text) {
            Ok(file) => found.extend(collect_hooks(&file.hooks, place, problems)),
            Err(error) => {
                problems.push(FileProblem::new(
                    &own,
                    format!("its `[hooks]` are left out: {}", error.message()),
                ));
            }
        }
    }
    for name in claude_settings_files() {
        let path = knowledge.root.join(name);
        let Some(text) = read_if_present(knowledge, &path, problems) else {
            continue;
        };
        match serde_json::from_str::<Value>(&text) {
            Ok(settings) => {
                let place = HookSource {
                    level: Level::Project,
                    path: &path,
                    text: &text,
                };
                found.extend(collect_foreign_hooks(&settings["hooks"], place, problems));
            }
            Err(error) => problems.push(FileProblem::new(
                &path,
                format!("its hooks are left out: {error}"),
            )),
        }
    }
    found
}

/// The part of a project's configuration file that declares hooks.
#[derive(Deserialize)]
struct ProjectConfigFile {
    #[serde(default)]
    hooks: HooksConfig,
}

/// The configuration file that declares a hook, and the level of the file.
#[derive(Clone, Copy)]
struct HookSource<'a> {
    level: Level,
    path: &'a Path,
    text: &'a str,
}

impl HookSource<'_> {
    /// Creates a hook that this file declares. `sandbox = false` in a project's file is reported
    /// and ignored.
    fn build_hook(
        self,
        point: HookPoint,
        matcher: &Matcher,
        hook: HookCommand,
        problems: &mut Vec<FileProblem>,
    ) -> Hook {
        let Self { level, path, text } = self;
        let HookCommand {
            kind,
            command,
            timeout,
            sandbox,
        } = hook;
        let words = if kind == HookKind::Command {
            HookDialect::Haft
        } else {
            HookDialect::Claude
        };
        if level == Level::Project && !sandbox {
            let is_it = |line: &str| line.contains("sandbox") && line.contains("false");
            let what = format!(
                "`sandbox = false` counts in your own configuration only: the hook `{command}` is confined"
            );
            let line = text.lines().position(is_it).unwrap_or_default() + 1;
            problems.push(FileProblem::new(path, what).at_line(line));
        }
        let timeout = Duration::from_secs(timeout.clamp(1, MAX_TIMEOUT_SECONDS));
        let sandboxed = sandbox || level == Level::Project;
        Hook {
            point,
            matcher: matcher.clone(),
            command,
            timeout,
            sandboxed,
            level,
            path: path.to_owned(),
            dialect: words,
        }
    }
}

fn read_if_present(
    knowledge: &KnowledgePaths,
    path: &Path,
    problems: &mut Vec<FileProblem>,
) -> Option<String> {
    path.symlink_metadata().ok()?;
    file_reading::read_file(knowledge, path, problems).map(|file| file.text)
}

fn collect_hooks(
    config: &HooksConfig,
    place: HookSource<'_>,
    problems: &mut Vec<FileProblem>,
) -> Vec<Hook> {
    let mut found = Vec::new();
    for (point, groups) in config {
        for group in groups {
            let Some(matcher) = compile_matcher(&group.matcher, place, problems) else {
                continue;
            };
            let made =
                |hook: &HookCommand| place.build_hook(*point, &matcher, hook.clone(), problems);
            found.extend(group.hooks.iter().map(made));
        }
    }
    found
}

/// Loads the hooks from the settings of another program. Each unsupported entry is skipped and
/// reported.
fn collect_foreign_hooks(
    hooks: &Value,
    place: HookSource<'_>,
    problems: &mut Vec<FileProblem>,
) -> Vec<Hook> {
    let mut found = Vec::new();
    for (name, groups) in hooks.as_object().into_iter().flatten() {
        let Some(point) = HookPoint::from_name(name) else {
            problems.push(FileProblem::new(
                place.path,
                format!("there is no hook point `{name}`; its hooks are left out"),
            ));
            continue;
        };
        for group in groups.as_array().into_iter().flatten() {
            let Some(matcher) = compile_matcher(
                group["matcher"].as_str().unwrap_or_default(),
                place,
                problems,
            ) else {
                continue;
            };
            for hook in group["hooks"].as_array().into_iter().flatten() {
                match (
                    hook["type"].as_str().unwrap_or("command"),
                    hook["command"].as_str(),
                ) {
                    ("command", Some(command)) => {
                        let timeout = hook["timeout"].as_u64().unwrap_or_else(default_timeout);
                        let command = command.to_owned();
                        let sandbox = hook["sandbox"] != false;
                        let hook = HookCommand {
                            kind: HookKind::ClaudeCommand,
                            command,
                            timeout,
                            sandbox,
                        };
                        found.push(place.build_hook(point, &matcher, hook, problems));
                    }
                    (kind, _) => {
                        let what = format!(
                            "a `{name}` hook of type `{kind}` is left out: only commands are run"
                        );
                        problems.push(FileProblem::new(place.path, what));
                    }
                }
            }
        }
    }
    found
}

fn compile_matcher(
    text: &str,
    place: HookSource<'_>,
    problems: &mut Vec<FileProblem>,
) -> Option<Matcher> {
    match Matcher::new(text) {
        Ok(matcher) => Some(matcher),
        Err(why) => {
            let why = why.lines().last().unwrap_or_default();
            let what = format!(
                "the matcher `{text}` of a hook cannot be read, its hooks are left out: {why}"
            );
            problems.push(FileProblem::new(place.path, what));
            None
        }
    }
}

#[cfg(test)]
mod tests;
