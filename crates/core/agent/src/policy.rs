//! The policy in a trusted project's own files, which can only restrict what the user allows.
//!
//! The files are `.haft/config.toml` (`[permissions] deny` and `ask`, `[sandbox] hidden`, `[tools]
//! offer`) and Claude Code's settings (`permissions.deny` and `ask`). Invariant: a policy never
//! allows a call, makes a file readable or offers a tool; every other key is reported with its
//! line. A prohibition that cannot be read prevents the run: asking instead would have no effect in
//! `yolo`, which only honors prohibitions.

use std::io;
use std::path::{Path, PathBuf};

use haft_engine::Notice;
use haft_permission::{PermissionRule, PermissionRules, Permissions, PermissionsConfig};
use haft_tool::Workspace;
use haft_types::Decision;
use serde_json::Value;

use crate::config::Config;
use crate::environment::HostEnvironment;
use crate::error::{ConfigError, SetupError};
use crate::extension::{Contribution, Extension, ExtensionContext};
use crate::plan::RunPlan;

/// The policy files of a project, each with the program whose configuration keys the file uses.
const POLICY_FILES: [(&str, PolicyDialect); 3] = [
    (".haft/config.toml", PolicyDialect::Haft),
    (".claude/settings.json", PolicyDialect::Claude),
    (".claude/settings.local.json", PolicyDialect::Claude),
];

/// The supported keys of policy files, as section and key. Other keys are ignored with a warning.
const POLICY_KEYS: [(&str, &str); 4] = [
    ("permissions", "deny"),
    ("permissions", "ask"),
    ("sandbox", "hidden"),
    ("tools", "offer"),
];

/// The maximum size of a policy file, in bytes.
const MAX_FILE_SIZE: u64 = 256 * 1024;

#[derive(Clone, Copy, PartialEq, Eq)]
enum PolicyDialect {
    Haft,
    Claude,
}

/// The restrictions that a project's own files add, such as permission rules that ask or deny.
#[derive(Debug, Default)]
pub struct ProjectPolicy {
    /// Permission rules that ask or deny.
    pub rules: PermissionsConfig,
    /// Paths that commands may not read.
    pub hidden: Vec<PathBuf>,
    offer: Option<Vec<String>>,
    /// The statements of the policy as text, each with its place in a file.
    pub shown: Vec<String>,
    /// Keys and values that are ignored or changed, each with its place in a file.
    pub warnings: Vec<String>,
    /// Unreadable statements that may be prohibitions, each with its place in a file.
    pub unreadable: Vec<String>,
}

