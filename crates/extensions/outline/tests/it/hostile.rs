//! Tests that outlines of any text take bounded work and never crash.

use std::cell::Cell;
use std::time::Duration;

use haft_outline::{OutlineError, OutlineLimits, SourceLanguage, outline};
use proptest::prelude::*;

fn limits() -> OutlineLimits {
    OutlineLimits {
        time: Duration::from_millis(10),
        ..OutlineLimits::default()
    }
}

/// Asserts that the text gives an outline, or an error that text may cause.
fn survives(language: SourceLanguage, text: &str) {
    match outline(language, text, limits(), &|| false) {
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
fn text_made_to_hurt_is_survived() {
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
            survives(language, text);
        }
    }
}

#[test]
fn a_text_that_is_too_long_is_refused_before_anything_is_done() {
    let limits = OutlineLimits {
        bytes: 10,
        ..OutlineLimits::default()
    };
    let error = outline(SourceLanguage::Go, "package main", limits, &|| false).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the source has 12 bytes; at most 10 are parsed"
    );
}

#[test]
fn time_and_a_person_can_stop_it() {
    let source = "fn a() { b(c, d, [1, 2, 3]) }\n".repeat(20_000);
    let hurried = OutlineLimits {
        time: Duration::ZERO,
        ..OutlineLimits::default()
    };
    assert!(matches!(
        outline(SourceLanguage::Rust, &source, hurried, &|| false),
        Err(OutlineError::TimedOut { .. })
    ));
    let asked = Cell::new(0);
    let stop = || {
        asked.set(asked.get() + 1);
        asked.get() > 3
    };
    assert!(matches!(
        outline(
            SourceLanguage::Rust,
            &source,
            OutlineLimits::default(),
            &stop
        ),
        Err(OutlineError::Stopped)
    ));
}

#[test]
fn only_so_many_definitions_come_out() {
    let limits = OutlineLimits {
        definitions: 10,
        ..OutlineLimits::default()
    };
    let found = outline(
        SourceLanguage::Rust,
        &"fn a() {}\n".repeat(25),
        limits,
        &|| false,
    )
    .unwrap();
    assert_eq!((found.definitions.len(), found.left_out), (10, 15));
}

#[test]
fn broken_code_is_said_to_be_and_what_is_whole_is_found() {
    let found = outline(
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
fn a_name_is_one_short_line() {
    let long = format!("impl Trait<\n    {}\n> for Own {{}}\n", "Abc, ".repeat(100));
    let found = outline(
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
    fn any_mixture_keeps_the_promises(pieces in proptest::collection::vec(prop_oneof![
        Just("class A"), Just("struct B {"), Just("}"), Just("fn c("), Just(")"), Just("def d:\n  "), Just("\n"), Just("impl E for F"),
        Just("#define G 1\n"), Just("<<END\n"), Just("END\n"), Just("function h()"), Just("{"), Just("=> "), Just("namespace i;"), Just("\""),
        Just("'"), Just("/*"), Just("*/"), Just("// j\n"), Just("<?php"), Just("?>"), Just("@k"), Just(" é漢 "), Just("template <"), Just(">"),
    ], 0..60)) {
        let text: String = pieces.concat();
        let lines = text.lines().count();
        for &language in SourceLanguage::ALL {
            let Ok(found) = outline(language, &text, limits(), &|| false) else { continue };
            let mut last = 0;
            for one in &found.definitions {
                prop_assert!(one.start_line >= last.max(1) && one.start_line <= one.end_line && one.end_line <= lines.max(1), "{one:?}");
                prop_assert!(!one.name.is_empty() && !one.name.contains('\n'));
                last = one.start_line;
            }
        }
    }
}
