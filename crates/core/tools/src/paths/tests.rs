use std::os::unix::fs::symlink;

use super::*;
use crate::testing::Bench;

#[test]
fn paths_are_relative_to_the_working_directory() {
    let bench = Bench::new();
    bench.write("src/a.rs", "x");
    assert_eq!(
        resolve(bench.workspace(), "src/a.rs").unwrap(),
        bench.path("src/a.rs")
    );
    assert_eq!(
        resolve(bench.workspace(), "./src/../src/./a.rs").unwrap(),
        bench.path("src/a.rs")
    );
    let absolute = bench.path("src/a.rs");
    assert_eq!(
        resolve(bench.workspace(), absolute.to_str().unwrap()).unwrap(),
        absolute
    );
    assert_eq!(resolve(bench.workspace(), ".").unwrap(), bench.path(""));
}

#[test]
fn a_file_that_does_not_exist_yet_resolves_through_its_existing_parents() {
    let bench = Bench::new();
    bench.write("real/keep", "");
    symlink(bench.path("real"), bench.path("link")).unwrap();
    assert_eq!(
        resolve(bench.workspace(), "link/new/deep.txt").unwrap(),
        bench.path("real/new/deep.txt")
    );
}

#[test]
fn what_leads_outside_is_refused_with_where_it_leads() {
    let bench = Bench::new();
    symlink("/etc", bench.path("etc")).unwrap();
    symlink("/nowhere/at/all", bench.path("dangling")).unwrap();
    for (given, lands) in [
        ("/etc/passwd", "/etc/passwd"),
        ("etc/passwd", "/etc/passwd"),
        ("dangling", "/nowhere/at/all"),
        ("../../../../../../../../etc", "/etc"),
        ("new/../../../../../../../../../etc", "/etc"),
    ] {
        let error = resolve(bench.workspace(), given).unwrap_err();
        assert_eq!(error.code(), "outside_workspace", "{given}");
        assert!(error.to_string().contains(&format!("`{lands}`")), "{error}");
    }
}

#[test]
fn a_folder_whose_name_only_starts_like_the_project_is_outside() {
    let bench = Bench::new();
    let sibling = format!("{}-other/file", bench.path("").display());
    assert_eq!(
        resolve(bench.workspace(), &sibling).unwrap_err().code(),
        "outside_workspace"
    );
}

#[test]
fn a_circle_of_links_and_a_file_used_as_a_folder_are_errors() {
    let bench = Bench::new();
    symlink("b", bench.path("a")).unwrap();
    symlink("a", bench.path("b")).unwrap();
    assert_eq!(
        resolve(bench.workspace(), "a").unwrap_err().code(),
        "too_many_links"
    );
    bench.write("file", "x");
    assert_eq!(
        resolve(bench.workspace(), "file/below").unwrap_err().code(),
        "io"
    );
    assert_eq!(
        resolve(bench.workspace(), "").unwrap_err().code(),
        "invalid_path"
    );
    assert_eq!(
        resolve(bench.workspace(), "nul\0byte").unwrap_err().code(),
        "io"
    );
}
