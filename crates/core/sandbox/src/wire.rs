//! The protocol between haft and its helper process.
//!
//! haft sends one [`HelperRequest`] and nothing after it. When haft's side of the socket closes, by
//! haft's decision or by its death, the helper stops the command. The helper sends one
//! [`CommandOutcome`], and later [`ALL_GONE`] once all processes of the command have ended. Between
//! the two, it may send the paths of protected entries that it removed or restored. Both sides run
//! one executable, so the protocol has no version.
//!
//! A request is a length followed by fields separated by NUL, which no argument, path, or
//! environment entry can contain.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

use crate::confine::{self, ConfinementFailure, ConfinementMethod, ConfinementSpec, SandboxPolicy};
use crate::{CommandSpec, PidNamespace, SandboxError, Stdin};

/// The maximum size of a request in bytes, enforced by both sides. The kernel's own limit for
/// arguments and environment is lower.
const MAX_REQUEST_BYTES: usize = 16 << 20;

/// The time limit for a helper to receive its request. After that the helper exits.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_mins(1);

/// The last byte that a helper sends. It reports that no process of the command is left.
pub(crate) const ALL_GONE: u8 = b'g';

/// The first byte of the list of protected entries that the helper removed or restored.
pub(crate) const UNDONE_PATHS: u8 = b'u';

/// The maximum size of the list of undone paths in bytes.
pub(crate) const MAX_UNDONE_BYTES: u32 = 1 << 20;

/// Encodes paths as [`UNDONE_PATHS`], the length in bytes, and the paths, each followed by NUL.
/// Paths that exceed [`MAX_UNDONE_BYTES`] are left out.
pub(crate) fn encode_undone_paths(paths: &[PathBuf]) -> Vec<u8> {
    let mut body = Vec::new();
    for path in paths {
        let bytes = path.as_os_str().as_bytes();
        if body.len() + bytes.len() < MAX_UNDONE_BYTES as usize {
            body.extend_from_slice(bytes);
            body.push(0);
        }
    }
    let mut frame = vec![UNDONE_PATHS];
    frame.extend((body.len() as u32).to_le_bytes());
    frame.append(&mut body);
    frame
}

/// Decodes the paths of [`encode_undone_paths`], without the tag and the length.
pub(crate) fn decode_undone_paths(body: &[u8]) -> Vec<PathBuf> {
    body.split(|byte| *byte == 0)
        .filter(|path| !path.is_empty())
        .map(|path| PathBuf::from(OsString::from_vec(path.to_vec())))
        .collect()
}

/// The information that the helper needs to run a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HelperRequest {
    /// The timeout of the command; `None` if the timeout is too long for the protocol, and
    /// therefore never reached.
    pub(crate) timeout: Option<Duration>,
    pub(crate) namespace: PidNamespace,
    pub(crate) console: Console,
    /// The text to pass to the command as standard input.
    pub(crate) input: Option<String>,
    pub(crate) confined: Option<ConfinementSpec>,
    pub(crate) cwd: PathBuf,
    pub(crate) argv: Vec<OsString>,
    pub(crate) env: Vec<(OsString, OsString)>,
}

/// The standard input of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Console {
    /// Neither a terminal nor a socket: the standard input is empty or the text in the request.
    None,
    /// The terminal to which the helper's output is connected.
    Terminal,
    /// The socket to which the helper's output is connected. The command reads from it and writes
    /// to it.
    Socket,
}

