//! What a trusted project says about safety in its own files: it can tighten what the user allows,
//! and nothing else.
//!
//! Read are `[permissions] deny` and `ask`, `[sandbox] hidden` and `[tools] offer` of
//! `.haft/config.toml`, and `permissions.deny` and `ask` of Claude Code's settings. Invariant: with
//! a policy no call is allowed, no file readable and no tool offered that would not be without it;
//! every other key is named with its line. What may forbid something and cannot be read stops the
//! run: asking instead would mean nothing in `yolo`, where only prohibitions hold.

use std::io;
use std::path::{Path, PathBuf};

use haft_agent::config::Config;
use haft_agent::{ConfigError, Contribution, Extension, ExtensionContext, RunPlan, SetupError};
use haft_engine::Notice;
use haft_permission::{PermissionRule, PermissionRules, Permissions, PermissionsConfig};
use haft_tool::Workspace;
use haft_types::Decision;
use serde_json::Value;

/// The files, and whether every key in them is meant for haft.
const FILES: [(&str, PolicyDialect); 3] = [
    (".haft/config.toml", PolicyDialect::Haft),
    (".claude/settings.json", PolicyDialect::Claude),
    (".claude/settings.local.json", PolicyDialect::Claude),
];

/// The keys that tighten.
const TIGHTENING: [(&str, &str); 4] = [
    ("permissions", "deny"),
    ("permissions", "ask"),
    ("sandbox", "hidden"),
    ("tools", "offer"),
];

/// The largest file that is read.
const LARGEST: u64 = 256 * 1024;

#[derive(Clone, Copy, PartialEq, Eq)]
enum PolicyDialect {
    Haft,
    Claude,
}

/// What a project tightens.
#[derive(Debug, Default)]
pub(crate) struct ProjectPolicy {
    /// Rules that ask and deny.
    pub(crate) rules: PermissionsConfig,
    /// What commands may not read.
    pub(crate) hidden: Vec<PathBuf>,
    offer: Option<Vec<String>>,
    /// Each thing it says, with its place.
    pub(crate) shown: Vec<String>,
    /// What it says that does not count, with its place.
    pub(crate) warnings: Vec<String>,
    /// What it may forbid and cannot be read, with its place.
    pub(crate) unreadable: Vec<String>,
}

impl ProjectPolicy {
    /// That of a project that is trusted, or would be.
    pub(crate) fn of(root: &Path) -> Self {
        let mut policy = Self::default();
        for (name, owner) in FILES {
            let text = match text(root, name) {
                Ok(Some(text)) => text,
                Ok(None) => continue,
                Err(why) => {
                    policy.unreadable.push(format!("{name}: {why}"));
                    continue;
                }
            };
            let parsed = match owner {
                PolicyDialect::Haft => {
                    toml::from_str::<Value>(&text).map_err(|error| error.message().to_owned())
                }
                PolicyDialect::Claude => {
                    serde_json::from_str(&text).map_err(|error| error.to_string())
                }
            };
            match parsed {
                Ok(value) => policy.take(
                    root,
                    &PolicyFile {
                        name,
                        text: &text,
                        owner,
                    },
                    &value,
                ),
                Err(why) => policy
                    .unreadable
                    .push(format!("{name}: it cannot be read: {why}")),
            }
        }
        policy
    }

    fn take(&mut self, root: &Path, file: &PolicyFile<'_>, value: &Value) {
        let mut left = Vec::new();
        for (section, inside) in value.as_object().into_iter().flatten() {
            let is_known =
                section == "permissions" || file.owner == PolicyDialect::Haft && section != "hooks";
            let Some(keys) = inside.as_object().filter(|_| is_known) else {
                let line = file.line(section, None);
                if is_known && TIGHTENING.iter().any(|(known, _)| known == section) {
                    self.unreadable
                        .push(format!("{}: `{section}` holds no keys", file.place(line)));
                } else if section != "hooks" {
                    left.push((section.clone(), line));
                }
                continue;
            };
            for (key, value) in keys {
                let line = file.line(section, Some(key));
                if !self.take_key(root, file, section, key, value, line) {
                    left.push((format!("{section}.{key}"), line));
                }
            }
        }
        match file.owner {
            PolicyDialect::Haft => self.warnings.extend(left.into_iter().map(|(key, line)| {
                format!(
                    "{}: `{key}` is ignored: a project can only tighten what is allowed",
                    file.place(line)
                )
            })),
            // Most of it is for that program.
            PolicyDialect::Claude if left.is_empty() => {}
            PolicyDialect::Claude => {
                let keys: Vec<_> = left
                    .iter()
                    .map(|(key, line)| format!("`{key}` (line {})", line.unwrap_or(1)))
                    .collect();
                self.warnings
                    .push(format!("{}: ignored: {}", file.name, keys.join(", ")));
            }
        }
    }

