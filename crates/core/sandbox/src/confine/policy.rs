//! Policies: the files and the network that a confined command may use.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::secret_places::filter_existing;
use super::{ConfinementMethod, ConfinementSpec};
use crate::PRIVATE_FOLDERS;

/// The files and the network that a confined command may use. All paths are absolute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxPolicy {
    /// Project folders: writable, except for the protected files in them.
    pub projects: Vec<PathBuf>,
    /// Further writable folders, without protected files.
    pub writable: Vec<PathBuf>,
    /// Additional read-only files in the projects and writable folders. Paths that do not exist are
    /// ignored.
    pub protected: Vec<PathBuf>,
    /// Repositories (`.git`) in the projects that a commit may write to, except for the entries
    /// that decide which programs git runs.
    pub repositories: Vec<PathBuf>,
    /// Folders and files that cannot be read.
    pub hidden: Vec<PathBuf>,
    /// Folders and files that can be read although they are in a hidden folder or below the private
    /// `/tmp`. Paths that do not exist are ignored.
    pub readable: Vec<PathBuf>,
    /// The folder mounted as the command's `/tmp`: private, and created before the command starts.
    pub tmp: PathBuf,
    /// A private folder in which the helper remembers the folders that it searched.
    pub notes: PathBuf,
    /// The user's home folder, where additional files are protected.
    pub home: Option<PathBuf>,
    pub network: Network,
}

/// The network that a confined command can reach.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Network {
    /// No network except the command's own loopback.
    #[default]
    None,
    /// Only the hosts that a filtering proxy allows. The proxy listens at this socket.
    Through(PathBuf),
    /// The whole network.
    All,
}

/// The port of the proxy inside the command's network namespace, which is new, so every port is
/// free.
pub(crate) const PROXY_PORT: u16 = 3128;

impl SandboxPolicy {
    /// Returns the hidden paths that exist, with links resolved.
    pub(crate) fn existing_hidden_paths(&self) -> impl Iterator<Item = PathBuf> {
        // Resolving a path follows it link by link, and most of these paths don't exist.
        filter_existing(&self.hidden)
            .into_iter()
            .filter_map(|path| path.canonicalize().ok())
    }

    /// Returns the folders, such as `/tmp`, that each command sees only as a private version.
    /// Leaves out a folder that is a link, or that the user made the project or a writable folder.
    pub(crate) fn private_folders(&self) -> impl Iterator<Item = &'static str> {
        let is_folder = |folder: &&str| {
            Path::new(folder)
                .symlink_metadata()
                .is_ok_and(|metadata| metadata.is_dir())
        };
        PRIVATE_FOLDERS
            .into_iter()
            .filter(is_folder)
            .filter(move |folder| {
                !self
                    .projects
                    .iter()
                    .chain(&self.writable)
                    .any(|named| named == Path::new(folder))
            })
    }

    /// Returns the number of components in the path of the innermost of `folders` that contains or
    /// equals `path`, or `None` if none does.
    pub(crate) fn deepest_component_count<'a>(
        path: &Path,
        folders: impl IntoIterator<Item = &'a Path>,
    ) -> Option<usize> {
        let above = folders
            .into_iter()
            .filter(|folder| path.starts_with(folder));
        above.map(|folder| folder.components().count()).max()
    }

    /// True if `path` is in a project or a writable folder, and not in a hidden or private folder
    /// inside that folder.
    pub(crate) fn is_writable(&self, path: &Path) -> bool {
        let open = Self::deepest_component_count(
            path,
            self.projects
                .iter()
                .chain(&self.writable)
                .map(PathBuf::as_path),
        );
        if open.is_none() {
            return false;
        }
        let hidden: Vec<_> = self.existing_hidden_paths().collect();
        let hidden = Self::deepest_component_count(path, hidden.iter().map(PathBuf::as_path));
        let private = Self::deepest_component_count(path, self.private_folders().map(Path::new));
        open > hidden.max(private)
    }

    /// Returns every path in the policy.
    fn all_paths(&self) -> impl Iterator<Item = &Path> {
        let lists = [
            &self.projects,
            &self.writable,
            &self.protected,
            &self.repositories,
            &self.hidden,
            &self.readable,
        ];
        let socket = match &self.network {
            Network::Through(socket) => Some(socket),
            Network::None | Network::All => None,
        };
        let single = [
            Some(&self.tmp),
            Some(&self.notes),
            self.home.as_ref(),
            socket,
        ];
        lists
            .into_iter()
            .flatten()
            .chain(single.into_iter().flatten())
            .map(PathBuf::as_path)
    }

    /// Returns true if all paths are absolute and can be encoded for the helper.
    pub(crate) fn is_valid(&self) -> bool {
        self.all_paths()
            .all(|path| path.is_absolute() && !path.as_os_str().as_bytes().contains(&0))
    }

    /// Encodes the policy as fields, to be decoded by [`SandboxPolicy::from_fields`].
    pub(crate) fn to_fields(&self) -> Vec<OsString> {
        let (network, socket) = match &self.network {
            Network::None => ("none", OsString::new()),
            Network::Through(socket) => ("through", socket.into()),
            Network::All => ("all", OsString::new()),
        };
        let home = self.home.as_ref().map(OsString::from).unwrap_or_default();
        let mut fields = vec![
            network.into(),
            socket,
            home,
            (&self.tmp).into(),
            (&self.notes).into(),
        ];
        for list in [
            &self.projects,
            &self.writable,
            &self.protected,
            &self.repositories,
            &self.hidden,
            &self.readable,
        ] {
            fields.push(list.len().to_string().into());
            fields.extend(list.iter().map(OsString::from));
        }
        fields
    }

    /// Decodes fields that [`SandboxPolicy::to_fields`] wrote.
    pub(crate) fn from_fields<'a>(fields: &mut impl Iterator<Item = &'a [u8]>) -> Option<Self> {
        let path = |field: &[u8]| PathBuf::from(OsString::from_vec(field.to_vec()));
        let kind = fields.next()?;
        let socket = path(fields.next()?);
        let network = match kind {
            b"none" => Network::None,
            b"through" => Network::Through(socket),
            b"all" => Network::All,
            _ => return None,
        };
        let home = Some(path(fields.next()?)).filter(|home| !home.as_os_str().is_empty());
        let tmp = path(fields.next()?);
        let notes = path(fields.next()?);
        let mut list = || {
            let count: usize = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
            let list: Vec<_> = fields.by_ref().take(count).map(path).collect();
            (list.len() == count).then_some(list)
        };
        let projects = list()?;
        let writable = list()?;
        let protected = list()?;
        let repositories = list()?;
        let hidden = list()?;
        let readable = list()?;
        Some(Self {
            projects,
            writable,
            protected,
            repositories,
            hidden,
            readable,
            tmp,
            notes,
            home,
            network,
        })
    }
}

