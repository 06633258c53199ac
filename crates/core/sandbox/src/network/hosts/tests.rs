use proptest::prelude::*;

use super::*;

fn hosts(entries: &[&str]) -> Hosts {
    Hosts::parse(entries).unwrap()
}

fn hosts_list(entries: &[&str], host: &str, port: u16) -> bool {
    CanonicalHost::parse_requested(host).is_some_and(|host| hosts(entries).allows(&host, port))
}

#[test]
fn hosts_match_a_name_in_any_case_with_or_without_dot() {
    for host in ["crates.io", "CRATES.IO", "crates.io."] {
        assert!(hosts_list(&["crates.io"], host, 443), "{host}");
        assert!(hosts_list(&["Crates.Io."], host, 80), "{host}");
    }
    for host in [
        "www.crates.io",
        "crates.io.evil.example",
        "evilcrates.io",
        "crates.i",
        "io",
        "crates.io..",
        ".crates.io",
    ] {
        assert!(!hosts_list(&["crates.io"], host, 443), "{host}");
    }
}

#[test]
fn hosts_match_international_names_by_their_ascii_form() {
    assert!(hosts_list(
        &["bücher.example"],
        "xn--bcher-kva.example",
        443
    ));
    assert!(hosts_list(
        &["BÜCHER.example"],
        "xn--bcher-kva.example",
        443
    ));
    // A homoglyph from another script.
    assert!(!hosts_list(&["cr\u{430}tes.io"], "crates.io", 443));
    assert_eq!(CanonicalHost::parse_requested("bücher.example"), None);
    assert_eq!(CanonicalHost::parse_requested("ｃrates.io"), None);
}

#[test]
fn hosts_star_matches_subdomains_of_any_depth() {
    for host in ["a.example.com", "a.b.example.com", "A.EXAMPLE.COM."] {
        assert!(hosts_list(&["*.example.com"], host, 443), "{host}");
    }
    for host in [
        "example.com",
        "badexample.com",
        "example.com.evil.example",
        "a.example.org",
    ] {
        assert!(!hosts_list(&["*.example.com"], host, 443), "{host}");
    }
}

#[test]
fn hosts_without_a_port_match_80_and_443_only() {
    assert!(
        hosts_list(&["a.example"], "a.example", 80) && hosts_list(&["a.example"], "a.example", 443)
    );
    assert!(
        !hosts_list(&["a.example"], "a.example", 22)
            && !hosts_list(&["a.example"], "a.example", 8080)
    );
    assert!(
        hosts_list(&["a.example:22"], "a.example", 22)
            && !hosts_list(&["a.example:22"], "a.example", 443)
    );
    assert!(hosts_list(&["*.example.com:8443"], "x.example.com", 8443));
    assert!(hosts_list(&["[::1]:9"], "[::1]", 9) && !hosts_list(&["[::1]:9"], "[::1]", 443));
}

#[test]
fn hosts_match_an_address_in_any_spelling() {
    for host in [
        "127.0.0.1",
        "0x7f.1",
        "2130706433",
        "0177.0.0.1",
        "127.1",
        "127.0.0.1.",
        "[::ffff:127.0.0.1]",
    ] {
        assert!(hosts_list(&["127.0.0.1"], host, 80), "{host}");
    }
    for entry in ["::1", "[::1]", "0:0:0:0:0:0:0:1", "[0::1]"] {
        assert!(hosts_list(&[entry], "[::1]", 443), "{entry}");
    }
    assert!(!hosts_list(&["127.0.0.1"], "127.0.0.2", 80));
    assert!(!hosts_list(&["*.0.0.example"], "127.0.0.1", 80));
}

#[test]
fn canonical_host_rejects_invalid_hosts() {
    for host in [
        "",
        ".",
        "..",
        "a b",
        "a%2eb",
        "a/b",
        "user@host",
        "a\0b",
        "[::1",
        "::1]",
        "[::1%eth0]",
        "a:b",
        "1.2.3.4.5",
        "256.1.1.1",
        "a..b",
    ] {
        assert_eq!(CanonicalHost::parse_requested(host), None, "{host}");
    }
    assert_eq!(
        CanonicalHost::parse_requested(&"a.".repeat(127)).map(|host| host.to_string().len()),
        Some(253)
    );
    assert_eq!(CanonicalHost::parse_requested(&"a.".repeat(128)), None);
    assert_eq!(CanonicalHost::parse_requested(&"a".repeat(64)), None);
}

#[test]
fn hosts_parse_error_suggests_a_valid_entry() {
    for (entry, told) in [
        ("", "is empty"),
        ("*", "only as the one entry"),
        ("*.com", "would be all of `.com`"),
        ("a.*.com", "elsewhere than in front"),
        ("a*.com", "elsewhere than in front"),
        ("*.*.example.com", "more than one `*`"),
        ("*.10.0.0.1", "before an address"),
        ("https://crates.io", "write `crates.io`"),
        ("http://crates.io:80/path?x", "write `crates.io`"),
        ("crates.io/path", "more than a host"),
        ("me@crates.io", "more than a host"),
        ("10.0.0.0/8", "more than a host"),
        ("crates.io:", "has the port ``"),
        ("crates.io:http", "has the port `http`"),
        ("crates.io:0", "has the port `0`"),
        ("crates.io:+80", "has the port `+80`"),
        ("crates.io:65536", "has the port `65536`"),
        ("::1:443:x", "in brackets"),
        ("a b", "a space"),
        ("a,b", "is no host"),
        ("a%2eb", "is no host"),
        ("a..b", "is no host"),
        ("1.2.3.4.5", "is no host"),
    ] {
        let error = Hosts::parse(["good.example", entry]).unwrap_err();
        assert_eq!(error.entry, entry);
        let message = error.to_string();
        assert!(
            message.starts_with(&format!("`{entry}` in `[sandbox] network` ")),
            "{message}"
        );
        assert!(message.contains(told), "{message}");
    }
}

proptest! {
    /// Only names equal to an entry, or below a listed domain, match.
    #[test]
    fn hosts_match_nothing_else(host in "[a-c.]{1,8}(ab\\.ca)?", port in prop::sample::select(vec![80_u16, 443, 22])) {
        let listed = hosts_list(&["ab.ca", "*.bc.ab"], &host, port);
        let name = host.strip_suffix('.').unwrap_or(&host);
        let below = name.strip_suffix(".bc.ab").is_some_and(|below| below.split('.').all(|label| !label.is_empty()));
        prop_assert_eq!(listed, port != 22 && (name == "ab.ca" || below));
    }

    #[test]
    fn canonical_host_round_trips_for_any_text(text in "\\PC{0,24}") {
        if let Some(host) = CanonicalHost::parse_requested(&text) {
            prop_assert_eq!(CanonicalHost::parse_requested(&host.to_string()), Some(host));
        }
        let _ = Hosts::parse([text]);
    }
}
