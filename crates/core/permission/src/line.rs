//! Decides command lines.
//!
//! Invariant: a line is allowed only if it was parsed completely and every effect of it is covered
//! by a rule, or by a mode that asks nothing.

mod names;
mod outside;
mod versions;
mod words;

use haft_tool::Workspace;
use haft_types::{Decision, PermissionMode, STEERING_FILES};

use super::decide::{Confinement, Permissions};
use super::effects::{
    self, CommandEffect, CommandRole, EffectKind, EffectPosition, ProgramRun, RedirectFile, Risk,
    RiskPosition, WorkingFolders,
};
use super::files::FileAccess;
use super::pattern::{CommandPattern, PatternMatch};
use super::protected::find_protected_name_in_workspace;
use super::request::{PermissionRequest, ProjectFiles};
use super::rule::{EXECUTE_TOOL, PermissionRule};
use super::shell;
use super::verdict::{self, Ruling, Verdict};
use haft_tool::follow_links;

/// The maximum number of parts of a line. A line with more parts needs an approval, because a
/// reader would not check all of them.
const MAX_PARTS: usize = 50;

impl Permissions {
    pub(super) fn decide_line(
        &self,
        call: &PermissionRequest<'_>,
        line: &str,
        cwd: Option<&str>,
        workspace: &Workspace,
    ) -> Verdict {
        let tool = call.tool;
        if let Some(ruling) = self.deny_in_plan_mode(tool, "runs commands") {
            return Verdict::from_parts(vec![ruling.into_part(line)]);
        }
        let start = match cwd.map(|given| follow_links(&workspace.cwd, given)) {
            None => workspace.cwd.clone(),
            Some(Ok(folder)) if workspace.contains(&folder) => folder,
            Some(Ok(folder)) => {
                let reason = format!(
                    "it would run in `{}`, which is outside the project",
                    folder.display()
                );
                return Verdict::from_parts(vec![self.ask_unless_yolo(reason).into_part(line)]);
            }
            Some(Err(error)) => {
                return Verdict::from_parts(vec![
                    self.ask_unless_yolo(error.to_string()).into_part(line),
                ]);
            }
        };
        let is_hidden = self.confinement == Confinement::Sandbox && !call.leaves_sandbox;
        let looks_up_names = is_hidden && call.project_files == ProjectFiles::Unchanging;
        let judge = LineJudge {
            permissions: self,
            tool,
            workspace,
            expands_patterns: looks_up_names,
            names_git_variables: line.contains("GIT_"),
        };
        let script = match shell::parse_line(line) {
            Ok(script) => script,
            Err(why) => {
                return Verdict::from_parts(vec![
                    judge
                        .decide_unparsed(line, &format!("the line has {why}"))
                        .into_part(line),
                ]);
            }
        };
        let effects =
            effects::collect_effects(&script, workspace, WorkingFolders::from_folder(&start));
        let parts: Vec<_> = effects
            .iter()
            .map(|effect| judge.decide_effect(effect).into_part(&effect.shown))
            .collect();
        let mut verdict = Verdict::from_parts(parts);
        verdict.commits = judge.only_commits(&effects, verdict.decision);
        if verdict.parts.len() > MAX_PARTS
            && verdict.decision == Decision::Allow
            && !self.asks_nothing()
        {
            verdict.decision = Decision::Ask;
            verdict.reason = format!("the line has more than {MAX_PARTS} parts");
            verdict.rule = None;
        }
        verdict
    }

    /// True if commands that no rule covers are allowed without an approval.
    fn asks_nothing(&self) -> bool {
        match self.mode {
            PermissionMode::Yolo => true,
            PermissionMode::Auto => self.confinement == Confinement::Sandbox,
            PermissionMode::Plan | PermissionMode::Ask | PermissionMode::AcceptEdits => false,
        }
    }

    /// True if commands that only read are allowed without an approval although the sandbox is too
    /// weak for commands that write.
    fn allows_reading_unasked(&self) -> bool {
        self.mode == PermissionMode::Auto && self.confinement == Confinement::Folders
    }
}

