//! What Landlock cannot express, whoever uses it: docs/security.md says so, and commands that write
//! are asked there for that reason. Whatever else is not as it should be in that layer is a hole
//! like anywhere.

use crate::{Finding, ProbeKind};

/// What it leaves open beside protected files: it has no exception inside a writable folder, and
/// knows nothing of a file's attributes, of System V memory, of the lists in `/proc`, or of what
/// the kernel tells about other processes of the same user.
const OPEN: &[&str] = &[
    "change a file's permissions",
    "change permissions through a file open for reading",
    "change a file's owner to its owner",
    "change a file's times",
    "change times through a file open for reading",
    "set an extended attribute",
    "set an extended attribute through a file open for reading",
    "set a flag through a file open for reading",
    "have a way to other networks",
    "see network devices but the loopback",
    "see the sockets outside",
    "read shared memory by its number",
    "see the queues of messages of others",
    "see the command line of a process outside",
    "see the limits of a process",
    "see the processors of a process",
    "see the session of a process",
    "change the priority of a process to its own",
    "list a secret folder",
];

/// What it takes away beside: `/tmp` is elsewhere, there are no sockets, and new terminals are
/// where those of the user are.
const CLOSED: &[&str] = &[
    "create a file in /tmp",
    "create a file in /var/tmp",
    "create shared memory",
    "open a terminal of its own",
    "speak over its own loopback",
    "send itself a datagram",
    "speak over a socket of the project",
];

pub(crate) fn is_limit(finding: &Finding) -> bool {
    match finding.kind {
        ProbeKind::Escape => finding.group == "protected" || OPEN.contains(&finding.name.as_str()),
        ProbeKind::Control => CLOSED.contains(&finding.name.as_str()),
    }
}
