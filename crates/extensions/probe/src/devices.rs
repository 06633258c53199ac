//! Attempts to use devices of the machine.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};

use crate::{Attempt, AttemptResult, attempt_for_root, attempt_for_some_machines, not_applicable};

pub(crate) const ATTEMPTS: &[Attempt] = &[
    attempt_for_root("make a device of a disk", |g| {
        let device = g.in_project("disk");
        mknodat(
            CWD,
            &device,
            FileType::BlockDevice,
            Mode::RUSR,
            makedev(7, 0),
        )?;
        Ok(fs::remove_file(device)?)
    }),
    attempt_for_root("make a device of memory and read it", |g| {
        let device = g.in_project("memory");
        mknodat(
            CWD,
            &device,
            FileType::CharacterDevice,
            Mode::RUSR,
            makedev(1, 5),
        )?;
        let opened = fs::File::open(&device);
        fs::remove_file(device)?;
        opened?;
        Ok(())
    }),
    attempt_for_root("open a disk", |_| {
        let disks = fs::read_dir("/dev")
            .map_err(super::AttemptFailure::from)?
            .flatten();
        let mut disks =
            disks.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_block_device()));
        let Some(disk) = disks.next() else {
            return super::refused("there is none in /dev");
        };
        open_device(&disk.path())
    }),
    attempt_for_some_machines("open the memory of the machine", |_| {
        open_device(Path::new("/dev/mem"))
    }),
    attempt_for_some_machines("open the ports of the machine", |_| {
        open_device(Path::new("/dev/port"))
    }),
    attempt_for_root("open the kernel's messages", |_| {
        open_device(Path::new("/dev/kmsg"))
    }),
    attempt_for_some_machines("open the maker of file systems", |_| {
        open_device(Path::new("/dev/fuse"))
    }),
    attempt_for_some_machines("open the maker of machines", |_| {
        open_device(Path::new("/dev/kvm"))
    }),
    attempt_for_some_machines("open the maker of network devices", |_| {
        open_device(Path::new("/dev/net/tun"))
    }),
    attempt_for_some_machines("open the maker of loop devices", |_| {
        open_device(Path::new("/dev/loop-control"))
    }),
    attempt_for_some_machines("open the maker of mapped devices", |_| {
        open_device(Path::new("/dev/mapper/control"))
    }),
    attempt_for_some_machines("open the maker of input", |_| {
        open_device(Path::new("/dev/uinput"))
    }),
    attempt_for_some_machines("open the maker of host sockets", |_| {
        open_device(Path::new("/dev/vhost-vsock"))
    }),
    attempt_for_some_machines("open the hardware's counters", |_| {
        open_device(Path::new("/dev/cpu/0/msr"))
    }),
];

/// Opens a device for reading, in non-blocking mode.
fn open_device(path: &Path) -> AttemptResult {
    if !path.exists() {
        return not_applicable(format!("there is no {}", path.display()));
    }
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?;
    Ok(())
}