    /// Takes one key, if it is one that counts.
    fn take_key(
        &mut self,
        root: &Path,
        file: &PolicyFile<'_>,
        section: &str,
        key: &str,
        value: &Value,
        line: Option<usize>,
    ) -> bool {
        if !TIGHTENING.contains(&(section, key)) {
            return false;
        }
        let texts = || -> Vec<String> {
            let all = value.as_array().into_iter().flatten();
            all.filter_map(|text| text.as_str().map(str::to_owned))
                .collect()
        };
        if value
            .as_array()
            .is_none_or(|all| !all.iter().all(Value::is_string))
        {
            self.unreadable.push(format!(
                "{}: `{section}.{key}` is not a list of texts",
                file.place(line)
            ));
            return true;
        }
        match (section, key, file.owner) {
            ("permissions", "deny" | "ask", _) => {
                let decision = if key == "deny" {
                    Decision::Deny
                } else {
                    Decision::Ask
                };
                for rule in texts() {
                    self.take_rule(decision, &rule, file, line);
                }
            }
            ("sandbox", "hidden", PolicyDialect::Haft) => {
                for path in texts() {
                    self.shown
                        .push(format!("hide {path} ({})", file.place(line)));
                    let kept = path.starts_with('~') || path.starts_with('/');
                    self.hidden
                        .push(if kept { path.into() } else { root.join(path) });
                }
            }
            ("tools", "offer", PolicyDialect::Haft) => {
                let names = texts();
                self.shown.push(format!(
                    "offer no tools but {} ({})",
                    names.join(", "),
                    file.place(line)
                ));
                self.offer = Some(names);
            }
            _ => return false,
        }
        true
    }

    fn take_rule(
        &mut self,
        decision: Decision,
        rule: &str,
        file: &PolicyFile<'_>,
        line: Option<usize>,
    ) {
        let place = file.place(line);
        let home = super::environment().home();
        // Other agents write paths from the project's root in this way.
        let mut rule = rule.replace("(./", "(");
        if let Err(error) = PermissionRule::parse(&rule, home.as_deref()) {
            let Some(wider) =
                PermissionRule::wider(&rule).filter(|_| file.owner == PolicyDialect::Claude)
            else {
                self.unreadable.push(format!("{place}: {error}"));
                return;
            };
            self.warnings
                .push(format!("{place}: taken as `{wider}`: {error}"));
            rule = wider;
        }
        self.shown.push(format!("{decision} {rule} ({place})"));
        match decision {
            Decision::Deny => self.rules.deny.push(rule),
            Decision::Ask | Decision::Allow => self.rules.ask.push(rule),
        }
    }

    /// Tightens configuration and plan of a run in a project that is trusted. What its rules keep
    /// from being read is hidden from commands as well.
    fn apply(
        self,
        home: Option<&Path>,
        config: &mut Config,
        plan: &mut RunPlan,
    ) -> Result<(), SetupError> {
        if !self.unreadable.is_empty() {
            return Err(SetupError::Policy(self.unreadable.join("; ")));
        }
        let rules = PermissionRules::load(&self.rules, home).map_err(ConfigError::Rules)?;
        let nowhere = PathBuf::new();
        let workspace = Workspace {
            root: plan.project.root.clone(),
            extra: plan.added_folders.clone(),
            cwd: plan.project.cwd.clone(),
            spill: nowhere.clone(),
            journal: nowhere,
        };
        config.sandbox.hidden.extend(
            Permissions {
                rules,
                ..Permissions::default()
            }
            .unreadable(&workspace),
        );
        config.sandbox.hidden.extend(self.hidden);
        plan.tools_within = self.offer;
        Ok(())
    }
}

