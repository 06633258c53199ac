//! Attempts to reach the network, and programs outside through sockets.

use std::fs;
use std::io::Write;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use crate::links::attempt_through_link;
use crate::sys::{file_from_descriptor, make_syscall};
use crate::{
    Attempt, AttemptResult, attempt_for_anyone, attempt_for_root, attempt_for_some_machines,
    ensure, not_applicable, refused,
};

/// The time limit for establishing a connection. It is short, because the servers are on this
/// machine or unreachable.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) const ATTEMPTS: &[Attempt] = &[
    attempt_for_anyone("connect to a server on the loopback", |g| {
        connect_tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, g.port)))
    }),
    attempt_for_anyone("connect to a server on all addresses", |g| {
        connect_tcp(SocketAddr::from((Ipv4Addr::UNSPECIFIED, g.port)))
    }),
    attempt_for_some_machines("connect to a server by the newer protocol", |g| {
        connect_tcp(SocketAddr::from((Ipv6Addr::LOCALHOST, g.port)))
    }),
    attempt_for_some_machines("connect to a server by a mapped address", |g| {
        connect_tcp(SocketAddr::from((
            Ipv4Addr::LOCALHOST.to_ipv6_mapped(),
            g.port,
        )))
    }),
    attempt_for_anyone("send a datagram to a server on the loopback", |g| {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.connect((Ipv4Addr::LOCALHOST, g.port))?;
        socket.set_read_timeout(Some(CONNECT_TIMEOUT))?;
        socket.send(g.mark.as_bytes())?;
        // If no server listens, the first send gets an error that only the second one reports.
        std::thread::sleep(Duration::from_millis(20));
        socket.send(g.mark.as_bytes())?;
        Ok(())
    }),
    attempt_for_some_machines("connect to a host on the internet", |_| {
        connect_tcp(SocketAddr::from(([1, 1, 1, 1], 443)))
    }),
    attempt_for_some_machines("reach the metadata of a cloud", |_| {
        connect_tcp(SocketAddr::from(([169, 254, 169, 254], 80)))
    }),
    attempt_for_some_machines("have a way to other networks", |_| {
        let routes = fs::read_to_string("/proc/net/route")?;
        ensure(routes.lines().count() > 1, "there are no routes")
    }),
    attempt_for_some_machines("see network devices but the loopback", |_| {
        let devices = fs::read_to_string("/proc/net/dev")?;
        let others = devices
            .lines()
            .skip(2)
            .filter(|line| !line.trim_start().starts_with("lo:"))
            .count();
        ensure(others > 0, "there is only the loopback")
    }),
    attempt_for_anyone("speak to a socket outside", |g| {
        send_mark(UnixStream::connect(&g.socket)?, &g.mark)
    }),
    attempt_for_anyone("speak to a socket outside through a link", |g| {
        attempt_through_link(g, &g.socket, |link| {
            send_mark(UnixStream::connect(link)?, &g.mark)
        })
    }),
    attempt_for_anyone("speak to a socket outside below /proc/self/root", |g| {
        let path =
            Path::new("/proc/self/root").join(g.socket.strip_prefix("/").unwrap_or(&g.socket));
        send_mark(UnixStream::connect(path)?, &g.mark)
    }),
    attempt_for_anyone(
        "speak to a socket outside that was opened by path only",
        |g| {
            use std::os::fd::AsRawFd;
            use std::os::unix::fs::OpenOptionsExt;
            let place = fs::OpenOptions::new()
                .read(true)
                .custom_flags(libc::O_PATH)
                .open(&g.socket)?;
            send_mark(
                UnixStream::connect(format!("/proc/self/fd/{}", place.as_raw_fd()))?,
                &g.mark,
            )
        },
    ),
    attempt_for_anyone(
        "hard link a socket outside into the project and speak to it",
        |g| {
            let link = g.in_project("socket-link");
            fs::hard_link(&g.socket, &link)?;
            let tried = UnixStream::connect(&link)
                .map_err(Into::into)
                .and_then(|stream| send_mark(stream, &g.mark));
            fs::remove_file(link)?;
            tried
        },
    ),
    attempt_for_anyone("move a socket outside into the project", |g| {
        super::files::rename_and_back(&g.socket, &g.in_project("socket-moved"))
    }),
    attempt_for_anyone("speak to a socket outside that has no place", |g| {
        let address = std::os::unix::net::SocketAddr::from_abstract_name(&g.abstract_socket)?;
        send_mark(UnixStream::connect_addr(&address)?, &g.mark)
    }),
    attempt_for_anyone("see the sockets outside", |g| {
        let table = fs::read_to_string("/proc/net/unix")?;
        ensure(table.contains(&g.abstract_socket), "they are not listed")
    }),
    attempt_for_anyone("listen outside", |g| {
        let path = g.outside.join("listener");
        drop(UnixListener::bind(&path)?);
        Ok(fs::remove_file(path)?)
    }),
    attempt_for_some_machines("speak to the container service", |_| {
        connect_service(&[
            "/run/docker.sock",
            "/var/run/docker.sock",
            "/run/podman/podman.sock",
        ])
    }),
    attempt_for_some_machines("speak to the system's bus", |_| {
        connect_service(&[
            "/run/dbus/system_bus_socket",
            "/var/run/dbus/system_bus_socket",
        ])
    }),
    attempt_for_some_machines("speak to the first process", |_| {
        connect_service(&["/run/systemd/private", "/run/systemd/notify"])
    }),
    attempt_for_some_machines("speak to the log", |_| {
        if !Path::new("/dev/log").exists() {
            return not_applicable("there is no /dev/log");
        }
        Ok(UnixDatagram::unbound()?.connect("/dev/log")?)
    }),
    attempt_for_root("open a raw socket", |_| {
        open_socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP)
    }),
    attempt_for_some_machines("open a packet socket", |_| {
        open_socket(libc::AF_PACKET, libc::SOCK_RAW, 0)
    }),
    attempt_for_some_machines("hear the kernel's events of devices", |_| {
        open_socket(
            libc::AF_NETLINK,
            libc::SOCK_RAW,
            libc::NETLINK_KOBJECT_UEVENT,
        )
    }),
    attempt_for_some_machines("speak to the kernel's filters", |_| {
        open_socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_NETFILTER)
    }),
    attempt_for_some_machines("speak to the kernel's audit", |_| {
        open_socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_AUDIT)
    }),
    attempt_for_some_machines("open a socket to the host machine", |_| {
        open_socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0)
    }),
    attempt_for_some_machines("open a socket to the kernel's ciphers", |_| {
        open_socket(libc::AF_ALG, libc::SOCK_SEQPACKET, 0)
    }),
    attempt_for_some_machines("open a socket of keys", |_| {
        open_socket(libc::AF_KEY, libc::SOCK_RAW, 2)
    }),
    attempt_for_some_machines("open a socket of radio", |_| {
        open_socket(libc::AF_BLUETOOTH, libc::SOCK_RAW, 1)
    }),
    attempt_for_some_machines("open a socket of a cluster", |_| {
        open_socket(libc::AF_TIPC, libc::SOCK_STREAM, 0)
    }),
    attempt_for_some_machines("open a socket of a bus in a car", |_| {
        open_socket(libc::AF_CAN, libc::SOCK_RAW, 1)
    }),
    attempt_for_some_machines("open a socket past the network stack", |_| {
        open_socket(libc::AF_XDP, libc::SOCK_RAW, 0)
    }),
    attempt_for_some_machines("open a socket of reliable datagrams", |_| {
        open_socket(libc::AF_RDS, libc::SOCK_SEQPACKET, 0)
    }),
    attempt_for_some_machines("open a socket of a modem", |_| {
        open_socket(libc::AF_PPPOX, libc::SOCK_STREAM, 0)
    }),
    attempt_for_some_machines("open a pair of another family", |_| {
        let mut pair = [0_u8; 8];
        make_syscall(
            libc::SYS_socketpair,
            [
                libc::AF_TIPC.into(),
                libc::SOCK_STREAM.into(),
                0.into(),
                (&mut pair).into(),
            ],
        )?;
        Ok(())
    }),
];

