//! Commands that are run at points of a run: the user's, and those of a project that is trusted.
//!
//! Read from the user's `[hooks]` section, the project's `.haft/config.toml` (that section alone),
//! and Claude Code's project settings. Nothing here runs anything. Invariant: of a project that is
//! not trusted, nothing is loaded; [`of_project`] is for those who only show what there is.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use haft_types::HookPoint;
use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::compat::claude_settings;
use crate::file;
use crate::knowledge::{KnowledgePaths, Level};
use crate::problem::FileProblem;

/// The longest time a hook can be given.
const LONGEST: u64 = 600;

/// The `[hooks]` section: groups of commands by the point they are run at.
pub type HooksConfig = BTreeMap<HookPoint, Vec<HookGroup>>;

/// Commands that share a matcher.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HookGroup {
    /// Which subjects it is about, such as tools: a regular expression that fits the whole name;
    /// empty or `*` for all.
    #[serde(default)]
    pub matcher: String,
    /// The commands, run in order.
    pub hooks: Vec<HookCommand>,
}

/// One command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HookCommand {
    /// What it is.
    #[serde(default, rename = "type")]
    pub kind: HookKind,
    /// The line for `/bin/sh`.
    pub command: String,
    /// The seconds it may take.
    #[serde(default = "timeout")]
    pub timeout: u64,
    /// Whether it runs in the sandbox that commands run in. Only the user may say no.
    #[serde(default = "sandbox")]
    pub sandbox: bool,
}

/// What a hook is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookKind {
    /// A command.
    #[default]
    Command,
    /// A command that was written for Claude Code.
    #[serde(skip)]
    ClaudeCommand,
}

/// How long a hook may take, in seconds.
fn timeout() -> u64 {
    60
}

fn sandbox() -> bool {
    true
}

/// A hook that was found.
#[derive(Clone, Debug)]
pub struct Hook {
    /// Where in a run it is called.
    pub point: HookPoint,
    /// What it is about.
    pub matcher: Matcher,
    /// The line for `/bin/sh`.
    pub command: String,
    /// How long it may take.
    pub timeout: Duration,
    /// Whether it runs in the sandbox that commands run in.
    pub sandboxed: bool,
    /// Whose it is.
    pub level: Level,
    /// The file it stands in.
    pub path: PathBuf,
    /// In whose words it is spoken to.
    pub words: HookDialect,
}

/// In whose words a hook is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookDialect {
    /// haft's: its own names of tools and points.
    Haft,
    /// Claude Code's, as far as there are any.
    Claude,
}

/// Which subjects a hook is about.
#[derive(Clone, Debug)]
pub struct Matcher {
    text: String,
    /// None for all.
    pattern: Option<Regex>,
}

impl Matcher {
    /// The subjects whose whole names fit this regular expression; all for `*` and the empty one.
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

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether a subject of one of these names is meant.
    pub fn fits(&self, names: &[&str]) -> bool {
        self.pattern
            .as_ref()
            .is_none_or(|pattern| names.iter().any(|name| pattern.is_match(name)))
    }
}

/// Every hook that is to be called, the user's first.
pub fn load(
    knowledge: &KnowledgePaths,
    user: &HooksConfig,
    user_file: &Path,
    problems: &mut Vec<FileProblem>,
) -> Vec<Hook> {
    let place = HookSource {
        level: Level::User,
        path: user_file,
        text: "",
    };
    let mut found = gathered(user, place, problems);
    if knowledge.trusted {
        found.extend(of_project(knowledge, problems));
    }
    found
}

