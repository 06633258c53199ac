//! Walks a script and notes what it does, keeping track of where it is.

use std::rc::Rc;

use super::folders::{Folders, Ground};
use super::risks::{At, Peril, perils};
use super::wrappers::{Unwrapped, unwrap};
use super::{Act, CommandRole, Deed, File, Reach, Run, View};
use crate::shell::{
    Command, Compound, Function, Item, Joint, Kind, Pace, Redirect, RedirectKind, Script, Simple, Text, Word,
};

/// What runs inside one another is followed this far.
const MAX_DEPTH: usize = 12;

/// Names a loop may set: programs look at others, and bash at some of its own.
const TAKEN: [&str; 7] =
    ["all_proxy", "auto_resume", "ftp_proxy", "histchars", "http_proxy", "https_proxy", "no_proxy"];

pub(super) struct Walk<'a> {
    ground: &'a Ground<'a>,
    deeds: Vec<Deed>,
    depth: usize,
}

/// Where a script is after a command: whatever came of it, and if it succeeded.
struct After {
    all: Folders,
    success: Folders,
}

impl After {
    fn unchanged(folders: &Folders) -> Self {
        Self { all: folders.clone(), success: folders.clone() }
    }
}

impl<'a> Walk<'a> {
    pub(super) fn new(ground: &'a Ground<'a>) -> Self {
        Self { ground, deeds: Vec::new(), depth: 0 }
    }

    pub(super) fn finish(self) -> Vec<Deed> {
        self.deeds
    }

    /// A whole script, and where it may be afterwards.
    pub(super) fn script(&mut self, script: &Script, start: Folders) -> Folders {
        self.within(script, start, &[])
    }

    /// A script that is part of the commands seen in `views`.
    fn within(&mut self, script: &Script, start: Folders, views: &[View]) -> Folders {
        let (mut all, mut success) = (start.clone(), start);
        for item in &script.items {
            let here = match item.joint {
                Joint::And => success.clone(),
                Joint::Then | Joint::Or => all.clone(),
            };
            let after = self.item(item, &here, views);
            success = after.success;
            all = all.or(after.all).or(success.clone());
        }
        all
    }

    fn item(&mut self, item: &Item, here: &Folders, views: &[View]) -> After {
        match item.pipeline.as_slice() {
            [only] if item.pace == Pace::Foreground => self.command(only, here, views),
            several => {
                // Each runs in a shell of its own.
                for command in several {
                    self.command(command, here, views);
                }
                After::unchanged(here)
            }
        }
    }

    fn command(&mut self, command: &Command, here: &Folders, views: &[View]) -> After {
        match command {
            Command::Simple(simple) => self.simple(simple, here, views),
            Command::Compound(compound) => {
                let all = self.compound(compound, here, views);
                After { success: all.clone(), all }
            }
            Command::Function(Function { name, body }) => {
                self.note(Act::Define, format!("{name}()"), views.to_vec());
                self.compound(body, &Folders::Unknown, views);
                After::unchanged(here)
            }
            Command::Test { words, redirects } => {
                self.substitutions(words, here, views);
                self.redirects(redirects, here, views);
                After::unchanged(here)
            }
        }
    }

    fn compound(&mut self, compound: &Compound, here: &Folders, views: &[View]) -> Folders {
        self.substitutions(&compound.words, here, views);
        self.redirects(&compound.redirects, here, views);
        let moves = compound.scripts.iter().any(may_move);
        let again = match &compound.kind {
            Kind::Group | Kind::Subshell | Kind::If | Kind::Case => false,
            Kind::Loop => moves,
            Kind::For { variable } => {
                if !variable.chars().all(|one| one.is_ascii_lowercase() || one == '_')
                    || TAKEN.contains(&variable.as_str())
                {
                    self.note(Act::Assign, format!("for {variable}"), views.to_vec());
                }
                moves
            }
        };
        // A second turn of a loop begins where the first one ended.
        let mut at = if again { Folders::Unknown } else { here.clone() };
        for script in &compound.scripts {
            let after = self.within(script, at.clone(), views);
            at = at.or(after);
        }
        match compound.kind {
            Kind::Subshell => here.clone(),
            Kind::Group | Kind::If | Kind::Case | Kind::Loop | Kind::For { .. } => at,
        }
    }

    fn simple(&mut self, simple: &Simple, here: &Folders, views: &[View]) -> After {
        self.substitutions(&simple.assignments, here, views);
        self.substitutions(&simple.words, here, views);
        self.redirects(&simple.redirects, here, views);
        if simple.words.is_empty() {
            for assignment in &simple.assignments {
                self.note(Act::Assign, assignment.source.clone(), views.to_vec());
            }
            return After::unchanged(here);
        }
        let own = View {
            assignments: simple.assignments.iter().cloned().collect(),
            words: simple.words.iter().cloned().collect(),
            reach: Reach::From(0),
        };
        let words = Rc::clone(&own.words);
        let mut views = views.to_vec();
        views.push(own);
        self.run(&words, here, views)
    }

    /// Notes a command and what it wraps.
    fn run(&mut self, words: &Rc<[Word]>, here: &Folders, views: Vec<View>) -> After {
        let shown = shown(words, &views);
        self.depth += 1;
        let after = if self.depth > MAX_DEPTH {
            self.note(Act::Opaque("too many levels of nesting"), shown, views);
            After { all: Folders::Unknown, success: Folders::Unknown }
        } else {
            self.run_unwrapped(words, &shown, here, &views)
        };
        self.depth -= 1;
        after
    }