/// A file of a project.
struct PolicyFile<'a> {
    name: &'a str,
    text: &'a str,
    owner: PolicyDialect,
}

impl PolicyFile<'_> {
    fn place(&self, line: Option<usize>) -> String {
        line.map_or_else(
            || self.name.to_owned(),
            |line| format!("{}, line {line}", self.name),
        )
    }

    /// The line on which a key stands, as far as that can be seen without reading the file as a
    /// program does.
    fn line(&self, section: &str, key: Option<&str>) -> Option<usize> {
        let begins = |line: &str, name: &str| {
            let line = line
                .trim_start()
                .trim_start_matches(['[', '"', '\'', '{', ' ']);
            line.strip_prefix(name).is_some_and(|rest| {
                !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '-')
            })
        };
        let dotted = key.map(|key| format!("{section}.{key}"));
        let lines = || self.text.lines().enumerate();
        let section_at = lines()
            .find(|(_, line)| begins(line, section))
            .map(|(at, _)| at);
        let Some(key) = key else {
            return section_at.map(|at| at + 1);
        };
        let found = dotted.and_then(|dotted| {
            lines()
                .find(|(_, line)| begins(line, &dotted))
                .map(|(at, _)| at)
        });
        let below = || {
            lines()
                .skip(section_at.unwrap_or_default())
                .find(|(_, line)| begins(line, key))
                .map(|(at, _)| at)
        };
        found.or_else(below).or(section_at).map(|at| at + 1)
    }
}

/// What a file of the project holds, where there is one. A file that is there and cannot be read
/// may forbid anything.
fn text(root: &Path, name: &str) -> Result<Option<String>, String> {
    let there = root.join(name);
    let missing = |error: &io::Error| {
        matches!(
            error.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
        )
    };
    if let Err(error) = there.symlink_metadata() {
        return if missing(&error) {
            Ok(None)
        } else {
            Err(format!("it cannot be read: {error}"))
        };
    }
    let path = there
        .canonicalize()
        .map_err(|error| format!("it cannot be read: {error}"))?;
    let metadata = path
        .metadata()
        .map_err(|error| format!("it cannot be read: {error}"))?;
    if !path.starts_with(root) {
        return Err("it is a link that leads out of the project".to_owned());
    }
    if !metadata.is_file() {
        return Err("it is not a file".to_owned());
    }
    if metadata.len() > LARGEST {
        return Err(format!("it is larger than {} KB", LARGEST / 1024));
    }
    let text =
        std::fs::read_to_string(&path).map_err(|error| format!("it cannot be read: {error}"))?;
    Ok(Some(
        text.strip_prefix('\u{feff}')
            .map(str::to_owned)
            .unwrap_or(text),
    ))
}

/// Gives every session what a trusted project tightens.
pub(super) struct PolicyExtension;

impl Extension for PolicyExtension {
    fn tighten(&self, config: &mut Config, plan: &mut RunPlan) -> Result<(), SetupError> {
        let home = super::environment().home();
        ProjectPolicy::of(&plan.project.root).apply(home.as_deref(), config, plan)
    }

    fn contribute(&self, context: &ExtensionContext<'_>) -> Contribution {
        if !context.trust_state.is_trusted() {
            return Contribution::default();
        }
        let policy = ProjectPolicy::of(&context.project.root);
        let home = context.places.environment.home();
        let rules = |decision: Decision, texts: &[String]| -> Vec<_> {
            let parsed = texts
                .iter()
                .filter_map(|text| PermissionRule::parse(text, home.as_deref()).ok());
            parsed.map(|rule| (decision, rule)).collect()
        };
        let mut all = rules(Decision::Deny, &policy.rules.deny);
        let ask = rules(Decision::Ask, &policy.rules.ask);
        all.extend(ask);
        let notices = policy.warnings.into_iter().map(|message| Notice {
            code: "project_policy",
            message,
            failed: false,
        });
        Contribution {
            rules: all,
            notices: notices.collect(),
            ..Contribution::default()
        }
    }
}
