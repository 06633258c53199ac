//! Whether everything a command line does may be done.
//!
//! Invariant: a line is allowed only if it was understood whole and every effect in it is covered
//! by a rule, or by a mode that asks nothing.

mod names;
mod words;

use haft_tool::Workspace;
use haft_types::{Decision, PermissionMode, STEERING};

use super::decide::{Confinement, Permissions};
use super::effects::{
    self, CommandEffect, CommandRole, EffectKind, EffectPosition, ProgramRun, RedirectFile, Risk,
    RiskPosition, WorkingFolders,
};
use super::files::FileAccess;
use super::pattern::{CommandPattern, PatternMatch};
use super::protected::protected;
use super::request::{PermissionRequest, ProjectFiles};
use super::rule::{EXECUTE, PermissionRule};
use super::shell;
use super::verdict::{self, Ruling, Verdict};
use haft_tool::follow_links;

/// A line of more parts is asked: nobody reads so far.
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
        if let Some(ruling) = self.forbidden_by_mode(tool, "runs commands") {
            return Verdict::of_parts(vec![ruling.part(line)]);
        }
        let start = match cwd.map(|given| follow_links(&workspace.cwd, given)) {
            None => workspace.cwd.clone(),
            Some(Ok(folder)) if workspace.contains(&folder) => folder,
            Some(Ok(folder)) => {
                let reason = format!(
                    "it would run in `{}`, which is outside the project",
                    folder.display()
                );
                return Verdict::of_parts(vec![self.unless_yolo(reason).part(line)]);
            }
            Some(Err(error)) => {
                return Verdict::of_parts(vec![self.unless_yolo(error.to_string()).part(line)]);
            }
        };
        let is_hidden = self.confinement == Confinement::Sandbox && !call.leaves_sandbox;
        let looks_up_names = is_hidden && call.project_files == ProjectFiles::Still;
        let judge = LineJudge {
            permissions: self,
            tool,
            workspace,
            looks_up_names,
        };
        let script = match shell::parse(line) {
            Ok(script) => script,
            Err(why) => {
                return Verdict::of_parts(vec![
                    judge
                        .unread(line, &format!("the line has {why}"))
                        .part(line),
                ]);
            }
        };
        let effects = effects::of_script(&script, workspace, WorkingFolders::at(&start));
        let parts: Vec<_> = effects
            .iter()
            .map(|effect| judge.effect(effect).part(&effect.shown))
            .collect();
        let mut verdict = Verdict::of_parts(parts);
        verdict.commits = judge.commits(&effects, verdict.decision);
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

    /// Whether commands run without asking where no rule speaks.
    fn asks_nothing(&self) -> bool {
        match self.mode {
            PermissionMode::Yolo => true,
            PermissionMode::Auto => self.confinement == Confinement::Sandbox,
            PermissionMode::Plan | PermissionMode::Ask | PermissionMode::AcceptEdits => false,
        }
    }

    /// Whether commands that only read run without asking: a sandbox holds them in that is not
    /// enough for those that write.
    fn may_read(&self) -> bool {
        self.mode == PermissionMode::Auto && self.confinement == Confinement::Folders
    }
}

struct LineJudge<'a> {
    permissions: &'a Permissions,
    tool: &'a str,
    workspace: &'a Workspace,
    /// Whether the names that match a pattern are looked up: denied files are hidden, and no other
    /// process changes files.
    looks_up_names: bool,
}

