use proptest::prelude::*;

use super::*;

fn is_public_text(text: &str) -> bool {
    is_public_address(text.parse().unwrap())
}

/// First and last address of every range that IANA's registries of special-purpose addresses call
/// not globally reachable, of multicast, and of unassigned ranges; and metadata services of clouds.
const SPECIAL: &[(&str, &str)] = &[
    ("0.0.0.0", "0.255.255.255"),
    ("10.0.0.0", "10.255.255.255"),
    ("100.64.0.0", "100.127.255.255"),
    ("127.0.0.0", "127.255.255.255"),
    ("169.254.0.0", "169.254.255.255"),
    ("172.16.0.0", "172.31.255.255"),
    ("192.0.0.0", "192.0.0.255"),
    ("192.0.2.0", "192.0.2.255"),
    ("192.88.99.0", "192.88.99.255"),
    ("192.168.0.0", "192.168.255.255"),
    ("198.18.0.0", "198.19.255.255"),
    ("198.51.100.0", "198.51.100.255"),
    ("203.0.113.0", "203.0.113.255"),
    ("224.0.0.0", "239.255.255.255"),
    ("240.0.0.0", "255.255.255.255"),
    // Loopback, unspecified, and IPv4-compatible addresses.
    ("::", "::ffff:ffff"),
    // Local-use translation.
    ("64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff"),
    // Discard, dummy.
    ("100::", "100::1:ffff:ffff:ffff:ffff"),
    // Protocol assignments: Teredo, benchmarks, ORCHID, drone identification.
    ("2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"),
    // 6to4, with any embedded address.
    ("2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff"),
    // Not assigned yet; segment routing at 5f00.
    ("4000::", "fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    // Unique local, link-local, site-local, multicast.
    ("fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    // Metadata of Azure, of most clouds, of Alibaba, of Oracle, of Amazon, of Google.
    ("168.63.129.16", "168.63.129.16"),
    ("169.254.169.254", "169.254.169.254"),
    ("100.100.100.200", "100.100.100.200"),
    ("192.0.0.192", "192.0.0.192"),
    ("fd00:ec2::254", "fd00:ec2::254"),
    ("fd20:ce::254", "fd20:ce::254"),
];

#[test]
fn is_public_rejects_both_ends_of_every_special_range() {
    for (first, last) in SPECIAL {
        assert!(
            !is_public_text(first) && !is_public_text(last),
            "{first} to {last}"
        );
    }
}

#[test]
fn is_public_rejects_carriers_of_special_addresses() {
    for (first, last) in SPECIAL.iter().filter(|(first, _)| !first.contains(':')) {
        for inside in [first, last] {
            let inside: Ipv4Addr = inside.parse().unwrap();
            let [a, b, c, d] = inside.octets();
            let high = u16::from_be_bytes([a, b]);
            let low = u16::from_be_bytes([c, d]);
            let mapped = inside.to_ipv6_mapped();
            let compatible = Ipv6Addr::new(0, 0, 0, 0, 0, 0, high, low);
            let translated = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low);
            let tunnelled = Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1);
            for carrier in [mapped, compatible, translated, tunnelled] {
                assert!(
                    !is_public_address(carrier.into()),
                    "{carrier} carries {inside}"
                );
            }
        }
    }
}

#[test]
fn is_public_accepts_addresses_of_the_internet() {
    for address in [
        "1.1.1.1",
        "9.255.255.255",
        "11.0.0.1",
        "93.184.216.34",
        "100.63.255.255",
        "100.128.0.1",
        "126.255.255.255",
        "128.0.0.1",
        "168.63.129.15",
        "168.63.129.17",
        "172.15.0.1",
        "172.32.0.1",
        "192.0.1.1",
        "192.167.255.255",
        "198.17.255.255",
        "198.20.0.1",
        "223.255.255.255",
        "::ffff:1.1.1.1",
        "::ffff:8.8.8.8",
        "64:ff9b::101:101",
        "64:ff9b::808:808",
        "2001:200::1",
        "2001:4860:4860::8888",
        "2606:4700::1111",
        "2a00:1450::1",
        "3ffe::1",
    ] {
        assert!(is_public_text(address), "{address}");
    }
}

