//! The hosts a command may reach, as the user lists them, and hosts as requests name them.
//!
//! Invariant: a listed host and a requested one are compared in one spelling. Names are lower-case
//! ASCII without a final dot, addresses are numbers: `0x7f.1` and `127.0.0.1` are the same,
//! `BÜCHER.example` and `xn--bcher-kva.example` too.

use std::fmt;
use std::net::IpAddr;

/// The ports meant where an entry names none.
const USUAL_PORTS: [u16; 2] = [80, 443];

/// A list of hosts that may be reached: `[sandbox] network`.
///
/// An entry is a name, `*.` and a domain for every name below it (not the domain itself), or an
/// address; each may be followed by `:` and a port. Without one, ports 80 and 443 are meant.
///
/// ```
/// use haft_sandbox::Hosts;
///
/// assert!(Hosts::parse(["crates.io", "*.example.com:8443", "10.0.0.7:5432"]).is_ok());
/// let error = Hosts::parse(["https://crates.io/"]).unwrap_err();
/// assert_eq!(error.to_string(), "`https://crates.io/` in `[sandbox] network` is an address of a page: write `crates.io`");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts {
    entries: Vec<HostEntry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct HostEntry {
    covers: HostPattern,
    /// `None` for the usual ones.
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum HostPattern {
    One(CanonicalHost),
    /// Every name below this domain.
    Below(String),
}

/// A host in its one spelling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CanonicalHost {
    Name(String),
    Address(IpAddr),
}

impl fmt::Display for CanonicalHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// An entry of the list that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{entry}` in `[sandbox] network` {problem}")]
pub struct HostError {
    /// The entry as it was written.
    pub entry: String,
    /// What is wrong with it and what to write instead.
    pub problem: String,
}

impl Hosts {
    /// Reads a list of entries; the first that cannot be understood is the error.
    pub fn parse<Text: AsRef<str>>(
        entries: impl IntoIterator<Item = Text>,
    ) -> Result<Self, HostError> {
        let read = |text: Text| {
            let entry = text.as_ref();
            HostEntry::parse(entry).map_err(|problem| HostError {
                entry: entry.to_owned(),
                problem,
            })
        };
        Ok(Self {
            entries: entries.into_iter().map(read).collect::<Result<_, _>>()?,
        })
    }

    /// Whether nothing is listed.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether this host may be reached at this port.
    pub(super) fn list(&self, host: &CanonicalHost, port: u16) -> bool {
        self.entries
            .iter()
            .any(|entry| entry.has_port(port) && entry.covers.host(host))
    }
}

impl HostEntry {
    fn parse(entry: &str) -> Result<Self, String> {
        if entry.is_empty() {
            return Err("is empty: write a host, such as `crates.io`".to_owned());
        }
        if entry.contains(char::is_whitespace) || entry.contains(char::is_control) {
            return Err(
                "contains a space or a control character: write one host per entry".to_owned(),
            );
        }
        if entry == "*" {
            return Err(
                "stands for the whole network only as the one entry: name the hosts, or write nothing else".to_owned()
            );
        }
        if entry.contains(['/', '?', '#', '@', '\\']) {
            let host = url::Url::parse(entry)
                .ok()
                .and_then(|url| url.host_str().map(str::to_owned));
            return Err(host.filter(|host| !host.is_empty()).map_or_else(
                || "is more than a host: write a host and, if needed, `:` and a port".to_owned(),
                |host| format!("is an address of a page: write `{host}`"),
            ));
        }
        let (name, port) = split_port(entry)?;
        let covers = match name.strip_prefix("*.") {
            None if name.contains('*') => {
                return Err("has a `*` elsewhere than in front: write `*.` and a domain".to_owned());
            }
            None => HostPattern::One(CanonicalHost::listed(name)?),
            Some(domain) if domain.contains('*') => {
                return Err(
                    "has more than one `*`: `*.` and a domain covers names at any depth".to_owned(),
                );
            }
            Some(domain) => match CanonicalHost::listed(domain)? {
                CanonicalHost::Address(_) => {
                    return Err("has a `*` before an address: list each address".to_owned());
                }
                CanonicalHost::Name(domain) if !domain.contains('.') => {
                    return Err(format!(
                        "would be all of `.{domain}`: name more of the domain"
                    ));
                }
                CanonicalHost::Name(domain) => HostPattern::Below(domain),
            },
        };
        Ok(Self { covers, port })
    }

    fn has_port(&self, port: u16) -> bool {
        self.port
            .map_or_else(|| USUAL_PORTS.contains(&port), |listed| listed == port)
    }
}

impl HostPattern {
    fn host(&self, host: &CanonicalHost) -> bool {
        match (self, host) {
            (Self::One(listed), host) => listed == host,
            (Self::Below(domain), CanonicalHost::Name(name)) => name
                .strip_suffix(domain.as_str())
                .is_some_and(|below| below.len() > 1 && below.ends_with('.')),
            (Self::Below(_), CanonicalHost::Address(_)) => false,
        }
    }
}

/// The host of an entry and the port behind it.
fn split_port(entry: &str) -> Result<(&str, Option<u16>), String> {
    let (name, port) = match entry.rsplit_once(':') {
        None => return Ok((entry, None)),
        // An address of IPv6 by itself, or in brackets without a port.
        Some(_) if entry.ends_with(']') || entry.parse::<std::net::Ipv6Addr>().is_ok() => {
            return Ok((entry, None));
        }
        Some((name, _)) if name.contains(':') && !name.ends_with(']') => {
            return Err(
                "has more than one `:`: write an IPv6 address in brackets, `[::1]:443`".to_owned(),
            );
        }
        Some(parts) => parts,
    };
    let port = read_port(port)
        .ok_or_else(|| format!("has the port `{port}`: write a number from 1 to 65535"))?;
    Ok((name, Some(port)))
}

/// A port in digits and nothing else.
pub(super) fn read_port(text: &str) -> Option<u16> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|port| digits && *port != 0)
}

impl CanonicalHost {
    /// A host from the user's list, in any script.
    fn listed(text: &str) -> Result<Self, String> {
        let no_host = || "is no host: write a name, such as `crates.io`, or an address".to_owned();
        if text.contains('%') {
            return Err(no_host());
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self::Address(address.to_canonical()));
        }
        Self::read(text).ok_or_else(no_host)
    }

    /// A host from a request: what clients send is ASCII.
    pub(super) fn requested(text: &str) -> Option<Self> {
        let plain = |byte: u8| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':' | b'[' | b']')
        };
        Self::read(text).filter(|_| text.bytes().all(plain))
    }

    fn read(text: &str) -> Option<Self> {
        let text = text.strip_suffix('.').unwrap_or(text);
        match url::Host::parse(text).ok()? {
            url::Host::Ipv4(address) => Some(Self::Address(address.into())),
            url::Host::Ipv6(address) => Some(Self::Address(IpAddr::from(address).to_canonical())),
            url::Host::Domain(name) => {
                let letter = |byte: u8| {
                    byte.is_ascii_lowercase()
                        || byte.is_ascii_digit()
                        || matches!(byte, b'-' | b'_')
                };
                let is_label =
                    |label: &str| (1..=63).contains(&label.len()) && label.bytes().all(letter);
                (name.len() <= 253 && name.split('.').all(is_label)).then_some(Self::Name(name))
            }
        }
    }
}

#[cfg(test)]
mod tests;
