//! What happens to submitted input: a prompt for the model, a line for the shell, or a slash
//! command.
//!
//! Invariant: input typed while a turn runs is shown until it is part of it; none is sent twice,
//! and none is lost.

use haft_text::grouped;
use haft_types::PermissionMode;

use super::{App, Effect, Queued, view};
use crate::commands::familiar::{self, Familiar};
use crate::commands::{self, COMMANDS, CommandHandler, InterfaceCommand, SessionCommand};
use crate::line::{StyledLine, TextStyle};
use crate::link::{ContextParts, Focus, ListRequest, Operation, SideAction};
use crate::picker::{PickerAction, PickerList, PickerRow};
use crate::status::context_rows;
use crate::wrap::defined;

impl App {
    /// Dispatches submitted input: a slash command, a line for the shell, or a prompt.
    pub(super) fn said(&mut self, text: String, effects: &mut Vec<Effect>) {
        if let Some(line) = text
            .strip_prefix('!')
            .map(str::trim)
            .filter(|line| !line.is_empty())
        {
            let rows = [StyledLine::empty()]
                .into_iter()
                .chain(view::said(&text, self.columns))
                .collect();
            self.print_aside(rows);
            return effects.push(Effect::Do(Operation::Side(SideAction::Shell(
                line.to_owned(),
            ))));
        }
        let Some((command, arguments)) = commands::find(&text) else {
            return self.unknown(text, effects);
        };
        let rows = view::said(&text, self.columns);
        if !self.busy && opens_list(command.by, arguments) {
            self.echo = Some(rows);
        } else {
            self.print_apart(rows);
        }
        match command.by {
            CommandHandler::Own(InterfaceCommand::Help) => self.help(),
            CommandHandler::Own(InterfaceCommand::Context) if arguments == "edit" && self.busy => {
                self.note(text!("app-turn-running"), TextStyle::Warning);
            }
            CommandHandler::Own(InterfaceCommand::Context) if arguments == "edit" => {
                effects.push(Effect::Do(Operation::Offer(ListRequest::Context)));
            }
            CommandHandler::Own(InterfaceCommand::Context) if self.busy => self.context(None),
            CommandHandler::Own(InterfaceCommand::Context) => {
                effects.push(Effect::Do(Operation::Context));
            }
            CommandHandler::Own(InterfaceCommand::Cost) => self.cost(),
            CommandHandler::Own(InterfaceCommand::Mode) => self.choose_mode(arguments, effects),
            CommandHandler::Own(InterfaceCommand::Quit) => effects.push(Effect::Quit),
            CommandHandler::Session(_) if self.busy => {
                self.note(text!("app-turn-running"), TextStyle::Warning);
            }
            CommandHandler::Session(wanted) => self.want(wanted, arguments, effects),
            CommandHandler::Haft(first) => {
                let arguments = first.iter().copied().chain(arguments.split_whitespace());
                effects.push(Effect::Do(Operation::Side(SideAction::Haft(
                    arguments.map(str::to_owned).collect(),
                ))));
            }
            CommandHandler::Diff => effects.push(Effect::Do(Operation::Diff)),
        }
    }

    /// What is no command of haft's own: one of the user's, one that another agent has, or a
    /// prompt.
    fn unknown(&mut self, text: String, effects: &mut Vec<Effect>) {
        let called = text.trim().strip_prefix('/').unwrap_or_default();
        let (name, arguments) = called
            .split_once(char::is_whitespace)
            .unwrap_or((called, ""));
        let is_the_users = self.commands.iter().any(|(own, _)| own == name);
        let Some(familiar) = familiar::find(name).filter(|_| !is_the_users) else {
            return self.submit(text, effects);
        };
        self.print_apart(view::said(&text, self.columns));
        match familiar {
            Familiar::Input(input) => {
                let input = format!("{input} {arguments}").trim_end().to_owned();
                self.note(&text!("familiar-instead", input = &input), TextStyle::Dim);
                self.said(input, effects);
            }
            Familiar::Haft(arguments) => {
                let arguments = arguments.split(' ').map(str::to_owned).collect();
                effects.push(Effect::Do(Operation::Side(SideAction::Haft(arguments))));
            }
            Familiar::Hint(hint) => self.note(hint, TextStyle::Plain),
        }
    }

