//! A home, a project and a scripted model for one test, and a way to run `haft` in them.

use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

use haft_testkit::{Script, ScriptedServer};
use haft_types::Api;
use serde_json::Value;
use tempfile::TempDir;

/// The environment variable that names a copy of the binary under test, for users who cannot enter
/// the build folder.
pub(crate) const HAFT_BINARY: &str = "HAFT_TEST_BINARY";

/// Returns the path of the binary under test.
pub(crate) fn haft() -> &'static Path {
    static BINARY: LazyLock<PathBuf> = LazyLock::new(|| {
        std::env::var_os(HAFT_BINARY)
            .unwrap_or_else(|| env!("CARGO_BIN_EXE_haft").into())
            .into()
    });
    &BINARY
}

/// The name of the model. It makes the strict server require Gemini 3's thought signatures.
pub(crate) const MODEL: &str = "gemini-3-scripted";

/// The user id of `nobody`.
pub(crate) const NOBODY: u32 = 65534;

/// True if strace can trace system calls here.
pub(crate) fn has_strace() -> bool {
    let there = Command::new("strace")
        .args(["-o", "/dev/null", "true"])
        .stderr(Stdio::null())
        .status();
    there.is_ok_and(|status| status.success())
}

/// Changes the owner of a folder and everything in it to nobody.
fn give_to_nobody(path: &Path) {
    chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    for entry in std::fs::read_dir(path).into_iter().flatten() {
        give_to_nobody(&entry.unwrap().path());
    }
}

pub(crate) struct Rig {
    pub(crate) server: ScriptedServer,
    home: TempDir,
    project: TempDir,
    /// Environment variables of every run.
    settings: Vec<(&'static str, &'static str)>,
}

/// Settings of earlier releases: the positions of reminders, and compression at the end of a round.
pub(crate) const CLASSIC: [(&str, &str); 2] = [
    ("HAFT_CONTEXT__REMINDERS", "after-tool-result:3"),
    ("HAFT_CONTEXT__COMPRESS", "round-end"),
];

/// Accepts an archive however little it frees.
pub(crate) const SMALL_ARCHIVES: (&str, &str) = ("HAFT_CONTEXT__COMPACT_FREES", "0.000001");

impl Rig {
    pub(crate) fn new(api: Api, script: Script) -> Self {
        let rig = Self::untrusted(api, script);
        rig.trust();
        rig
    }

    /// Like [`Self::new`], but the project is not trusted.
    pub(crate) fn untrusted(api: Api, script: Script) -> Self {
        let server = ScriptedServer::builder(script).start_in_thread().unwrap();
        let rig = Self {
            server,
            home: tempfile::tempdir().unwrap(),
            project: tempfile::tempdir().unwrap(),
            settings: Vec::new(),
        };
        rig.configure(&rig.configuration(api));
        rig
    }

    /// Adds environment variables to every run.
    pub(crate) fn with(
        mut self,
        settings: impl IntoIterator<Item = (&'static str, &'static str)>,
    ) -> Self {
        self.settings.extend(settings);
        self
    }

    /// Trusts the project, as a user would before the first run.
    fn trust(&self) {
        assert!(self.command(&["trust"]).output().unwrap().status.success());
    }

    /// Replaces the model, and keeps home and project.
    pub(crate) fn with_script(self, script: Script, api: Api) -> Self {
        let server = ScriptedServer::builder(script).start_in_thread().unwrap();
        let rig = Self {
            server,
            home: self.home,
            project: self.project,
            settings: self.settings,
        };
        rig.configure(&rig.configuration(api));
        rig
    }

    fn configuration(&self, api: Api) -> String {
        let base_url = self.server.base_url(api);
        format!(
            "model = \"mock/{MODEL}\"\n\
             [providers.mock]\napi = \"{api}\"\nbase_url = \"{base_url}\"\n\
             [models.\"mock/{MODEL}\"]\ncontext_window = 200000\nmax_output_tokens = 8192\n\
             price = {{ input = 3.0, cached_input = 0.3, cache_write = 3.75, output = 15.0 }}\n\
             [retry]\nbase_delay_ms = 20\n"
        )
    }