/// Returns the environment of a confined command, derived from `given`, the environment that an
/// unconfined command would get.
pub(crate) fn confined_environment(
    confined: &ConfinementSpec,
    given: &[(String, String)],
) -> Vec<(OsString, OsString)> {
    let tmp = match confined.method {
        ConfinementMethod::Namespace => "/tmp".into(),
        ConfinementMethod::Landlock => confined.policy.tmp.clone().into_os_string(),
    };
    // The home folder is read-only, so caches go to a writable folder.
    let mut cache = tmp.clone();
    cache.push("/.cache");
    let mut set: Vec<(OsString, OsString)> =
        vec![("TMPDIR".into(), tmp), ("XDG_CACHE_HOME".into(), cache)];
    // The user's own proxy is reachable only if the whole network is.
    let keeps_proxy = match confined.policy.network {
        Network::All => true,
        Network::None => false,
        Network::Through(_) => {
            let address = format!("http://127.0.0.1:{PROXY_PORT}");
            set.extend(
                ["http_proxy", "https_proxy", "all_proxy"]
                    .into_iter()
                    .flat_map(|name| both_cases(name, &address)),
            );
            set.extend(both_cases("no_proxy", "localhost,127.0.0.1,::1"));
            false
        }
    };
    let kept = given.iter().filter(|(name, _)| {
        let is_proxy = name.to_ascii_lowercase().ends_with("_proxy");
        // Sockets in the runtime folder would lead out of the sandbox.
        name != "XDG_RUNTIME_DIR"
            && (keeps_proxy || !is_proxy)
            && set.iter().all(|(other, _)| other != name.as_str())
    });
    kept.map(|(name, value)| (name.into(), value.into()))
        .chain(set.iter().cloned())
        .collect()
}

/// Returns the variable with its name in lower and in upper case, because programs differ in which
/// of them they read.
fn both_cases(name: &str, value: &str) -> [(OsString, OsString); 2] {
    [
        (name.into(), value.into()),
        (name.to_ascii_uppercase().into(), value.into()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn confined(method: ConfinementMethod, network: Network) -> ConfinementSpec {
        let policy = SandboxPolicy {
            projects: vec!["/p".into()],
            writable: Vec::new(),
            protected: Vec::new(),
            repositories: Vec::new(),
            hidden: Vec::new(),
            readable: Vec::new(),
            tmp: "/private".into(),
            notes: "/notes".into(),
            home: None,
            network,
        };
        ConfinementSpec { method, policy }
    }

    fn environment_value(confined: &ConfinementSpec, name: &str) -> Option<OsString> {
        let given = [
            ("TMPDIR", "/t"),
            ("https_proxy", "http://user"),
            ("XDG_RUNTIME_DIR", "/run/user/1"),
            ("A", "1"),
        ];
        let given: Vec<_> = given
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        let all = confined_environment(confined, &given);
        let mut found = all.into_iter().filter(|(other, _)| other == name);
        let first = found.next().map(|(_, value)| value);
        assert!(found.next().is_none(), "`{name}` twice");
        first
    }

    #[test]
    fn environment_fits_the_sandbox() {
        let inside = confined(ConfinementMethod::Namespace, Network::None);
        assert_eq!(environment_value(&inside, "A"), Some("1".into()));
        assert_eq!(environment_value(&inside, "TMPDIR"), Some("/tmp".into()));
        assert_eq!(environment_value(&inside, "XDG_RUNTIME_DIR"), None);
        assert_eq!(environment_value(&inside, "https_proxy"), None);
        assert_eq!(
            environment_value(
                &confined(ConfinementMethod::Landlock, Network::None),
                "TMPDIR"
            ),
            Some("/private".into())
        );
        assert_eq!(
            environment_value(
                &confined(ConfinementMethod::Namespace, Network::All),
                "https_proxy"
            ),
            Some("http://user".into())
        );
        let through = confined(ConfinementMethod::Namespace, Network::Through("/s".into()));
        assert_eq!(
            environment_value(&through, "https_proxy"),
            Some("http://127.0.0.1:3128".into())
        );
        assert_eq!(
            environment_value(&through, "HTTPS_PROXY"),
            Some("http://127.0.0.1:3128".into())
        );
    }

    #[test]
    fn is_sound_rejects_relative_paths() {
        let mut relative = confined(ConfinementMethod::Namespace, Network::None).policy;
        assert!(relative.is_valid());
        relative.hidden.push("keys".into());
        assert!(!relative.is_valid());
        relative.hidden.clear();
        relative.network = Network::Through("socket".into());
        assert!(!relative.is_valid());
    }
}
