//! One real source file per language, and the hand-checked list of its definitions.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use haft_outline::{Outline, OutlineLimits, SourceLanguage, outline_source};

fn fixture_folder(language: SourceLanguage) -> PathBuf {
    let name = match language {
        SourceLanguage::Cpp => "cpp".to_owned(),
        SourceLanguage::CSharp => "csharp".to_owned(),
        other => other.name().to_lowercase(),
    };
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

/// Formats the definitions as `FIRST-LAST KIND NAME`, indented by depth, with a last line if the
/// grammar could not parse everything: some C macros look like syntax errors.
fn format_outline(outline: &Outline) -> String {
    let mut text = String::new();
    for one in &outline.definitions {
        let indent = "  ".repeat(one.depth);
        let _ = writeln!(
            text,
            "{indent}{}-{} {} {}",
            one.start_line, one.end_line, one.kind, one.name
        );
    }
    if outline.damaged {
        text.push_str("damaged\n");
    }
    text
}

#[test]
fn outline_of_real_files_matches_the_checked_lists() {
    let mut wrong = String::new();
    for &language in SourceLanguage::ALL {
        let folder = fixture_folder(language);
        let source = fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .find(|path| path.file_stem().is_some_and(|stem| stem == "source"))
            .unwrap();
        let text = fs::read_to_string(&source).unwrap();
        assert_eq!(
            SourceLanguage::detect(&source, &text),
            Some(language),
            "{}",
            source.display()
        );
        assert!(text.lines().count() >= 400, "{}", source.display());
        let found = outline_source(language, &text, OutlineLimits::default(), &|| false).unwrap();
        assert_eq!(found.left_out, 0);
        let found = format_outline(&found);
        let expected = fs::read_to_string(folder.join("expected")).unwrap();
        if found != expected {
            let (found, expected): (Vec<_>, Vec<_>) =
                (found.lines().collect(), expected.lines().collect());
            let _ = writeln!(wrong, "{}:", language.name());
            for line in expected.iter().filter(|line| !found.contains(line)) {
                let _ = writeln!(wrong, "  missing: {line}");
            }
            for line in found.iter().filter(|line| !expected.contains(line)) {
                let _ = writeln!(wrong, "  not expected: {line}");
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
