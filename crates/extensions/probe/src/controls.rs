//! Controls: operations that must work for every sandboxed command.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;

use crate::files::{create_file_in, open_to_write, rename_and_back};
use crate::{Attempt, attempt_for_anyone, ensure, not_applicable};

pub(crate) const ATTEMPTS: &[Attempt] = &[
    attempt_for_anyone("create a file in the project", |g| {
        create_file_in(&g.project)
    }),
    attempt_for_anyone("write a file of the project", |g| {
        open_to_write(&g.in_project("own"))
    }),
    attempt_for_anyone("rename a file of the project", |g| {
        rename_and_back(&g.in_project("own"), &g.in_project("own-renamed"))
    }),
    attempt_for_anyone("rename a folder of the project", |g| {
        rename_and_back(&g.in_project("folder"), &g.in_project("folder-renamed"))
    }),
    attempt_for_anyone("make and remove folders", |g| {
        fs::create_dir_all(g.in_project("a/b/c"))?;
        Ok(fs::remove_dir_all(g.in_project("a"))?)
    }),
    attempt_for_anyone("make links in the project", |g| {
        symlink("own", g.in_project("soft"))?;
        fs::hard_link(g.in_project("own"), g.in_project("hard"))?;
        fs::remove_file(g.in_project("soft"))?;
        Ok(fs::remove_file(g.in_project("hard"))?)
    }),
    attempt_for_anyone("change permissions in the project", |g| {
        fs::set_permissions(g.in_project("own"), fs::Permissions::from_mode(0o600))?;
        Ok(fs::set_permissions(
            g.in_project("own"),
            fs::Permissions::from_mode(0o644),
        )?)
    }),
    attempt_for_anyone("write beside protected files", |g| {
        create_file_in(&g.in_project(".github"))
    }),
    attempt_for_anyone("create a file that begins like a protected one", |g| {
        fs::write(g.in_project(".gitignore"), "target\n")?;
        Ok(fs::remove_file(g.in_project(".gitignore"))?)
    }),
    attempt_for_anyone("read git's settings", |g| {
        Ok(fs::read(g.in_project(".git/config")).map(drop)?)
    }),
    attempt_for_anyone("see what git sees", |g| {
        let git = Command::new("git")
            .arg("-C")
            .arg(&g.project)
            .args(["status", "--short"])
            .output();
        let Ok(output) = git else {
            return not_applicable("git is not installed");
        };
        // If the folder belongs to another user, git refuses to work, inside and outside of the
        // sandbox alike.
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure(
            output.status.success() || stderr.contains("dubious ownership"),
            stderr.trim(),
        )
    }),
    attempt_for_anyone("read a file outside", |g| {
        ensure(
            fs::read_to_string(g.outside_file())? == "outside\n",
            "it holds something else",
        )
    }),
    attempt_for_anyone("read the system's programs", |_| {
        ensure(fs::read_dir("/usr/bin")?.count() > 10, "there are few")
    }),
    attempt_for_anyone("create a file in /tmp", |g| {
        // The file stays, because the site looks for it outside of the sandbox.
        Ok(fs::write(Path::new("/tmp").join(&g.mark), "")?)
    }),
    attempt_for_anyone("create a file in /var/tmp", |g| {
        Ok(fs::write(Path::new("/var/tmp").join(&g.mark), "")?)
    }),
    attempt_for_anyone("create shared memory", |g| {
        Ok(fs::write(Path::new("/dev/shm").join(&g.mark), "")?)
    }),
    attempt_for_anyone("write to /dev/null", |_| {
        open_to_write(Path::new("/dev/null"))
    }),
    attempt_for_anyone("read random bytes", |_| {
        Ok(File::open("/dev/urandom")?.read_exact(&mut [0; 16])?)
    }),
    attempt_for_anyone("run a program", |_| {
        ensure(Command::new("/bin/true").status()?.success(), "it failed")
    }),
    attempt_for_anyone("run a script of the project", |g| {
        let script = g.in_project("script");
        fs::write(&script, "#!/bin/sh\necho hello | tr a-z A-Z\n")?;
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
        let output = Command::new(&script).output();
        fs::remove_file(script)?;
        ensure(output?.stdout == b"HELLO\n", "it said something else")
    }),
    attempt_for_anyone("end a program it started", |_| {
        let mut child = Command::new("/bin/sleep").arg("60").spawn()?;
        child.kill()?;
        ensure(!child.wait()?.success(), "it ended by itself")
    }),
    attempt_for_anyone("start a thread", |_| {
        ensure(std::thread::spawn(|| 1).join().is_ok(), "it did not run")
    }),
    attempt_for_anyone("see its own process", |_| {
        let status = fs::read_to_string("/proc/self/status")?;
        ensure(
            status.contains(&format!("Pid:\t{}\n", std::process::id())),
            "it has another number",
        )
    }),
    attempt_for_anyone("speak over its own loopback", |_| {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let mut client = TcpStream::connect(listener.local_addr()?)?;
        client.write_all(b"x")?;
        Ok(listener.accept()?.0.read_exact(&mut [0])?)
    }),
    attempt_for_anyone("send itself a datagram", |_| {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.send_to(b"x", socket.local_addr()?)?;
        ensure(socket.recv(&mut [0])? == 1, "it did not arrive")
    }),
    attempt_for_anyone("speak over a socket of the project", |g| {
        let path = g.in_project("socket");
        let listener = UnixListener::bind(&path)?;
        let connected = UnixStream::connect(&path);
        fs::remove_file(path)?;
        connected?.write_all(b"x")?;
        Ok(listener.accept()?.0.read_exact(&mut [0])?)
    }),
    attempt_for_anyone("open a terminal of its own", |_| {
        use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        unlockpt(&master)?;
        ioctl_tiocgptpeer(&master, OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        Ok(())
    }),
    attempt_for_anyone("lock a file", |g| {
        let file = File::open(g.in_project("own"))?;
        ensure(file.try_lock().is_ok(), "somebody else holds it")
    }),
];
