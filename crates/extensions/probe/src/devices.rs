//! Attempts to use devices of the machine.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};

use crate::{Attempt, AttemptResult, not_applicable, root_can, some_machines_can};

pub(crate) const ATTEMPTS: &[Attempt] = &[
    root_can("make a device of a disk", |g| {
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
    root_can("make a device of memory and read it", |g| {
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
    root_can("open a disk", |_| {
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
    some_machines_can("open the memory of the machine", |_| {
        open_device(Path::new("/dev/mem"))
    }),
    some_machines_can("open the ports of the machine", |_| {
        open_device(Path::new("/dev/port"))
    }),
    root_can("open the kernel's messages", |_| {
        open_device(Path::new("/dev/kmsg"))
    }),
    some_machines_can("open the maker of file systems", |_| {
        open_device(Path::new("/dev/fuse"))
    }),
    some_machines_can("open the maker of machines", |_| {
        open_device(Path::new("/dev/kvm"))
    }),
    some_machines_can("open the maker of network devices", |_| {
        open_device(Path::new("/dev/net/tun"))
    }),
    some_machines_can("open the maker of loop devices", |_| {
        open_device(Path::new("/dev/loop-control"))
    }),
    some_machines_can("open the maker of mapped devices", |_| {
        open_device(Path::new("/dev/mapper/control"))
    }),
    some_machines_can("open the maker of input", |_| {
        open_device(Path::new("/dev/uinput"))
    }),
    some_machines_can("open the maker of host sockets", |_| {
        open_device(Path::new("/dev/vhost-vsock"))
    }),
    some_machines_can("open the hardware's counters", |_| {
        open_device(Path::new("/dev/cpu/0/msr"))
    }),
];

/// Opens a device for reading without waiting for it.
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
