//! Checks docs/advisories.md and docs/security.md against the repository: ids are well-formed and
//! unique, and every test that the pages name exists.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../..");

/// Returns the cells of each row.
fn parse_rows(page: &str) -> Vec<Vec<String>> {
    let rows = page
        .lines()
        .filter(|line| line.starts_with("| CVE-") || line.starts_with("| GHSA-"));
    let cells = |row: &str| {
        row.replace("\\|", "\u{1}")
            .trim_matches('|')
            .split('|')
            .map(|cell| cell.trim().to_owned())
            .collect()
    };
    rows.map(cells).collect()
}

fn is_well_formed(id: &str) -> bool {
    let parts: Vec<&str> = id.split('-').collect();
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let letters = |part: &&str| {
        part.len() == 4
            && part
                .bytes()
                .all(|b| b.is_ascii_digit() || b.is_ascii_lowercase())
    };
    match parts.as_slice() {
        ["CVE", year, number] => {
            year.len() == 4 && number.len() >= 4 && digits(year) && digits(number)
        }
        ["GHSA", rest @ ..] => rest.len() == 3 && rest.iter().all(letters),
        _ => false,
    }
}

fn collect_sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            collect_sources(&entry.path(), found);
        } else if entry
            .path()
            .extension()
            .is_some_and(|extension| extension == "rs")
        {
            found.push(entry.path());
        }
    }
}

/// True if `file.rs: name` is a function of a file whose path ends in `file.rs`.
fn test_exists(test: &str, sources: &[PathBuf]) -> bool {
    let Some((file, name)) = test.split_once(": ") else {
        return false;
    };
    let mut files = sources.iter().filter(|path| path.ends_with(file));
    files.any(|path| {
        fs::read_to_string(path)
            .unwrap()
            .contains(&format!("fn {name}("))
    })
}

#[test]
fn rows_have_an_id_and_an_existing_test_or_a_reason() {
    let page = fs::read_to_string(format!("{ROOT}/docs/advisories.md")).unwrap();
    let rows = parse_rows(&page);
    let counted = |test: fn(&str) -> bool| rows.iter().filter(|row| test(&row[4])).count();
    let none = counted(|cell| cell.starts_with("no test yet: "));
    let never = counted(|cell| cell.starts_with("does not apply: "));
    let named = rows.len() - none - never;
    let told = format!(
        "{named} rows name tests, {never} cannot apply and say why, {none} have no test yet."
    );
    assert!(
        page.contains(&format!("\n{} published", rows.len())) && page.contains(&told),
        "{}: {told}",
        rows.len()
    );
    let ids: BTreeSet<_> = rows.iter().map(|row| &row[0]).collect();
    assert_eq!(ids.len(), rows.len(), "an id stands twice");
    let mut found = Vec::new();
    collect_sources(&Path::new(ROOT).join("crates"), &mut found);
    for row in &rows {
        assert!(
            row.len() == 5 && row.iter().all(|cell| !cell.is_empty()),
            "{row:?}"
        );
        assert!(is_well_formed(&row[0]), "{}", row[0]);
        let reason = row[4].starts_with("no test yet: ") || row[4].starts_with("does not apply: ");
        let tests: Vec<_> = row[4].split('`').skip(1).step_by(2).collect();
        assert!(reason || !tests.is_empty(), "{row:?}");
        let missing: Vec<_> = tests
            .iter()
            .filter(|test| !reason && !test_exists(test, &found))
            .collect();
        assert!(missing.is_empty(), "{}: {missing:?}", row[0]);
    }
}

/// Returns the tests that a page names, as `file.rs: name`.
fn list_named_tests(text: &str) -> Vec<&str> {
    text.split('`')
        .skip(1)
        .step_by(2)
        .filter(|code| code.contains(".rs: "))
        .collect()
}

#[test]
fn security_page_names_existing_tests() {
    let page = fs::read_to_string(format!("{ROOT}/docs/security.md")).unwrap();
    let mut found = Vec::new();
    collect_sources(&Path::new(ROOT).join("crates"), &mut found);
    let named = list_named_tests(&page);
    assert!(named.len() >= 30, "{}", named.len());
    let missing: Vec<_> = named
        .iter()
        .filter(|test| !test_exists(test, &found))
        .collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

/// Every row of a table of promises names a test.
#[test]
fn security_page_promises_have_tests() {
    let page = fs::read_to_string(format!("{ROOT}/docs/security.md")).unwrap();
    let mut in_promises = false;
    let mut promises = 0;
    for line in page.lines() {
        if line.starts_with("| promise |") {
            in_promises = true;
        } else if !line.starts_with('|') {
            in_promises = false;
        } else if in_promises && !line.starts_with("| --- |") {
            promises += 1;
            assert!(!list_named_tests(line).is_empty(), "{line}");
        }
    }
    assert!(promises >= 16, "{promises}");
}

#[test]
fn is_well_formed_rejects_malformed_ids() {
    assert!(
        ["CVE-2025-8217", "CVE-2026-105836", "GHSA-9ppg-jx86-fqw7"]
            .into_iter()
            .all(is_well_formed)
    );
    let bad = [
        "CVE-25-8217",
        "CVE-2025-821",
        "CVE-2025-82x7",
        "CVE-2025",
        "GHSA-9ppg-jx86",
        "GHSA-9PPG-jx86-fqw7",
        "x",
    ];
    assert!(!bad.into_iter().any(is_well_formed));
}
