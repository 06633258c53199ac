//! Commands with a socket for input and output.

use haft_sandbox::{Capture, CommandExit};
use haft_text::CutLimits;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::processes::{DAEMONS, mark, marked_processes, wait_until};
use crate::{WAYS, block_on, path, shell, supervisor};

#[test]
fn connect_uses_the_socket_and_keeps_errors_apart() {
    for way in WAYS {
        block_on(async {
            let line = "read one; echo \"heard $one\"; echo trouble >&2; read two || exit 7";
            let (command, socket) = supervisor(way)
                .start_connected(shell(line, "/".as_ref()), Capture::default())
                .unwrap();
            let (hear, mut say) = socket.into_split();
            say.write_all(b"hello\n").await.unwrap();
            let mut lines = BufReader::new(hear).lines();
            assert_eq!(
                lines.next_line().await.unwrap().as_deref(),
                Some("heard hello")
            );
            // Closing our side ends the command's input.
            drop(say);
            let ending = command.wait_for_end().await.unwrap();
            let finished = ending.as_ref().as_ref().unwrap();
            assert_eq!(finished.exit, CommandExit::Code(7), "{way:?}");
            assert_eq!(finished.stdout.bytes, 0, "that is what the socket is for");
            assert_eq!(finished.stderr.text(CutLimits::default()).text, "trouble\n");
            assert_eq!(
                lines.next_line().await.unwrap(),
                None,
                "the other end is closed with the command"
            );
        });
    }
}

#[test]
fn connect_leaves_no_processes_when_dropped() {
    for way in WAYS {
        let folder = TempDir::new().unwrap();
        block_on(async {
            let command = shell(&format!("{DAEMONS}\nsleep 1000"), folder.path());
            let command = command.with_env(vec![path(), mark(folder.path())]);
            let (_command, _socket) = supervisor(way)
                .start_connected(command, Capture::default())
                .unwrap();
            let ready = folder.path().join("ready");
            tokio::task::spawn_blocking(move || wait_until("daemons", || ready.exists()))
                .await
                .unwrap();
            assert_ne!(marked_processes(folder.path()), [0; 0], "the mark works");
        });
        wait_until("nobody", || marked_processes(folder.path()).is_empty());
    }
}
