use std::os::unix::fs::symlink;

use super::*;
use crate::testing::Bench;

#[test]
fn resolve_is_relative_to_the_working_directory() {
    let bench = Bench::new();
    bench.write("src/a.rs", "x");
    assert_eq!(
        resolve_path(bench.workspace(), "src/a.rs").unwrap(),
        bench.path("src/a.rs")
    );
    assert_eq!(
        resolve_path(bench.workspace(), "./src/../src/./a.rs").unwrap(),
        bench.path("src/a.rs")
    );
    let absolute = bench.path("src/a.rs");
    assert_eq!(
        resolve_path(bench.workspace(), absolute.to_str().unwrap()).unwrap(),
        absolute
    );
    assert_eq!(
        resolve_path(bench.workspace(), ".").unwrap(),
        bench.path("")
    );
}

#[test]
fn resolve_follows_existing_parents_of_a_new_file() {
    let bench = Bench::new();
    bench.write("real/keep", "");
    symlink(bench.path("real"), bench.path("link")).unwrap();
    assert_eq!(
        resolve_path(bench.workspace(), "link/new/deep.txt").unwrap(),
        bench.path("real/new/deep.txt")
    );
}

#[test]
fn resolve_rejects_paths_to_the_outside_and_names_the_target() {
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
        let error = resolve_path(bench.workspace(), given).unwrap_err();
        assert_eq!(error.code(), "outside_workspace", "{given}");
        assert!(error.to_string().contains(&format!("`{lands}`")), "{error}");
    }
}

#[test]
fn resolve_rejects_a_folder_whose_name_only_starts_like_the_project() {
    let bench = Bench::new();
    let sibling = format!("{}-other/file", bench.path("").display());
    assert_eq!(
        resolve_path(bench.workspace(), &sibling)
            .unwrap_err()
            .code(),
        "outside_workspace"
    );
}

#[test]
fn resolve_rejects_link_loops_and_files_used_as_folders() {
    let bench = Bench::new();
    symlink("b", bench.path("a")).unwrap();
    symlink("a", bench.path("b")).unwrap();
    assert_eq!(
        resolve_path(bench.workspace(), "a").unwrap_err().code(),
        "too_many_links"
    );
    bench.write("file", "x");
    assert_eq!(
        resolve_path(bench.workspace(), "file/below")
            .unwrap_err()
            .code(),
        "io"
    );
    assert_eq!(
        resolve_path(bench.workspace(), "").unwrap_err().code(),
        "invalid_path"
    );
    assert_eq!(
        resolve_path(bench.workspace(), "nul\0byte")
            .unwrap_err()
            .code(),
        "io"
    );
}
