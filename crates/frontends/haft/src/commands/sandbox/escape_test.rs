//! `haft sandbox test`: makes every escape attempt in each sandbox layer, and reports the results.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use haft_agent::Places;
use haft_probe::{Finding, PROBE_ARG, ProbeKind, ProbeOutcome, ProbeSite};
use haft_sandbox::{
    Capture, CommandExit, CommandSpec, ConfinementMethod, ConfinementSpec, HELPER_PROGRAM, Network,
    SandboxPolicy, Supervisor,
};
use haft_text::CutLimits;
use serde::Serialize;
use serde_json::json;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::cli::options::JsonArgs;
use crate::exit::ProcessExit;
use crate::haft::Haft;
use crate::{output, wiring};

/// The time limit for all attempts together. The attempts take seconds, but a machine may be slow.
const TEST_TIMEOUT: Duration = Duration::from_mins(10);
/// The limits of the probe's output, far above its usual size.
const OUTPUT_LIMITS: CutLimits = CutLimits {
    lines: 100_000,
    bytes: 16 << 20,
};

/// The results of the attempts in one layer.
#[derive(Debug, Serialize)]
struct SandboxTest {
    layer: ConfinementMethod,
    /// The reason why this layer is unavailable; `None` if it is available.
    unavailable: Option<String>,
    /// The number of escape attempts that were blocked, as they should be.
    refused: usize,
    /// The number of ordinary operations that succeeded, as they should.
    worked: usize,
    /// Escape attempts that succeeded.
    open: Vec<Finding>,
    /// Ordinary operations that were refused.
    closed: Vec<Finding>,
    /// Known limits of the tested layer: escape attempts that succeeded and ordinary operations
    /// that were refused. They do not fail the test.
    limits: Vec<Finding>,
    /// Changed files and network contacts that were observed from outside the sandbox.
    noticed: Vec<String>,
}

impl SandboxTest {
    fn has_passed(&self) -> bool {
        self.unavailable.is_none()
            && self.open.is_empty()
            && self.closed.is_empty()
            && self.noticed.is_empty()
    }
}

/// Tests every sandbox layer. The exit code is 0 only if namespaces are available and no attempt
/// succeeds in them.
pub(super) fn run(haft: &Haft, args: &JsonArgs) -> anyhow::Result<ProcessExit> {
    let settings = haft.load(&args.common)?;
    let tested = wiring::build_runtime()?.block_on(async {
        let mut tested = Vec::new();
        for method in [ConfinementMethod::Namespace, ConfinementMethod::Landlock] {
            tested.push(test_layer(&settings.places, method).await?);
        }
        anyhow::Ok(tested)
    })?;
    let ok = tested
        .iter()
        .any(|tested| tested.layer == ConfinementMethod::Namespace && tested.has_passed());
    if args.json {
        output::print_json(&json!({ "ok": ok, "layers": tested }))?;
    } else {
        output::print_text(&tested.iter().map(test_to_text).collect::<String>())?;
    }
    Ok(if ok {
        ProcessExit::Completed
    } else {
        ProcessExit::Failed
    })
}

async fn test_layer(places: &Places, method: ConfinementMethod) -> anyhow::Result<SandboxTest> {
    let folder = create_site_folder(places)?;
    let root = folder.path().canonicalize()?;
    let mut site = ProbeSite::prepare(&root.join("site"))?;
    let program = places.environment.helper_program();
    let policy = build_test_policy(&root, &site, program.path())?;
    let command = CommandSpec {
        argv: vec![
            HELPER_PROGRAM.into(),
            PROBE_ARG.into(),
            site.targets_file().into(),
        ],
        env: places.environment.child_environment(),
        ..CommandSpec::shell("", site.targets().project.clone())
    };
    let command = command
        .with_timeout(TEST_TIMEOUT)
        .with_confinement(Some(Arc::new(ConfinementSpec { method, policy })));
    let capture = Capture {
        limits: OUTPUT_LIMITS,
        ..Capture::default()
    };
    let mut tested = SandboxTest {
        layer: method,
        unavailable: None,
        refused: 0,
        worked: 0,
        open: Vec::new(),
        closed: Vec::new(),
        limits: Vec::new(),
        noticed: Vec::new(),
    };
    match Supervisor::new(program.clone())
        .run(&command, &capture, &CancellationToken::new())
        .await
    {
        Ok(finished) if finished.exit == CommandExit::Code(0) => {
            for line in finished
                .stdout
                .text(OUTPUT_LIMITS)
                .text
                .lines()
                .filter(|line| !line.is_empty())
            {
                tested.add_finding(serde_json::from_str(line)?);
            }
            tested.noticed = site.describe_changed_files()?;
            tested.noticed.extend(site.take_contacts()?);
        }
        Ok(finished) => {
            let said = finished.stderr.text(CutLimits::default()).text;
            tested.unavailable = Some(text!(
                "sandbox-test-ended",
                exit = format_args!("{:?}", finished.exit),
                said
            ));
        }
        Err(error) => tested.unavailable = Some(error.to_string()),
    }
    Ok(tested)
}