    pub(crate) fn configure(&self, text: &str) {
        std::fs::write(self.home.path().join("config.toml"), text).unwrap();
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.project.path().canonicalize().unwrap()
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.project.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(haft());
        command
            .args(arguments)
            .current_dir(self.project.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home.path())
            .env("HAFT_HOME", self.home.path())
            .envs(self.settings.iter().copied())
            .stdin(Stdio::null());
        command
    }

    /// Like [`Self::command`], as a user who is not root and owns home and project. The folder
    /// holds a copy of the binary, because the build may lie where only root can enter.
    pub(crate) fn command_as_nobody(&self, arguments: &[&str]) -> (TempDir, Command) {
        let shared = tempfile::tempdir().unwrap();
        std::fs::set_permissions(shared.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let copy = shared.path().join("haft");
        std::fs::copy(haft(), &copy).unwrap();
        give_to_nobody(self.home.path());
        give_to_nobody(self.project.path());
        let told = self.command(&[]);
        let mut command = Command::new(copy);
        command
            .args(arguments)
            .current_dir(self.project.path())
            .env_clear()
            .envs(
                told.get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .stdin(Stdio::null())
            .uid(NOBODY)
            .gid(NOBODY);
        (shared, command)
    }

    /// Like [`Self::command`], as an ordinary user who can make no user namespace.
    pub(crate) fn command_without_user_namespaces(
        &self,
        arguments: &[&str],
    ) -> (Option<TempDir>, Command) {
        let is_root = rustix::process::getuid().is_root();
        let (shared, plain) = if is_root {
            let (shared, command) = self.command_as_nobody(arguments);
            (Some(shared), command)
        } else {
            (None, self.command(arguments))
        };
        let mut command = Command::new("unshare");
        command
            .args(["--user", "--map-current-user", "--keep-caps", "sh", "-ec"])
            .arg(
                "echo 0 > /proc/sys/user/max_user_namespaces; \
                 exec setpriv --ambient-caps=-all --inh-caps=-all \"$0\" \"$@\"",
            )
            .arg(plain.get_program())
            .args(plain.get_args())
            .current_dir(self.project.path())
            .env_clear()
            .envs(
                plain
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .stdin(Stdio::null());
        if is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        (shared, command)
    }

    /// Like [`Self::command`], traced by strace with these options.
    pub(crate) fn command_under_strace(&self, options: &[&str], arguments: &[&str]) -> Command {
        let plain = self.command(arguments);
        let mut command = Command::new("strace");
        command
            .args(["-f", "-qq"])
            .args(options)
            .arg(haft())
            .args(arguments);
        command.current_dir(self.project.path()).env_clear();
        command.envs(
            plain
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        command.stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        Ran(self.command(arguments).output().unwrap())
    }

    /// Runs `haft run` with JSON events and all permissions.
    pub(crate) fn task(&self, arguments: &[&str]) -> Ran {
        let mut all = vec![
            "run",
            "--output-format",
            "stream-json",
            "--permission-mode",
            "yolo",
        ];
        all.extend(arguments);
        self.run(&all)
    }

    /// Exports the newest conversation.
    pub(crate) fn export(&self) -> Value {
        let listed = self.run(&["conversations", "list", "--json"]).json();
        let id = listed[0]["id"].as_str().expect("a conversation").to_owned();
        self.run(&["conversations", "export", &id]).json()
    }
}

/// The output of a run.
pub(crate) struct Ran(pub(crate) Output);

impl Ran {
    pub(crate) fn code(&self) -> i32 {
        self.0.status.code().unwrap_or(-1)
    }

    pub(crate) fn stdout(&self) -> String {
        String::from_utf8(self.0.stdout.clone()).unwrap()
    }

    pub(crate) fn stderr(&self) -> String {
        String::from_utf8(self.0.stderr.clone()).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout())
            .unwrap_or_else(|error| panic!("{error}: {}{}", self.stdout(), self.stderr()))
    }

    pub(crate) fn events(&self) -> Vec<Value> {
        let parse = |line: &str| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
        };
        self.stdout().lines().map(parse).collect()
    }

    /// Returns the last event, which must be the result.
    pub(crate) fn result(&self) -> Value {
        let last = self
            .events()
            .pop()
            .unwrap_or_else(|| panic!("no events; stderr: {}", self.stderr()));
        assert_eq!(last["type"], "result", "{last}");
        last
    }
}