fn connect_tcp(address: SocketAddr) -> AttemptResult {
    TcpStream::connect_timeout(&address, CONNECT_TIMEOUT)?;
    Ok(())
}

fn send_mark(mut stream: UnixStream, mark: &str) -> AttemptResult {
    Ok(stream.write_all(mark.as_bytes())?)
}

fn connect_service(paths: &[&str]) -> AttemptResult {
    let Some(path) = paths.iter().find(|path| Path::new(path).exists()) else {
        return not_applicable("there is no such service");
    };
    match UnixStream::connect(path) {
        // The socket exists, but takes datagrams.
        Err(error) if error.raw_os_error() == Some(libc::EPROTOTYPE) => Ok(()),
        connected => connected.map(drop).map_err(Into::into),
    }
}

fn open_socket(family: i32, kind: i32, protocol: i32) -> AttemptResult {
    match make_syscall(
        libc::SYS_socket,
        [family.into(), kind.into(), protocol.into()],
    ) {
        Ok(socket) => {
            drop(file_from_descriptor(socket));
            Ok(())
        }
        Err(error) => match error.raw_os_error() {
            Some(libc::EAFNOSUPPORT | libc::EPROTONOSUPPORT | libc::ESOCKTNOSUPPORT) => {
                not_applicable("this kernel has no such sockets")
            }
            Some(_) | None => refused(error.to_string()),
        },
    }
}