    fn want(&mut self, wanted: SessionCommand, arguments: &str, effects: &mut Vec<Effect>) {
        effects.push(Effect::Do(match wanted {
            SessionCommand::New => Operation::New,
            SessionCommand::Resume if arguments.is_empty() => {
                Operation::Offer(ListRequest::Conversations)
            }
            SessionCommand::Resume => Operation::Resume(arguments.to_owned()),
            SessionCommand::Rewind => Operation::Offer(ListRequest::Messages),
            SessionCommand::Model => Operation::Offer(ListRequest::Models(arguments.to_owned())),
            SessionCommand::Files => return self.files(arguments, effects),
            SessionCommand::Inspect => Operation::Inspect,
            SessionCommand::Undo => Operation::Offer(ListRequest::Undo),
            SessionCommand::Redo => Operation::Offer(ListRequest::Redo),
            SessionCommand::Compact => {
                self.busy = true;
                self.activity.begin();
                Operation::Compact(arguments.to_owned())
            }
        }));
    }

    fn files(&mut self, arguments: &str, effects: &mut Vec<Effect>) {
        let mut query = arguments.split_whitespace().map(str::to_owned);
        let what = query.next().unwrap_or_default();
        let paths: Vec<_> = query
            .map(|path| path.trim_start_matches('@').to_owned())
            .collect();
        let offer = match what.as_str() {
            "" | "list" => ListRequest::Files,
            "add" if !paths.is_empty() => ListRequest::Focus(Focus::Add(paths)),
            "remove" if !paths.is_empty() => ListRequest::Focus(Focus::Remove(paths)),
            "clear" => ListRequest::Focus(Focus::Clear),
            _ => {
                return self.note(text!("app-files-usage"), TextStyle::Warning);
            }
        };
        effects.push(Effect::Do(Operation::Offer(offer)));
    }

    fn choose_mode(&mut self, name: &str, effects: &mut Vec<Effect>) {
        match name.parse::<PermissionMode>() {
            Ok(PermissionMode::Yolo) if self.began_with != PermissionMode::Yolo => {
                self.note(text!("app-yolo-refused"), TextStyle::Warning);
            }
            Ok(mode) => {
                self.set_mode(mode, effects);
                self.note(
                    &format!("{}: {}", mode.name(), view::meaning(mode)),
                    TextStyle::Dim,
                );
            }
            Err(_) if name.is_empty() => effects.push(Effect::Offer(self.modes())),
            Err(why) => self.note(&why.to_string(), TextStyle::Warning),
        }
    }

    /// The modes there are for this user.
    fn modes(&self) -> PickerList {
        let row = |mode: PermissionMode| {
            let text = mode.name().to_owned();
            let is_now = mode == self.status.mode;
            let text = if is_now {
                text!("app-mode-current", mode = text)
            } else {
                text
            };
            let then = if is_now {
                PickerAction::Leave
            } else {
                PickerAction::Mode { mode, prompt: None }
            };
            PickerRow {
                text,
                about: view::meaning(mode).to_owned(),
                then,
            }
        };
        let modes = [
            PermissionMode::Plan,
            PermissionMode::Ask,
            PermissionMode::AcceptEdits,
            PermissionMode::Auto,
        ];
        let yolo = (self.began_with == PermissionMode::Yolo).then_some(PermissionMode::Yolo);
        let rows = modes.into_iter().chain(yolo).map(row).collect();
        PickerList {
            title: text!("app-mode-title").to_owned(),
            rows,
            ..PickerList::default()
        }
    }

    /// What can become of the plan that was just put before the user.
    pub(super) fn plan_choices(&self) -> PickerList {
        let row = |text: &str, then| PickerRow {
            text: text.to_owned(),
            about: String::new(),
            then,
        };
        let go = |mode| PickerAction::Mode {
            mode,
            prompt: Some(text!("app-plan-prompt").to_owned()),
        };
        let mut rows = vec![
            row(text!("app-plan-accept"), go(PermissionMode::AcceptEdits)),
            row(text!("app-plan-ask"), go(PermissionMode::Ask)),
            row(text!("app-plan-more"), PickerAction::Leave),
        ];
        rows.extend(
            self.options
                .iter()
                .map(|option| row(option, PickerAction::Send(option.clone()))),
        );
        let title = text!("app-plan-title").to_owned();
        let notes = vec![text!("app-plan-note").to_owned()];
        PickerList {
            title,
            notes,
            rows,
            filter: String::new(),
            is_question: true,
        }
    }

