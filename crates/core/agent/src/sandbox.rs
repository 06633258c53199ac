//! The sandbox of the user's commands, with a policy derived from the configuration and haft's own
//! folders.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_files::LockFile;
use haft_permission::Confinement;
use haft_project::{TrustList, footprint};
use haft_sandbox::{Hosts, Network, Proxy, Sandbox, SandboxConfig, SandboxPolicy};
use haft_types::{Clock as _, PermissionMode, SandboxLayer};
use tempfile::TempDir;

use crate::cleanup;
use crate::clock::WallClock;
use crate::environment::HostEnvironment;
use crate::error::SandboxSetupError;
use crate::own_programs::configured_writable_folders;
use crate::places::Places;

/// The age in days after which a private `/tmp` is removed if it was not removed at the end of its
/// run.
const MAX_TMP_AGE_DAYS: u32 = 2;

/// The limitation reported if not all files could be found that a rule denies to read.
const UNSEARCHED_LIMITATION: &str = "the project has too many files to find all that a rule denies to read: commands that write are asked for";

/// Sets up the sandbox for commands that work in the folders `projects`. Mode `yolo` has no
/// sandbox.
pub async fn set_up_sandbox(
    places: &Places,
    config: &SandboxConfig,
    mode: PermissionMode,
    projects: Vec<PathBuf>,
) -> Result<Sandbox, SandboxSetupError> {
    if mode == PermissionMode::Yolo {
        let mut writable = projects;
        writable.extend(configured_writable_folders(&places.environment, config));
        return Ok(Sandbox::disabled("there is none in permission mode `yolo`")
            .with_writable_folders(writable));
    }
    let mut folders = projects.clone();
    folders.extend(configured_writable_folders(&places.environment, config));
    let private = create_run_folder(places)?;
    let tmp = private.path().join("tmp");
    haft_files::create_new_folder(&tmp)?;
    let (network, proxy) = set_up_network(&config.network, private.path().join("proxy"))?;
    let policy = SandboxPolicy {
        network,
        ..build_policy(places, config, projects, tmp)?
    };
    // Covers left in projects by a killed process of an earlier version. Those that cannot be removed
    // now are left to the next start.
    let _ = haft_sandbox::remove_stale_covers(&policy.notes);
    cleanup::remove_old_entries(
        &places.git_folder(),
        WallClock.now().into(),
        MAX_TMP_AGE_DAYS,
    );
    let supervisor = places.environment.supervisor();
    let sandbox = Sandbox::set_up(&supervisor, policy, config.mode)
        .await
        .with_writable_folders(folders)
        .with_resource(Arc::new(private));
    let sandbox = match proxy {
        Some(proxy) => sandbox.with_proxy(proxy),
        None => sandbox,
    };
    Ok(if config.lacks_hidden {
        sandbox.with_limitation(UNSEARCHED_LIMITATION)
    } else {
        sandbox
    })
}

/// Sets up the sandbox in which external tools run to print their help. In this sandbox, only a
/// private `/tmp` is writable, and there is no network. The folders in `seen` are readable even if
/// they are otherwise hidden.
pub(crate) async fn set_up_help_sandbox(
    places: &Places,
    config: &SandboxConfig,
    seen: impl IntoIterator<Item = PathBuf>,
) -> Result<Sandbox, SandboxSetupError> {
    let private = create_run_folder(places)?;
    let tmp = private.path().join("tmp");
    haft_files::create_new_folder(&tmp)?;
    let mut policy = SandboxPolicy {
        writable: Vec::new(),
        ..build_policy(places, config, Vec::new(), tmp)?
    };
    policy.readable.extend(seen);
    let supervisor = places.environment.supervisor();
    Ok(Sandbox::set_up(&supervisor, policy, config.mode)
        .await
        .with_resource(Arc::new(private)))
}

/// Returns the strength with which the sandbox confines commands. The permission mode `auto`
/// depends on it.
pub fn assess_confinement(sandbox: &Sandbox) -> Confinement {
    match sandbox.status().layer {
        SandboxLayer::Namespace if sandbox.is_limited() => Confinement::Folders,
        SandboxLayer::Namespace => Confinement::Sandbox,
        SandboxLayer::Landlock => Confinement::Folders,
        SandboxLayer::None => Confinement::None,
    }
}

/// Creates a folder for one run, which contains the private `/tmp` of the run's commands and the
/// socket of the run's proxy.
fn create_run_folder(places: &Places) -> Result<RunFolder, SandboxSetupError> {
    let folder = places.private_tmp_folder();
    cleanup::remove_old_entries(&folder, WallClock.now().into(), MAX_TMP_AGE_DAYS);
    let folder = haft_files::create_temporary_folder(&folder, "run-")?;
    let lock = cleanup::mark_in_use(folder.path())?;
    Ok(RunFolder {
        folder,
        _lock: lock,
    })
}

