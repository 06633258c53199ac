//! Attempts to use devices of the machine.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};

use crate::{Attempt, Tried, depends, not_applicable, root};

pub(crate) const ATTEMPTS: &[Attempt] = &[
    root("make a device of a disk", |g| {
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
    root("make a device of memory and read it", |g| {
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
    root("open a disk", |_| {
        let disks = fs::read_dir("/dev")
            .map_err(super::AttemptFailure::from)?
            .flatten();
        let mut disks =
            disks.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_block_device()));
        let Some(disk) = disks.next() else {
            return super::refused("there is none in /dev");
        };
        open(&disk.path())
    }),
    depends("open the memory of the machine", |_| {
        open(Path::new("/dev/mem"))
    }),
    depends("open the ports of the machine", |_| {
        open(Path::new("/dev/port"))
    }),
    root("open the kernel's messages", |_| {
        open(Path::new("/dev/kmsg"))
    }),
    depends("open the maker of file systems", |_| {
        open(Path::new("/dev/fuse"))
    }),
    depends("open the maker of machines", |_| {
        open(Path::new("/dev/kvm"))
    }),
    depends("open the maker of network devices", |_| {
        open(Path::new("/dev/net/tun"))
    }),
    depends("open the maker of loop devices", |_| {
        open(Path::new("/dev/loop-control"))
    }),
    depends("open the maker of mapped devices", |_| {
        open(Path::new("/dev/mapper/control"))
    }),
    depends("open the maker of input", |_| {
        open(Path::new("/dev/uinput"))
    }),
    depends("open the maker of host sockets", |_| {
        open(Path::new("/dev/vhost-vsock"))
    }),
    depends("open the hardware's counters", |_| {
        open(Path::new("/dev/cpu/0/msr"))
    }),
];

/// Opens a device for reading without waiting for it.
fn open(path: &Path) -> Tried {
    if !path.exists() {
        return not_applicable(format!("there is no {}", path.display()));
    }
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?;
    Ok(())
}
