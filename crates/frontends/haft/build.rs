//! Puts the functions that every run calls beside each other in the binary that ships, by an order
//! file.
//!
//! The kernel maps sixteen pages around each that is touched, so functions spread over the whole
//! binary have nearly all of it in memory. `bench/hot-functions` makes the list; a name in it that
//! no longer exists does no harm.

use std::path::Path;
use std::{env, fs, io};

const FUNCTIONS: &str = "hot-functions.txt";

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed={FUNCTIONS}");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    // Only the `dist` profile has this level. Others are linked with whatever the user likes, which
    // may not know such scripts.
    if !(is("CARGO_CFG_TARGET_OS", "linux") && is("OPT_LEVEL", "z")) {
        return Ok(());
    }
    let group = |functions: &str| {
        let sections: String = functions.lines().flat_map(with_hashes).collect();
        format!("*(\n{sections})\n")
    };
    let groups: Vec<_> = fs::read_to_string(FUNCTIONS)?
        .split("\n\n")
        .map(group)
        .collect();
    let script = Path::new(&env::var_os("OUT_DIR").unwrap_or_default()).join("hot-functions.ld");
    fs::write(
        &script,
        format!(
            "SECTIONS {{ .text.hot : {{ {} }} }} INSERT BEFORE .text;\n",
            groups.concat()
        ),
    )?;
    println!("cargo:rustc-link-arg-bins=-T{}", script.display());
    Ok(())
}

/// The sections of functions with this name, in which each `#` stands for the hash of a crate. Most
/// hashes have eleven digits, about one in 22 has ten. Names with two hashes of ten digits are
/// omitted.
fn with_hashes(name: &str) -> Vec<String> {
    let parts: Vec<&str> = name.split('#').collect();
    let section = |short: usize| {
        let hashed = parts.iter().enumerate().skip(1).flat_map(|(index, part)| {
            let hash = if index == short {
                "??????????"
            } else {
                "???????????"
            };
            [hash, part]
        });
        format!("\".text.{}{}\"\n", parts[0], hashed.collect::<String>())
    };
    (0..parts.len()).map(section).collect()
}
