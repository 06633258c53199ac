//! Attempts to leave the sandbox through `/proc` and `/sys`.

use std::fs::{self, OpenOptions};
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::files::{create_file_in, open_to_write};
use crate::{
    Attempt, AttemptResult, ProbeTargets, attempt_for_anyone, attempt_for_root,
    attempt_for_some_machines, ensure, not_applicable,
};

pub(crate) const ATTEMPTS: &[Attempt] = &[
    attempt_for_anyone("write below /proc/self/root", |g| {
        open_to_write(&outside_file_below("/proc/self/root", g))
    }),
    attempt_for_anyone("write below a thread's root", |g| {
        open_to_write(&outside_file_below(
            &format!("/proc/self/task/{}/root", std::process::id()),
            g,
        ))
    }),
    attempt_for_anyone("write below the parent's root", |g| {
        open_to_write(&outside_file_below(&parent_proc_path("root"), g))
    }),
    attempt_for_some_machines("write below the first process's root", |g| {
        open_to_write(&outside_file_below("/proc/1/root", g))
    }),
    attempt_for_anyone("write below the root of a process outside", |g| {
        open_to_write(&outside_file_below(&format!("/proc/{}/root", g.process), g))
    }),
    attempt_for_anyone("create in the working folder of a process outside", |g| {
        create_file_in(Path::new(&format!("/proc/{}/cwd", g.process)))
    }),
    attempt_for_anyone("see the command line of a process outside", |g| {
        let text = fs::read_to_string(format!("/proc/{}/cmdline", g.process))?;
        ensure(text.contains(&g.mark), "it is another process")
    }),
    attempt_for_anyone("open the memory of a process outside", |g| {
        open_for_writing(&format!("/proc/{}/mem", g.process))
    }),
    attempt_for_anyone("take a descriptor of a process outside", |g| {
        OpenOptions::new()
            .write(true)
            .open(format!("/proc/{}/fd/1", g.process))?;
        Ok(())
    }),
    attempt_for_some_machines("open the memory of the first process", |_| {
        open_for_writing("/proc/1/mem")
    }),
    attempt_for_some_machines("read the environment of the first process", |_| {
        let mut text = Vec::new();
        fs::File::open("/proc/1/environ")?.read_to_end(&mut text)?;
        ensure(!text.is_empty(), "it is empty")
    }),
    attempt_for_some_machines("take a descriptor of the first process", |_| {
        let mut descriptors = fs::read_dir("/proc/1/fd")?.flatten();
        ensure(
            descriptors.any(|one| fs::read_link(one.path()).is_ok()),
            "none can be looked at",
        )
    }),
    attempt_for_root("write where crashes are sent", |_| {
        rewrite_file("/proc/sys/kernel/core_pattern")
    }),
    attempt_for_root("write the machine's name", |_| {
        rewrite_file("/proc/sys/kernel/hostname")
    }),
    attempt_for_some_machines("write the program that loads modules", |_| {
        rewrite_file("/proc/sys/kernel/modprobe")
    }),
    attempt_for_root("write how addresses are chosen", |_| {
        rewrite_file("/proc/sys/kernel/randomize_va_space")
    }),
    attempt_for_root("write whether memory is overcommitted", |_| {
        rewrite_file("/proc/sys/vm/overcommit_memory")
    }),
    attempt_for_root("open what empties the caches", |_| {
        open_for_writing("/proc/sys/vm/drop_caches")
    }),
    attempt_for_some_machines("open the magic keys", |_| {
        open_for_writing("/proc/sysrq-trigger")
    }),
    attempt_for_some_machines("register a kind of program", |_| {
        open_for_writing("/proc/sys/fs/binfmt_misc/register")
    }),
    attempt_for_some_machines("read the kernel's memory", |_| {
        fs::File::open("/proc/kcore")?;
        Ok(())
    }),
    attempt_for_some_machines("read the kernel's messages", |_| {
        fs::File::open("/proc/kmsg")?;
        Ok(())
    }),
    attempt_for_some_machines("write how interrupts are spread", |_| {
        open_for_writing("/proc/irq/default_smp_affinity")
    }),
    attempt_for_some_machines("write the power state", |_| {
        open_for_writing("/sys/power/state")
    }),
    attempt_for_some_machines("write the program that handles devices", |_| {
        open_for_writing("/sys/kernel/uevent_helper")
    }),
    attempt_for_some_machines("make a control group", |_| {
        let group = format!("/sys/fs/cgroup/haft-probe-{}", std::process::id());
        if !Path::new("/sys/fs/cgroup").exists() {
            return not_applicable("there are no control groups");
        }
        fs::create_dir(&group)?;
        Ok(fs::remove_dir(group)?)
    }),
    attempt_for_some_machines("leave the control group", |_| {
        open_for_writing("/sys/fs/cgroup/cgroup.procs")
    }),
    attempt_for_some_machines("write a parameter of a module", |_| {
        let modules = fs::read_dir("/sys/module")
            .map_err(|_| super::AttemptFailure::NotApplicable("no modules".to_owned()))?;
        let folders = modules
            .flatten()
            .filter_map(|module| fs::read_dir(module.path().join("parameters")).ok());
        let mut files = folders.flatten().flatten().map(|file| file.path());
        let writable = |path: &PathBuf| {
            use std::os::unix::fs::PermissionsExt;
            fs::metadata(path).is_ok_and(|of| of.permissions().mode() & 0o200 != 0)
        };
        match files.find(writable) {
            Some(file) => open_to_write(&file),
            None => not_applicable("no module has a parameter that can be written"),
        }
    }),
];

fn outside_file_below(root: &str, targets: &ProbeTargets) -> PathBuf {
    let file = targets.outside_file();
    Path::new(root).join(file.strip_prefix("/").unwrap_or(&file))
}

fn parent_proc_path(name: &str) -> String {
    format!("/proc/{}/{name}", std::os::unix::process::parent_id())
}

/// Attempts to open a file for writing, without writing anything.
fn open_for_writing(path: &str) -> AttemptResult {
    if !Path::new(path).exists() && !path.contains(char::is_numeric) {
        return not_applicable(format!("there is no {path}"));
    }
    OpenOptions::new().write(true).open(path)?;
    Ok(())
}

/// Attempts to overwrite a file with its current content.
fn rewrite_file(path: &str) -> AttemptResult {
    let Ok(text) = fs::read(path) else {
        return not_applicable(format!("there is no {path}"));
    };
    Ok(fs::write(path, text)?)
}
