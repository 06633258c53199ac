//! `haft demo`: a scripted model drives the real agent to fix a real bug, without a key or network.
//!
//! Only the model is scripted. The request goes through a real socket in the real wire format, the
//! tools really read, edit and run, and the test of the sample project fails before the run and
//! passes after it. The run is in mode `ask` and confined, like a user's first run: a rule allows
//! the test, and the edit needs approval.

mod approval;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use clap::Args;
use haft_agent::config::Config;
use haft_agent::{Places, RunPlan, WallClock};
use haft_context::Budget;
use haft_engine::{ConversationChoice, EventSink};
use haft_model::{ModelConfig, ProviderConfig};
use haft_permission::PermissionsConfig;
use haft_project::TrustList;
use haft_sandbox::ProgramPath;
use haft_testkit::{Script, ScriptedServer};
use haft_types::{
    Api, CacheKind, CacheRule, Clock as _, Event, EventBody, Outcome, PermissionMode, Price,
    SandboxLayer, SandboxStatus, TurnResult,
};
use tokio_util::sync::CancellationToken;

use self::approval::DemoApprover;
use crate::cli::options::OutputFormat;
use crate::exit::{ProcessExit, usage_error};
use crate::haft::{Haft, Settings};
use crate::output::{self, Printer};
use crate::wiring;

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// The wire protocol: openai-chat, openai-responses, anthropic or gemini.
    #[arg(long, default_value = "anthropic")]
    pub(crate) api: Api,

    /// Keep the sample project and print its path.
    #[arg(long)]
    pub(crate) keep: bool,
}

impl Default for DemoArgs {
    fn default() -> Self {
        Self {
            api: Api::Anthropic,
            keep: false,
        }
    }
}

const TASK: &str =
    "One of the checks in test.sh fails. Find out why, fix it, and make sure that the test passes.";

/// The permission rule that allows the test of the sample project, which the model runs twice.
const TEST_RULE: &str = "execute_command(./test.sh)";

const SAMPLE: [(&str, &str, u32); 3] = [
    ("greet.sh", include_str!("demo/sample/greet.sh"), 0o755),
    ("test.sh", include_str!("demo/sample/test.sh"), 0o755),
    ("README.md", include_str!("demo/sample/README.md"), 0o644),
];

pub(crate) fn run(haft: &Haft, args: &DemoArgs) -> anyhow::Result<ProcessExit> {
    let folder = haft_files::create_temporary_folder(&std::env::temp_dir(), "haft-demo-");
    let no_folder = |error| {
        usage_error(text!(
            "demo-no-folder",
            folder = std::env::temp_dir().display(),
            error
        ))
    };
    let folder = folder.map_err(no_folder)?;
    let project = folder.path().join("greet");
    write_sample(&project).map_err(no_folder)?;
    output::print_wrapped(&format!(
        "{}\n\n",
        text!("demo-project", project = project.display())
    ))?;
    let failed_before = !run_test(&project)?;
    output::print_wrapped(&format!("\n{}\n\n", text!("demo-task", task = TASK)))?;

    let (result, budget, answer) =
        wiring::build_runtime()?.block_on(run_agent(haft, args, folder.path(), &project))?;
    output::print_text(&format!("\n{}\n\n", text!("demo-test-after")))?;
    let passes_after = run_test(&project)?;
    output::print_wrapped(&format_report(&result, budget.as_ref()))?;
    if args.keep {
        let kept = folder.keep();
        output::print_wrapped(&format!(
            "\n{}\n",
            text!("demo-kept", folder = kept.display())
        ))?;
    }
    Ok(match answer {
        DemoAnswer::Refused => {
            output::print_text(&format!("\n{}\n", text!("demo-refused")))?;
            ProcessExit::Completed
        }
        DemoAnswer::Allowed
            if failed_before && passes_after && result.outcome == Outcome::Completed =>
        {
            ProcessExit::Completed
        }
        DemoAnswer::Allowed => ProcessExit::Failed,
    })
}

/// The user's answer to the approval of the edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DemoAnswer {
    Allowed,
    Refused,
}

fn write_sample(project: &Path) -> std::io::Result<()> {
    std::fs::create_dir(project)?;
    for (name, content, mode) in SAMPLE {
        let path = project.join(name);
        std::fs::write(&path, content)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode))?;
    }
    Ok(())
}

/// Runs the sample's test, prints its output, and returns true if it passed.
fn run_test(project: &Path) -> anyhow::Result<bool> {
    let output = ProgramPath::for_system("/bin/sh")
        .command()
        .arg("./test.sh")
        .current_dir(project)
        .output()?;
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        output::print_text(&format!("    {line}\n"))?;
    }
    Ok(output.status.success())
}