impl HelperRequest {
    pub(crate) fn new(
        command: &CommandSpec,
        namespace: PidNamespace,
        console: Console,
    ) -> Result<Self, SandboxError> {
        let invalid = |what| Err(SandboxError::Invalid { what });
        let nul = |text: &OsStr| text.as_bytes().contains(&0);
        if command
            .argv
            .first()
            .is_none_or(|program| program.is_empty())
        {
            return invalid("it names no program");
        }
        if command.argv.iter().any(|arg| nul(arg)) || nul(command.cwd.as_os_str()) {
            return invalid("an argument or the folder contains a NUL character");
        }
        let input = match &command.stdin {
            Stdin::Null => None,
            Stdin::Text(text) if text.contains('\0') => {
                return invalid("what it is to read contains a NUL character");
            }
            Stdin::Text(text) => Some(text.clone()),
        };
        for (name, value) in &command.env {
            if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                return invalid(
                    "a name in its environment is empty or contains `=`, or an entry contains a NUL character",
                );
            }
        }
        if command
            .confined
            .as_ref()
            .is_some_and(|confined| !confined.policy.is_valid())
        {
            return invalid("a path of its sandbox is not absolute or contains a NUL character");
        }
        let env = match &command.confined {
            Some(confined) => confine::confined_environment(confined, &command.env),
            None => command
                .env
                .iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        };
        Ok(Self {
            timeout: u64::try_from(command.timeout.as_millis())
                .ok()
                .map(Duration::from_millis),
            namespace,
            console,
            input,
            confined: command.confined.as_deref().cloned(),
            cwd: command.cwd.clone(),
            argv: command.argv.clone(),
            env,
        })
    }

    pub(crate) fn encode(&self) -> Result<Vec<u8>, SandboxError> {
        let mut body = Vec::new();
        let mut field = |bytes: &[u8]| {
            body.extend_from_slice(bytes);
            body.push(0);
        };
        field(
            self.timeout
                .map(|timeout| timeout.as_millis().to_string())
                .unwrap_or_default()
                .as_bytes(),
        );
        field(match self.namespace {
            PidNamespace::Privileged => b"privileged",
            PidNamespace::Never => b"never",
        });
        field(match self.console {
            Console::None => b"none",
            Console::Terminal => b"terminal",
            Console::Socket => b"socket",
        });
        match &self.input {
            None => field(b""),
            Some(text) => field(&[b"=", text.as_bytes()].concat()),
        }
        match &self.confined {
            None => field(b"open"),
            Some(confined) => {
                field(match confined.method {
                    ConfinementMethod::Namespace => b"namespace",
                    ConfinementMethod::Landlock => b"landlock",
                });
                confined
                    .policy
                    .to_fields()
                    .iter()
                    .for_each(|value| field(value.as_bytes()));
            }
        }
        field(self.cwd.as_os_str().as_bytes());
        field(self.argv.len().to_string().as_bytes());
        self.argv.iter().for_each(|arg| field(arg.as_bytes()));
        for (name, value) in &self.env {
            field(&[name.as_bytes(), b"=", value.as_bytes()].concat());
        }
        if body.len() > MAX_REQUEST_BYTES {
            return Err(SandboxError::Invalid {
                what: "it is longer than 16 MiB; put the text in a file",
            });
        }
        let mut frame = (body.len() as u32).to_le_bytes().to_vec();
        frame.append(&mut body);
        Ok(frame)
    }

    pub(crate) fn read(mut from: impl Read) -> io::Result<Self> {
        let mut length = [0; 4];
        from.read_exact(&mut length)?;
        let length = u32::from_le_bytes(length) as usize;
        if length > MAX_REQUEST_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut body = vec![0; length];
        from.read_exact(&mut body)?;
        Self::decode(&body).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn decode(body: &[u8]) -> Option<Self> {
        let mut fields = body.strip_suffix(&[0])?.split(|byte| *byte == 0);
        let text = |field: &[u8]| String::from_utf8(field.to_vec()).ok();
        let timeout = match text(fields.next()?)? {
            none if none.is_empty() => None,
            millis => Some(Duration::from_millis(millis.parse().ok()?)),
        };
        let namespace = match fields.next()? {
            b"privileged" => PidNamespace::Privileged,
            b"never" => PidNamespace::Never,
            _ => return None,
        };
        let console = match fields.next()? {
            b"none" => Console::None,
            b"terminal" => Console::Terminal,
            b"socket" => Console::Socket,
            _ => return None,
        };
        let input = match fields.next()? {
            [] => None,
            [b'=', given @ ..] => Some(text(given)?),
            _ => return None,
        };
        let method = match fields.next()? {
            b"open" => None,
            b"namespace" => Some(ConfinementMethod::Namespace),
            b"landlock" => Some(ConfinementMethod::Landlock),
            _ => return None,
        };
        let confined = match method {
            None => None,
            Some(method) => Some(ConfinementSpec {
                method,
                policy: SandboxPolicy::from_fields(&mut fields)?,
            }),
        };
        let owned = |field: &[u8]| OsString::from_vec(field.to_vec());
        let cwd = owned(fields.next()?).into();
        let count: usize = text(fields.next()?)?.parse().ok()?;
        let argv: Vec<_> = fields.by_ref().take(count).map(owned).collect();
        if argv.len() != count || count == 0 {
            return None;
        }
        let env = fields
            .map(|field| {
                let at = field.iter().position(|byte| *byte == b'=')?;
                Some((owned(&field[..at]), owned(&field[at + 1..])))
            })
            .collect::<Option<_>>()?;
        Some(Self {
            timeout,
            namespace,
            console,
            input,
            confined,
            cwd,
            argv,
            env,
        })
    }
}

/// The reason why a command ended or did not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandOutcome {
    /// The command exited with this status.
    Code(i32),
    /// The command was killed by this signal.
    Signal(i32),
    /// The command was ended because its timeout passed.
    TimedOut,
    /// The command was ended because haft closed its side of the socket.
    Cancelled,
    /// The command was not started, because its working folder could not be used. The number is the
    /// operating system's error number.
    NoFolder(i32),
    /// The command was not started, because its program could not be executed. The number is the
    /// operating system's error number.
    NoProgram(i32),
    /// The command was not started, because namespaces are not available. Used only inside the
    /// helper.
    NoNamespace,
    /// The command was not started, because its confinement could not be set up.
    NotConfined(ConfinementFailure),
    /// The outcome is unknown, because the keeper, which waited for the command, was killed.
    Lost,
}

impl CommandOutcome {
    pub(crate) const ENCODED_LEN: usize = 5;

    pub(crate) fn encode(self) -> [u8; Self::ENCODED_LEN] {
        let (tag, value) = match self {
            Self::Code(code) => (b'c', code),
            Self::Signal(signal) => (b's', signal),
            Self::TimedOut => (b't', 0),
            Self::Cancelled => (b'x', 0),
            Self::NoFolder(error) => (b'f', error),
            Self::NoProgram(error) => (b'p', error),
            Self::NoNamespace => (b'n', 0),
            Self::NotConfined(failed) => (b'u', failed.to_code()),
            Self::Lost => (b'l', 0),
        };
        let [a, b, c, d] = value.to_le_bytes();
        [tag, a, b, c, d]
    }

    pub(crate) fn decode([tag, a, b, c, d]: [u8; Self::ENCODED_LEN]) -> Option<Self> {
        let value = i32::from_le_bytes([a, b, c, d]);
        Some(match tag {
            b'c' => Self::Code(value),
            b's' => Self::Signal(value),
            b't' => Self::TimedOut,
            b'x' => Self::Cancelled,
            b'f' => Self::NoFolder(value),
            b'p' => Self::NoProgram(value),
            b'n' => Self::NoNamespace,
            b'u' => Self::NotConfined(ConfinementFailure::from_code(value)?),
            b'l' => Self::Lost,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests;