    fn run_unwrapped(&mut self, words: &Rc<[Word]>, shown: &str, here: &Folders, views: &[View]) -> After {
        let unwrapped = unwrap(words);
        let mut found = perils(words);
        let moved = self.moved(words, here);
        if let Some(After { all: Folders::Unknown, .. }) = moved {
            found.push(Peril { at: At::Whole, what: "leaves the project, or goes where only the shell knows" });
        }
        // What it is given of the environment, what it wraps is given too.
        let plain = views.last().is_none_or(|view| view.assignments.is_empty());
        let role = if plain { unwrapped.role_of(words) } else { CommandRole::Acts };
        let run = Run { words: Rc::clone(words), perils: found, role, folders: here.clone() };
        self.note(Act::Run(run), shown.to_owned(), views.to_vec());
        let mut after = After::unchanged(here);
        for inner in unwrapped.inner {
            match inner {
                Unwrapped::Command { from, words: inner, same_shell } => {
                    let done = self.run(&inner, here, viewed(views, from, Rc::clone(&inner)));
                    if same_shell {
                        after = done;
                    }
                }
                Unwrapped::Assignment { at, word } => {
                    self.note(Act::Assign, word.source, reaching(views, Reach::From(at)));
                }
                Unwrapped::Script { at, script, same_shell } => {
                    let views = reaching(views, Reach::Holds(at));
                    let done = self.within(&script, here.clone(), &views);
                    if same_shell {
                        after = After { success: done.clone(), all: done };
                    }
                }
                Unwrapped::Opaque { at, why } => {
                    self.note(Act::Opaque(why), shown.to_owned(), reaching(views, Reach::Holds(at)));
                }
            }
        }
        moved.unwrap_or(after)
    }

    /// Where a command that changes the folder leads. None for all others.
    fn moved(&self, words: &[Word], here: &Folders) -> Option<After> {
        let name = words.first().and_then(Word::base_name)?;
        let unknown = || After { all: Folders::Unknown, success: Folders::Unknown };
        match name {
            "cd" => {}
            "pushd" | "popd" | "source" | "." => return Some(unknown()),
            _ => return None,
        }
        let target = match words {
            [_, target] => target,
            [_, dashes, target] if dashes.literal() == Some("--") => target,
            _ => return Some(unknown()),
        };
        let entered = target.literal().and_then(|path| self.ground.enter(here, path));
        Some(match entered {
            Some(success) => After { all: here.clone(), success },
            None => unknown(),
        })
    }

    fn substitutions(&mut self, words: &[Word], here: &Folders, views: &[View]) {
        for script in words.iter().flat_map(|word| &word.scripts) {
            // Rules name words; what a word runs, no word names.
            let views: Vec<_> = views.iter().filter(|view| matches!(view.reach, Reach::Holds(_))).cloned().collect();
            self.within(script, here.clone(), &views);
        }
    }

    fn redirects(&mut self, redirects: &[Redirect], here: &Folders, views: &[View]) {
        for Redirect { kind, target } in redirects {
            self.substitutions(std::slice::from_ref(target), here, views);
            let file = || File { word: target.clone(), folders: here.clone() };
            let null = target.literal() == Some("/dev/null");
            match kind {
                RedirectKind::Write if !null => {
                    self.note(Act::Write(file()), format!("> {}", target.source), views.to_vec());
                }
                RedirectKind::Read if !null => {
                    self.note(Act::Read(file()), format!("< {}", target.source), views.to_vec());
                }
                RedirectKind::Write | RedirectKind::Read | RedirectKind::Inner => {}
            }
        }
    }

    fn note(&mut self, act: Act, shown: String, views: Vec<View>) {
        self.deeds.push(Deed { act, shown, views });
    }
}

/// The views with another reach into the innermost command.
fn reaching(views: &[View], reach: Reach) -> Vec<View> {
    views.iter().map(|view| shifted(view, reach)).collect()
}

/// The views of a command that begins at a word of another.
fn viewed(views: &[View], from: usize, inner: Rc<[Word]>) -> Vec<View> {
    let mut views = reaching(views, Reach::From(from));
    views.push(View { assignments: Rc::new([]), words: inner, reach: Reach::From(0) });
    views
}

/// Where the innermost command begins in a view, plus where the deed begins in the innermost command.
fn shifted(view: &View, reach: Reach) -> View {
    let reach = match (view.reach, reach) {
        // What is held whole by a word stays held by it.
        (Reach::Holds(at), _) => Reach::Holds(at),
        (Reach::From(base), Reach::From(at)) => Reach::From(base + at),
        (Reach::From(base), Reach::Holds(at)) => Reach::Holds(base + at),
    };
    View { reach, ..view.clone() }
}

/// A command as people read it.
fn shown(words: &[Word], views: &[View]) -> String {
    let assignments: &[Word] = match views.last() {
        Some(view) if view.reach == Reach::From(0) => &view.assignments,
        Some(_) | None => &[],
    };
    let sources: Vec<_> = assignments.iter().chain(words).map(|word| word.source.as_str()).collect();
    sources.join(" ")
}

/// Whether a script may end in another folder than it began.
fn may_move(script: &Script) -> bool {
    script.items.iter().flat_map(|item| &item.pipeline).any(|command| match command {
        Command::Simple(simple) => simple.words.iter().enumerate().any(|(place, word)| match &word.text {
            Text::Literal(text) => {
                let moves = ["cd", "pushd", "popd", "eval", "source", "."];
                moves.contains(&text.as_str()) || (place == 0 && text.contains("cd"))
            }
            Text::Home(_) | Text::Dynamic { .. } => place == 0,
        }),
        Command::Compound(compound) => compound.scripts.iter().any(may_move),
        Command::Function(_) => true,
        Command::Test { .. } => false,
    })
}
