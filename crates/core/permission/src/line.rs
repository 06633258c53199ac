//! Whether everything a command line does may be done.
//!
//! Invariant: a line is allowed only if it was understood whole and every deed in it is covered by a rule, or by a mode that
//! asks nothing.

use std::path::{Path, PathBuf};

use haft_tool::Workspace;
use haft_types::{Decision, PermissionMode};

use super::decide::{Confinement, Permissions};
use super::effects::{self, Act, At, CommandRole, Deed, File, Folders, Ground, Peril, Reach, Run};
use super::files::Use;
use super::pattern::Hit;
use super::protected::{named, protected};
use super::rule::{Pattern, Rule};
use super::shell::{self, Word};
use super::verdict::{Ruling, Verdict};
use haft_tool::follow_links;

/// A line of more parts is asked: nobody reads so far.
const MAX_PARTS: usize = 50;

impl Permissions {
    pub(super) fn decide_line(&self, tool: &str, line: &str, cwd: Option<&str>, workspace: &Workspace) -> Verdict {
        if let Some(ruling) = self.forbidden_by_mode(tool, "runs commands") {
            return Verdict::of_parts(vec![ruling.part(line)]);
        }
        let start = match cwd.map(|given| follow_links(&workspace.cwd, given)) {
            None => workspace.cwd.clone(),
            Some(Ok(folder)) if workspace.contains(&folder) => folder,
            Some(Ok(folder)) => {
                let reason = format!("it would run in `{}`, which is outside the project", folder.display());
                return Verdict::of_parts(vec![self.unless_yolo(reason).part(line)]);
            }
            Some(Err(error)) => {
                return Verdict::of_parts(vec![Ruling::new(Decision::Ask, error.to_string()).part(line)]);
            }
        };
        let judge = Judge { permissions: self, tool, ground: Ground { workspace } };
        let script = match shell::parse(line) {
            Ok(script) => script,
            Err(why) => return Verdict::of_parts(vec![judge.unread(line, &format!("the line has {why}")).part(line)]),
        };
        let deeds = effects::deeds(&script, &judge.ground, Folders::at(&start));
        let parts: Vec<_> = deeds.iter().map(|deed| judge.deed(deed).part(&deed.shown)).collect();
        let mut verdict = Verdict::of_parts(parts);
        if verdict.parts.len() > MAX_PARTS && verdict.decision == Decision::Allow && !self.asks_nothing() {
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

    /// Whether commands that only read run without asking: a sandbox holds them in that is not enough for those that write.
    fn may_read(&self) -> bool {
        self.mode == PermissionMode::Auto && self.confinement == Confinement::Folders
    }

    fn unless_yolo(&self, reason: String) -> Ruling {
        match self.mode {
            PermissionMode::Yolo => Ruling::new(Decision::Allow, "nothing is asked (permission mode `yolo`)"),
            PermissionMode::Plan | PermissionMode::Ask | PermissionMode::AcceptEdits | PermissionMode::Auto => {
                Ruling::new(Decision::Ask, reason)
            }
        }
    }
}

struct Judge<'a> {
    permissions: &'a Permissions,
    tool: &'a str,
    ground: Ground<'a>,
}

impl Judge<'_> {
    fn rules(&self, decision: Decision) -> &[Rule] {
        self.permissions.rules.of(decision)
    }

    /// What no rule speaks of.
    fn unruled(&self, reason: String) -> Ruling {
        if self.permissions.asks_nothing() {
            let mode = self.permissions.mode;
            return Ruling::new(Decision::Allow, format!("nothing is asked (permission mode `{mode}`)"));
        }
        Ruling::new(Decision::Ask, reason)
    }

    /// What could not be understood. Where nothing is asked, rules that deny or ask are looked for by the letters alone.
    fn unread(&self, text: &str, why: &str) -> Ruling {
        let stands = |rule: &&Rule| rule.command().is_some_and(|command| command.stands_in(text));
        if let Some(rule) = self.rules(Decision::Deny).iter().find(stands) {
            return Ruling::new(Decision::Deny, format!("the rule `{rule}` denies it")).by(rule);
        }
        let restricted = |decision| self.rules(decision).iter().any(|rule| rule.command().is_some());
        let careful =
            self.permissions.mode != PermissionMode::Yolo && (restricted(Decision::Deny) || restricted(Decision::Ask));
        if careful {
            return Ruling::new(Decision::Ask, why);
        }
        self.unruled(why.to_owned())
    }

    fn deed(&self, deed: &Deed) -> Ruling {
        match &deed.act {
            Act::Run(run) => self.run(deed, run),
            Act::Assign => self.covered(deed, &[]).unwrap_or_else(|| {
                self.unruled(format!("`{}` sets a variable, which no rule on a command covers", deed.shown))
            }),
            Act::Define => self.covered(deed, &[]).unwrap_or_else(|| {
                self.unruled(format!("`{}` gives a name another meaning, which no rule covers", deed.shown))
            }),
            Act::Opaque(why) => match self.named_whole(deed) {
                Some(ruling) => ruling,
                None => self.unread(&deed.shown, &format!("`{}` is {why}", deed.shown)),
            },
            Act::Write(file) => self.write(deed, file),
            Act::Read(file) => self.read(deed, file),
        }
    }

