//! Attempts to reach the network, and programs outside through sockets.

use std::fs;
use std::io::Write;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use crate::links::through;
use crate::sys::{call, owned};
use crate::{Attempt, Tried, anyone, depends, holds, not_applicable, refused, root};

/// The time limit of a connection. Short, because the servers are on this machine or unreachable.
const PATIENCE: Duration = Duration::from_secs(2);

pub(crate) const ATTEMPTS: &[Attempt] = &[
    anyone("connect to a server on the loopback", |g| {
        connect(SocketAddr::from((Ipv4Addr::LOCALHOST, g.port)))
    }),
    anyone("connect to a server on all addresses", |g| {
        connect(SocketAddr::from((Ipv4Addr::UNSPECIFIED, g.port)))
    }),
    depends("connect to a server by the newer protocol", |g| {
        connect(SocketAddr::from((Ipv6Addr::LOCALHOST, g.port)))
    }),
    depends("connect to a server by a mapped address", |g| {
        connect(SocketAddr::from((
            Ipv4Addr::LOCALHOST.to_ipv6_mapped(),
            g.port,
        )))
    }),
    anyone("send a datagram to a server on the loopback", |g| {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.connect((Ipv4Addr::LOCALHOST, g.port))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.send(g.mark.as_bytes())?;
        // If no server listens, the first send gets an error that only the second one reports.
        std::thread::sleep(Duration::from_millis(20));
        socket.send(g.mark.as_bytes())?;
        Ok(())
    }),
    depends("connect to a host on the internet", |_| {
        connect(SocketAddr::from(([1, 1, 1, 1], 443)))
    }),
    depends("reach the metadata of a cloud", |_| {
        connect(SocketAddr::from(([169, 254, 169, 254], 80)))
    }),
    depends("have a way to other networks", |_| {
        let routes = fs::read_to_string("/proc/net/route")?;
        holds(routes.lines().count() > 1, "there are no routes")
    }),
    depends("see network devices but the loopback", |_| {
        let devices = fs::read_to_string("/proc/net/dev")?;
        let others = devices
            .lines()
            .skip(2)
            .filter(|line| !line.trim_start().starts_with("lo:"))
            .count();
        holds(others > 0, "there is only the loopback")
    }),
    anyone("speak to a socket outside", |g| {
        greet(UnixStream::connect(&g.socket)?, &g.mark)
    }),
    anyone("speak to a socket outside through a link", |g| {
        through(g, &g.socket, |link| {
            greet(UnixStream::connect(link)?, &g.mark)
        })
    }),
    anyone("speak to a socket outside below /proc/self/root", |g| {
        let path =
            Path::new("/proc/self/root").join(g.socket.strip_prefix("/").unwrap_or(&g.socket));
        greet(UnixStream::connect(path)?, &g.mark)
    }),
    anyone(
        "speak to a socket outside that was opened by path only",
        |g| {
            use std::os::fd::AsRawFd;
            use std::os::unix::fs::OpenOptionsExt;
            let place = fs::OpenOptions::new()
                .read(true)
                .custom_flags(libc::O_PATH)
                .open(&g.socket)?;
            greet(
                UnixStream::connect(format!("/proc/self/fd/{}", place.as_raw_fd()))?,
                &g.mark,
            )
        },
    ),
    anyone(
        "hard link a socket outside into the project and speak to it",
        |g| {
            let link = g.in_project("socket-link");
            fs::hard_link(&g.socket, &link)?;
            let tried = UnixStream::connect(&link)
                .map_err(Into::into)
                .and_then(|stream| greet(stream, &g.mark));
            fs::remove_file(link)?;
            tried
        },
    ),
    anyone("move a socket outside into the project", |g| {
        super::files::back_and_forth(&g.socket, &g.in_project("socket-moved"))
    }),
    anyone("speak to a socket outside that has no place", |g| {
        let address = std::os::unix::net::SocketAddr::from_abstract_name(&g.abstract_socket)?;
        greet(UnixStream::connect_addr(&address)?, &g.mark)
    }),
    anyone("see the sockets outside", |g| {
        let table = fs::read_to_string("/proc/net/unix")?;
        holds(table.contains(&g.abstract_socket), "they are not listed")
    }),
    anyone("listen outside", |g| {
        let path = g.outside.join("listener");
        drop(UnixListener::bind(&path)?);
        Ok(fs::remove_file(path)?)
    }),
    depends("speak to the container service", |_| {
        service(&[
            "/run/docker.sock",
            "/var/run/docker.sock",
            "/run/podman/podman.sock",
        ])
    }),
    depends("speak to the system's bus", |_| {
        service(&[
            "/run/dbus/system_bus_socket",
            "/var/run/dbus/system_bus_socket",
        ])
    }),
    depends("speak to the first process", |_| {
        service(&["/run/systemd/private", "/run/systemd/notify"])
    }),
    depends("speak to the log", |_| {
        if !Path::new("/dev/log").exists() {
            return not_applicable("there is no /dev/log");
        }
        Ok(UnixDatagram::unbound()?.connect("/dev/log")?)
    }),
    root("open a raw socket", |_| {
        family(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP)
    }),
    depends("open a packet socket", |_| {
        family(libc::AF_PACKET, libc::SOCK_RAW, 0)
    }),
    depends("hear the kernel's events of devices", |_| {
        family(
            libc::AF_NETLINK,
            libc::SOCK_RAW,
            libc::NETLINK_KOBJECT_UEVENT,
        )
    }),
    depends("speak to the kernel's filters", |_| {
        family(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_NETFILTER)
    }),
    depends("speak to the kernel's audit", |_| {
        family(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_AUDIT)
    }),
    depends("open a socket to the host machine", |_| {
        family(libc::AF_VSOCK, libc::SOCK_STREAM, 0)
    }),
    depends("open a socket to the kernel's ciphers", |_| {
        family(libc::AF_ALG, libc::SOCK_SEQPACKET, 0)
    }),
    depends("open a socket of keys", |_| {
        family(libc::AF_KEY, libc::SOCK_RAW, 2)
    }),
    depends("open a socket of radio", |_| {
        family(libc::AF_BLUETOOTH, libc::SOCK_RAW, 1)
    }),
    depends("open a socket of a cluster", |_| {
        family(libc::AF_TIPC, libc::SOCK_STREAM, 0)
    }),
    depends("open a socket of a bus in a car", |_| {
        family(libc::AF_CAN, libc::SOCK_RAW, 1)
    }),
    depends("open a socket past the network stack", |_| {
        family(libc::AF_XDP, libc::SOCK_RAW, 0)
    }),
    depends("open a socket of reliable datagrams", |_| {
        family(libc::AF_RDS, libc::SOCK_SEQPACKET, 0)
    }),
    depends("open a socket of a modem", |_| {
        family(libc::AF_PPPOX, libc::SOCK_STREAM, 0)
    }),
    depends("open a pair of another family", |_| {
        let mut pair = [0_u8; 8];
        call(
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

fn connect(address: SocketAddr) -> Tried {
    TcpStream::connect_timeout(&address, PATIENCE)?;
    Ok(())
}

fn greet(mut stream: UnixStream, mark: &str) -> Tried {
    Ok(stream.write_all(mark.as_bytes())?)
}

fn service(paths: &[&str]) -> Tried {
    let Some(path) = paths.iter().find(|path| Path::new(path).exists()) else {
        return not_applicable("there is no such service");
    };
    match UnixStream::connect(path) {
        // The socket exists, but takes datagrams.
        Err(error) if error.raw_os_error() == Some(libc::EPROTOTYPE) => Ok(()),
        connected => connected.map(drop).map_err(Into::into),
    }
}

fn family(family: i32, kind: i32, protocol: i32) -> Tried {
    match call(
        libc::SYS_socket,
        [family.into(), kind.into(), protocol.into()],
    ) {
        Ok(socket) => {
            drop(owned(socket));
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
