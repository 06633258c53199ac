//! Submitted input: a prompt for the model, a command for the shell, or a slash command.

use haft_text::format_thousands;
use haft_types::PermissionMode;

use super::choices::list_modes;
use super::help::draw_help;
use super::{App, Effect};
use crate::commands::foreign_commands::{self, ForeignCommand};
use crate::commands::{self, CommandHandler, InterfaceCommand, SessionCommand, SlashCommand};
use crate::line::TextStyle;
use crate::link::{ContextParts, Focus, ListRequest, Operation, SideAction};
use crate::status::draw_context;

impl App {
    /// Dispatches submitted input: a slash command, a command for the shell, or a prompt.
    pub(super) fn dispatch_input(&mut self, text: String, effects: &mut Vec<Effect>) {
        if let Some(line) = text
            .strip_prefix('!')
            .map(str::trim)
            .filter(|line| !line.is_empty())
        {
            self.turn.print_shell_command(&text, &mut self.scrollback);
            return effects.push(Effect::Do(Operation::Side(SideAction::Shell(
                line.to_owned(),
            ))));
        }
        let Some((command, arguments)) = commands::find_command(&text) else {
            return self.dispatch_unknown(text, effects);
        };
        if !self.turn.is_busy() && opens_list(command.by, arguments) {
            self.scrollback.delay_echo(&text);
        } else {
            self.scrollback.print_prompt(&text);
        }
        self.run_slash_command(command, arguments, effects);
    }

    /// Runs a built-in command whose input was already printed.
    fn run_slash_command(
        &mut self,
        command: SlashCommand,
        arguments: &str,
        effects: &mut Vec<Effect>,
    ) {
        match command.by {
            CommandHandler::Own(command) => self.run_command(command, arguments, effects),
            CommandHandler::Session(_) if self.turn.is_busy() => {
                self.scrollback
                    .print_note(text!("app-turn-running"), TextStyle::Warning);
            }
            CommandHandler::Session(command) => {
                self.request_operation(command, arguments, effects);
            }
            CommandHandler::Haft => effects.push(request_haft_run(command.name, arguments)),
            CommandHandler::Diff => effects.push(Effect::Do(Operation::Diff)),
        }
    }

    /// Handles input that isn't one of haft's commands: a command defined by the user, a command
    /// known from other agents, or a prompt.
    fn dispatch_unknown(&mut self, text: String, effects: &mut Vec<Effect>) {
        let called = text.trim().strip_prefix('/').unwrap_or_default();
        let (name, arguments) = commands::split_first_word(called);
        let is_user_command = self.composer.completions().has_user_command(name);
        let Some(familiar) = foreign_commands::find_equivalent(name).filter(|_| !is_user_command)
        else {
            return self.submit_prompt(text, effects);
        };
        self.scrollback.print_prompt(&text);
        match familiar {
            ForeignCommand::Input(input) => {
                let input = format!("{input} {arguments}").trim_end().to_owned();
                self.scrollback
                    .print_note(&text!("familiar-instead", input = &input), TextStyle::Dim);
                match commands::find_command(&input) {
                    Some((command, arguments)) => {
                        self.run_slash_command(command, arguments, effects);
                    }
                    None => self.dispatch_input(input, effects),
                }
            }
            ForeignCommand::Haft(command) => effects.push(request_haft_run(command, arguments)),
            ForeignCommand::Hint(hint) => self.scrollback.print_note(hint, TextStyle::Plain),
        }
    }

    /// Runs a command of the interface itself.
    fn run_command(
        &mut self,
        command: InterfaceCommand,
        arguments: &str,
        effects: &mut Vec<Effect>,
    ) {
        match command {
            InterfaceCommand::Help => {
                let user_commands = self.composer.completions().user_commands();
                let rows = draw_help(user_commands, self.scrollback.columns());
                self.scrollback.print_rows(rows);
            }
            InterfaceCommand::Context if arguments == "edit" && self.turn.is_busy() => {
                self.scrollback
                    .print_note(text!("app-turn-running"), TextStyle::Warning);
            }
            InterfaceCommand::Context if arguments == "edit" => {
                effects.push(Effect::Do(Operation::Offer(ListRequest::Context)));
            }
            InterfaceCommand::Context if arguments.starts_with('/') => {
                effects.push(request_haft_run("context", arguments));
            }
            InterfaceCommand::Context if self.turn.is_busy() => self.print_context(None),
            InterfaceCommand::Context => effects.push(Effect::Do(Operation::Context)),
            InterfaceCommand::Cost => self.print_cost(),
            InterfaceCommand::Mode => self.choose_mode(arguments, effects),
            InterfaceCommand::Quit => self.request_quit(effects),
        }
    }