    fn run(&self, deed: &Deed, run: &Run) -> Ruling {
        if let Some(ruling) = self.forbidden(deed, run) {
            return ruling;
        }
        if run.role == CommandRole::Transparent {
            return Ruling::new(Decision::Allow, "it only runs the command it was given");
        }
        if let Some(ruling) = self.covered(deed, &run.perils) {
            return match self.protected_word(run) {
                Some((word, name)) if !self.permissions.asks_nothing() => Ruling::new(
                    Decision::Ask,
                    format!("`{word}` is protected (`{name}`): such files decide what other programs run"),
                ),
                Some(_) | None => ruling,
            };
        }
        if self.permissions.may_read() && effects::only_reads(&run.words, &run.perils) {
            return Ruling::new(Decision::Allow, "it only reads, inside the sandbox");
        }
        let reason = match self.perilous(deed, run) {
            Some(peril) => peril,
            None => format!("no rule allows `{}`", deed.shown),
        };
        self.unruled(reason)
    }

    /// A rule that denies or asks.
    fn forbidden(&self, deed: &Deed, run: &Run) -> Option<Ruling> {
        let strict = self.permissions.mode != PermissionMode::Yolo;
        let hidden = !run.perils.is_empty() || run.words.first().is_some_and(|word| word.literal().is_none());
        let best = |decision| {
            let hits = self.rules(decision).iter().filter_map(|rule: &Rule| {
                let command = rule.command()?;
                let hit = match command.hits(&run.words) {
                    Hit::Yes => Hit::Yes,
                    // What a program is made to run, and what the shell makes of a word, is looked for by its letters.
                    other if hidden && command.stands_in(&deed.shown) => other.max(Hit::Yes),
                    other => other,
                };
                (hit > Hit::No).then_some((hit, rule))
            });
            hits.max_by_key(|(hit, _)| *hit)
        };
        let shown = &deed.shown;
        if let Some((Hit::Yes, rule)) = best(Decision::Deny) {
            return Some(Ruling::new(Decision::Deny, format!("the rule `{rule}` denies `{shown}`")).by(rule));
        }
        if let Some(ruling) = self.forbidden_words(run) {
            return Some(ruling);
        }
        let (hit, rule) = [Decision::Deny, Decision::Ask].into_iter().find_map(best).filter(|_| strict)?;
        let reason = match hit {
            Hit::Yes => format!("the rule `{rule}` asks for `{shown}`"),
            Hit::Maybe | Hit::No => format!("the rule `{rule}` may speak of `{shown}`: only the shell knows"),
        };
        Some(Ruling::new(Decision::Ask, reason).by(rule))
    }

    /// A file named in the command that a rule on files denies or asks for.
    fn forbidden_words(&self, run: &Run) -> Option<Ruling> {
        let of_files = |decision| self.rules(decision).iter().any(|rule| matches!(rule.pattern(), Pattern::Path(_)));
        if !of_files(Decision::Deny) && !of_files(Decision::Ask) {
            return None;
        }
        let rulings = run.words.iter().skip(1).filter_map(|word| {
            let forms = self.forms(word, &run.folders);
            let rulings = [Use::Read, Use::Write]
                .into_iter()
                .filter_map(|usage| self.permissions.forbidden_file(usage, &forms, self.ground.workspace));
            rulings.max_by_key(|ruling| ruling.decision)
        });
        rulings.max_by_key(|ruling| ruling.decision)
    }

    /// The files a word may name: whole, or behind a `=`.
    fn forms(&self, word: &Word, folders: &Folders) -> Vec<PathBuf> {
        let Some(text) = word.literal() else { return Vec::new() };
        let behind = text.split_once('=').map(|(_, value)| value);
        let mut forms = Vec::new();
        for path in std::iter::once(text).chain(behind).filter(|path| !path.is_empty()) {
            forms.extend(effects::resolve(folders, path).unwrap_or_default());
            match folders {
                Folders::Known(places) => forms.extend(places.iter().map(|place| place.join(path))),
                Folders::Unknown => forms.push(self.ground.workspace.root.join(path)),
            }
        }
        forms
    }

    /// A word that names a protected file the command could write.
    fn protected_word(&self, run: &Run) -> Option<(String, &'static str)> {
        if effects::only_reads(&run.words, &run.perils) {
            return None;
        }
        run.words.iter().skip(1).find_map(|word| {
            let text = word.literal()?;
            let behind = text.split_once('=').map(|(_, value)| value);
            let written = std::iter::once(text).chain(behind).find_map(|path| named(Path::new(path)));
            let meant = self.forms(word, &run.folders);
            let workspace = self.ground.workspace;
            let inside = |path: &PathBuf| workspace.contains(path).then(|| protected(workspace, path)).flatten();
            written.or_else(|| meant.iter().find_map(inside)).map(|name| (text.to_owned(), name))
        })
    }

