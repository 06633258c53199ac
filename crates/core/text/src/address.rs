//! Decides which network addresses belong to the public internet. All other addresses are treated
//! as local: those of this machine, of its network, or of a cloud's metadata service.
//!
//! Invariants: an IPv6 address that embeds an IPv4 address is public only if the embedded address
//! is public, and a range that is not known to be assigned is not public.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IPv4 networks that are not public, each as an address and a prefix length. These are IANA's
/// special-purpose registry, multicast, and the metadata address of one cloud provider. Parts of
/// `192.0.0.0/24` and `192.88.99.0/24` are globally reachable, but no server needs an address
/// there.
const NOT_PUBLIC: &[([u8; 4], u32)] = &[
    ([0, 0, 0, 0], 8),        // this host
    ([10, 0, 0, 0], 8),       // private
    ([100, 64, 0, 0], 10),    // carrier-grade NAT; metadata of some clouds
    ([127, 0, 0, 0], 8),      // loopback
    ([168, 63, 129, 16], 32), // metadata of a cloud, in a public range
    ([169, 254, 0, 0], 16),   // link-local; metadata of most clouds
    ([172, 16, 0, 0], 12),    // private
    ([192, 0, 0, 0], 24),     // protocol assignments; metadata of a cloud
    ([192, 0, 2, 0], 24),     // documentation
    ([192, 88, 99, 0], 24),   // relays to IPv6
    ([192, 168, 0, 0], 16),   // private
    ([198, 18, 0, 0], 15),    // benchmarks
    ([198, 51, 100, 0], 24),  // documentation
    ([203, 0, 113, 0], 24),   // documentation
    ([224, 0, 0, 0], 4),      // multicast
    ([240, 0, 0, 0], 4),      // reserved, broadcast
];

/// IPv6 networks in the global unicast range that are not public. Each is given by its first two
/// groups and its prefix length.
const NOT_PUBLIC_V6: &[([u16; 2], u32)] = &[
    ([0x2001, 0], 23),     // protocol assignments, tunnels to IPv4
    ([0x2001, 0xdb8], 32), // documentation
    ([0x2002, 0], 16),     // tunnels to IPv4
    ([0x3fff, 0], 20),     // documentation
];

/// True for an address of the public internet. False for this machine, its network, a cloud's
/// metadata service and unassigned ranges.
///
/// ```
/// assert!(haft_text::is_public_address("1.1.1.1".parse().unwrap()));
/// assert!(!haft_text::is_public_address("::ffff:169.254.169.254".parse().unwrap()));
/// ```
pub fn is_public_address(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let bits = address.to_bits();
    let within = |(network, length): &([u8; 4], u32)| {
        (bits ^ u32::from_be_bytes(*network)) >> (32 - length) == 0
    };
    !NOT_PUBLIC.iter().any(within)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let bits = address.to_bits();
    if bits >> 32 == 0x64_ff9b << 64 {
        // NAT64: an IPv4 address as seen in a network without IPv4.
        return is_public_v4(Ipv4Addr::from_bits(bits as u32));
    }
    let first = (bits >> 96) as u32;
    let within = |([one, two], length): &([u16; 2], u32)| {
        (first ^ (u32::from(*one) << 16 | u32::from(*two))) >> (32 - length) == 0
    };
    // Only 2000::/3 is assigned.
    first >> 29 == 0b001 && !NOT_PUBLIC_V6.iter().any(within)
}

#[cfg(test)]
mod tests;
