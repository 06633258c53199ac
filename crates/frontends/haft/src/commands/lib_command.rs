//! `haft lib`: documentation of libraries, which is fetched with git and sent with every request.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use haft_agent::{Project, find_knowledge_and_trust, set_up_sandbox};
use haft_files::Durability;
use haft_model::O200k;
use haft_project::library::{
    Libraries, LibraryChange, LibraryError, UsedLibrary, read_auto_coder_libraries,
};
use haft_sandbox::{GitError, GitProgram, GitReach};
use haft_types::{PermissionMode, TokenCounter};
use serde_json::json;

use crate::cli::options::{Common, JsonArgs};
use crate::exit::{ProcessExit, usage_error};
use crate::haft::{Haft, Settings};
use crate::output::{self, TextTable};
use crate::wiring;

#[derive(Debug, Args)]
pub(crate) struct LibArgs {
    /// Lists when absent.
    #[command(subcommand)]
    pub(crate) command: Option<LibCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LibCommand {
    /// Send the documentation of a library with every request in this project.
    Add {
        /// `library` or `user/library`.
        name: String,
        #[command(flatten)]
        common: Common,
    },
    /// Stop sending the documentation of a library.
    Remove {
        /// `library` or `user/library`.
        name: String,
        #[command(flatten)]
        common: Common,
    },
    /// List the libraries this project uses, with what they cost in tokens.
    List(JsonArgs),
    /// Print the documentation of a library as it is sent.
    #[command(visible_alias = "show")]
    Docs {
        /// `library` or `user/library`.
        name: String,
        #[command(flatten)]
        common: Common,
    },
    /// Fetch the newest documentation.
    Refresh {
        #[command(flatten)]
        common: Common,
    },
    /// Show or set the source of the documentation.
    Proxy {
        /// The URL or path of a git repository laid out `domain/user/library`.
        source: Option<String>,
        #[command(flatten)]
        common: Common,
    },
}

pub(crate) fn run(haft: &Haft, command: Option<LibCommand>) -> anyhow::Result<ProcessExit> {
    match command.unwrap_or(LibCommand::List(JsonArgs::default())) {
        LibCommand::Add { name, common } => {
            add_library(&LibraryContext::load(haft, &common)?, &name)?;
        }
        LibCommand::Remove { name, common } => {
            let place = LibraryContext::load(haft, &common)?;
            let told = match place
                .libraries
                .remove_library(&place.project.root, &name)
                .map_err(|error| to_usage_error(&error))?
            {
                LibraryChange::Changed => format!("{}\n", text!("lib-removed", name)),
                LibraryChange::Unchanged if find_of_auto_coder(&place, &name)?.is_some() => {
                    return Err(usage_error(text!("lib-of-auto-coder", name)));
                }
                LibraryChange::Unchanged => {
                    return Err(usage_error(text!("lib-not-used", name)));
                }
            };
            output::print_text(&told)?;
        }
        LibCommand::List(output) => {
            list_libraries(&LibraryContext::load(haft, &output.common)?, output.json)?;
        }
        LibCommand::Docs { name, common } => {
            print_docs(&LibraryContext::load(haft, &common)?, &name)?;
        }
        LibCommand::Refresh { common } => {
            refresh_docs(&LibraryContext::load(haft, &common)?)?;
            output::print_text_line(text!("lib-refreshed"))?;
        }
        LibCommand::Proxy { source, common } => {
            let libraries = LibraryContext::load(haft, &common)?.libraries;
            if let Some(source) = source {
                if source.trim().is_empty() || source.starts_with('-') {
                    return Err(usage_error(text!("lib-bad-source", source)));
                }
                libraries
                    .set_source(&source)
                    .map_err(|error| to_usage_error(&error))?;
            }
            output::print_text(&format!(
                "{}\n",
                haft_text::sanitize(
                    &libraries
                        .repository_source()
                        .map_err(|error| to_usage_error(&error))?
                )
            ))?;
        }
    }
    Ok(ProcessExit::Completed)
}

/// The settings and libraries of this user, and the current project.
struct LibraryContext {
    settings: Settings,
    project: Project,
    libraries: Libraries,
}

impl LibraryContext {
    fn load(haft: &Haft, common: &Common) -> anyhow::Result<Self> {
        let settings = haft.load(common)?;
        Ok(Self {
            project: haft.project(None)?,
            libraries: Libraries::in_folder(settings.places.libraries_folder()),
            settings,
        })
    }
}

fn to_usage_error(error: &LibraryError) -> anyhow::Error {
    usage_error(output::hints::explain_error(error))
}

fn add_library(place: &LibraryContext, name: &str) -> anyhow::Result<()> {
    let libraries = &place.libraries;
    if !libraries.repository_folder().is_dir() {
        fetch_repository(place)?;
    }
    let library = libraries
        .find_library(name)
        .map_err(|error| to_usage_error(&error))?;
    let told = match libraries
        .add_library(&place.project.root, &library)
        .map_err(|error| to_usage_error(&error))?
    {
        LibraryChange::Changed => format!("{}\n", text!("lib-added", library)),
        LibraryChange::Unchanged => format!("{}\n", text!("lib-already-added", library)),
    };
    output::print_text(&told)
}

fn list_libraries(place: &LibraryContext, as_json: bool) -> anyhow::Result<()> {
    let libraries = &place.libraries;
    let (paths, _) = find_knowledge_and_trust(&place.settings.places, &place.project)?;
    // The list is read first so that an unreadable list is an error instead of a warning.
    libraries
        .project_libraries(&place.project.root)
        .map_err(|error| to_usage_error(&error))?;
    let mut problems = Vec::new();
    let used = libraries.read_used_libraries(&paths, &mut problems);
    let count_tokens = |library: &UsedLibrary| -> u32 {
        let texts = library.documents.iter().map(|document| &document.text);
        texts.map(|text| O200k.count_text(text)).sum()
    };
    for problem in &problems {
        output::print_to_stderr(&haft_text::sanitize(&format!("warning: {problem}")));
    }
    if as_json {
        let one = |library: &UsedLibrary| {
            json!({
                "name": library.name,
                "files": library.documents.len(),
                "tokens": count_tokens(library),
                "from": library.origin.name(),
            })
        };
        return output::print_json(&json!(used.iter().map(one).collect::<Vec<_>>()));
    }
    if used.is_empty() {
        return output::print_text_line(text!("lib-none"));
    }
    let mut table = TextTable::new(&[
        text!("table-library"),
        text!("table-files"),
        text!("table-tokens"),
        text!("table-from"),
    ]);
    for library in used {
        table.add_row(vec![
            library.name.clone(),
            library.documents.len().to_string(),
            count_tokens(&library).to_string(),
            library.origin.name().to_owned(),
        ]);
    }
    output::print_text(&table.to_string())
}

/// Returns the library of auto-coder's chat with this full or short name.
fn find_of_auto_coder(place: &LibraryContext, name: &str) -> anyhow::Result<Option<UsedLibrary>> {
    let (paths, _) = find_knowledge_and_trust(&place.settings.places, &place.project)?;
    let short = format!("/{name}");
    Ok(read_auto_coder_libraries(&paths, &mut Vec::new())
        .into_iter()
        .find(|library| library.name == name || library.name.ends_with(&short)))
}

fn print_docs(place: &LibraryContext, name: &str) -> anyhow::Result<()> {
    let libraries = &place.libraries;
    let (paths, _) = find_knowledge_and_trust(&place.settings.places, &place.project)?;
    let (library, documents) = match libraries.find_library(name) {
        Ok(library) => {
            let documents = libraries.read_library_documents(&library, &paths, &mut Vec::new());
            (library, documents)
        }
        Err(error) => match find_of_auto_coder(place, name)? {
            Some(library) if matches!(error, LibraryError::Unknown(_)) => {
                (library.name, library.documents)
            }
            Some(_) | None => return Err(to_usage_error(&error)),
        },
    };
    if documents.is_empty() {
        return Err(usage_error(text!("lib-no-documents", library)));
    }
    let texts: Vec<_> = documents
        .iter()
        .map(|one| format!("# {}\n\n{}\n", one.heading, one.text.trim()))
        .collect();
    output::print_text(&texts.join("\n"))
}

fn refresh_docs(place: &LibraryContext) -> anyhow::Result<()> {
    let libraries = &place.libraries;
    let repository = libraries.repository_folder();
    if !repository.is_dir() {
        return fetch_repository(place);
    }
    let source = libraries
        .repository_source()
        .map_err(|error| to_usage_error(&error))?;
    let repository = repository.canonicalize()?;
    let git = LibraryGit::open(&repository, place)?;
    git.run_git(
        git.network_reach(&source),
        &["fetch", "--quiet", "--depth", "1", "--", &source, "HEAD"],
    )?;
    git.run_git(
        GitReach::Local,
        &["reset", "--quiet", "--hard", "FETCH_HEAD"],
    )?;
    // git creates files with the permissions that the umask allows, so the permissions are
    // tightened.
    Ok(haft_files::tighten_tree(&repository)?)
}

/// Fetches the repository of libraries and checks it out. A failure leaves no partial checkout
/// behind.
fn fetch_repository(place: &LibraryContext) -> anyhow::Result<()> {
    let libraries = &place.libraries;
    let source = libraries
        .repository_source()
        .map_err(|error| to_usage_error(&error))?;
    let repository = libraries.repository_folder();
    let above = repository.parent().unwrap_or(Path::new("."));
    haft_files::create_folder(above)?;
    let partial = haft_files::create_temporary_folder(&above.canonicalize()?, "fetching-")?;
    let target = partial.path().join("repository");
    haft_files::create_new_folder(&target)?;
    output::print_to_stderr(&format!("haft: {}", text!("lib-fetching", source)));
    let git = LibraryGit::open(&target, place)?;
    git.run_git(GitReach::Local, &["init", "--quiet", "--template="])?;
    git.run_git(
        git.network_reach(&source),
        &["fetch", "--quiet", "--depth", "1", "--", &source, "HEAD"],
    )?;
    git.run_git(
        GitReach::Local,
        &["reset", "--quiet", "--hard", "FETCH_HEAD"],
    )?;
    haft_files::tighten_tree(&target)?;
    // `Durability::Process` is enough: files that a power failure destroys are fetched again.
    Ok(haft_files::rename(
        &target,
        &repository,
        Durability::Process,
    )?)
}

/// Runs git on the repository of libraries.
struct LibraryGit<'a> {
    program: GitProgram,
    folder: &'a Path,
    /// The socket of the user's SSH agent.
    agent: Option<PathBuf>,
}

