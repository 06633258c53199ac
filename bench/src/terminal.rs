//! A terminal with haft in it: keys go in, what is on the screen is looked at.

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

/// How long anything may take before a run is given up.
const PATIENCE: Duration = Duration::from_mins(1);

/// What is known of the screen.
struct Seen {
    parser: vt100::Parser,
    /// The row of the cursor as it is waited for.
    awaited: Option<(String, Sender<Instant>)>,
    /// Everything that was written, with the time it came.
    record: Option<Vec<(Instant, Vec<u8>)>>,
    bytes: usize,
}

/// A terminal with haft in it. Both end together.
pub(crate) struct Terminal {
    child: Child,
    master: File,
    seen: Arc<Mutex<Seen>>,
}

/// Whether everything that is written is kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recording {
    Off,
    On,
}

impl Terminal {
    /// Starts the command with a terminal of this many columns and rows.
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
        // It leads a session of its own, whose terminal this is.
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
        let seen = Seen {
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
                take(
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

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The screen as it is now.
    pub(crate) fn screen(&self) -> vt100::Screen {
        self.seen().parser.screen().clone()
    }

    /// How many bytes were written so far.
    pub(crate) fn bytes(&self) -> usize {
        self.seen().bytes
    }

    /// Everything that was written, each piece with the time since the first.
    pub(crate) fn record(&self) -> Vec<(Duration, Vec<u8>)> {
        let seen = self.seen();
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

    /// Presses keys.
    pub(crate) fn press(&mut self, keys: &str) -> anyhow::Result<()> {
        Ok(self.master.write_all(keys.as_bytes())?)
    }

    /// Waits until the screen says this.
    pub(crate) fn until(&self, text: &str) -> anyhow::Result<()> {
        self.until_screen(text, |screen| screen.contents().contains(text))
    }

    /// Waits until the screen is like that.
    pub(crate) fn until_screen(
        &self,
        what: &str,
        fits: impl Fn(&vt100::Screen) -> bool,
    ) -> anyhow::Result<()> {
        let since = Instant::now();
        while !fits(self.seen().parser.screen()) {
            if since.elapsed() > PATIENCE {
                bail!(
                    "never saw {what}:\n{}",
                    self.seen().parser.screen().contents()
                );
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// How long it takes from a key until the row of the cursor is this.
    pub(crate) fn echo(&mut self, key: &str, row: &str) -> anyhow::Result<Duration> {
        let (send, receive): (_, Receiver<Instant>) = channel();
        self.seen().awaited = Some((row.to_owned(), send));
        let pressed = Instant::now();
        self.press(key)?;
        let seen = receive
            .recv_timeout(PATIENCE)
            .with_context(|| format!("`{row}` was never drawn"))?;
        Ok(seen - pressed)
    }

    /// Seconds of processor time haft has used.
    pub(crate) fn used(&self) -> anyhow::Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The name of the process may hold blanks.
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
        // The kernel counts in hundredths for everyone who reads this file.
        Ok((ticks(11)? + ticks(12)?) as f64 / 100.0)
    }

    /// Memory of haft in megabytes: all of it, and what is not the binary itself.
    pub(crate) fn memory(&self) -> anyhow::Result<(f64, f64)> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let kb = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok())
                .context("an odd status")
        };
        Ok((kb("VmRSS:")? / 1024.0, kb("RssAnon:")? / 1024.0))
    }

    /// Leaves haft, and waits for its end.
    pub(crate) fn leave(mut self) -> anyhow::Result<()> {
        self.press("\u{4}")?;
        let status = self.child.wait()?;
        anyhow::ensure!(status.success(), "haft ended with {status}");
        Ok(())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It has ended already where all went well.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn take(seen: &mut Seen, bytes: &[u8]) {
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
        // Whoever waited may have given up.
        tell.send(Instant::now()).ok();
    }
}