impl LineJudge<'_> {
    fn rules(&self, decision: Decision) -> &[PermissionRule] {
        self.permissions.rules.of(decision)
    }

    /// What no rule speaks of.
    fn unruled(&self, reason: String) -> Ruling {
        if self.permissions.asks_nothing() {
            let mode = self.permissions.mode;
            return Ruling::new(
                Decision::Allow,
                format!("nothing is asked (permission mode `{mode}`)"),
            );
        }
        Ruling::new(Decision::Ask, reason)
    }

    /// What could not be understood. Where nothing is asked, rules that deny or ask are looked for
    /// by the letters alone.
    fn unread(&self, text: &str, why: &str) -> Ruling {
        let stands = |rule: &&PermissionRule| {
            rule.command()
                .is_some_and(|command| command.stands_in(text))
        };
        if let Some(rule) = self.rules(Decision::Deny).iter().find(stands) {
            return Ruling::by(rule, Decision::Deny, "it");
        }
        let restricted = |decision| {
            self.rules(decision)
                .iter()
                .any(|rule| rule.command().is_some())
        };
        let careful = self.permissions.mode != PermissionMode::Yolo
            && (restricted(Decision::Deny) || restricted(Decision::Ask));
        if careful {
            return Ruling::new(Decision::Ask, why);
        }
        self.unruled(why.to_owned())
    }

    fn effect(&self, effect: &CommandEffect) -> Ruling {
        match &effect.kind {
            EffectKind::Run(run) => self.run(effect, run),
            EffectKind::Assign => self.covered(effect).unwrap_or_else(|| {
                self.unruled(format!(
                    "`{}` sets a variable, which no rule on a command covers",
                    effect.shown
                ))
            }),
            EffectKind::Define => self.covered(effect).unwrap_or_else(|| {
                self.unruled(format!(
                    "`{}` gives a name another meaning, which no rule covers",
                    effect.shown
                ))
            }),
            EffectKind::Opaque(why) => match self.named_whole(effect) {
                Some(ruling) => ruling,
                None => self.unread(&effect.shown, &format!("`{}` is {why}", effect.shown)),
            },
            EffectKind::Write(file) => self.write(effect, file),
            EffectKind::Read(file) => self.read(effect, file),
        }
    }

    fn run(&self, effect: &CommandEffect, run: &ProgramRun) -> Ruling {
        if let Some(ruling) = self.forbidden(effect, run) {
            return ruling;
        }
        if run.role == CommandRole::Transparent {
            return Ruling::new(Decision::Allow, "it only runs the command it was given");
        }
        if self.permissions.mode == PermissionMode::Auto
            && let Some(reason) = self.steering_word(run)
        {
            return Ruling::new(Decision::Ask, reason);
        }
        if let Some(ruling) = self.commit_by_rule(effect, run) {
            return ruling;
        }
        if let Some(rule) = self.covering(effect, &run.risks) {
            let protected = if self.permissions.asks_nothing() {
                None
            } else {
                self.protected_word(rule, run)
            };
            return match protected {
                Some(reason) => Ruling::new(Decision::Ask, reason),
                None => Ruling::by(rule, Decision::Allow, "it"),
            };
        }
        if let Some(ruling) = self.built_in(effect, run) {
            return ruling;
        }
        if self.permissions.may_read() && effects::only_reads(&run.words, &run.risks) {
            return Ruling::new(Decision::Allow, "it only reads, inside the sandbox");
        }
        let reason = match self.uncovered_risk(effect, run) {
            Some(risk) => risk,
            None => verdict::unruled(&effect.shown),
        };
        self.unruled(reason)
    }

    /// A rule that denies or asks.
    fn forbidden(&self, effect: &CommandEffect, run: &ProgramRun) -> Option<Ruling> {
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
                    let command = rule.command()?;
                    let hit = match command.hits(&run.words) {
                        PatternMatch::Yes => PatternMatch::Yes,
                        // What a program is made to run, and what the shell makes of a word, is
                        // looked for by its letters.
                        other if hidden && command.stands_in(&effect.shown) => {
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
            return Some(Ruling::by(rule, Decision::Deny, &format!("`{shown}`")));
        }
        if let Some(ruling) = self.forbidden_words(run) {
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

    /// Allowed by a rule that haft brings along, which holds only where a sandbox does.
    fn built_in(&self, effect: &CommandEffect, run: &ProgramRun) -> Option<Ruling> {
        if !self.is_plain(effect) {
            return None;
        }
        let reading = self
            .permissions
            .rules
            .reading()
            .find(|reading| reading.covers(run, self.workspace))?;
        let reason = format!("the built-in rule `{}` allows it", reading.rule);
        Some(Ruling::new(Decision::Allow, reason).with_rule(&reading.rule))
    }

    /// Whether rules of haft's own may speak of an effect: without assignments, inside a sandbox.
    fn is_plain(&self, effect: &CommandEffect) -> bool {
        let assigns = effect
            .enclosing
            .iter()
            .any(|outer| !outer.assignments.is_empty());
        !assigns && self.tool == EXECUTE && self.permissions.confinement == Confinement::Sandbox
    }

    /// Whether a command adds to a commit, or makes one, and does nothing else.
    fn is_commit(&self, effect: &CommandEffect, run: &ProgramRun) -> bool {
        let commits = self.permissions.rules.commits();
        self.is_plain(effect)
            && commits
                .iter()
                .any(|commit| commit.covers(run, self.workspace))
    }

    /// The rule that allows commits with any further words.
    fn commit_rule(&self) -> Option<&PermissionRule> {
        let named = shell::parse_simple("git commit").ok()?;
        let names =
            |command: &CommandPattern| command.names(&[], &named.words) && !command.is_whole();
        let mut allow = self
            .rules(Decision::Allow)
            .iter()
            .filter(|rule| rule.tool() == self.tool);
        allow.find(|rule| rule.is_all_of(self.tool) || rule.command().is_some_and(names))
    }

    /// What a rule on commits covers beside its own words: adding to one, and a message that only
    /// the shell knows.
    fn commit_by_rule(&self, effect: &CommandEffect, run: &ProgramRun) -> Option<Ruling> {
        let rule = self.commit_rule().filter(|_| self.is_commit(effect, run))?;
        Some(Ruling::by(rule, Decision::Allow, "it"))
    }

    /// Whether a line only reads and commits. What a mode allows is not enough: a rule or a person
    /// does.
    fn commits(&self, effects: &[CommandEffect], decision: Decision) -> bool {
        let mut commits = false;
        let harmless = effects.iter().all(|effect| match &effect.kind {
            EffectKind::Run(run) if run.role == CommandRole::Transparent => true,
            EffectKind::Run(run) if self.is_commit(effect, run) => {
                commits = true;
                let by_rule =
                    || self.covering(effect, &run.risks).is_some() || self.commit_rule().is_some();
                decision == Decision::Ask || by_rule()
            }
            EffectKind::Run(run) => self.built_in(effect, run).is_some(),
            EffectKind::Read(_) => true,
            EffectKind::Assign
            | EffectKind::Define
            | EffectKind::Write(_)
            | EffectKind::Opaque(_) => false,
        });
        commits && harmless && decision != Decision::Deny
    }

    /// The rule that covers an effect with its risks.
    fn covering(&self, effect: &CommandEffect, risks: &[Risk]) -> Option<&PermissionRule> {
        self.rules(Decision::Allow).iter().find(|rule| {
            rule.is_all_of(self.tool) || (rule.tool() == self.tool && covers(rule, effect, risks))
        })
    }

    /// The rule that covers an effect that has no risks.
    fn covered(&self, effect: &CommandEffect) -> Option<Ruling> {
        Some(Ruling::by(
            self.covering(effect, &[])?,
            Decision::Allow,
            "it",
        ))
    }

    /// The rule that allows the command, whatever risks it has.
    fn naming_rule(&self, effect: &CommandEffect) -> Option<&PermissionRule> {
        self.rules(Decision::Allow)
            .iter()
            .find(|rule| rule.tool() == self.tool && covers(rule, effect, &[]))
    }

    /// Allowed by a rule that names the whole text in which something stands that cannot be read.
    fn named_whole(&self, effect: &CommandEffect) -> Option<Ruling> {
        Some(Ruling::by(self.naming_rule(effect)?, Decision::Allow, "it"))
    }

    /// Why a rule that names the command is not enough.
    fn uncovered_risk(&self, effect: &CommandEffect, run: &ProgramRun) -> Option<String> {
        let rule = self.naming_rule(effect)?;
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

    fn write(&self, effect: &CommandEffect, file: &RedirectFile) -> Ruling {
        let workspace = self.workspace;
        let forms = self.forms(&file.word, &file.folders);
        let forbidden = self
            .permissions
            .forbidden_file(FileAccess::Write, &forms, workspace);
        let uncertain = || self.uncertain(FileAccess::Write, &[&file.word], &file.folders);
        if let Some(ruling) = forbidden.or_else(uncertain) {
            return ruling;
        }
        let target = &file.word.source;
        let resolved = file
            .word
            .literal()
            .and_then(|path| effects::resolve(&file.folders, path));
        let Some(resolved) = resolved else {
            return self.unruled(format!(
                "it writes `{target}`, and only the shell knows where that is"
            ));
        };
        if let Some(outside) = resolved.iter().find(|path| !workspace.contains(path)) {
            return self.unruled(format!(
                "it writes `{}`, which is outside the project",
                outside.display()
            ));
        }
        if let Some(name) = resolved.iter().find_map(|path| protected(workspace, path)) {
            let reason = format!("it writes `{target}`, which is protected (`{name}`)");
            let steers = STEERING.contains(&name);
            return if steers {
                self.permissions.unless_yolo(reason)
            } else {
                self.unruled(reason)
            };
        }
        let rule = self.rules(Decision::Allow).iter().find(|rule| {
            let by_path = rule.path_of(&["write_to_file"]);
            rule.is_all_of(self.tool)
                || by_path
                    .is_some_and(|path| resolved.iter().all(|file| path.names(workspace, file)))
        });
        if let Some(rule) = rule {
            return Ruling::by(rule, Decision::Allow, "it");
        }
        if let Some(ruling) = self.named_whole(effect) {
            return ruling;
        }
        self.unruled(format!(
            "it writes `{target}`, which no rule on a command covers; `write_to_file(…)` would"
        ))
    }

    fn read(&self, effect: &CommandEffect, file: &RedirectFile) -> Ruling {
        let forms = self.forms(&file.word, &file.folders);
        let forbidden = self
            .permissions
            .forbidden_file(FileAccess::Read, &forms, self.workspace);
        let uncertain = || self.uncertain(FileAccess::Read, &[&file.word], &file.folders);
        if let Some(ruling) = forbidden.or_else(uncertain) {
            return ruling;
        }
        let source = &file.word.source;
        let resolved = file
            .word
            .literal()
            .and_then(|path| effects::resolve(&file.folders, path));
        match resolved {
            Some(resolved) if resolved.iter().all(|path| self.workspace.contains(path)) => {
                Ruling::new(Decision::Allow, "reading in the project is allowed")
            }
            Some(_) => self.named_whole(effect).unwrap_or_else(|| {
                self.unruled(format!("it reads `{source}`, which is outside the project"))
            }),
            None => self.unruled(format!(
                "it reads `{source}`, and only the shell knows what that is"
            )),
        }
    }
}

/// Whether a rule names an effect and all its risks, in itself or as part of a command around it.
fn covers(rule: &PermissionRule, effect: &CommandEffect, risks: &[Risk]) -> bool {
    let Some(command) = rule.command() else {
        return false;
    };
    effect.enclosing.iter().any(|outer| {
        command.names(&outer.assignments, &outer.words)
            && match outer.position {
                EffectPosition::Holds(place) => command.reaches(place),
                EffectPosition::From(base) => {
                    command.reaches(base)
                        && risks.iter().all(|risk| match risk.at {
                            RiskPosition::Word(place) => command.reaches(base + place),
                            RiskPosition::Whole => command.is_whole(),
                            RiskPosition::Input => false,
                        })
                }
            }
    })
}
