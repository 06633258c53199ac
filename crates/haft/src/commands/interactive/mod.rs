//! `haft` alone: a session at the terminal.
//!
//! The interface runs on a thread of its own; this one holds the session, does what the user wants, and tells what comes of it.
//! Invariant: while a turn runs, an interrupt and the end are heard at once.

mod beside;
mod history;
mod setup;
mod trusting;

use std::path::PathBuf;
use std::sync::Arc;

use haft_engine::{Leftovers, Session, Which};
use haft_project::{Ground, commands};
use haft_text::Masker;
use haft_tui::{Desk, Ended, Hands, Message, Operation, Palette, Setup};
use haft_types::{Decision, Role};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;

use super::permissions;
use super::run::{cancel_on_signals, configured_model, lower, usage_errors};
use crate::agent;
use crate::cli::{DemoArgs, RunArgs, at_a_terminal};
use crate::config::Config;
use crate::exit::{Exit, mistake};
use crate::output;
use crate::places::Places;
use crate::slash;
use crate::wiring;

use beside::Beside;
use history::History;
use setup::SetUp;

/// How the interface looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Looks {
    /// As `[tui]` and the terminal say.
    AsConfigured,
    /// In lines and words.
    Plain,
}

pub(super) fn run(args: &RunArgs, looks: Looks) -> anyhow::Result<Exit> {
    if !at_a_terminal() {
        return Err(mistake("talking to the model needs a terminal; use `haft run \"…\"` or `haft -p \"…\"`"));
    }
    let (places, mut loaded) = super::configuration(&args.common)?;
    if args.model.is_none() && configured_model(&loaded.config).is_none() {
        match setup::run(&places, &loaded.config)? {
            SetUp::Model => loaded = super::configuration(&args.common)?.1,
            SetUp::Demo => return crate::demo::run(&DemoArgs::default()),
            SetUp::Left => return Ok(Exit::Completed),
        }
    }
    let config = loaded.config;
    // What is wrong with flags and configuration is told before the terminal is taken.
    let plan = lower(args, &config, Some(""))?;
    trusting::settle(&places, &plan.project, &mut std::io::stdin().lock())?;
    let (ground, _) = wiring::ground(&places, &plan.project)?;
    let masker = Masker::knowing(haft_sandbox::secret_values(std::env::vars_os()));
    let history = History::at(places.history(&plan.project.namespace()), masker, config.tui.history);
    let setup = Setup {
        mode: plan.mode,
        model: plan.model,
        history: history.load(),
        editing: config.tui.editing,
        commands: own_commands(&ground),
        first: args.prompt.clone().filter(|prompt| !prompt.trim().is_empty()),
        greeting: format!("haft {} · {} · /help", env!("CARGO_PKG_VERSION"), plan.project.cwd.display()),
    };
    let (desk, wanted, side) = haft_tui::link();
    let palette = palette();
    let plain = looks == Looks::Plain || config.tui.plain || palette == Palette::Plain;
    let hands = Hands { edit: Box::new(beside::edit), keep: Box::new(move |text| history.keep(text)) };
    let beside = Beside::new(desk.clone(), plan.project, args.common.set.clone());
    let mut seat = Seat { args, places, config, ground, desk, beside, session: None };
    wiring::runtime()?.block_on(async {
        seat.look_back().await?;
        let terminal = std::thread::spawn(move || {
            if plain { haft_tui::run_plain(setup, side, hands) } else { haft_tui::run(setup, palette, side, hands) }
        });
        let quit = CancellationToken::new();
        seat.serve(wanted, &quit).await;
        let ended = terminal.join();
        for message in seat.leave(&quit).await {
            output::tell(&haft_text::sanitise(&format!("haft: {message}")));
        }
        match ended {
            Ok(Ok(Ended::Left)) => Ok(Exit::Completed),
            Ok(Ok(Ended::Signalled)) => Ok(Exit::Aborted),
            Ok(Err(error)) => Err(error.into()),
            // A panic has told itself.
            Ok(Ok(Ended::Panicked)) | Err(_) => Ok(Exit::Failed),
        }
    })
}

fn own_commands(ground: &Ground) -> Vec<(String, String)> {
    // What is wrong with a file is told when it is called, and by `haft commands list`.
    let found = commands::load(ground, &mut Vec::new());
    found.items.iter().map(|command| (command.name.clone(), command.description.clone())).collect()
}

fn palette() -> Palette {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    match std::env::var("TERM").as_deref() {
        Ok("dumb") => Palette::Plain,
        _ if set("NO_COLOR") => Palette::Attributes,
        _ => Palette::Colour,
    }
}

/// Whether it goes on.
enum Next {
    Stay,
    Leave,
}

struct Seat<'a> {
    args: &'a RunArgs,
    places: Places,
    config: Config,
    ground: Ground,
    desk: Desk,
    beside: Beside,
    /// None until the first words: a conversation is named after them.
    session: Option<Session>,
}