/// The hooks a project has, whether or not it is trusted.
pub fn of_project(knowledge: &KnowledgePaths, problems: &mut Vec<FileProblem>) -> Vec<Hook> {
    let mut found = Vec::new();
    let own = knowledge.root.join(".haft/config.toml");
    if let Some(text) = present(knowledge, &own, problems) {
        let place = HookSource {
            level: Level::Project,
            path: &own,
            text: &text,
        };
        match toml::from_str::<OwnFile>(&text) {
            Ok(file) => found.extend(gathered(&file.hooks, place, problems)),
            Err(error) => {
                problems.push(FileProblem::new(
                    &own,
                    format!("its `[hooks]` are left out: {}", error.message()),
                ));
            }
        }
    }
    for name in claude_settings() {
        let path = knowledge.root.join(name);
        let Some(text) = present(knowledge, &path, problems) else {
            continue;
        };
        match serde_json::from_str::<Value>(&text) {
            Ok(settings) => {
                let place = HookSource {
                    level: Level::Project,
                    path: &path,
                    text: &text,
                };
                found.extend(foreign(&settings["hooks"], place, problems));
            }
            Err(error) => problems.push(FileProblem::new(
                &path,
                format!("its hooks are left out: {error}"),
            )),
        }
    }
    found
}

/// What of a project's own configuration is read here; the rest of it is others'.
#[derive(Deserialize)]
struct OwnFile {
    #[serde(default)]
    hooks: HooksConfig,
}

/// Where hooks stand.
#[derive(Clone, Copy)]
struct HookSource<'a> {
    level: Level,
    path: &'a Path,
    text: &'a str,
}

impl HookSource<'_> {
    /// A hook that stands here. What a project says against the sandbox is reported and does not
    /// count.
    fn hook(
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
            problems.push(FileProblem::new(path, what).at(line));
        }
        let timeout = Duration::from_secs(timeout.clamp(1, LONGEST));
        let sandboxed = sandbox || level == Level::Project;
        Hook {
            point,
            matcher: matcher.clone(),
            command,
            timeout,
            sandboxed,
            level,
            path: path.to_owned(),
            words,
        }
    }
}

fn present(
    knowledge: &KnowledgePaths,
    path: &Path,
    problems: &mut Vec<FileProblem>,
) -> Option<String> {
    path.symlink_metadata().ok()?;
    file::read(knowledge, path, problems).map(|file| file.text)
}

fn gathered(
    config: &HooksConfig,
    place: HookSource<'_>,
    problems: &mut Vec<FileProblem>,
) -> Vec<Hook> {
    let mut found = Vec::new();
    for (point, groups) in config {
        for group in groups {
            let Some(matcher) = matcher(&group.matcher, place, problems) else {
                continue;
            };
            let made = |hook: &HookCommand| place.hook(*point, &matcher, hook.clone(), problems);
            found.extend(group.hooks.iter().map(made));
        }
    }
    found
}

/// Reads settings of another program: what is unknown in them is left out and named, one by one.
fn foreign(hooks: &Value, place: HookSource<'_>, problems: &mut Vec<FileProblem>) -> Vec<Hook> {
    let mut found = Vec::new();
    for (name, groups) in hooks.as_object().into_iter().flatten() {
        let Some(point) = HookPoint::by_name(name) else {
            problems.push(FileProblem::new(
                place.path,
                format!("there is no hook point `{name}`; its hooks are left out"),
            ));
            continue;
        };
        for group in groups.as_array().into_iter().flatten() {
            let Some(matcher) = matcher(
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
                        let timeout = hook["timeout"].as_u64().unwrap_or_else(timeout);
                        let command = command.to_owned();
                        let sandbox = hook["sandbox"] != false;
                        let hook = HookCommand {
                            kind: HookKind::ClaudeCommand,
                            command,
                            timeout,
                            sandbox,
                        };
                        found.push(place.hook(point, &matcher, hook, problems));
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

fn matcher(text: &str, place: HookSource<'_>, problems: &mut Vec<FileProblem>) -> Option<Matcher> {
    let problem = |why: String| {
        let why = why.lines().last().unwrap_or_default().to_owned();
        FileProblem::new(
            place.path,
            format!("the matcher `{text}` of a hook cannot be read, its hooks are left out: {why}"),
        )
    };
    Matcher::new(text)
        .map_err(|why| problems.push(problem(why)))
        .ok()
}

#[cfg(test)]
mod tests;
