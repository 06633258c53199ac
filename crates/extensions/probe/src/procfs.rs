//! Attempts to leave the sandbox through `/proc` and `/sys`.

use std::fs::{self, OpenOptions};
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::files::{create_in, open_to_write};
use crate::{Attempt, ProbeTargets, Tried, anyone, depends, holds, not_applicable, root};

pub(crate) const ATTEMPTS: &[Attempt] = &[
    anyone("write below /proc/self/root", |g| {
        open_to_write(&below("/proc/self/root", g))
    }),
    anyone("write below a thread's root", |g| {
        open_to_write(&below(
            &format!("/proc/self/task/{}/root", std::process::id()),
            g,
        ))
    }),
    anyone("write below the parent's root", |g| {
        open_to_write(&below(&of_parent("root"), g))
    }),
    depends("write below the first process's root", |g| {
        open_to_write(&below("/proc/1/root", g))
    }),
    anyone("write below the root of a process outside", |g| {
        open_to_write(&below(&format!("/proc/{}/root", g.process), g))
    }),
    anyone("create in the working folder of a process outside", |g| {
        create_in(Path::new(&format!("/proc/{}/cwd", g.process)))
    }),
    anyone("see the command line of a process outside", |g| {
        let text = fs::read_to_string(format!("/proc/{}/cmdline", g.process))?;
        holds(text.contains(&g.mark), "it is another process")
    }),
    anyone("open the memory of a process outside", |g| {
        open(&format!("/proc/{}/mem", g.process))
    }),
    anyone("take a descriptor of a process outside", |g| {
        OpenOptions::new()
            .write(true)
            .open(format!("/proc/{}/fd/1", g.process))?;
        Ok(())
    }),
    depends("open the memory of the first process", |_| {
        open("/proc/1/mem")
    }),
    depends("read the environment of the first process", |_| {
        let mut text = Vec::new();
        fs::File::open("/proc/1/environ")?.read_to_end(&mut text)?;
        holds(!text.is_empty(), "it is empty")
    }),
    depends("take a descriptor of the first process", |_| {
        let mut descriptors = fs::read_dir("/proc/1/fd")?.flatten();
        holds(
            descriptors.any(|one| fs::read_link(one.path()).is_ok()),
            "none can be looked at",
        )
    }),
    root("write where crashes are sent", |_| {
        again("/proc/sys/kernel/core_pattern")
    }),
    root("write the machine's name", |_| {
        again("/proc/sys/kernel/hostname")
    }),
    depends("write the program that loads modules", |_| {
        again("/proc/sys/kernel/modprobe")
    }),
    root("write how addresses are chosen", |_| {
        again("/proc/sys/kernel/randomize_va_space")
    }),
    root("write whether memory is overcommitted", |_| {
        again("/proc/sys/vm/overcommit_memory")
    }),
    root("open what empties the caches", |_| {
        open("/proc/sys/vm/drop_caches")
    }),
    depends("open the magic keys", |_| open("/proc/sysrq-trigger")),
    depends("register a kind of program", |_| {
        open("/proc/sys/fs/binfmt_misc/register")
    }),
    depends("read the kernel's memory", |_| {
        fs::File::open("/proc/kcore")?;
        Ok(())
    }),
    depends("read the kernel's messages", |_| {
        fs::File::open("/proc/kmsg")?;
        Ok(())
    }),
    depends("write how interrupts are spread", |_| {
        open("/proc/irq/default_smp_affinity")
    }),
    depends("write the power state", |_| open("/sys/power/state")),
    depends("write the program that handles devices", |_| {
        open("/sys/kernel/uevent_helper")
    }),
    depends("make a control group", |_| {
        let group = format!("/sys/fs/cgroup/haft-probe-{}", std::process::id());
        if !Path::new("/sys/fs/cgroup").exists() {
            return not_applicable("there are no control groups");
        }
        fs::create_dir(&group)?;
        Ok(fs::remove_dir(group)?)
    }),
    depends("leave the control group", |_| {
        open("/sys/fs/cgroup/cgroup.procs")
    }),
    depends("write a parameter of a module", |_| {
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

fn below(root: &str, targets: &ProbeTargets) -> PathBuf {
    let file = targets.outside_file();
    Path::new(root).join(file.strip_prefix("/").unwrap_or(&file))
}

fn of_parent(name: &str) -> String {
    format!("/proc/{}/{name}", std::os::unix::process::parent_id())
}

/// Opens a file for writing and writes nothing.
fn open(path: &str) -> Tried {
    if !Path::new(path).exists() && !path.contains(char::is_numeric) {
        return not_applicable(format!("there is no {path}"));
    }
    OpenOptions::new().write(true).open(path)?;
    Ok(())
}

/// Writes the current content of a file to it again.
fn again(path: &str) -> Tried {
    let Ok(text) = fs::read(path) else {
        return not_applicable(format!("there is no {path}"));
    };
    Ok(fs::write(path, text)?)
}