struct LineJudge<'a> {
    permissions: &'a Permissions,
    tool: &'a str,
    workspace: &'a Workspace,
    /// True if file name patterns are expanded when a line is decided. This is safe only if denied
    /// files are hidden and no other process changes files.
    expands_patterns: bool,
    /// True if the line may set a variable that leads git to another repository.
    names_git_variables: bool,
}

impl LineJudge<'_> {
    fn rules(&self, decision: Decision) -> &[PermissionRule] {
        self.permissions.rules.rules_for(decision)
    }

    /// Decides an effect that no rule covers: allows the effect if the mode asks for no approvals,
    /// and otherwise asks for `reason`.
    fn decide_without_rule(&self, reason: String) -> Ruling {
        if self.permissions.asks_nothing() {
            let mode = self.permissions.mode;
            return Ruling::new(
                Decision::Allow,
                format!("nothing is asked (permission mode `{mode}`)"),
            );
        }
        Ruling::new(Decision::Ask, reason)
    }

    /// Decides text that could not be parsed. Deny rules are matched as substrings. If any deny or
    /// ask rule for commands exists, the text needs an approval, except in mode `yolo`. So does, under
    /// a rule on reading files, text with git, and any text if the project's repository holds a
    /// version of such a file: the sandbox does not hide versions.
    fn decide_unparsed(&self, text: &str, why: &str) -> Ruling {
        let stands = |rule: &&PermissionRule| {
            rule.command_pattern()
                .is_some_and(|command| command.occurs_in(text))
        };
        if let Some(rule) = self.rules(Decision::Deny).iter().find(stands) {
            return Ruling::by_rule(rule, Decision::Deny, "it");
        }
        let restricted = |decision| {
            self.rules(decision)
                .iter()
                .any(|rule| rule.command_pattern().is_some())
        };
        let names_git =
            text.contains("git") && self.strict_path_rules(FileAccess::Read).next().is_some();
        let careful = self.permissions.mode != PermissionMode::Yolo
            && (restricted(Decision::Deny)
                || restricted(Decision::Ask)
                || names_git
                || self.project_may_hold_unreadable_version());
        if careful {
            return Ruling::new(Decision::Ask, why);
        }
        self.decide_without_rule(why.to_owned())
    }

    fn decide_effect(&self, effect: &CommandEffect) -> Ruling {
        match &effect.kind {
            EffectKind::Run(run) => self.decide_run(effect, run),
            EffectKind::Assign => self.find_covering_ruling(effect).unwrap_or_else(|| {
                self.decide_without_rule(format!(
                    "`{}` sets a variable, which no rule on a command covers",
                    effect.shown
                ))
            }),
            EffectKind::Define => self.find_covering_ruling(effect).unwrap_or_else(|| {
                self.decide_without_rule(format!(
                    "`{}` gives a name another meaning, which no rule covers",
                    effect.shown
                ))
            }),
            EffectKind::Opaque(why) => match self.find_whole_text_ruling(effect) {
                Some(ruling) => ruling,
                None => {
                    self.decide_unparsed(&effect.shown, &format!("`{}` is {why}", effect.shown))
                }
            },
            EffectKind::Write(file) => self.decide_write(effect, file),
            EffectKind::Read(file) => self.decide_read(effect, file),
        }
    }

    fn decide_run(&self, effect: &CommandEffect, run: &ProgramRun) -> Ruling {
        if let Some(ruling) = self.find_strict_run_ruling(effect, run) {
            return ruling;
        }
        if run.role == CommandRole::Transparent {
            return Ruling::new(Decision::Allow, "it only runs the command it was given");
        }
        if self.permissions.mode == PermissionMode::Auto
            && let Some(reason) = self.explain_steering_word(run)
        {
            return Ruling::new(Decision::Ask, reason);
        }
        if let Some(ruling) = self.find_commit_ruling(effect, run) {
            return ruling;
        }
        if let Some(rule) = self.find_covering_rule(effect, &run.risks) {
            let protected = if self.permissions.asks_nothing() {
                None
            } else {
                self.explain_protected_word(rule, run)
                    .or_else(|| self.explain_outside_word(effect, run))
            };
            return match protected {
                Some(reason) => Ruling::new(Decision::Ask, reason),
                None => Ruling::by_rule(rule, Decision::Allow, "it"),
            };
        }
        if let Some(ruling) = self.find_built_in_ruling(effect, run) {
            return ruling;
        }
        if self.permissions.allows_reading_unasked() && effects::only_reads(&run.words, &run.risks)
        {
            return Ruling::new(Decision::Allow, "it only reads, inside the sandbox");
        }
        let reason = match self.explain_uncovered_risk(effect, run) {
            Some(risk) => risk,
            None => self
                .explain_versions(run)
                .unwrap_or_else(|| verdict::format_no_rule_reason(&effect.shown)),
        };
        self.decide_without_rule(reason)
    }

    /// Returns the ruling of a rule that denies the command or requires an approval.
    fn find_strict_run_ruling(&self, effect: &CommandEffect, run: &ProgramRun) -> Option<Ruling> {
        let strict = self.permissions.mode != PermissionMode::Yolo;
        let hidden = !run.risks.is_empty()
            || run
                .words
                .first()
                .is_some_and(|word| word.literal().is_none());
        let best = |decision| {
            let hits = self
                .rules(decision)
                .iter()
                .filter_map(|rule: &PermissionRule| {
                    let command = rule.command_pattern()?;
                    let hit = match command.match_widely(&run.words) {
                        PatternMatch::Yes => PatternMatch::Yes,
                        // The text after a word that makes a program run something, and words known
                        // only to the shell, are matched as substrings.
                        other if hidden && command.occurs_in(&effect.shown) => {
                            other.max(PatternMatch::Yes)
                        }
                        other => other,
                    };
                    (hit > PatternMatch::No).then_some((hit, rule))
                });
            hits.max_by_key(|(hit, _)| *hit)
        };
        let shown = &effect.shown;
        if let Some((PatternMatch::Yes, rule)) = best(Decision::Deny) {
            return Some(Ruling::by_rule(rule, Decision::Deny, &format!("`{shown}`")));
        }
        if let Some(ruling) = self.find_strict_words_ruling(run) {
            return Some(ruling);
        }
        let (hit, rule) = [Decision::Deny, Decision::Ask]
            .into_iter()
            .find_map(best)
            .filter(|_| strict)?;
        let reason = match hit {
            PatternMatch::Yes => format!("the rule `{rule}` asks for `{shown}`"),
            PatternMatch::Maybe | PatternMatch::No => {
                format!("the rule `{rule}` may speak of `{shown}`: only the shell knows")
            }
        };
        Some(Ruling::new(Decision::Ask, reason).with_rule(rule))
    }

    /// Returns the ruling of a built-in rule, which applies only inside a sandbox.
    fn find_built_in_ruling(&self, effect: &CommandEffect, run: &ProgramRun) -> Option<Ruling> {
        if !self.may_use_built_in_rules(effect) || self.find_version_rule(run).is_some() {
            return None;
        }
        let reading = self
            .permissions
            .rules
            .reading_rules()
            .find(|reading| reading.covers(run, self.workspace))?;
        let reason = format!("the built-in rule `{}` allows it", reading.rule);
        Some(Ruling::new(Decision::Allow, reason).with_rule(&reading.rule))
    }

    /// True if built-in rules may cover an effect: it has no assignments and runs inside the
    /// sandbox.
    fn may_use_built_in_rules(&self, effect: &CommandEffect) -> bool {
        let assigns = effect
            .enclosing
            .iter()
            .any(|outer| !outer.assignments.is_empty());
        !assigns
            && self.tool == EXECUTE_TOOL
            && self.permissions.confinement == Confinement::Sandbox
    }

    /// True if a command stages files or commits, and does nothing else.
    fn is_commit(&self, effect: &CommandEffect, run: &ProgramRun) -> bool {
        let commits = self.permissions.rules.commit_rules();
        self.may_use_built_in_rules(effect)
            && commits
                .iter()
                .any(|commit| commit.covers(run, self.workspace))
    }

    /// Returns the allow rule that covers `git commit` with any further words.
    fn find_commit_rule(&self) -> Option<&PermissionRule> {
        let named = shell::parse_simple_command("git commit").ok()?;
        let names = |command: &CommandPattern| {
            command.matches_exactly(&[], &named.words) && !command.names_all_words()
        };
        let mut allow = self
            .rules(Decision::Allow)
            .iter()
            .filter(|rule| rule.tool() == self.tool);
        allow.find(|rule| {
            rule.covers_all_calls_of(self.tool) || rule.command_pattern().is_some_and(names)
        })
    }

    /// Returns the ruling of an allow rule for `git commit` on effects that the rule's words do not
    /// cover: staging files, and a commit message known only to the shell.
    fn find_commit_ruling(&self, effect: &CommandEffect, run: &ProgramRun) -> Option<Ruling> {
        let rule = self
            .find_commit_rule()
            .filter(|_| self.is_commit(effect, run))?;
        Some(Ruling::by_rule(rule, Decision::Allow, "it"))
    }

    /// True if a line only reads and commits, as allowed by a rule or an approval. A line that is
    /// allowed by the mode alone does not count.
    fn only_commits(&self, effects: &[CommandEffect], decision: Decision) -> bool {
        let mut commits = false;
        let harmless = effects.iter().all(|effect| match &effect.kind {
            EffectKind::Run(run) if run.role == CommandRole::Transparent => true,
            EffectKind::Run(run) if self.is_commit(effect, run) => {
                commits = true;
                decision == Decision::Ask
                    || self.find_covering_rule(effect, &run.risks).is_some()
                    || self.find_commit_rule().is_some()
            }
            EffectKind::Run(run) => self.find_built_in_ruling(effect, run).is_some(),
            EffectKind::Read(_) => true,
            EffectKind::Assign
            | EffectKind::Define
            | EffectKind::Write(_)
            | EffectKind::Opaque(_) => false,
        });
        commits && harmless && decision != Decision::Deny
    }

    /// Returns the allow rule that covers an effect and all of its risks.
    fn find_covering_rule(
        &self,
        effect: &CommandEffect,
        risks: &[Risk],
    ) -> Option<&PermissionRule> {
        self.rules(Decision::Allow).iter().find(|rule| {
            rule.covers_all_calls_of(self.tool)
                || (rule.tool() == self.tool && rule_covers(rule, effect, risks))
        })
    }

    /// Returns the ruling of the allow rule that covers an effect without risks.
    fn find_covering_ruling(&self, effect: &CommandEffect) -> Option<Ruling> {
        Some(Ruling::by_rule(
            self.find_covering_rule(effect, &[])?,
            Decision::Allow,
            "it",
        ))
    }

    /// Returns the allow rule that names the command, even if the rule does not cover the command's
    /// risks.
    fn find_naming_rule(&self, effect: &CommandEffect) -> Option<&PermissionRule> {
        self.rules(Decision::Allow)
            .iter()
            .find(|rule| rule.tool() == self.tool && rule_covers(rule, effect, &[]))
    }

    /// Returns the ruling of an allow rule that names the whole text of a command, for a command
    /// with a part that cannot be parsed.
    fn find_whole_text_ruling(&self, effect: &CommandEffect) -> Option<Ruling> {
        Some(Ruling::by_rule(
            self.find_naming_rule(effect)?,
            Decision::Allow,
            "it",
        ))
    }

    /// Explains why a command is not allowed by a rule that names it: the rule does not cover one
    /// of the command's risks.
    fn explain_uncovered_risk(&self, effect: &CommandEffect, run: &ProgramRun) -> Option<String> {
        let rule = self.find_naming_rule(effect)?;
        let risk = run.risks.first()?;
        let (word, advice) = match risk.at {
            RiskPosition::Word(place) => (
                run.words.get(place).map(|word| word.source.as_str()),
                "a rule must name it",
            ),
            RiskPosition::Whole => (None, "a rule must name every word of it"),
            RiskPosition::Input => (None, "no rule covers that"),
        };
        let what = risk.what;
        let shown = word.unwrap_or(&effect.shown);
        Some(format!(
            "`{rule}` does not cover it: `{shown}` {what}, and {advice}"
        ))
    }

    fn decide_write(&self, effect: &CommandEffect, file: &RedirectFile) -> Ruling {
        let workspace = self.workspace;
        let forms = self.list_path_forms(&file.word, &file.folders);
        let forbidden =
            self.permissions
                .find_strict_file_ruling(FileAccess::Write, &forms, workspace);
        let uncertain =
            || self.find_uncertain_ruling(FileAccess::Write, &[&file.word], &file.folders);
        if let Some(ruling) = forbidden.or_else(uncertain) {
            return ruling;
        }
        let target = &file.word.source;
        let resolved = file
            .word
            .literal()
            .and_then(|path| effects::resolve_path(&file.folders, path));
        let Some(resolved) = resolved else {
            return self.decide_without_rule(format!(
                "it writes `{target}`, and only the shell knows where that is"
            ));
        };
        if let Some(outside) = resolved.iter().find(|path| !workspace.contains(path)) {
            return self.decide_without_rule(format!(
                "it writes `{}`, which is outside the project",
                outside.display()
            ));
        }
        if let Some(name) = resolved
            .iter()
            .find_map(|path| find_protected_name_in_workspace(workspace, path))
        {
            let reason = format!("it writes `{target}`, which is protected (`{name}`)");
            let steers = STEERING_FILES.contains(&name);
            return if steers {
                self.permissions.ask_unless_yolo(reason)
            } else {
                self.decide_without_rule(reason)
            };
        }
        let rule = self.rules(Decision::Allow).iter().find(|rule| {
            let by_path = rule.path_pattern_for(&["write_to_file"]);
            rule.covers_all_calls_of(self.tool)
                || by_path.is_some_and(|path| {
                    resolved
                        .iter()
                        .all(|file| path.matches_exactly(workspace, file))
                })
        });
        if let Some(rule) = rule {
            return Ruling::by_rule(rule, Decision::Allow, "it");
        }
        if let Some(ruling) = self.find_whole_text_ruling(effect) {
            return ruling;
        }
        self.decide_without_rule(format!(
            "it writes `{target}`, which no rule on a command covers; `write_to_file(…)` would"
        ))
    }

    fn decide_read(&self, effect: &CommandEffect, file: &RedirectFile) -> Ruling {
        let forms = self.list_path_forms(&file.word, &file.folders);
        let forbidden =
            self.permissions
                .find_strict_file_ruling(FileAccess::Read, &forms, self.workspace);
        let uncertain =
            || self.find_uncertain_ruling(FileAccess::Read, &[&file.word], &file.folders);
        if let Some(ruling) = forbidden.or_else(uncertain) {
            return ruling;
        }
        let source = &file.word.source;
        let resolved = file
            .word
            .literal()
            .and_then(|path| effects::resolve_path(&file.folders, path));
        match resolved {
            Some(resolved) if resolved.iter().all(|path| self.workspace.contains(path)) => {
                Ruling::new(Decision::Allow, "reading in the project is allowed")
            }
            Some(_) => self.find_whole_text_ruling(effect).unwrap_or_else(|| {
                self.decide_without_rule(format!(
                    "it reads `{source}`, which is outside the project"
                ))
            }),
            None => self.decide_without_rule(format!(
                "it reads `{source}`, and only the shell knows what that is"
            )),
        }
    }
}

/// True if a rule names an effect and all of its risks, by itself or as part of an enclosing
/// command.
fn rule_covers(rule: &PermissionRule, effect: &CommandEffect, risks: &[Risk]) -> bool {
    let Some(command) = rule.command_pattern() else {
        return false;
    };
    effect.enclosing.iter().any(|outer| {
        command.matches_exactly(&outer.assignments, &outer.words)
            && match outer.position {
                EffectPosition::Holds(place) => command.names_word_at(place),
                EffectPosition::From(base) => {
                    command.names_word_at(base)
                        && risks.iter().all(|risk| match risk.at {
                            RiskPosition::Word(place) => command.names_word_at(base + place),
                            RiskPosition::Whole => command.names_all_words(),
                            RiskPosition::Input => false,
                        })
                }
            }
    })
}
