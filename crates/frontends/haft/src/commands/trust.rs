//! `haft trust`: trusts a folder, revokes the trust, or shows the effects of trust.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use haft_agent::{Places, Project, ProjectPolicy, WallClock};
use haft_project::{
    Footprint, KnowledgePaths, Level, ProjectCommand, ProjectCommandKind, ServerGrant, TrustList,
    TrustState, chat_memory, instructions, library, list_project_commands, module_documents, rules,
};
use haft_types::Clock as _;
use serde_json::json;

use crate::exit::ProcessExit;
use crate::haft::Haft;
use crate::{output, wiring};

#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    /// The folder; the project around the current one when absent.
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// Only show whether it is trusted and what it would run.
    #[arg(long, conflicts_with = "revoke")]
    pub(crate) show: bool,
    /// Revoke the trust.
    #[arg(long)]
    pub(crate) revoke: bool,
    /// Print JSON, with `--show`.
    #[arg(long, requires = "show")]
    pub(crate) json: bool,
}

pub(crate) fn run(haft: &Haft, args: &TrustArgs) -> anyhow::Result<ProcessExit> {
    let places = haft.places()?;
    let project = haft.project(args.folder.as_deref())?;
    let list = TrustList::at_path(places.trust_file());
    if args.revoke {
        let had = list.revoke_trust(&project.root)?;
        let folder = project.root.display();
        let said = if had {
            text!("trust-revoked", folder)
        } else {
            text!("trust-was-not-trusted", folder)
        };
        output::print_text_line(&said)?;
    } else if args.show {
        show_trust(
            &places,
            &project,
            &list.trust_state(&project.root)?,
            args.json,
        )?;
    } else {
        let asked = requested_grants(&places, &project.root);
        let footprint = list.trust_and_grant(&project.root, WallClock.now(), asked.clone())?;
        let files = footprint.files().len();
        let mut text = format!(
            "{}\n",
            text!("trust-granted", folder = project.root.display(), files)
        );
        if project.cwd != project.root {
            let _ = writeln!(
                text,
                "{}",
                text!("trust-whole-project", folder = project.cwd.display())
            );
        }
        text.extend(
            asked
                .iter()
                .map(|(name, grant)| format!("{}\n", describe_grant(name, grant))),
        );
        output::print_text(&haft_text::sanitize(&text))?;
    }
    Ok(ProcessExit::Completed)
}

/// Returns, by server name, the access outside the project that each MCP server of the project
/// requests.
fn requested_grants(places: &Places, root: &Path) -> BTreeMap<String, ServerGrant> {
    wiring::list_extensions()
        .iter()
        .flat_map(|extension| extension.requested_grants(places, root))
        .collect()
}

/// Describes what a server may access once the folder is trusted.
fn describe_grant(name: &str, grant: &ServerGrant) -> String {
    let or_none = |all: Vec<String>| {
        if all.is_empty() {
            text!("trust-server-none").to_owned()
        } else {
            output::join_names(&all)
        }
    };
    let folders = grant
        .writable
        .iter()
        .map(|folder| folder.display().to_string())
        .collect();
    text!(
        "trust-server",
        name,
        network = or_none(grant.network.clone()),
        folders = or_none(folders)
    )
}

fn show_trust(
    places: &Places,
    project: &Project,
    trust_state: &TrustState,
    json: bool,
) -> anyhow::Result<()> {
    let found = TrustFootprint::for_project(places, project);
    if json {
        let (word, changed) = split_trust_state(trust_state);
        let mut shown = json!({
            "path": project.root, "standing": word, "changed": changed, "would_run": found.files_to_run(), "would_obey": found.instruction_files,
        });
        for (key, value) in [
            ("would_reach", json!(found.requested_grants)),
            ("would_tighten", json!(found.policy.shown)),
            ("would_not_count", json!(found.policy.warnings)),
            ("would_stop", json!(found.policy.unreadable)),
        ] {
            if value != json!([]) && value != json!({}) {
                shown[key] = value;
            }
        }
        return output::print_json(&shown);
    }
    output::print_text(&found.describe(project, trust_state))
}

/// Describes a command that would run: what runs it, its command line, and the file that declares
/// it.
fn describe_command(command: &ProjectCommand) -> String {
    let ProjectCommand {
        kind,
        name,
        line,
        file,
    } = command;
    match kind {
        ProjectCommandKind::Hook => text!("trust-command-hook", name, line, file),
        ProjectCommandKind::Server => text!("trust-command-server", name, line, file),
        ProjectCommandKind::Program => text!("trust-command-program", line),
    }
}

fn split_trust_state(trust_state: &TrustState) -> (&'static str, &[String]) {
    match trust_state {
        TrustState::Trusted => ("trusted", &[]),
        TrustState::Untrusted => ("untrusted", &[]),
        TrustState::Changed { files } => ("changed", files),
        TrustState::Outdated { files } => ("outdated", files),
    }
}

/// The maximum number of a project's folders that are searched for instructions.
const MAX_FOLDERS: usize = 20_000;

