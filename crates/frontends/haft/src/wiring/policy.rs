//! What a trusted project says about safety in its own files: it can tighten what the user allows, and nothing else.
//!
//! Read are `[permissions] deny` and `ask`, `[sandbox] hidden` and `[tools] offer` of `.haft/config.toml`, and `permissions.deny`
//! and `ask` of Claude Code's settings. Invariant: with a policy no call is allowed, no file readable and no tool offered that
//! would not be without it; every other key is named with its line.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_agent::config::Config;
use haft_agent::{Contribution, Extension, ExtensionContext, RunPlan};
use haft_engine::Notice;
use haft_permission::{PermissionRule, PermissionsConfig};
use haft_tool::Registry;
use haft_tools::{LimitsConfig, Running};
use haft_types::Decision;
use serde_json::Value;

/// The files, and whether every key in them is meant for haft.
const FILES: [(&str, PolicyDialect); 3] = [
    (".haft/config.toml", PolicyDialect::Haft),
    (".claude/settings.json", PolicyDialect::Claude),
    (".claude/settings.local.json", PolicyDialect::Claude),
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
    hidden: Vec<PathBuf>,
    offer: Option<Vec<String>>,
    /// Each thing it says, with its place.
    pub(crate) shown: Vec<String>,
    /// What it says that does not count, with its place.
    pub(crate) warnings: Vec<String>,
}

impl ProjectPolicy {
    /// That of a project that is trusted, or would be.
    pub(crate) fn of(root: &Path) -> Self {
        let mut policy = Self::default();
        for (name, owner) in FILES {
            let Some(text) = text(root, name) else { continue };
            let parsed = match owner {
                PolicyDialect::Haft => toml::from_str::<Value>(&text).map_err(|error| error.message().to_owned()),
                PolicyDialect::Claude => serde_json::from_str(&text).map_err(|error| error.to_string()),
            };
            match parsed {
                Ok(value) => policy.take(root, &PolicyFile { name, text: &text, owner }, &value),
                Err(why) => policy.warnings.push(format!("{name}: it cannot be read, nothing of it counts: {why}")),
            }
        }
        policy
    }

    fn take(&mut self, root: &Path, file: &PolicyFile<'_>, value: &Value) {
        let mut left = Vec::new();
        for (section, inside) in value.as_object().into_iter().flatten() {
            let is_known = section == "permissions" || file.owner == PolicyDialect::Haft && section != "hooks";
            let Some(keys) = inside.as_object().filter(|_| is_known) else {
                if section != "hooks" {
                    left.push((section.clone(), file.line(section, None)));
                }
                continue;
            };
            for (key, value) in keys {
                let line = file.line(section, Some(key));
                if !self.take_key(root, file, (section, key, value), line) {
                    left.push((format!("{section}.{key}"), line));
                }
            }
        }
        match file.owner {
            PolicyDialect::Haft => self.warnings.extend(left.into_iter().map(|(key, line)| {
                format!("{}: `{key}` is not obeyed: a project can only tighten what is allowed", file.place(line))
            })),
            // Most of it is for that program.
            PolicyDialect::Claude if left.is_empty() => {}
            PolicyDialect::Claude => {
                let keys: Vec<_> =
                    left.iter().map(|(key, line)| format!("`{key}` (line {})", line.unwrap_or(1))).collect();
                self.warnings.push(format!("{}: not obeyed: {}", file.name, keys.join(", ")));
            }
        }
    }

    /// Takes one key, if it is one that counts.
    fn take_key(
        &mut self,
        root: &Path,
        file: &PolicyFile<'_>,
        (section, key, value): (&str, &str, &Value),
        line: Option<usize>,
    ) -> bool {
        let texts = || -> Vec<String> {
            let all = value.as_array().into_iter().flatten();
            all.filter_map(|text| text.as_str().map(str::to_owned)).collect()
        };
        match (section, key, file.owner) {
            ("permissions", "deny" | "ask", _) => {
                let decision = if key == "deny" { Decision::Deny } else { Decision::Ask };
                for rule in texts() {
                    self.take_rule(decision, &rule, &file.place(line));
                }
            }
            ("sandbox", "hidden", PolicyDialect::Haft) => {
                for path in texts() {
                    self.shown.push(format!("hide {path} ({})", file.place(line)));
                    let kept = path.starts_with('~') || path.starts_with('/');
                    self.hidden.push(if kept { path.into() } else { root.join(path) });
                }
            }
            ("tools", "offer", PolicyDialect::Haft) => {
                let names = texts();
                self.shown.push(format!("offer no tools but {} ({})", names.join(", "), file.place(line)));
                self.offer = Some(names);
            }
            _ => return false,
        }
        true
    }

