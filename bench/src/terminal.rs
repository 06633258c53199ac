//! A terminal that runs haft, with access to its keyboard and screen.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// The timeout for any wait, after which the benchmark fails.
const WAIT_TIMEOUT: Duration = Duration::from_mins(1);

/// The output of haft so far.
struct Output {
    parser: vt100::Parser,
    /// The text of the cursor's row that is awaited, and the channel that reports its time.
    awaited: Option<(String, Sender<Instant>)>,
    /// The complete output with the time of each piece, if it is recorded.
    record: Option<Vec<(Instant, Vec<u8>)>>,
    bytes: usize,
}

/// A terminal that runs haft. Dropping it ends haft.
pub(crate) struct Terminal {
    child: Child,
    master: File,
    seen: Arc<Mutex<Output>>,
}

/// Controls whether the complete output is recorded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recording {
    Off,
    On,
}

impl Terminal {
    /// Starts the command in a terminal with this many columns and rows.
    pub(crate) fn start(
        haft: &Command,
        (columns, rows): (u16, u16),
        recording: Recording,
    ) -> anyhow::Result<Self> {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let name = ptsname(&master, Vec::new())?;
        let name = name
            .to_str()
            .context("the terminal has no name")?
            .to_owned();
        let slave = || File::options().read(true).write(true).open(&name);
        tcsetwinsize(
            &master,
            Winsize {
                ws_row: rows,
                ws_col: columns,
                ws_xpixel: 0,
                ws_ypixel: 0,
            },
        )?;
        // `setsid` makes haft the leader of a session with this terminal.
        let mut command = Command::new("setsid");
        command
            .arg("--ctty")
            .arg(haft.get_program())
            .args(haft.get_args());
        command.envs(
            haft.get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        command.env("TERM", "xterm-256color").env_remove("NO_COLOR");
        command.current_dir(haft.get_current_dir().unwrap_or(Path::new(".")));
        command
            .stdin(Stdio::from(slave()?))
            .stdout(Stdio::from(slave()?))
            .stderr(Stdio::from(slave()?));
        let child = command.spawn().context("cannot start haft")?;
        let master = File::from(master);
        let record = (recording == Recording::On).then(Vec::new);
        let seen = Output {
            parser: vt100::Parser::new(rows, columns, 1_000),
            awaited: None,
            record,
            bytes: 0,
        };
        let seen = Arc::new(Mutex::new(seen));
        let mut reader = master.try_clone()?;
        let shared = Arc::clone(&seen);
        std::thread::spawn(move || {
            let mut bytes = [0; 16_384];
            while let Ok(count) = reader.read(&mut bytes)
                && count > 0
            {
                record_output(
                    &mut shared.lock().unwrap_or_else(PoisonError::into_inner),
                    &bytes[..count],
                );
            }
        });
        Ok(Self {
            child,
            master,
            seen,
        })
    }

    fn lock_output(&self) -> MutexGuard<'_, Output> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the current screen.
    pub(crate) fn screen(&self) -> vt100::Screen {
        self.lock_output().parser.screen().clone()
    }

    /// Returns the number of bytes written so far.
    pub(crate) fn written_bytes(&self) -> usize {
        self.lock_output().bytes
    }

    /// Returns the recorded output, each piece with the time since the first.
    pub(crate) fn recorded_output(&self) -> Vec<(Duration, Vec<u8>)> {
        let seen = self.lock_output();
        let record = seen.record.as_deref().unwrap_or_default();
        let first = record.first().map(|piece| piece.0);
        record
            .iter()
            .map(|(at, bytes)| {
                (
                    first.map_or(Duration::ZERO, |first| *at - first),
                    bytes.clone(),
                )
            })
            .collect()
    }

    /// Sends keys to haft.
    pub(crate) fn press(&mut self, keys: &str) -> anyhow::Result<()> {
        Ok(self.master.write_all(keys.as_bytes())?)
    }

    /// Waits until the screen contains `text`.
    pub(crate) fn wait_for_text(&self, text: &str) -> anyhow::Result<()> {
        self.wait_for_screen(text, |screen| screen.contents().contains(text))
    }

    /// Waits until the screen satisfies `fits`; `what` describes the screen in an error.
    pub(crate) fn wait_for_screen(
        &self,
        what: &str,
        fits: impl Fn(&vt100::Screen) -> bool,
    ) -> anyhow::Result<()> {
        let since = Instant::now();
        while !fits(self.lock_output().parser.screen()) {
            if since.elapsed() > WAIT_TIMEOUT {
                bail!(
                    "never saw {what}:\n{}",
                    self.lock_output().parser.screen().contents()
                );
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Returns the time from a key press until the cursor's row equals `row`.
    pub(crate) fn measure_echo(&mut self, key: &str, row: &str) -> anyhow::Result<Duration> {
        let (send, receive): (_, Receiver<Instant>) = channel();
        self.lock_output().awaited = Some((row.to_owned(), send));
        let pressed = Instant::now();
        self.press(key)?;
        let seen = receive
            .recv_timeout(WAIT_TIMEOUT)
            .with_context(|| format!("`{row}` was never drawn"))?;
        Ok(seen - pressed)
    }

    /// Returns the processor time of haft in seconds.
    pub(crate) fn processor_seconds(&self) -> anyhow::Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The process name may contain spaces and parentheses.
        let fields = stat
            .rsplit(')')
            .next()
            .context("an odd stat")?
            .split_whitespace()
            .collect::<Vec<_>>();
        let ticks = |at: usize| {
            fields
                .get(at)
                .and_then(|field| field.parse::<u64>().ok())
                .context("an odd stat")
        };
        // The kernel reports hundredths of a second in this file on every machine.
        Ok((ticks(11)? + ticks(12)?) as f64 / 100.0)
    }

    /// Returns haft's memory in megabytes: in total, and without pages of the binary.
    pub(crate) fn memory_mb(&self) -> anyhow::Result<(f64, f64)> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let kb = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok())
                .context("an odd status")
        };
        Ok((kb("VmRSS:")? / 1024.0, kb("RssAnon:")? / 1024.0))
    }

    /// Quits haft and waits for its end.
    pub(crate) fn quit(mut self) -> anyhow::Result<()> {
        self.press("\u{4}")?;
        let status = self.child.wait()?;
        anyhow::ensure!(status.success(), "haft ended with {status}");
        Ok(())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // haft has already ended if the benchmark succeeded.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn record_output(seen: &mut Output, bytes: &[u8]) {
    seen.parser.process(bytes);
    seen.bytes += bytes.len();
    if let Some(record) = &mut seen.record {
        record.push((Instant::now(), bytes.to_vec()));
    }
    let Some((row, _)) = &seen.awaited else {
        return;
    };
    let screen = seen.parser.screen();
    let at = screen.cursor_position().0;
    if screen
        .contents_between(at, 0, at, screen.size().1)
        .trim_end()
        == row
        && let Some((_, tell)) = seen.awaited.take()
    {
        // The receiver may have timed out.
        tell.send(Instant::now()).ok();
    }
}