/// Lists the instruction files whose text would be sent to the model: files that are always sent,
/// files of nested folders, and imported files.
fn find_instruction_files(places: &Places, project: &Project) -> Vec<String> {
    let knowledge = KnowledgePaths {
        root: project.root.clone(),
        cwd: project.root.clone(),
        trusted: true,
        user: places.config.clone(),
        home: places.environment.absolute_home(),
    };
    let (folders, more) = list_folders(&project.root);
    let mut problems = Vec::new();
    let named = instructions::candidate_files(&knowledge, &folders)
        .into_iter()
        .filter(|path| path.is_file());
    let read = instructions::load_instructions(&knowledge, &folders, &mut problems)
        .into_iter()
        .map(|one| one.path);
    let law = instructions::load_code_law(&knowledge, &mut problems).map(|one| one.path);
    let rules = rules::load_rules(&knowledge, &mut problems)
        .into_iter()
        .filter(|rule| rule.level == Level::Project);
    let modules = folders
        .iter()
        .map(|folder| folder.join(module_documents::DOCUMENT_FILE))
        .filter(|path| path.is_file());
    let memory = chat_memory::list_memory_files(&project.root);
    let libraries = library::read_auto_coder_libraries(&knowledge, &mut problems)
        .into_iter()
        .flat_map(|library| library.documents)
        .map(|one| one.path);
    let all = named
        .chain(memory)
        .chain(libraries)
        .chain(read)
        .chain(law)
        .chain(rules.map(|rule| rule.path))
        .chain(modules);
    let mut names: Vec<_> = all
        .filter(|path| path.starts_with(&project.root))
        .map(|path| knowledge.display_path(&normalize_path(&path)))
        .collect();
    names.sort();
    names.dedup();
    names.extend(more.then(|| text!("trust-more").to_owned()));
    names
}

/// Resolves `..` and links in the folder of a path, which may come from an import.
fn normalize_path(path: &Path) -> PathBuf {
    match (
        path.parent().and_then(|folder| folder.canonicalize().ok()),
        path.file_name(),
    ) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => path.to_owned(),
    }
}

/// Returns the folders of a project, outermost first, and true if the list was cut at
/// [`MAX_FOLDERS`].
fn list_folders(root: &Path) -> (Vec<PathBuf>, bool) {
    let mut all = vec![root.to_owned()];
    let mut at = 0;
    while let Some(folder) = all.get(at).cloned() {
        at += 1;
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let inner = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        all.extend(
            inner
                .filter(|entry| entry.file_name() != ".git")
                .map(|entry| entry.path()),
        );
        if all.len() > MAX_FOLDERS {
            return (all, true);
        }
    }
    (all, false)
}

/// The effects of trusting a folder: the files that would run, and the instruction files that would
/// be sent.
pub(crate) struct TrustFootprint {
    /// The files that would run, or that steer what would run.
    pub(crate) footprint: Footprint,
    /// The command lines that would run.
    commands: Vec<ProjectCommand>,
    /// The files that would be sent to the model: at once, or when a file beside them is touched.
    instruction_files: Vec<String>,
    /// The project's policy, which would tighten permissions.
    policy: ProjectPolicy,
    /// The access outside the project that MCP servers would be granted, by server name.
    pub(crate) requested_grants: BTreeMap<String, ServerGrant>,
}

impl TrustFootprint {
    pub(crate) fn for_project(places: &Places, project: &Project) -> Self {
        let instruction_files = find_instruction_files(places, project);
        let policy = ProjectPolicy::load(&project.root, places.environment.home().as_deref());
        let requested_grants = requested_grants(places, &project.root);
        Self {
            footprint: Footprint::read_project(&project.root),
            commands: list_project_commands(&project.root),
            instruction_files,
            policy,
            requested_grants,
        }
    }

    fn files_to_run(&self) -> Vec<String> {
        self.footprint.files().keys().cloned().collect()
    }

    /// Returns the files that would be read: instructions, and files of the footprint from which no
    /// command comes, such as agents and custom commands.
    fn list_files_to_read(&self) -> Vec<String> {
        let steering = self.files_to_run().into_iter().filter(|file| {
            self.commands
                .iter()
                .all(|command| command.file != *file && !command.line.contains(file.as_str()))
        });
        let mut files: Vec<_> = self
            .instruction_files
            .iter()
            .cloned()
            .chain(steering)
            .collect();
        files.dedup();
        files
    }

    /// Describes the effects as text, which is not yet sanitized for a terminal.
    pub(crate) fn describe(&self, project: &Project, trust_state: &TrustState) -> String {
        let (word, changed) = split_trust_state(trust_state);
        let state = output::localize_text(word);
        let mut text = format!(
            "{}\n",
            text!("trust-state", folder = project.root.display(), state)
        );
        if trust_state.is_trusted() {
            // The state says everything.
        } else if self.commands.is_empty() {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "\n{}", text!("trust-meaning-without-commands"));
        } else {
            let _ = writeln!(text, "\n{}", text!("trust-meaning"));
        }
        for (heading, names) in [
            (text!("trust-heading-changed"), changed.to_vec()),
            (
                text!("trust-heading-run"),
                self.commands.iter().map(describe_command).collect(),
            ),
            (
                text!("trust-heading-instructions"),
                self.list_files_to_read(),
            ),
            (text!("trust-heading-tighten"), self.policy.shown.clone()),
            (text!("trust-heading-ignored"), self.policy.warnings.clone()),
            (
                text!("trust-heading-unreadable"),
                self.policy.unreadable.clone(),
            ),
            (
                text!("trust-heading-grants"),
                self.requested_grants
                    .iter()
                    .map(|(name, grant)| describe_grant(name, grant))
                    .collect(),
            ),
        ] {
            if names.is_empty() {
                continue;
            }
            let _ = writeln!(text, "\n{heading}");
            for name in names {
                let _ = writeln!(text, "  {}", output::localize_text(name));
            }
        }
        text
    }
}
