//! Tests that outlines of any text take bounded work and never crash.

use std::cell::Cell;
use std::time::Duration;

use haft_outline::{OutlineError, OutlineLimits, SourceLanguage, outline_source};
use proptest::prelude::*;

fn limits() -> OutlineLimits {
    OutlineLimits {
        time: Duration::from_millis(10),
        ..OutlineLimits::default()
    }
}

/// Asserts that the text gives an outline, or an error that text may cause.
fn assert_outline_survives(language: SourceLanguage, text: &str) {
    match outline_source(language, text, limits(), &|| false) {
        Ok(_) | Err(OutlineError::TimedOut { .. } | OutlineError::NotText) => {}
        Err(
            error @ (OutlineError::TooLarge { .. }
            | OutlineError::Stopped
            | OutlineError::Grammar { .. }),
        ) => {
            panic!("{}: {error}", language.name())
        }
    }
}

#[test]
fn outline_survives_malicious_text() {
    let length = 10_000;
    let nested: Vec<String> = [
        "(",
        "[",
        "{",
        "<",
        "\"",
        "'",
        "`",
        "/*",
        "<<A\n",
        "$((",
        "if (",
        "class A {",
        "fn a() {",
        "def a(",
        "#if A\n",
        "\\",
        "${",
        "<?php ",
        "=begin\n",
        "template<",
        "namespace a {",
        "a.",
        "function a() {",
        "() => ",
        "!",
        "-",
        "\u{0}",
        "\u{FEFF}",
        "\t\n",
    ]
    .iter()
    .map(|piece| piece.repeat(length / piece.len()))
    .collect();
    for &language in SourceLanguage::ALL {
        for text in &nested {
            assert_outline_survives(language, text);
        }
    }
}

#[test]
fn outline_rejects_text_that_is_too_long() {
    let limits = OutlineLimits {
        bytes: 10,
        ..OutlineLimits::default()
    };
    let error = outline_source(SourceLanguage::Go, "package main", limits, &|| false).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the source has 12 bytes; at most 10 are parsed"
    );
}

#[test]
fn outline_stops_at_the_time_limit_or_on_request() {
    let source = "fn a() { b(c, d, [1, 2, 3]) }\n".repeat(20_000);
    let hurried = OutlineLimits {
        time: Duration::ZERO,
        ..OutlineLimits::default()
    };
    assert!(matches!(
        outline_source(SourceLanguage::Rust, &source, hurried, &|| false),
        Err(OutlineError::TimedOut { .. })
    ));
    let asked = Cell::new(0);
    let stop = || {
        asked.set(asked.get() + 1);
        asked.get() > 3
    };
    assert!(matches!(
        outline_source(
            SourceLanguage::Rust,
            &source,
            OutlineLimits::default(),
            &stop
        ),
        Err(OutlineError::Stopped)
    ));
}

#[test]
fn outline_limits_the_number_of_definitions() {
    let limits = OutlineLimits {
        definitions: 10,
        ..OutlineLimits::default()
    };
    let found = outline_source(
        SourceLanguage::Rust,
        &"fn a() {}\n".repeat(25),
        limits,
        &|| false,
    )
    .unwrap();
    assert_eq!((found.definitions.len(), found.left_out), (10, 15));
}

#[test]
fn outline_reports_damage_and_lists_whole_definitions() {
    let found = outline_source(
        SourceLanguage::Python,
        "def whole():\n    pass\n\nclass (((\n",
        OutlineLimits::default(),
        &|| false,
    )
    .unwrap();
    assert!(found.damaged);
    assert_eq!(found.definitions[0].name, "whole");
}

#[test]
fn outline_name_is_one_short_line() {
    let long = format!("impl Trait<\n    {}\n> for Own {{}}\n", "Abc, ".repeat(100));
    let found = outline_source(
        SourceLanguage::Rust,
        &long,
        OutlineLimits::default(),
        &|| false,
    )
    .unwrap();
    let name = &found.definitions[0].name;
    assert!(
        name.starts_with("Trait< Abc, Abc,")
            && name.ends_with("… for Own")
            && name.chars().count() < 220,
        "{name}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Fragments of every language in any order, parsed as every language.
    #[test]
    fn outline_of_any_mixture_is_well_formed(pieces in proptest::collection::vec(prop_oneof![
        Just("class A"), Just("struct B {"), Just("}"), Just("fn c("), Just(")"), Just("def d:\n  "), Just("\n"), Just("impl E for F"),
        Just("#define G 1\n"), Just("<<END\n"), Just("END\n"), Just("function h()"), Just("{"), Just("=> "), Just("namespace i;"), Just("\""),
        Just("'"), Just("/*"), Just("*/"), Just("// j\n"), Just("<?php"), Just("?>"), Just("@k"), Just(" é漢 "), Just("template <"), Just(">"),
    ], 0..60)) {
        let text: String = pieces.concat();
        let lines = text.lines().count();
        for &language in SourceLanguage::ALL {
            let Ok(found) = outline_source(language, &text, limits(), &|| false) else { continue };
            let mut last = 0;
            for one in &found.definitions {
                prop_assert!(one.start_line >= last.max(1) && one.start_line <= one.end_line && one.end_line <= lines.max(1), "{one:?}");
                prop_assert!(!one.name.is_empty() && !one.name.contains('\n'));
                last = one.start_line;
            }
        }
    }
}