/// Creates a folder for the attempts, outside `/tmp` if possible, so that it lies beside files of
/// the user, as a project does. The user's home and `/var/lib` are used if the cache lies in
/// `/tmp`.
fn create_site_folder(places: &Places) -> anyhow::Result<TempDir> {
    haft_files::create_folder(&places.cache)?;
    let home = places.environment.raw_variable("HOME").map(PathBuf::from);
    let candidates = [Some(places.cache.clone()), home, Some("/var/lib".into())];
    for folder in candidates
        .into_iter()
        .flatten()
        .filter_map(|folder| folder.canonicalize().ok())
    {
        if let (false, Ok(made)) = (
            haft_sandbox::private_folder_entry(&folder).is_some(),
            haft_files::create_temporary_folder(&folder, "haft-sandbox-test-"),
        ) {
            return Ok(made);
        }
    }
    // The policy makes this folder visible in the sandbox.
    Ok(haft_files::create_temporary_folder(
        &places.cache,
        "haft-sandbox-test-",
    )?)
}

impl SandboxTest {
    fn add_finding(&mut self, finding: Finding) {
        let is_limit = self.layer == ConfinementMethod::Landlock && finding.is_landlock_limit();
        match (finding.kind, finding.outcome) {
            (_, ProbeOutcome::NotApplicable) => {}
            _ if is_limit && !finding.is_expected() => self.limits.push(finding),
            (ProbeKind::Escape, ProbeOutcome::Refused) => self.refused += 1,
            (ProbeKind::Escape, ProbeOutcome::Succeeded) => self.open.push(finding),
            (ProbeKind::Control, ProbeOutcome::Succeeded) => self.worked += 1,
            (ProbeKind::Control, ProbeOutcome::Refused) => self.closed.push(finding),
        }
    }
}

/// Returns the sandbox policy of an ordinary command, applied to the folder of the attempts.
fn build_test_policy(
    root: &Path,
    site: &ProbeSite,
    program: &Path,
) -> anyhow::Result<SandboxPolicy> {
    for folder in ["tmp", "notes"] {
        haft_files::create_new_folder(&root.join(folder))?;
    }
    let targets = site.targets();
    let mut hidden = haft_sandbox::secret_paths(None);
    hidden.push(root.join("notes"));
    hidden.extend(targets.secret.parent().map(Path::to_owned));
    Ok(SandboxPolicy {
        projects: vec![targets.project.clone()],
        writable: Vec::new(),
        protected: Vec::new(),
        repositories: Vec::new(),
        hidden,
        // The program that makes the attempts, and the files that it attacks, must be visible in
        // the sandbox.
        readable: program
            .parent()
            .map(Path::to_owned)
            .into_iter()
            .chain([root.join("site")])
            .collect(),
        tmp: root.join("tmp"),
        notes: root.join("notes"),
        home: None,
        network: Network::None,
    })
}

fn test_to_text(tested: &SandboxTest) -> String {
    let layer = match tested.layer {
        ConfinementMethod::Namespace => "namespace",
        ConfinementMethod::Landlock => "landlock",
    };
    if let Some(why) = &tested.unavailable {
        return format!("{}\n", text!("sandbox-test-unavailable", layer, why));
    }
    let refused = tested.refused;
    let worked = tested.worked;
    let mut lines = vec![text!("sandbox-test-result", layer, refused, worked)];
    let shown = |what, all: &[Finding]| -> Vec<String> {
        all.iter()
            .map(|finding| {
                format!(
                    "  {what}: {} ({})",
                    output::localize_text(&finding.name),
                    output::localize_text(&finding.group)
                )
            })
            .collect()
    };
    lines.extend(shown(text!("sandbox-test-open"), &tested.open));
    lines.extend(shown(text!("sandbox-test-wrongly-refused"), &tested.closed));
    lines.extend(format_known_limits(&tested.limits));
    lines.extend(
        tested
            .noticed
            .iter()
            .map(|noticed| format!("  {}", text!("sandbox-test-noticed", noticed))),
    );
    lines.join("\n") + "\n"
}

/// Formats the known limits of a layer, one line per group.
fn format_known_limits(all: &[Finding]) -> Vec<String> {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for finding in all {
        groups
            .entry(&finding.group)
            .or_default()
            .push(&finding.name);
    }
    let line = |(group, names): (&str, Vec<&str>)| {
        let impossible = group == "controls";
        let count = names.len();
        let names = output::localize_text(names.join("; "));
        let group = output::localize_text(group);
        let limit = if impossible {
            text!("sandbox-test-impossible", group, count, names)
        } else {
            text!("sandbox-test-not-held", group, count, names)
        };
        format!("  {limit}")
    };
    groups.into_iter().map(line).collect()
}