async fn run_agent(
    haft: &Haft,
    args: &DemoArgs,
    home: &Path,
    project: &Path,
) -> anyhow::Result<(TurnResult, Option<Budget>, DemoAnswer)> {
    let server = ScriptedServer::start(Script::from_yaml(
        "script.yaml",
        include_str!("demo/script.yaml"),
    )?)
    .await?;
    let config = demo_config(args, &server);
    let which = ConversationChoice::New { title: TASK.into() };
    let mut plan = RunPlan::from_config(
        &config,
        "scripted/demo-model".into(),
        haft.project(Some(project))?,
        which,
    );
    // A refusal by the user ends the demo, because the scripted model has no alternative.
    let refused = CancellationToken::new();
    plan.mode = PermissionMode::Ask;
    plan.task.approver = Some(Arc::new(DemoApprover {
        refused: refused.clone(),
    }));
    let places = Places::under_home(&home.join("home"), haft.environment().clone());
    // The project was written a moment ago by this process, so it can be trusted.
    TrustList::at_path(places.trust_file()).trust_folder(&plan.project.root, WallClock.now())?;
    let settings = Settings::new(places, config);
    let mut session = settings.open_session(plan).await?;
    let mut listener = DemoListener {
        printer: Printer::new(OutputFormat::Text, false),
        budget: None,
    };
    let report = session
        .run(Some(TASK.into()), &mut listener, &refused)
        .await;
    let answer = if refused.is_cancelled() {
        DemoAnswer::Refused
    } else {
        DemoAnswer::Allowed
    };
    Ok((report.result, listener.budget, answer))
}

fn demo_config(args: &DemoArgs, server: &ScriptedServer) -> Config {
    let provider = ProviderConfig::new(args.api, server.base_url(args.api));
    let model = ModelConfig {
        context_window: Some(32_000),
        max_output_tokens: Some(4_096),
        price: Some(Price {
            input: 3.0,
            cached_input: Some(0.3),
            cache_write: Some(3.75),
            output: 15.0,
            long: None,
        }),
        cache: Some(CacheRule {
            rule: CacheKind::Anthropic,
            ..CacheRule::default()
        }),
        ..ModelConfig::default()
    };
    Config {
        providers: BTreeMap::from([("scripted".to_owned(), provider)]),
        models: BTreeMap::from([("scripted/demo-model".to_owned(), model)]),
        permissions: PermissionsConfig {
            allow: vec![TEST_RULE.to_owned()],
            ..PermissionsConfig::default()
        },
        ..Config::default()
    }
}

/// Prints events and keeps the newest budget for the report.
struct DemoListener {
    printer: Printer,
    budget: Option<Budget>,
}

impl EventSink for DemoListener {
    fn event(&mut self, event: &Event) {
        if let EventBody::Budget {
            layers,
            output_reserve,
            remaining,
            window,
        } = &event.body
        {
            let output_reserve = *output_reserve;
            let remaining = *remaining;
            let window = *window;
            self.budget = Some(Budget {
                layers: layers.clone(),
                output_reserve,
                remaining,
                window,
            });
        }
        // The printer reports the sandbox only if it is weak, but the demo always reports it.
        if let EventBody::Conversation {
            sandbox: Some(status),
            ..
        } = &event.body
        {
            drop(output::print_text(&format_sandbox_status(status)));
            return;
        }
        self.printer.event(event);
    }
}

/// Returns the output lines about the sandbox. If nothing confines commands, the lines end with the
/// reason why the demo continues.
fn format_sandbox_status(status: &SandboxStatus) -> String {
    let mut text = format!("{}\n", output::describe_sandbox(status));
    if status.layer == SandboxLayer::None {
        text.extend([text!("demo-no-sandbox"), "\n"]);
    }
    text
}

fn format_report(result: &TurnResult, budget: Option<&Budget>) -> String {
    let mut text = String::from(&format!("\n{}\n\n", text!("demo-tokens")));
    if let Some(budget) = budget {
        text.push_str(&budget.format_table());
    }
    let usage = result.usage;
    // Writing to a String cannot fail.
    let _ = write!(
        text,
        "\n{}",
        text!(
            "demo-usage",
            requests = result.turns,
            input = haft_text::format_thousands(usage.all_input()),
            cached = format_args!("{:.0}", usage.cached_share() * 100.0),
            output = haft_text::format_thousands(usage.output)
        )
    );
    if let Some(cost) = result.cost {
        let _ = write!(
            text,
            "{}",
            text!("demo-cost", cost = format_args!("{:.4}", cost.total))
        );
    }
    text.extend([text!("demo-end"), "\n"]);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sandbox_lines(layer: SandboxLayer, reasons: &[&str]) -> String {
        format_sandbox_status(&SandboxStatus {
            layer,
            reasons: reasons.iter().map(|&reason| reason.to_owned()).collect(),
        })
    }

    #[test]
    fn format_sandbox_tells_that_the_demo_continues_without_one() {
        let told = sandbox_lines(SandboxLayer::None, &["Landlock: the kernel is too old"]);
        let lines: Vec<_> = told.lines().collect();
        let [sandbox, continues] = lines[..] else {
            panic!("{told}");
        };
        assert!(
            sandbox.starts_with("sandbox: ") && sandbox.contains("Landlock: the kernel is too old"),
            "{told}"
        );
        assert_eq!(
            continues,
            "The demo continues without one: its commands and its sample project are its own."
        );
        for layer in [SandboxLayer::Namespace, SandboxLayer::Landlock] {
            let told = sandbox_lines(layer, &[]);
            assert_eq!(told.lines().count(), 1, "{told}");
        }
    }
}