    /// Requests the operation of a command that the session carries out.
    fn request_operation(
        &mut self,
        command: SessionCommand,
        arguments: &str,
        effects: &mut Vec<Effect>,
    ) {
        if command == SessionCommand::Model && arguments.starts_with('/') {
            return effects.push(request_haft_run("models", arguments));
        }
        if command == SessionCommand::Useful && !is_session_verb(arguments) {
            return effects.push(request_haft_run("useful", arguments));
        }
        if command == SessionCommand::Notes && !is_session_verb(arguments) {
            return effects.push(request_haft_run("notes", arguments));
        }
        effects.push(Effect::Do(match command {
            SessionCommand::New => Operation::New,
            SessionCommand::Resume if arguments.is_empty() => {
                Operation::Offer(ListRequest::Conversations)
            }
            SessionCommand::Resume => Operation::Resume(arguments.to_owned()),
            SessionCommand::Rewind => Operation::Offer(ListRequest::Messages),
            SessionCommand::Model => Operation::Offer(ListRequest::Models(arguments.to_owned())),
            SessionCommand::Files => match parse_files_request(arguments) {
                Some(request) => Operation::Offer(request),
                None => {
                    return self
                        .scrollback
                        .print_note(text!("app-files-usage"), TextStyle::Warning);
                }
            },
            SessionCommand::View => {
                let name = arguments.strip_prefix('/').unwrap_or(arguments);
                Operation::Offer(ListRequest::View(name.to_owned()))
            }
            SessionCommand::Agent => {
                let name = arguments.strip_prefix('/').unwrap_or(arguments);
                Operation::Offer(ListRequest::Agent(name.to_owned()))
            }
            SessionCommand::Useful => Operation::Useful(arguments.to_owned()),
            SessionCommand::Notes => Operation::Notes(arguments.to_owned()),
            SessionCommand::Inspect => Operation::Inspect,
            SessionCommand::Trust => Operation::Offer(ListRequest::Trust),
            SessionCommand::Undo => Operation::Offer(ListRequest::Undo),
            SessionCommand::Redo => Operation::Offer(ListRequest::Redo),
            SessionCommand::Compact => {
                self.turn.start_turn();
                Operation::Compact(arguments.to_owned())
            }
        }));
    }

    /// Switches to the mode that `arguments` begin with. Text after the mode is input, which is
    /// dispatched in the new mode. Without arguments, offers a list of the modes.
    fn choose_mode(&mut self, arguments: &str, effects: &mut Vec<Effect>) {
        let (name, input) = commands::split_first_word(arguments);
        match name.parse::<PermissionMode>() {
            Ok(PermissionMode::Yolo) if self.started_in != PermissionMode::Yolo => {
                self.scrollback
                    .print_note(text!("app-yolo-refused"), TextStyle::Warning);
            }
            Ok(mode) => {
                self.change_mode(mode, effects);
                if !input.is_empty() {
                    self.dispatch_input(input.to_owned(), effects);
                }
            }
            Err(_) if name.is_empty() => {
                let list = list_modes(self.status.mode, self.started_in);
                effects.push(Effect::Offer(list));
            }
            Err(why) => self
                .scrollback
                .print_note(&why.to_string(), TextStyle::Warning),
        }
    }

    /// Sends a prompt. While a turn runs, the prompt joins the turn or waits until the turn ends.
    pub(super) fn submit_prompt(&mut self, text: String, effects: &mut Vec<Effect>) {
        if self.turn.is_busy() {
            self.composer.queue_input(text, effects);
        } else {
            self.start_turn(text, effects);
        }
    }

