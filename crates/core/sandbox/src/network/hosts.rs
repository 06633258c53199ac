//! Parses the hosts that a command may reach, and hosts named in requests.
//!
//! Invariant: listed and requested hosts are compared in one canonical spelling. Names are
//! lower-case ASCII without a final dot, addresses are numbers: `0x7f.1` equals `127.0.0.1`, and
//! `BÜCHER.example` equals `xn--bcher-kva.example`.

use std::fmt;
use std::net::IpAddr;

/// The ports that are allowed if an entry names no port.
const DEFAULT_PORTS: [u16; 2] = [80, 443];

/// The hosts that may be reached: `[sandbox] network`.
///
/// An entry is a name, `*.` and a domain for every name below it (not the domain itself), or an
/// address. Each may be followed by `:` and a port; the default ports are 80 and 443.
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
    pattern: HostPattern,
    /// The listed port, or `None` for the default ports.
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum HostPattern {
    One(CanonicalHost),
    /// Every name below this domain, but not the domain itself.
    Below(String),
}

/// A host name or address in its canonical spelling, so that equal hosts compare as equal.
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

/// An invalid entry of `[sandbox] network`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{entry}` in `[sandbox] network` {problem}")]
pub struct HostError {
    /// The entry as written by the user.
    pub entry: String,
    /// The problem and its correction, as the rest of a sentence that begins with the entry.
    pub problem: String,
}

impl Hosts {
    /// Parses a list of entries. Fails at the first invalid entry.
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

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns true if `host` may be reached at `port`.
    pub(super) fn allows(&self, host: &CanonicalHost, port: u16) -> bool {
        self.entries
            .iter()
            .any(|entry| entry.covers_port(port) && entry.pattern.matches(host))
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
            None => HostPattern::One(CanonicalHost::parse_listed(name)?),
            Some(domain) if domain.contains('*') => {
                return Err(
                    "has more than one `*`: `*.` and a domain covers names at any depth".to_owned(),
                );
            }
            Some(domain) => match CanonicalHost::parse_listed(domain)? {
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
        Ok(Self {
            pattern: covers,
            port,
        })
    }

    fn covers_port(&self, port: u16) -> bool {
        self.port
            .map_or_else(|| DEFAULT_PORTS.contains(&port), |listed| listed == port)
    }
}

impl HostPattern {
    fn matches(&self, host: &CanonicalHost) -> bool {
        match (self, host) {
            (Self::One(listed), host) => listed == host,
            (Self::Below(domain), CanonicalHost::Name(name)) => name
                .strip_suffix(domain.as_str())
                .is_some_and(|below| below.len() > 1 && below.ends_with('.')),
            (Self::Below(_), CanonicalHost::Address(_)) => false,
        }
    }
}

/// Splits an entry into the host and the optional port.
fn split_port(entry: &str) -> Result<(&str, Option<u16>), String> {
    let (name, port) = match entry.rsplit_once(':') {
        None => return Ok((entry, None)),
        // An IPv6 address without a port, bare or in brackets.
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
    let port = parse_port(port)
        .ok_or_else(|| format!("has the port `{port}`: write a number from 1 to 65535"))?;
    Ok((name, Some(port)))
}

/// Parses a port that consists of digits only and is not zero.
pub(super) fn parse_port(text: &str) -> Option<u16> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|port| digits && *port != 0)
}

impl CanonicalHost {
    /// Parses a host from the user's list, in any script.
    fn parse_listed(text: &str) -> Result<Self, String> {
        let no_host = || "is no host: write a name, such as `crates.io`, or an address".to_owned();
        if text.contains('%') {
            return Err(no_host());
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self::Address(address.to_canonical()));
        }
        Self::parse(text).ok_or_else(no_host)
    }

    /// Parses a host from a request. Clients send ASCII, so other characters are rejected.
    pub(super) fn parse_requested(text: &str) -> Option<Self> {
        let plain = |byte: u8| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':' | b'[' | b']')
        };
        Self::parse(text).filter(|_| text.bytes().all(plain))
    }

    fn parse(text: &str) -> Option<Self> {
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
