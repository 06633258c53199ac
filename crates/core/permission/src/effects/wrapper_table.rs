//! Programs that run other programs, as data.

/// Whether a wrapper needs a rule of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nature {
    /// It changes nothing but how long, how fast or how buffered the other runs.
    Carries,
    /// It does something itself, or changes what the other can do.
    Acts,
}

/// The options a wrapper takes before its command.
pub(super) struct Options {
    /// Letters without a value.
    pub(super) flags: &'static str,
    /// Letters with one.
    pub(super) valued: &'static str,
    pub(super) long: &'static [&'static str],
    pub(super) long_valued: &'static [&'static str],
    /// Whether a `-` alone is an option.
    pub(super) lone_dash: bool,
}

const NO_OPTIONS: Options = Options { flags: "", valued: "", long: &[], long_valued: &[], lone_dash: false };

/// A program that runs the command after its options and operands.
pub(super) struct Wrapper {
    pub(super) names: &'static [&'static str],
    pub(super) nature: Nature,
    pub(super) options: Options,
    /// Words between the options and the command.
    pub(super) operands: usize,
    /// Whether it takes `NAME=VALUE` before the command.
    pub(super) assigns: bool,
    /// Whether a builtin runs in the shell itself.
    pub(super) same_shell: bool,
}

const WRAPPER: Wrapper =
    Wrapper { names: &[], nature: Nature::Acts, options: NO_OPTIONS, operands: 0, assigns: false, same_shell: false };

pub(super) const WRAPPERS: &[Wrapper] = &[
    Wrapper {
        names: &["timeout", "gtimeout"],
        nature: Nature::Carries,
        options: Options {
            flags: "v",
            valued: "ks",
            long: &["foreground", "preserve-status", "verbose"],
            long_valued: &["kill-after", "signal"],
            ..NO_OPTIONS
        },
        operands: 1,
        ..WRAPPER
    },
    Wrapper {
        names: &["nice", "gnice"],
        nature: Nature::Carries,
        options: Options { flags: "0123456789", valued: "n", long_valued: &["adjustment"], ..NO_OPTIONS },
        ..WRAPPER
    },
    Wrapper { names: &["nohup"], nature: Nature::Carries, ..WRAPPER },
    Wrapper {
        names: &["stdbuf"],
        nature: Nature::Carries,
        options: Options { valued: "ioe", long_valued: &["input", "output", "error"], ..NO_OPTIONS },
        ..WRAPPER
    },
    Wrapper {
        names: &["time"],
        nature: Nature::Carries,
        options: Options { flags: "pvq", valued: "f", long: &["portability", "verbose"], ..NO_OPTIONS },
        ..WRAPPER
    },
    Wrapper {
        names: &["command"],
        nature: Nature::Carries,
        options: Options { flags: "p", ..NO_OPTIONS },
        same_shell: true,
        ..WRAPPER
    },
    Wrapper { names: &["builtin"], nature: Nature::Carries, same_shell: true, ..WRAPPER },
    Wrapper {
        names: &["exec"],
        options: Options { flags: "cl", valued: "a", ..NO_OPTIONS },
        same_shell: true,
        ..WRAPPER
    },
    Wrapper {
        names: &["env", "genv"],
        options: Options {
            flags: "i0v",
            valued: "u",
            long: &["ignore-environment", "null", "debug"],
            long_valued: &["unset"],
            lone_dash: true,
        },
        assigns: true,
        ..WRAPPER
    },
    Wrapper {
        names: &["sudo"],
        options: Options {
            flags: "AbEHkNnPS",
            valued: "CgpTuU",
            long: &["preserve-env", "non-interactive", "set-home", "stdin", "askpass", "background"],
            long_valued: &["user", "group", "prompt", "preserve-env"],
            ..NO_OPTIONS
        },
        assigns: true,
        ..WRAPPER
    },
    Wrapper { names: &["doas"], options: Options { flags: "n", valued: "Cu", ..NO_OPTIONS }, assigns: true, ..WRAPPER },
    Wrapper {
        names: &["xargs", "gxargs"],
        options: Options {
            flags: "0oprtx",
            valued: "adEILnPs",
            long: &["null", "no-run-if-empty", "verbose", "interactive", "exit", "open-tty"],
            long_valued: &["arg-file", "delimiter", "max-args", "max-procs", "max-chars", "replace"],
            ..NO_OPTIONS
        },
        ..WRAPPER
    },
    Wrapper {
        names: &["watch"],
        options: Options {
            flags: "bcdegptwx",
            valued: "n",
            long: &["beep", "color", "differences", "errexit", "chgexit", "no-title", "precise", "exec", "no-wrap"],
            long_valued: &["interval"],
            ..NO_OPTIONS
        },
        ..WRAPPER
    },
    Wrapper {
        names: &["setsid"],
        options: Options { flags: "cfw", long: &["ctty", "fork", "wait"], ..NO_OPTIONS },
        ..WRAPPER
    },
    Wrapper {
        names: &["ionice"],
        options: Options {
            flags: "t",
            valued: "cn",
            long: &["ignore"],
            long_valued: &["class", "classdata"],
            ..NO_OPTIONS
        },
        ..WRAPPER
    },
    Wrapper { names: &["taskset"], options: Options { flags: "ac", ..NO_OPTIONS }, operands: 1, ..WRAPPER },
    Wrapper { names: &["chrt"], options: Options { flags: "abfiorv", ..NO_OPTIONS }, operands: 1, ..WRAPPER },
    Wrapper { names: &["chroot"], operands: 1, ..WRAPPER },
    Wrapper {
        names: &["flock"],
        options: Options { flags: "eFnosuxv", valued: "Ew", ..NO_OPTIONS },
        operands: 1,
        ..WRAPPER
    },
    Wrapper { names: &["busybox", "toybox"], ..WRAPPER },
    Wrapper { names: &["unbuffer"], options: Options { flags: "p", ..NO_OPTIONS }, ..WRAPPER },
    Wrapper { names: &["caffeinate"], options: Options { flags: "dimsu", valued: "tw", ..NO_OPTIONS }, ..WRAPPER },
];

/// Programs that run what their arguments say, in ways too many to list.
pub(super) const LOOSE: &[&str] = &[
    "arch", "at", "batch", "bunx", "bwrap", "capsh", "catchsegv", "chpst", "chronic", "cpulimit", "dbus-run-session",
    "direnv", "dumb-init", "entr", "envdir", "expect", "fakechroot", "fakeroot", "firejail", "gdb", "gosu", "guix",
    "i386", "ld-linux-aarch64.so.1", "ld-linux-x86-64.so.2", "ld-linux.so.2", "linux32", "linux64", "lldb", "ltrace",
    "lxc-attach", "machinectl", "mosh", "mpiexec", "mpirun", "nix", "nix-shell", "npx", "nsenter", "numactl",
    "osascript", "parallel", "perf", "pipx", "pkexec", "pnpx", "prlimit", "proot", "proxychains", "proxychains4",
    "rlwrap", "rsh", "run-parts", "run0", "runuser", "screen", "script", "setarch", "setpriv", "setuidgid",
    "softlimit", "srun", "ssh", "start-stop-daemon", "strace", "su", "su-exec", "systemd-inhibit", "systemd-nspawn",
    "systemd-run", "tini", "tmux", "torsocks", "unshare", "uvx", "valgrind", "watchexec", "wine", "x86_64", "xvfb-run",
];