    pub(super) fn start_turn(&mut self, input: String, effects: &mut Vec<Effect>) {
        let prompt = self.turn.start_turn_with_input(input, &mut self.scrollback);
        let images = self.composer.take_images(&prompt);
        effects.extend(images.map(|path| Effect::Do(Operation::Attach(path))));
        effects.push(Effect::Do(Operation::Submit(prompt)));
    }

    /// Prints the parts of the next request, or the token budget of the last request if `parts` is
    /// `None`.
    pub(super) fn print_context(&mut self, parts: Option<&ContextParts>) {
        let columns = self.scrollback.columns();
        let rows = match parts {
            Some(parts) => draw_context(parts, columns),
            None => self
                .status
                .draw_budget()
                .into_iter()
                .map(|row| row.cut(columns))
                .collect(),
        };
        self.scrollback.print_rows(rows);
        for note in parts.iter().flat_map(|parts| &parts.notes) {
            self.scrollback.print_note(note, TextStyle::Plain);
        }
        let last = match &self.status.prefix_break {
            Some(last) => text!("app-last-prefix-break", last),
            None => text!("app-no-prefix-break").to_owned(),
        };
        self.scrollback.print_note(&last, TextStyle::Dim);
    }

    fn print_cost(&mut self) {
        if self.status.requests == 0 {
            return self
                .scrollback
                .print_note(text!("app-nothing-sent"), TextStyle::Plain);
        }
        let total = self.status.total;
        let money = self
            .status
            .format_cost()
            .unwrap_or_else(|| text!("app-no-price").into());
        let text = text!(
            "app-cost",
            requests = self.status.requests,
            input = format_thousands(total.input),
            cached = format_thousands(total.cached_input),
            written = format_thousands(total.cache_write),
            output = format_thousands(total.output),
            money
        );
        self.scrollback.print_note(&text, TextStyle::Plain);
    }
}

/// Returns the effect that runs `haft` for a command that was typed at the terminal.
fn request_haft_run(command: &str, typed: &str) -> Effect {
    let arguments = commands::haft_arguments(command, typed);
    Effect::Do(Operation::Side(SideAction::Haft(arguments)))
}

/// Returns true if the session carries out `/useful` or `/notes` with these arguments. Other verbs
/// are those of the command line.
fn is_session_verb(arguments: &str) -> bool {
    let (verb, _) = commands::split_first_word(arguments);
    let verb = verb.strip_prefix('/').unwrap_or(verb);
    matches!(verb, "" | "list" | "add" | "remove")
}

/// Parses the arguments of `/files`.
fn parse_files_request(arguments: &str) -> Option<ListRequest> {
    let mut words = arguments.split_whitespace();
    let action = words.next().unwrap_or_default();
    let action = action.strip_prefix('/').unwrap_or(action);
    let paths: Vec<_> = words
        .map(|path| path.trim_start_matches('@').to_owned())
        .collect();
    match action {
        "" | "list" => Some(ListRequest::Files),
        "add" if !paths.is_empty() => Some(ListRequest::Focus(Focus::Add(paths))),
        "remove" if !paths.is_empty() => Some(ListRequest::Focus(Focus::Remove(paths))),
        "clear" => Some(ListRequest::Focus(Focus::Clear)),
        _ => None,
    }
}

/// Returns true if a command opens a list, which the user may close without a choice.
fn opens_list(by: CommandHandler, arguments: &str) -> bool {
    match by {
        CommandHandler::Own(InterfaceCommand::Mode)
        | CommandHandler::Session(
            SessionCommand::Resume | SessionCommand::View | SessionCommand::Agent,
        ) => arguments.is_empty(),
        CommandHandler::Own(InterfaceCommand::Context) => arguments == "edit",
        CommandHandler::Session(SessionCommand::Files) => matches!(arguments, "" | "list"),
        CommandHandler::Session(
            SessionCommand::Rewind
            | SessionCommand::Model
            | SessionCommand::Undo
            | SessionCommand::Redo
            | SessionCommand::Trust,
        ) => true,
        CommandHandler::Own(_)
        | CommandHandler::Session(_)
        | CommandHandler::Haft
        | CommandHandler::Diff => false,
    }
}