    fn take_rule(&mut self, decision: Decision, rule: &str, place: &str) {
        // Other agents write paths from the project's root in this way.
        let rule = rule.replace("(./", "(");
        if let Err(error) = PermissionRule::parse(&rule, None) {
            self.warnings.push(format!("{place}: {error}"));
            return;
        }
        self.shown.push(format!("{decision} {rule} ({place})"));
        match decision {
            Decision::Deny => self.rules.deny.push(rule),
            Decision::Ask | Decision::Allow => self.rules.ask.push(rule),
        }
    }

    /// Tightens configuration and plan of a run in a project that is trusted.
    fn apply(&self, config: &mut Config, plan: &mut RunPlan) {
        config.sandbox.hidden.extend(self.hidden.iter().cloned());
        if let Some(offer) = &self.offer {
            plan.offered_tools = narrowed(&plan.offered_tools, offer, config);
        }
    }
}

/// What both choices of tools give, by name.
fn narrowed(user: &[String], project: &[String], config: &Config) -> Vec<String> {
    // What a choice stands for; what is no built-in tool, group or profile stands for itself.
    let expanded = |choice: &[String]| -> BTreeSet<String> {
        let one = |entry: &String| {
            let mut registry = registry();
            match registry.select(std::slice::from_ref(entry), &config.tools.profiles) {
                Ok(()) => registry.offered().map(|tool| tool.spec().name.clone()).collect(),
                Err(_) => vec![entry.clone()],
            }
        };
        choice.iter().flat_map(one).collect()
    };
    // Without a choice of the user's all tools can be found and called.
    let both: Vec<_> = match user {
        [] => expanded(project).into_iter().collect(),
        user => expanded(project).intersection(&expanded(user)).cloned().collect(),
    };
    if both.is_empty() { vec!["none".to_owned()] } else { both }
}

/// Every built-in tool.
fn registry() -> Registry {
    let supervisor = Arc::new(super::environment().supervisor());
    let readers = super::readers(&supervisor);
    haft_engine::all_tools(&Arc::new(Running::new(supervisor, LimitsConfig::default()).with_readers(readers)))
}

/// A file of a project.
struct PolicyFile<'a> {
    name: &'a str,
    text: &'a str,
    owner: PolicyDialect,
}

impl PolicyFile<'_> {
    fn place(&self, line: Option<usize>) -> String {
        line.map_or_else(|| self.name.to_owned(), |line| format!("{}, line {line}", self.name))
    }

    /// The line on which a key stands, as far as that can be seen without reading the file as a program does.
    fn line(&self, section: &str, key: Option<&str>) -> Option<usize> {
        let begins = |line: &str, name: &str| {
            let line = line.trim_start().trim_start_matches(['[', '"', '\'', '{', ' ']);
            line.strip_prefix(name)
                .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '-'))
        };
        let dotted = key.map(|key| format!("{section}.{key}"));
        let lines = || self.text.lines().enumerate();
        let section_at = lines().find(|(_, line)| begins(line, section)).map(|(at, _)| at);
        let Some(key) = key else { return section_at.map(|at| at + 1) };
        let found = dotted.and_then(|dotted| lines().find(|(_, line)| begins(line, &dotted)).map(|(at, _)| at));
        let below =
            || lines().skip(section_at.unwrap_or_default()).find(|(_, line)| begins(line, key)).map(|(at, _)| at);
        found.or_else(below).or(section_at).map(|at| at + 1)
    }
}

/// What a file of the project holds, if it is a file that lies in it.
fn text(root: &Path, name: &str) -> Option<String> {
    let path = root.join(name).canonicalize().ok()?;
    let metadata = path.metadata().ok()?;
    let is_readable = path.starts_with(root) && metadata.is_file() && metadata.len() <= LARGEST;
    let text = is_readable.then(|| std::fs::read_to_string(&path).ok()).flatten()?;
    Some(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// Gives every session what a trusted project tightens.
pub(super) struct PolicyExtension;

impl Extension for PolicyExtension {
    fn tighten(&self, config: &mut Config, plan: &mut RunPlan) {
        ProjectPolicy::of(&plan.project.root).apply(config, plan);
    }

    fn contribute(&self, context: &ExtensionContext<'_>) -> Contribution {
        if !context.standing.is_trusted() {
            return Contribution::default();
        }
        let policy = ProjectPolicy::of(&context.project.root);
        let home = context.places.environment.home();
        let rules = |decision: Decision, texts: &[String]| -> Vec<_> {
            let parsed = texts.iter().filter_map(|text| PermissionRule::parse(text, home.as_deref()).ok());
            parsed.map(|rule| (decision, rule)).collect()
        };
        let (mut all, ask) = (rules(Decision::Deny, &policy.rules.deny), rules(Decision::Ask, &policy.rules.ask));
        all.extend(ask);
        let notices =
            policy.warnings.into_iter().map(|message| Notice { code: "project_policy", message, failed: false });
        Contribution { rules: all, notices: notices.collect(), ..Contribution::default() }
    }
}
