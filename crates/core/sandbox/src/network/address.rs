//! Which addresses belong to the public internet. Everything else may be a neighbour: the machine itself, its network, the
//! metadata service of a cloud.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Networks of IPv4 that are not public, as address and length of the prefix.
const NOT_PUBLIC: &[([u8; 4], u32)] = &[
    ([0, 0, 0, 0], 8),        // this host
    ([10, 0, 0, 0], 8),       // private
    ([100, 64, 0, 0], 10),    // behind a carrier's translation; metadata of some clouds
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

/// Networks of IPv6 within the global unicast range that are not public, as the first two groups and the prefix's length.
const NOT_PUBLIC_6: &[([u16; 2], u32)] = &[
    ([0x2001, 0], 23),     // protocol assignments, tunnels to IPv4
    ([0x2001, 0xdb8], 32), // documentation
    ([0x2002, 0], 16),     // tunnels to IPv4
    ([0x3fff, 0], 20),     // documentation
];

/// Whether this is an address of the public internet.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_4(address),
        IpAddr::V6(address) => is_public_6(address),
    }
}

fn is_public_4(address: Ipv4Addr) -> bool {
    let bits = address.to_bits();
    let within = |(network, length): &([u8; 4], u32)| (bits ^ u32::from_be_bytes(*network)) >> (32 - length) == 0;
    !NOT_PUBLIC.iter().any(within)
}

fn is_public_6(address: Ipv6Addr) -> bool {
    let bits = address.to_bits();
    if bits >> 32 == 0x64_ff9b << 64 {
        // How networks without IPv4 write an address of it.
        return is_public_4(Ipv4Addr::from_bits(bits as u32));
    }
    let first = (bits >> 96) as u32;
    let within = |([one, two], length): &([u16; 2], u32)| {
        (first ^ (u32::from(*one) << 16 | u32::from(*two))) >> (32 - length) == 0
    };
    first >> 29 == 0b001 && !NOT_PUBLIC_6.iter().any(within)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn public(text: &str) -> bool {
        is_public(text.parse().unwrap())
    }

    #[test]
    fn neighbours_are_not_public() {
        for address in [
            "0.0.0.0",
            "10.255.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.254",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.168.0.1",
            "198.19.0.1",
            "224.0.0.251",
            "239.255.255.250",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "3fff::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!public(address), "{address}");
        }
    }

    #[test]
    fn the_internet_is_public() {
        for address in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.1",
            "100.63.255.255",
            "100.128.0.1",
            "126.255.255.255",
            "128.0.0.1",
            "168.63.129.15",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "192.167.255.255",
            "198.17.255.255",
            "198.20.0.1",
            "223.255.255.255",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
            "2001:4860:4860::8888",
            "2606:4700::1111",
            "2a00:1450::1",
        ] {
            assert!(public(address), "{address}");
        }
    }
}