    /// Sends a prompt. While a turn runs it joins that, or waits until it is over.
    pub(super) fn submit(&mut self, text: String, effects: &mut Vec<Effect>) {
        if !self.busy {
            return self.begin(text, effects);
        }
        // A slash command is expanded first, so it waits for a turn of its own.
        let joins =
            !text.starts_with('/') && !self.images.iter().any(|image| text.contains(&image.label));
        if joins {
            effects.push(Effect::Do(Operation::Join(text.clone())));
        }
        self.queue.push_back(Queued { text, joins });
    }

    pub(super) fn begin(&mut self, text: String, effects: &mut Vec<Effect>) {
        let chosen = text
            .trim()
            .parse::<usize>()
            .ok()
            .and_then(|number| self.options.get(number.checked_sub(1)?));
        let text = chosen.cloned().unwrap_or(text);
        self.options.clear();
        self.print_apart(view::said(&text, self.columns));
        self.busy = true;
        self.activity.begin();
        self.last_error = None;
        let images = std::mem::take(&mut self.images)
            .into_iter()
            .filter(|image| text.contains(&image.label));
        effects.extend(images.map(|image| Effect::Do(Operation::Attach(image.path))));
        effects.push(Effect::Do(Operation::Submit(text)));
    }

    /// The first queued input that can join has become part of the turn.
    pub(super) fn joined(&mut self) {
        self.finish_text();
        if let Some(at) = self.queue.iter().position(|queued| queued.joins)
            && let Some(queued) = self.queue.remove(at)
        {
            self.print_apart(view::said(&queued.text, self.columns));
        }
    }

    fn help(&mut self) {
        let columns = self.columns;
        let row = |name: &str, help: &str| defined(name, help, HELP_NAMES, columns);
        let mut rows: Vec<_> = commands::keys()
            .into_iter()
            .flat_map(|(key, help)| row(key, help))
            .collect();
        rows.extend(row("@path", text!("app-help-path")));
        rows.extend(row("!command", text!("app-help-shell")));
        rows.push(StyledLine::empty());
        rows.extend(
            COMMANDS
                .iter()
                .flat_map(|command| row(&format!("/{}", command.name), (command.help)())),
        );
        rows.extend(
            self.commands
                .iter()
                .flat_map(|(name, help)| row(&format!("/{name}"), help)),
        );
        self.print(rows);
    }

    /// What the next request would hold; what the last one held where that is not known.
    pub(super) fn context(&mut self, parts: Option<&ContextParts>) {
        let columns = self.columns;
        match parts {
            Some(parts) => self.print(context_rows(parts, columns)),
            None => self.print(
                self.status
                    .picture()
                    .into_iter()
                    .map(|row| row.cut(columns))
                    .collect(),
            ),
        }
        for note in parts.iter().flat_map(|parts| &parts.notes) {
            self.note(note, TextStyle::Plain);
        }
        let last = match &self.last_break {
            Some(last) => text!("app-last-prefix-break", last),
            None => text!("app-no-prefix-break").to_owned(),
        };
        self.note(&last, TextStyle::Dim);
    }

    fn cost(&mut self) {
        let total = self.status.total;
        let money = self
            .status
            .money()
            .unwrap_or_else(|| text!("app-no-price").into());
        let text = text!(
            "app-cost",
            requests = self.status.requests,
            input = grouped(total.input),
            cached = grouped(total.cached_input),
            written = grouped(total.cache_write),
            output = grouped(total.output),
            money
        );
        self.note(&text, TextStyle::Plain);
    }
}

/// Columns of the names in `/help`.
pub(super) const HELP_NAMES: usize = 17;

/// Whether a command opens a list that may come to nothing.
fn opens_list(by: CommandHandler, arguments: &str) -> bool {
    match by {
        CommandHandler::Own(InterfaceCommand::Mode)
        | CommandHandler::Session(SessionCommand::Resume) => arguments.is_empty(),
        CommandHandler::Own(InterfaceCommand::Context) => arguments == "edit",
        CommandHandler::Session(SessionCommand::Files) => matches!(arguments, "" | "list"),
        CommandHandler::Session(
            SessionCommand::Rewind
            | SessionCommand::Model
            | SessionCommand::Undo
            | SessionCommand::Redo,
        ) => true,
        CommandHandler::Own(_)
        | CommandHandler::Session(_)
        | CommandHandler::Haft(_)
        | CommandHandler::Diff => false,
    }
}