/// The folder of one run. The lock keeps other processes from removing it, however long the run
/// lasts.
struct RunFolder {
    folder: TempDir,
    _lock: LockFile,
}

impl RunFolder {
    fn path(&self) -> &Path {
        self.folder.path()
    }
}

fn build_policy(
    places: &Places,
    config: &SandboxConfig,
    projects: Vec<PathBuf>,
    tmp: PathBuf,
) -> Result<SandboxPolicy, SandboxSetupError> {
    let home = places
        .environment
        .absolute_home()
        .map(|home| home.canonicalize().unwrap_or(home));
    // Links in haft's folders may lead into the project. Commands must not change the files that
    // haft loads through them, but still need to read folders. A link to a folder that contains the
    // project must not make the project read-only.
    let (linked_folders, linked_files): (Vec<_>, Vec<_>) = places
        .linked_paths()
        .into_iter()
        .partition(|path| path.is_dir());
    // A file of haft may be disabled by a link to `/dev/null`, which commands need.
    let linked_files = linked_files.into_iter().filter(|path| path.is_file());
    let linked_folders = linked_folders
        .into_iter()
        .filter(|folder| !projects.iter().any(|project| project.starts_with(folder)));
    let mut hidden = haft_sandbox::secret_paths(home.as_deref());
    hidden.extend(places.own_folders());
    hidden.extend(linked_files);
    let settings = projects
        .iter()
        .filter(|project| places.is_among_settings(project));
    hidden.extend(settings.cloned());
    hidden.extend(resolve_paths(&config.hidden, "hidden", home.as_deref())?);
    let writable = resolve_paths(&config.writable, "writable", home.as_deref())?;
    let writable = writable.iter().map(|path| {
        path.canonicalize()
            .map_err(|error| SandboxSetupError::Missing {
                path: path.clone(),
                error,
            })
    });
    // Files that the prompt mentions, or programs that it tells the model to run. The folder of a
    // conversation's outputs is added when the conversation is opened.
    let mut readable: Vec<_> = ["skills", "tools", "repos"]
        .map(|name| places.config.join(name))
        .into();
    readable.extend(paths_to_expose_below_tmp(
        &places.environment,
        home.as_deref(),
    ));
    readable.extend(resolve_paths(
        &config.readable,
        "readable",
        home.as_deref(),
    )?);
    let trusted = TrustList::at_path(places.trust_file());
    let mut protected: Vec<PathBuf> = projects
        .iter()
        .filter(|root| {
            trusted
                .trust_state(root)
                .is_ok_and(|state| state.is_trusted())
        })
        .flat_map(|root| footprint::list_files_named_by_project(root))
        .collect();
    protected.extend(linked_folders);
    // haft starts its program again by this path.
    let program = places.environment.helper_program().path();
    protected.extend(program.canonicalize().ok());
    Ok(SandboxPolicy {
        projects,
        protected,
        repositories: Vec::new(),
        writable: writable.collect::<Result<_, _>>()?,
        hidden,
        readable,
        tmp,
        notes: places.cover_notes_folder(),
        network: Network::None,
        home,
    })
}

/// Returns the folders below `/tmp` that commands need for programs and settings: those of `PATH`,
/// and the user's home. The private `/tmp` would hide these folders.
fn paths_to_expose_below_tmp(environment: &HostEnvironment, home: Option<&Path>) -> Vec<PathBuf> {
    let search = environment
        .raw_variable("PATH")
        .map(std::env::split_paths)
        .into_iter()
        .flatten();
    let real = search.flat_map(|folder| folder.canonicalize().into_iter().chain([folder]));
    let programs = real.filter_map(|folder| haft_sandbox::private_folder_entry(&folder));
    let home = home
        .filter(|home| haft_sandbox::private_folder_entry(home).is_some())
        .map(Path::to_owned);
    programs
        .chain(home)
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect()
}

fn resolve_paths(
    given: &[PathBuf],
    key: &'static str,
    home: Option<&Path>,
) -> Result<Vec<PathBuf>, SandboxSetupError> {
    let one = |path: &PathBuf| {
        haft_sandbox::resolve_configured_path(path, home).ok_or_else(|| {
            SandboxSetupError::Relative {
                key,
                path: path.clone(),
            }
        })
    };
    given.iter().map(one).collect()
}

/// Sets up the configured network and the proxy through which the network is reached. Must be
/// called within a runtime.
fn set_up_network(
    hosts: &[String],
    socket: PathBuf,
) -> Result<(Network, Option<Proxy>), SandboxSetupError> {
    match hosts {
        [] => Ok((Network::None, None)),
        [all] if all == "*" => Ok((Network::All, None)),
        hosts => {
            let hosts = Hosts::parse(hosts).map_err(SandboxSetupError::Hosts)?;
            let proxy = Proxy::start(socket.clone(), hosts)?;
            Ok((Network::Through(socket), Some(proxy)))
        }
    }
}
