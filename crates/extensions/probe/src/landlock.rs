//! The known limits of Landlock, as described in docs/security.md. Because of them, commands that
//! write need approval in that layer. Any other unexpected finding in that layer is a hole.

use crate::{Finding, ProbeKind};

/// Escapes that succeed under Landlock, not counting those that concern protected files. Landlock
/// has no exceptions inside a writable folder, and doesn't control a file's attributes, System V
/// memory, the lists in `/proc`, or the information that the kernel gives about other processes of
/// the same user.
const OPEN_ESCAPES: &[&str] = &[
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

/// Controls that fail under Landlock: the temporary folder is not `/tmp`, sockets are not
/// available, and new terminals appear in the folder of the user's terminals.
const REFUSED_CONTROLS: &[&str] = &[
    "create a file in /tmp",
    "create a file in /var/tmp",
    "create shared memory",
    "open a terminal of its own",
    "speak over its own loopback",
    "send itself a datagram",
    "speak over a socket of the project",
];

pub(crate) fn is_known_limit(finding: &Finding) -> bool {
    match finding.kind {
        ProbeKind::Escape => {
            finding.group == "protected" || OPEN_ESCAPES.contains(&finding.name.as_str())
        }
        ProbeKind::Control => REFUSED_CONTROLS.contains(&finding.name.as_str()),
    }
}