    /// The rule that covers a deed with its perils.
    fn covered(&self, deed: &Deed, perils: &[Peril]) -> Option<Ruling> {
        let rule = self.rules(Decision::Allow).iter().find(|rule| {
            rule.is_all_of(self.tool)
                || (rule.tool() == self.tool && rule.command().is_some_and(|_| covers(rule, deed, perils)))
        })?;
        Some(Ruling::new(Decision::Allow, format!("`{rule}` allows it")).by(rule))
    }

    /// The rule that names the whole text in which something stands that cannot be read.
    fn named_whole(&self, deed: &Deed) -> Option<Ruling> {
        let rule =
            self.rules(Decision::Allow).iter().find(|rule| rule.tool() == self.tool && covers(rule, deed, &[]))?;
        Some(Ruling::new(Decision::Allow, format!("`{rule}` allows it")).by(rule))
    }

    /// Why a rule that names the command is not enough.
    fn perilous(&self, deed: &Deed, run: &Run) -> Option<String> {
        let rule =
            self.rules(Decision::Allow).iter().find(|rule| rule.tool() == self.tool && covers(rule, deed, &[]))?;
        let peril = run.perils.first()?;
        let (word, advice) = match peril.at {
            At::Word(place) => (run.words.get(place).map(|word| word.source.as_str()), "a rule must name it"),
            At::Whole => (None, "a rule must name every word of it"),
            At::Input => (None, "no rule covers that"),
        };
        let what = peril.what;
        let shown = word.unwrap_or(&deed.shown);
        Some(format!("`{rule}` does not cover it: `{shown}` {what}, and {advice}"))
    }

    fn write(&self, deed: &Deed, file: &File) -> Ruling {
        let workspace = self.ground.workspace;
        let forms = self.forms(&file.word, &file.folders);
        if let Some(ruling) = self.permissions.forbidden_file(Use::Write, &forms, workspace) {
            return ruling;
        }
        let target = &file.word.source;
        let resolved = file.word.literal().and_then(|path| effects::resolve(&file.folders, path));
        let Some(resolved) = resolved else {
            return self.unruled(format!("it writes `{target}`, and only the shell knows where that is"));
        };
        if let Some(outside) = resolved.iter().find(|path| !workspace.contains(path)) {
            return self.unruled(format!("it writes `{}`, which is outside the project", outside.display()));
        }
        if let Some(name) = resolved.iter().find_map(|path| protected(workspace, path)) {
            return self.unruled(format!("it writes `{target}`, which is protected (`{name}`)"));
        }
        let rule = self.rules(Decision::Allow).iter().find(|rule| {
            let by_path = rule.path_of(&["write_to_file"]);
            rule.is_all_of(self.tool)
                || by_path.is_some_and(|path| resolved.iter().all(|file| path.names(workspace, file)))
        });
        if let Some(rule) = rule {
            return Ruling::new(Decision::Allow, format!("`{rule}` allows it")).by(rule);
        }
        if let Some(ruling) = self.named_whole(deed) {
            return ruling;
        }
        self.unruled(format!("it writes `{target}`, which no rule on a command covers; `write_to_file(…)` would"))
    }

    fn read(&self, deed: &Deed, file: &File) -> Ruling {
        let forms = self.forms(&file.word, &file.folders);
        if let Some(ruling) = self.permissions.forbidden_file(Use::Read, &forms, self.ground.workspace) {
            return ruling;
        }
        let source = &file.word.source;
        let resolved = file.word.literal().and_then(|path| effects::resolve(&file.folders, path));
        match resolved {
            Some(resolved) if resolved.iter().all(|path| self.ground.workspace.contains(path)) => {
                Ruling::new(Decision::Allow, "reading in the project is allowed")
            }
            Some(_) => self
                .named_whole(deed)
                .unwrap_or_else(|| self.unruled(format!("it reads `{source}`, which is outside the project"))),
            None => self.unruled(format!("it reads `{source}`, and only the shell knows what that is")),
        }
    }
}

/// Whether a rule names a deed and all its perils, in itself or as part of a command around it.
fn covers(rule: &Rule, deed: &Deed, perils: &[Peril]) -> bool {
    let Some(command) = rule.command() else { return false };
    deed.views.iter().any(|view| {
        command.names(&view.assignments, &view.words)
            && match view.reach {
                Reach::Holds(place) => command.reaches(place),
                Reach::From(base) => {
                    command.reaches(base)
                        && perils.iter().all(|peril| match peril.at {
                            At::Word(place) => command.reaches(base + place),
                            At::Whole => command.is_whole(),
                            At::Input => false,
                        })
                }
            }
    })
}