impl Seat<'_> {
    /// Opens the conversation that flags name, if they do.
    async fn look_back(&mut self) -> anyhow::Result<()> {
        if self.args.resume.is_some() || self.args.resume_current {
            // Without words there is nothing to name a new one after.
            let which = lower(self.args, &self.config, None)?.which;
            self.open(which, "").await.map_err(usage_errors)?;
            self.tell_opened();
        }
        Ok(())
    }

    async fn serve(&mut self, mut wanted: UnboundedReceiver<Operation>, quit: &CancellationToken) {
        while let Some(operation) = wanted.recv().await {
            match operation {
                Operation::Submit(text) => {
                    let next = self.turn(text, &mut wanted, quit).await;
                    self.desk.tell(Message::Idle);
                    if matches!(next, Next::Leave) {
                        return;
                    }
                }
                Operation::New => {
                    self.close().await;
                    self.desk.tell(Message::Opened { text: "the next words begin a new conversation".into() });
                }
                Operation::Resume(name) => {
                    self.close().await;
                    match self.open(Which::Named(name), "").await {
                        Ok(()) => self.tell_opened(),
                        Err(error) => self.complain(&error),
                    }
                }
                Operation::Interrupt => {}
                Operation::Quit => return,
                aside @ (Operation::Haft(_) | Operation::Shell(_) | Operation::Files) => self.beside.start(aside),
            }
        }
    }

    /// Runs one turn, hearing what the user wants in the meantime.
    async fn turn(
        &mut self,
        text: String,
        wanted: &mut UnboundedReceiver<Operation>,
        quit: &CancellationToken,
    ) -> Next {
        let text = match slash::expand_and_tell(text, &self.ground) {
            Ok((text, problems)) => {
                for text in problems {
                    self.desk.tell(Message::Told { text });
                }
                text
            }
            Err(error) => {
                self.complain(&error);
                return Next::Stay;
            }
        };
        if self.session.is_none()
            && let Err(error) = self.open(Which::New { title: text.clone() }, &text).await
        {
            self.complain(&error);
            return Next::Stay;
        }
        let Some(session) = &mut self.session else { return Next::Stay };
        let cancel = quit.child_token();
        let mut sink = self.desk.clone();
        let mut run = std::pin::pin!(session.run(Some(text), &mut sink, &cancel));
        let mut next = Next::Stay;
        loop {
            tokio::select! {
                _ = &mut run => return next,
                operation = wanted.recv(), if matches!(next, Next::Stay) => match operation {
                    Some(Operation::Interrupt) => cancel.cancel(),
                    Some(aside @ (Operation::Haft(_) | Operation::Shell(_) | Operation::Files)) => self.beside.start(aside),
                    // The interface lets these wait until the turn is over.
                    Some(Operation::Submit(_) | Operation::New | Operation::Resume(_)) => {}
                    Some(Operation::Quit) | None => {
                        // Whoever does not want to wait for the end of the turn says so with Ctrl-C.
                        quit.cancel();
                        cancel_on_signals(quit);
                        next = Next::Leave;
                    }
                },
            }
        }
    }

    async fn open(&mut self, which: Which, words: &str) -> anyhow::Result<()> {
        let mut plan = lower(self.args, &self.config, Some(words))?;
        agent::put_on(&mut plan, self.args, &self.places)?;
        plan.which = which;
        plan.leftovers = Leftovers::Keep;
        let file: PathBuf = self.places.config_file();
        let remember = move |rules: &[String]| {
            permissions::add(&file, Decision::Allow, rules).map(drop).map_err(|error| error.to_string())
        };
        plan.approver = Some(Arc::new(self.desk.approver(Box::new(remember))));
        self.session = Some(wiring::open_session(&self.places, self.config.clone(), plan).await?);
        Ok(())
    }

    /// Says which conversation is open, and what was said last in it.
    fn tell_opened(&self) {
        let Some(session) = &self.session else { return };
        let (conversation, history) = (session.conversation(), session.history());
        let text = format!("{} · {} messages", conversation.name, history.len());
        self.desk.tell(Message::Opened { text });
        let last = history.iter().rev().find(|entry| entry.message.role == Role::Assistant);
        if let Some(text) = last.map(|entry| entry.message.joined_text()).filter(|text| !text.trim().is_empty()) {
            self.desk.tell(Message::Told { text });
        }
    }

    fn complain(&self, error: &anyhow::Error) {
        self.desk.tell(Message::Told { text: format!("haft: {error:#}") });
    }

    async fn close(&mut self) {
        for text in self.take_leave().await {
            self.desk.tell(Message::Told { text });
        }
    }

    async fn take_leave(&mut self) -> Vec<String> {
        match self.session.take() {
            Some(mut session) => session.close().await,
            None => Vec::new(),
        }
    }

    /// Ends everything; gives what there is to say about that.
    async fn leave(&mut self, quit: &CancellationToken) -> Vec<String> {
        quit.cancel();
        self.beside.end();
        self.take_leave().await
    }
}
