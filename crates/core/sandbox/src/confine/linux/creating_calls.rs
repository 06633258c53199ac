//! The system calls that create, move or remove a name, and the places of the paths in their
//! arguments.

use std::ops::BitOr;

/// The effects on names that a call can have, or of which an event is the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NameEffects(u8);

impl NameEffects {
    pub(super) const CREATES_FOLDER: Self = Self(1);
    pub(super) const CREATES_FILE: Self = Self(2);
    pub(super) const MOVES: Self = Self(4);
    pub(super) const REMOVES: Self = Self(8);

    pub(super) fn overlaps(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for NameEffects {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The arguments of a call that name a file. The numbers are indexes of arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathArgument {
    Path {
        path: usize,
    },
    PathAt {
        folder: usize,
        path: usize,
    },
    /// The path in the address of a Unix socket.
    SocketAddress {
        address: usize,
    },
}

/// A system call that changes names.
#[derive(Clone, Copy, Debug)]
pub(super) struct CreatingCall {
    pub(super) number: libc::c_long,
    pub(super) effects: NameEffects,
    /// The name that the call creates, or replaces.
    pub(super) created: Option<PathArgument>,
    /// The name that the call removes.
    pub(super) removed: Option<PathArgument>,
    /// The argument that must have the flag `O_CREAT`; other uses of the call create nothing.
    pub(super) open_flags: Option<u8>,
}

const fn creating(
    number: libc::c_long,
    effects: NameEffects,
    created: PathArgument,
) -> CreatingCall {
    CreatingCall {
        number,
        effects,
        created: Some(created),
        removed: None,
        open_flags: None,
    }
}

const fn opening(number: libc::c_long, created: PathArgument, open_flags: u8) -> CreatingCall {
    CreatingCall {
        open_flags: Some(open_flags),
        ..creating(number, NameEffects::CREATES_FILE, created)
    }
}

const fn moving(
    number: libc::c_long,
    removed: PathArgument,
    created: PathArgument,
) -> CreatingCall {
    CreatingCall {
        removed: Some(removed),
        ..creating(number, NameEffects::MOVES, created)
    }
}

const fn removing(number: libc::c_long, removed: PathArgument) -> CreatingCall {
    CreatingCall {
        number,
        effects: NameEffects::REMOVES,
        created: None,
        removed: Some(removed),
        open_flags: None,
    }
}

const fn at(folder: usize, path: usize) -> PathArgument {
    PathArgument::PathAt { folder, path }
}

#[cfg(target_arch = "x86_64")]
const fn path(path: usize) -> PathArgument {
    PathArgument::Path { path }
}

pub(super) const CREATING_CALLS: &[CreatingCall] = &[
    opening(libc::SYS_openat, at(0, 1), 2),
    creating(libc::SYS_mkdirat, NameEffects::CREATES_FOLDER, at(0, 1)),
    creating(libc::SYS_mknodat, NameEffects::CREATES_FILE, at(0, 1)),
    creating(libc::SYS_symlinkat, NameEffects::CREATES_FILE, at(1, 2)),
    creating(libc::SYS_linkat, NameEffects::CREATES_FILE, at(2, 3)),
    creating(
        libc::SYS_bind,
        NameEffects::CREATES_FILE,
        PathArgument::SocketAddress { address: 1 },
    ),
    #[cfg(not(target_arch = "riscv64"))]
    moving(libc::SYS_renameat, at(0, 1), at(2, 3)),
    moving(libc::SYS_renameat2, at(0, 1), at(2, 3)),
    removing(libc::SYS_unlinkat, at(0, 1)),
    #[cfg(target_arch = "x86_64")]
    opening(libc::SYS_open, path(0), 1),
    #[cfg(target_arch = "x86_64")]
    creating(libc::SYS_creat, NameEffects::CREATES_FILE, path(0)),
    #[cfg(target_arch = "x86_64")]
    creating(libc::SYS_mkdir, NameEffects::CREATES_FOLDER, path(0)),
    #[cfg(target_arch = "x86_64")]
    creating(libc::SYS_mknod, NameEffects::CREATES_FILE, path(0)),
    #[cfg(target_arch = "x86_64")]
    creating(libc::SYS_symlink, NameEffects::CREATES_FILE, path(1)),
    #[cfg(target_arch = "x86_64")]
    creating(libc::SYS_link, NameEffects::CREATES_FILE, path(1)),
    #[cfg(target_arch = "x86_64")]
    moving(libc::SYS_rename, path(0), path(1)),
    #[cfg(target_arch = "x86_64")]
    removing(libc::SYS_unlink, path(0)),
    #[cfg(target_arch = "x86_64")]
    removing(libc::SYS_rmdir, path(0)),
];

/// Returns the call with this number, or `None` if the call changes no names.
pub(super) fn find_creating_call(number: libc::c_long) -> Option<&'static CreatingCall> {
    CREATING_CALLS.iter().find(|call| call.number == number)
}