impl ProjectPolicy {
    /// Reads the policy of the project at `root`, which must be trusted or about to become trusted.
    /// `~` in paths stands for `home`.
    pub fn load(root: &Path, home: Option<&Path>) -> Self {
        let mut policy = Self::default();
        for (name, owner) in POLICY_FILES {
            let text = match read_policy_file(root, name) {
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
                Ok(value) => policy.add_file(
                    &PolicyFile {
                        root,
                        home,
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

    fn add_file(&mut self, file: &PolicyFile<'_>, value: &Value) {
        let mut left = Vec::new();
        for (section, inside) in value.as_object().into_iter().flatten() {
            let is_known =
                section == "permissions" || file.owner == PolicyDialect::Haft && section != "hooks";
            let Some(keys) = inside.as_object().filter(|_| is_known) else {
                let line = file.find_key_line(section, None);
                if is_known && POLICY_KEYS.iter().any(|(known, _)| known == section) {
                    self.unreadable.push(format!(
                        "{}: `{section}` holds no keys",
                        file.describe_place(line)
                    ));
                } else if section != "hooks" {
                    left.push((section.clone(), line));
                }
                continue;
            };
            for (key, value) in keys {
                let line = file.find_key_line(section, Some(key));
                if !self.add_key(file, section, key, value, line) {
                    left.push((format!("{section}.{key}"), line));
                }
            }
        }
        match file.owner {
            PolicyDialect::Haft => self.warnings.extend(left.into_iter().map(|(key, line)| {
                format!(
                    "{}: `{key}` is ignored: a project can only tighten what is allowed",
                    file.describe_place(line)
                )
            })),
            // Most keys in these files are meant for Claude Code only.
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

    /// Adds the statements of one key of a policy file. Returns false if the key is not supported.
    fn add_key(
        &mut self,
        file: &PolicyFile<'_>,
        section: &str,
        key: &str,
        value: &Value,
        line: Option<usize>,
    ) -> bool {
        if !POLICY_KEYS.contains(&(section, key)) {
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
                file.describe_place(line)
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
                    self.add_rule(decision, &rule, file, line);
                }
            }
            ("sandbox", "hidden", PolicyDialect::Haft) => {
                for path in texts() {
                    self.shown
                        .push(format!("hide {path} ({})", file.describe_place(line)));
                    let kept = path.starts_with('~') || path.starts_with('/');
                    self.hidden.push(if kept {
                        path.into()
                    } else {
                        file.root.join(path)
                    });
                }
            }
            ("tools", "offer", PolicyDialect::Haft) => {
                let names = texts();
                self.shown.push(format!(
                    "offer no tools but {} ({})",
                    names.join(", "),
                    file.describe_place(line)
                ));
                self.offer = Some(names);
            }
            _ => return false,
        }
        true
    }

    fn add_rule(
        &mut self,
        decision: Decision,
        rule: &str,
        file: &PolicyFile<'_>,
        line: Option<usize>,
    ) {
        let place = file.describe_place(line);
        // Other agents write `./` before paths that are relative to the project's root.
        let mut rule = rule.replace("(./", "(");
        if let Err(error) = PermissionRule::parse(&rule, file.home) {
            let Some(wider) = PermissionRule::widen_foreign_rule(&rule)
                .filter(|_| file.owner == PolicyDialect::Claude)
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

    /// Restricts the configuration and the plan of a run in a trusted project. If a rule denies
    /// reading a path, the path is hidden from commands.
    fn apply_to_run(
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
        let permissions = Permissions {
            rules,
            ..Permissions::default()
        };
        let unreadable = permissions.unreadable_paths(&workspace);
        config.sandbox.hidden.extend(unreadable.paths);
        config.sandbox.lacks_hidden |= !unreadable.is_complete;
        config.sandbox.hidden.extend(self.hidden);
        plan.tools.within = self.offer;
        Ok(())
    }
}

struct PolicyFile<'a> {
    root: &'a Path,
    home: Option<&'a Path>,
    name: &'a str,
    text: &'a str,
    owner: PolicyDialect,
}

impl PolicyFile<'_> {
    fn describe_place(&self, line: Option<usize>) -> String {
        line.map_or_else(
            || self.name.to_owned(),
            |line| format!("{}, line {line}", self.name),
        )
    }

    /// Returns the number of the line that contains a key. The text is searched without being
    /// parsed, so the line may be wrong in unusual files.
    fn find_key_line(&self, section: &str, key: Option<&str>) -> Option<usize> {
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

/// Reads a policy file of the project, or returns `None` if the file does not exist. Returns an
/// error if an existing file cannot be read, because that file may forbid anything.
fn read_policy_file(root: &Path, name: &str) -> Result<Option<String>, String> {
    let there = root.join(name);
    if let Err(error) = there.symlink_metadata() {
        return match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(None),
            _ => Err(format!("it cannot be read: {error}")),
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
    if metadata.len() > MAX_FILE_SIZE {
        return Err(format!("it is larger than {} KB", MAX_FILE_SIZE / 1024));
    }
    let text =
        std::fs::read_to_string(&path).map_err(|error| format!("it cannot be read: {error}"))?;
    Ok(Some(
        text.strip_prefix('\u{feff}')
            .map(str::to_owned)
            .unwrap_or(text),
    ))
}

/// The extension that applies the policies of trusted projects.
pub struct PolicyExtension;

impl Extension for PolicyExtension {
    fn restrict_run(
        &self,
        environment: &HostEnvironment,
        config: &mut Config,
        plan: &mut RunPlan,
    ) -> Result<(), SetupError> {
        let home = environment.home();
        ProjectPolicy::load(&plan.project.root, home.as_deref()).apply_to_run(
            home.as_deref(),
            config,
            plan,
        )
    }

    fn contribute(&self, context: &ExtensionContext<'_>) -> Contribution {
        if !context.trust_state.is_trusted() {
            return Contribution::default();
        }
        let home = context.places.environment.home();
        let policy = ProjectPolicy::load(&context.project.root, home.as_deref());
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
