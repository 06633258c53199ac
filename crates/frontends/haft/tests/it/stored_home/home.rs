//! The fixed place of the stored home during a test, the archive it comes from, and a way to run a
//! binary in it.

use std::fs::{self, DirBuilder, File, FileTimes, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use haft_testkit::{Script, ScriptedServer};
use haft_types::Api;

use crate::rig::{Ran, haft};

/// The path of the stored home. Conversations, trust and file versions are bound to the path of
/// their project, and hashes cover texts that hold it, so a stored home can be opened only where it
/// was made.
const ROOT: &str = "/tmp/haft-stored-home-0.1";
const LOCK: &str = "/tmp/haft-stored-home-0.1.lock";

/// The models of the home: one for each API, one for each protocol of calls in text.
pub(super) const ANTHROPIC: &str = "messages/claude";
pub(super) const CHAT: &str = "chat/gpt";
pub(super) const RESPONSES: &str = "responses/gpt";
pub(super) const GEMINI: &str = "contents/gemini-3-scripted";
pub(super) const XML: &str = "xml/gpt";
pub(super) const REACT: &str = "react/claude";

const MODELS: [(&str, Api, &str); 6] = [
    (ANTHROPIC, Api::Anthropic, "native"),
    (CHAT, Api::OpenaiChat, "native"),
    (RESPONSES, Api::OpenaiResponses, "native"),
    (GEMINI, Api::Gemini, "native"),
    (XML, Api::OpenaiChat, "xml"),
    (REACT, Api::Anthropic, "react"),
];

/// A home and a project at the path where they were made. No other process has that path while this
/// value lives.
pub(super) struct StoredHome {
    root: PathBuf,
    binary: PathBuf,
    _lock: File,
}

impl StoredHome {
    /// Unpacks the fixture for the binary under test. Returns `None`, and prints why, if the path
    /// is not available.
    pub(super) fn from_fixture() -> Option<Self> {
        Self::from_fixture_for(haft().to_owned())
    }

    /// Like [`Self::from_fixture`], for another binary.
    pub(super) fn from_fixture_for(binary: PathBuf) -> Option<Self> {
        let home = Self::claim_empty(binary)?;
        unpack(&super::fixture_path(super::HOME), Path::new(ROOT)).unwrap();
        Some(home)
    }

    /// Claims the path with nothing in it, for this binary.
    #[expect(
        clippy::print_stdout,
        reason = "whoever runs the tests is told what was skipped"
    )]
    pub(super) fn claim_empty(binary: PathBuf) -> Option<Self> {
        match claim_root() {
            Ok(lock) => Some(Self {
                root: ROOT.into(),
                binary,
                _lock: lock,
            }),
            Err(why) => {
                println!(
                    "skipped: {ROOT} cannot be used, and a stored home can be opened nowhere else: {why}"
                );
                None
            }
        }
    }

    pub(super) fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    pub(super) fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    /// Writes a file of the project.
    pub(super) fn write(&self, name: &str, content: &str) {
        let path = self.project().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(super) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.project().join(name)).unwrap()
    }

    /// Starts a model with this script, and writes a configuration that names it.
    pub(super) fn serve_script(&self, script: Script) -> ScriptedServer {
        let server = ScriptedServer::builder(script).start_in_thread().unwrap();
        let models: String = MODELS
            .into_iter()
            .map(|(name, api, protocol)| {
                let (provider, _) = name.split_once('/').unwrap();
                let base_url = server.base_url(api);
                // The cache never expires, or the next request would depend on the time of the
                // test. Anthropic offers no such lifetime.
                let cache = if api == Api::Anthropic { "" } else { "cache = { ttl = \"36500d\" }\n" };
                format!(
                    "[providers.{provider}]\napi = \"{api}\"\nbase_url = \"{base_url}\"\n[models.\"{name}\"]\n\
                     context_window = 200000\nmax_output_tokens = 8192\ntool_protocol = \"{protocol}\"\n\
                     price = {{ input = 3.0, cached_input = 0.3, cache_write = 3.75, output = 15.0 }}\n\
                     {cache}"
                )
            })
            .collect();
        let project = self.project().display().to_string();
        let text = format!(
            "model = \"{ANTHROPIC}\"\n[retry]\nbase_delay_ms = 20\n[store]\nbackups = 0\n{models}\
             [mcp_servers.shell]\ncommand = \"/bin/sh\"\nargs = [\"{project}/server.sh\"]\ncwd = \"{project}\"\n\
             [rag.zoo]\ndescription = \"Animals.\"\nfolders = [\"{project}/docs\"]\n"
        );
        fs::write(self.home().join("config.toml"), text).unwrap();
        server
    }

    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .args(arguments)
            .current_dir(self.project())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home())
            .env("HAFT_HOME", self.home())
            .env("USER", "haft")
            .env("SHELL", "/bin/sh")
            .stdin(Stdio::null());
        command
    }

    pub(super) fn run(&self, arguments: &[&str]) -> Ran {
        Ran(self.command(arguments).output().unwrap())
    }

    /// Runs a command that must succeed.
    pub(super) fn run_successfully(&self, arguments: &[&str]) -> Ran {
        let ran = self.run(arguments);
        assert_eq!(
            ran.code(),
            0,
            "{arguments:?}: {}{}",
            ran.stdout(),
            ran.stderr()
        );
        ran
    }

    /// Runs `haft run` in a conversation, with events and all permissions.
    pub(super) fn task(&self, conversation: &str, arguments: &[&str]) -> Ran {
        self.run_successfully(&[&TASK[..], &["-r", conversation], arguments].concat())
    }

    /// Starts `haft run` in a conversation, waits for a sign, and kills it.
    pub(super) fn kill_when(
        &self,
        conversation: &str,
        arguments: &[&str],
        sign: impl Fn() -> bool,
    ) {
        let mut command = self.command(&[&TASK[..], &["-r", conversation], arguments].concat());
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        wait_for_sign(&mut child, sign);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

const TASK: [&str; 5] = [
    "run",
    "--output-format",
    "stream-json",
    "--permission-mode",
    "yolo",
];

impl Drop for StoredHome {
    fn drop(&mut self) {
        // The next test clears the path, too.
        drop(fs::remove_dir_all(&self.root));
    }
}

fn wait_for_sign(child: &mut Child, sign: impl Fn() -> bool) {
    let begun = Instant::now();
    while !sign() {
        assert!(
            begun.elapsed() < Duration::from_mins(1),
            "the sign never came"
        );
        assert!(
            child.try_wait().unwrap().is_none(),
            "the run ended before the sign came"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Claims the path for this test, waits for other tests that use it, and clears it.
fn claim_root() -> io::Result<File> {
    let temporary = Path::new(ROOT).parent().unwrap();
    if temporary.canonicalize()? != temporary {
        return Err(io::Error::other(format!(
            "{} is a link",
            temporary.display()
        )));
    }
    let create = || {
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o644)
            .open(LOCK)
    };
    // The lock file of another user can be locked without write access.
    let lock = File::open(LOCK).or_else(|_| create())?;
    lock.lock()?;
    match fs::remove_dir_all(ROOT) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    for folder in ["", "home", "project"] {
        DirBuilder::new()
            .mode(0o700)
            .create(Path::new(ROOT).join(folder))?;
    }
    Ok(lock)
}

/// Packs home and project in the format of `tar`, so that people can inspect it.
pub(super) fn pack(archive: &Path) -> io::Result<()> {
    let mut packed = GzEncoder::new(File::create(archive)?, Compression::best());
    for name in ["home", "project"] {
        pack_entry(&mut packed, name)?;
    }
    packed.write_all(&[0; 1024])?;
    packed.finish()?.sync_all()
}

const BLOCK: usize = 512;
const FOLDER: u8 = b'5';
const PLAIN: u8 = b'0';

fn pack_entry(to: &mut impl Write, name: &str) -> io::Result<()> {
    let path = Path::new(ROOT).join(name);
    let metadata = path.symlink_metadata()?;
    let content = if metadata.is_dir() {
        Vec::new()
    } else {
        fs::read(&path)?
    };
    let mut header = [0; BLOCK];
    let mut put =
        |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
    assert!(
        name.len() < 100 && !metadata.is_symlink(),
        "{name} does not fit"
    );
    put(0, name);
    put(100, &format!("{:07o}", metadata.mode() & 0o7777));
    put(108, "0000000");
    put(116, "0000000");
    put(124, &format!("{:011o}", content.len()));
    put(136, &format!("{:011o}", metadata.mtime()));
    put(148, "        ");
    put(156, if metadata.is_dir() { "5" } else { "0" });
    put(257, "ustar\u{0}00");
    let sum: u32 = header.iter().copied().map(u32::from).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    to.write_all(&header)?;
    to.write_all(&content)?;
    to.write_all(&vec![
        0;
        content.len().next_multiple_of(BLOCK) - content.len()
    ])?;
    if metadata.is_dir() {
        let mut names: Vec<_> = fs::read_dir(&path)?.collect::<Result<_, _>>()?;
        names.sort_by_key(fs::DirEntry::file_name);
        for entry in names {
            pack_entry(
                to,
                &format!("{name}/{}", entry.file_name().to_str().unwrap()),
            )?;
        }
    }
    Ok(())
}

/// Unpacks an archive made by [`pack`], modes and times included, without any other program.
fn unpack(archive: &Path, to: &Path) -> io::Result<()> {
    let mut bytes = Vec::new();
    GzDecoder::new(File::open(archive)?).read_to_end(&mut bytes)?;
    let mut rest = bytes.as_slice();
    while let Some((header, behind)) = rest
        .split_at_checked(BLOCK)
        .filter(|(header, _)| header[0] != 0)
    {
        let text = |from: usize, most: usize| {
            let field = header[from..from + most]
                .split(|byte| *byte == 0)
                .next()
                .unwrap_or_default();
            std::str::from_utf8(field).unwrap()
        };
        let number = |from, most| u64::from_str_radix(text(from, most), 8).unwrap();
        let path = to.join(text(0, 100));
        let size = usize::try_from(number(124, 12)).unwrap();
        match header[156] {
            FOLDER => fs::create_dir_all(&path)?,
            PLAIN => {
                fs::write(&path, &behind[..size])?;
                let time = SystemTime::UNIX_EPOCH + Duration::from_secs(number(136, 12));
                File::options()
                    .write(true)
                    .open(&path)?
                    .set_times(FileTimes::new().set_modified(time))?;
            }
            kind => panic!("{} is of kind {kind}", path.display()),
        }
        let mode = u32::try_from(number(100, 8)).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode))?;
        rest = &behind[size.next_multiple_of(BLOCK)..];
    }
    Ok(())
}
