//! `haft hooks`: lists the user's commands that haft runs at certain points of a run, with their
//! origins.

use clap::{Args, Subcommand};
use haft_agent::find_knowledge_and_trust;
use haft_project::Level;
use haft_project::hooks::{self, Hook};
use serde_json::{Value, json};

use crate::cli::options::JsonArgs;
use crate::exit::ProcessExit;
use crate::haft::Haft;
use crate::output::{self, TextTable};

#[derive(Debug, Args)]
pub(crate) struct HooksArgs {
    #[command(subcommand)]
    pub(crate) command: Option<HooksCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum HooksCommand {
    /// List your hooks and those of the project, where each comes from, and whether it would run.
    List(JsonArgs),
}

pub(crate) fn run(haft: &Haft, command: Option<HooksCommand>) -> anyhow::Result<ProcessExit> {
    match command.unwrap_or_else(|| HooksCommand::List(JsonArgs::default())) {
        HooksCommand::List(args) => list_hooks(haft, &args)?,
    }
    Ok(ProcessExit::Completed)
}

fn list_hooks(haft: &Haft, args: &JsonArgs) -> anyhow::Result<()> {
    let settings = haft.load(&args.common)?;
    let (mut paths, trust_state) =
        find_knowledge_and_trust(&settings.places, &haft.project(None)?)?;
    // Hooks are listed even if they would not run because the project is not trusted.
    paths.trusted = true;
    let mut problems = Vec::new();
    let found = hooks::load_hooks(
        &paths,
        &settings.config.hooks,
        &settings.places.config_file(),
        &mut problems,
    );
    for problem in &problems {
        output::print_to_stderr(&format!("haft: {problem}"));
    }
    let runs = |hook: &Hook| match hook.level {
        Level::User | Level::Repository => true,
        Level::Project => trust_state.is_trusted(),
    };
    if args.json {
        let rows: Vec<_> = found
            .iter()
            .map(|hook| hook_to_json(hook, runs(hook)))
            .collect();
        return output::print_json(&rows.into());
    }
    if found.is_empty() {
        return output::print_text_line(text!("hooks-none"));
    }
    let mut table = TextTable::new(&[
        text!("table-point"),
        text!("table-matcher"),
        text!("table-command"),
        text!("table-seconds"),
        text!("table-sandbox"),
        text!("table-source"),
        text!("table-runs"),
    ]);
    for hook in &found {
        table.add_row(vec![
            hook.point.name().to_owned(),
            Some(hook.matcher.text())
                .filter(|text| !text.is_empty())
                .unwrap_or("*")
                .to_owned(),
            hook.command.replace('\n', " "),
            hook.timeout.as_secs().to_string(),
            output::localize_text(if hook.sandboxed { "yes" } else { "no" }),
            paths.display_path(&hook.path),
            if runs(hook) {
                output::localize_text("yes")
            } else {
                text!("hooks-untrusted").to_owned()
            },
        ]);
    }
    output::print_text(&table.to_string())
}

fn hook_to_json(hook: &Hook, runs: bool) -> Value {
    json!({
        "point": hook.point.name(),
        "matcher": hook.matcher.text(),
        "command": hook.command,
        "timeout": hook.timeout.as_secs(),
        "sandbox": hook.sandboxed,
        "level": hook.level.name(),
        "source": hook.path,
        "runs": runs,
    })
}