/// The former rule of the web fetcher, before there was one list.
fn was_public_to_the_fetcher(address: IpAddr) -> bool {
    let old = |address: Ipv4Addr| {
        let [a, b, c, _] = address.octets();
        !(a == 0
            || a >= 240
            || (a == 100 && (64..128).contains(&b))
            || (a == 198 && (18..20).contains(&b))
            || (a, b, c) == (192, 0, 0)
            || (a, b, c) == (192, 88, 99)
            || address.is_private()
            || address.is_loopback()
            || address.is_link_local()
            || address.is_multicast()
            || address.is_documentation())
    };
    let inside =
        |high: u16, low: u16| old(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)));
    match address {
        IpAddr::V4(address) => old(address),
        IpAddr::V6(address) => match address.segments() {
            [0, 0, 0, 0, 0, 0xffff, high, low]
            | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
            | [0x2002, high, low, ..] => inside(high, low),
            [0x2001, 0 | 0xdb8, ..] => false,
            [first, ..] => first & 0xe000 == 0x2000,
        },
    }
}

/// The former rule of the sandbox's proxy, written in another way: with the ends of the ranges.
fn was_public_to_the_proxy(address: IpAddr) -> bool {
    let address = address.to_canonical();
    let between = |address: IpAddr| {
        let inside = |(first, last): &(&str, &str)| {
            let (first, last): (IpAddr, IpAddr) = (first.parse().unwrap(), last.parse().unwrap());
            first.is_ipv4() == address.is_ipv4() && first <= address && address <= last
        };
        SPECIAL.iter().any(inside)
    };
    match address {
        IpAddr::V4(_) => !between(address),
        IpAddr::V6(six) => match six.segments() {
            [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
                !between(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)).into())
            }
            [first, ..] => first & 0xe000 == 0x2000 && !between(address),
        },
    }
}

/// Generates addresses, many of them in special ranges or at their edges.
fn addresses() -> impl Strategy<Value = IpAddr> {
    let edge = (0..SPECIAL.len(), any::<bool>(), -2_i64..=2).prop_map(|(which, last, by)| {
        let text = if last {
            SPECIAL[which].1
        } else {
            SPECIAL[which].0
        };
        match text.parse().unwrap() {
            IpAddr::V4(one) => IpAddr::V4(Ipv4Addr::from_bits(
                one.to_bits().wrapping_add_signed(by as i32),
            )),
            IpAddr::V6(one) => IpAddr::V6(Ipv6Addr::from_bits(
                one.to_bits().wrapping_add_signed(i128::from(by)),
            )),
        }
    });
    let four = any::<u32>().prop_map(|bits| IpAddr::V4(Ipv4Addr::from_bits(bits)));
    let six = any::<u128>().prop_map(|bits| IpAddr::V6(Ipv6Addr::from_bits(bits)));
    let global =
        any::<u128>().prop_map(|bits| IpAddr::V6(Ipv6Addr::from_bits(bits >> 3 | 1 << 125)));
    let carriers = (
        prop_oneof![Just(0_u128), Just(0xffff), Just(0x64_ff9b << 64)],
        any::<u32>(),
    )
        .prop_map(|(prefix, inside)| {
            IpAddr::V6(Ipv6Addr::from_bits(prefix << 32 | u128::from(inside)))
        });
    let tunnels =
        any::<u128>().prop_map(|bits| IpAddr::V6(Ipv6Addr::from_bits(bits >> 16 | 0x2002 << 112)));
    prop_oneof![edge, four, six, global, carriers, tunnels]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    /// One list replaced two that disagreed: an address is public only if it was public in both.
    #[test]
    fn is_public_is_as_strict_as_both_former_lists(address in addresses()) {
        let both = was_public_to_the_fetcher(address) && was_public_to_the_proxy(address);
        prop_assert_eq!(is_public_address(address), both, "{}", address);
    }
}
