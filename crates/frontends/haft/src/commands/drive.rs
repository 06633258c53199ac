//! `haft run --input-format stream-json`: several turns in one process, driven by lines of standard input.

use std::io::BufReader;
use std::sync::Arc;

use haft_engine::EventSink;
use haft_types::Event;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;

use super::run::{cancel_on_signals, close, lower, printer, take_role, usage_errors};
use crate::commands::options::{Compat, OutputFormat, RunArgs};
use crate::exit::{ProcessExit, usage_error};
use crate::output::{self, Printer};
use crate::stream::{Dialect, StreamApprover, StreamControl};
use crate::wiring;

pub(crate) fn run(args: &RunArgs) -> anyhow::Result<ProcessExit> {
    if args.output_format != OutputFormat::StreamJson {
        return Err(usage_error(text!("run-stream-formats")));
    }
    let (places, loaded) = super::run_configuration(args)?;
    let dialect = match args.compat {
        None => Dialect::Haft,
        Some(Compat::Claude) => Dialect::Claude,
    };
    wiring::runtime()?.block_on(async {
        let (control, mut prompts) = StreamControl::open(dialect, BufReader::new(std::io::stdin()));
        let stop = CancellationToken::new();
        cancel_on_signals(&stop);
        // The conversation is named after its first prompt.
        let mut first = args.prompt.clone();
        if first.is_none() {
            tokio::select! {
                heard = prompts.recv() => first = heard,
                () = stop.cancelled() => return Ok(ProcessExit::Aborted),
            }
        }
        let Some(first) = first else {
            return Err(usage_error(text!("run-stream-no-message")));
        };
        let mut plan = lower(args, &loaded.config, Some(&first))?;
        take_role(&mut plan, args, &places)?;
        let mode = plan.mode;
        if args.ask {
            plan.approver = Some(Arc::new(StreamApprover::new(Arc::clone(&control), places.config_file())));
        }
        let mut session = wiring::open_session(&places, loaded.config, plan).await.map_err(usage_errors)?;
        control.reach(Arc::clone(session.hub()));
        let mut watch = DrivenTurn { printer: printer(args, &session, mode), prompts: &mut prompts, dialect };
        let mut next = Some(first);
        let mut exit = ProcessExit::Completed;
        while let Some(text) = next {
            let turn = stop.child_token();
            control.begin(turn.clone());
            let report = session.run(Some(text), &mut watch, &turn).await;
            control.end();
            exit = if report.never_valid { ProcessExit::Usage } else { report.result.outcome.into() };
            if stop.is_cancelled() {
                break;
            }
            next = tokio::select! { next = watch.prompts.recv() => next, () = stop.cancelled() => None };
        }
        close(&mut session).await;
        Ok(exit)
    })
}

/// Prints what happens in a turn, and hands it what the user writes meanwhile.
struct DrivenTurn<'a> {
    printer: Printer,
    prompts: &'a mut UnboundedReceiver<String>,
    dialect: Dialect,
}

impl EventSink for DrivenTurn<'_> {
    fn event(&mut self, event: &Event) {
        self.printer.event(event);
    }

    fn joined(&mut self, input: &str) {
        self.dialect.joined(input).iter().for_each(output::print_line);
    }

    fn take_input(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.prompts.try_recv().ok()).collect()
    }
}