impl<'a> LibraryGit<'a> {
    fn open(folder: &'a Path, place: &LibraryContext) -> anyhow::Result<Self> {
        let places = &place.settings.places;
        let of_sandbox = &place.settings.config.sandbox;
        let mode = PermissionMode::Plan;
        let sandbox = wiring::build_runtime()?.block_on(set_up_sandbox(
            places,
            of_sandbox,
            mode,
            Vec::new(),
        ))?;
        let host = &places.environment;
        let root = place.project.root.as_path();
        // git gets the whole environment, because it contains what git needs for the network,
        // including the socket of an SSH agent.
        let program = GitProgram::find(
            &host.supervisor(),
            &sandbox,
            &host.text_variables(),
            &[root],
        );
        let program = program.map_err(|error| usage_error(text!("lib-no-git", error)))?;
        let agent = host
            .variable("SSH_AUTH_SOCK")
            .and_then(|path| fs::canonicalize(path).ok());
        let is_socket = |path: &PathBuf| {
            path.metadata()
                .is_ok_and(|found| found.file_type().is_socket())
        };
        Ok(Self {
            program,
            folder,
            agent: agent.filter(is_socket),
        })
    }

    /// Returns the network access for fetching from `source`. For `ssh`, the access includes the
    /// user's SSH agent.
    fn network_reach<'b>(&'b self, source: &'b str) -> GitReach<'b> {
        GitReach::Network {
            source,
            agent: self.agent.as_deref().filter(|_| uses_ssh(source)),
        }
    }

    /// Runs git. The repository is fetched with the user's git configuration but checked out
    /// without it, so that nothing in the repository is ever run.
    fn run_git(&self, reach: GitReach<'_>, arguments: &[&str]) -> anyhow::Result<()> {
        let folder = self.folder.display();
        let dir = format!("--git-dir={folder}/.git");
        let tree = format!("--work-tree={folder}");
        let all: Vec<_> = [dir.as_str(), tree.as_str()]
            .into_iter()
            .chain(arguments.iter().copied())
            .collect();
        self.program
            .run_in_own_folder(self.folder, reach, &all)
            .map(drop)
            .map_err(|error: GitError| {
                usage_error(haft_text::sanitize(&text!("lib-fetch-failed", error)))
            })
    }
}

/// Returns true if git would use `ssh` for this source: by its scheme, or as `host:path`.
fn uses_ssh(source: &str) -> bool {
    match source.split_once("://") {
        Some((scheme, _)) => scheme.contains("ssh"),
        None => source
            .split('/')
            .next()
            .is_some_and(|first| first.contains(':')),
    }
}
