//! Tests what is known without starting a server.

use std::fs;

use haft_mcp::{ServerDefinition, ServerDocument, ServerState, ToolFilter};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{arguments, block_on, nowhere, program, servers, shell_server};

fn count(text: &str) -> usize {
    text.len() / 4
}

/// Fifty servers, forty-five of which hang: no step before the first request starts one.
#[test]
fn nothing_on_the_way_to_the_first_request_starts_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let state = tempfile::tempdir().unwrap();
    let good = |number: usize| shell_server(&format!("good{number}"), folder.path());
    let hanging = |number: usize| {
        program(
            &format!("hang{number}"),
            folder.path(),
            "echo start >> starts; exec sleep 1000",
        )
    };
    let all = || {
        (0..5)
            .map(good)
            .chain((0..45).map(hanging))
            .collect::<Vec<_>>()
    };
    let starts = || {
        fs::read_to_string(folder.path().join("starts"))
            .unwrap_or_default()
            .lines()
            .count()
    };
    block_on(async {
        let first = servers(state.path(), all());
        for number in 0..5 {
            first
                .listing(&format!("good{number}"), &CancellationToken::new())
                .await
                .unwrap();
        }
        first.close().await;
    });
    assert_eq!(starts(), 5, "the count works");
    // Without a runtime: code that waited or started a server would panic.
    let second = servers(state.path(), all());
    let document = ServerDocument::of(&second, 10_000, &count);
    assert!(document.text.contains(
        "## good4\n- `show`: Shows its environment.\n  arguments: {\"type\":\"object\"}"
    ));
    assert!(
        document
            .text
            .contains("## hang44\nIts tools are not known yet"),
        "{}",
        document.text
    );
    assert_eq!(second.iter().count(), 50);
    assert!(
        second
            .iter()
            .all(|server| second.state(&server.name) == ServerState::Idle)
    );
    assert_eq!(starts(), 5);
}

#[test]
fn the_document_tells_as_much_as_fits_and_always_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let state = tempfile::tempdir().unwrap();
    let declared = || vec![shell_server("s", folder.path())];
    block_on(servers(state.path(), declared()).listing("s", &CancellationToken::new())).unwrap();
    let known = servers(state.path(), declared());
    let at = |budget| ServerDocument::of(&known, budget, &count);
    assert_eq!(at(1_000), at(1_000));
    assert!(!at(1_000).deferred && at(1_000).text.contains("arguments: {"));
    let names = at(30);
    assert!(
        names.deferred
            && names
                .text
                .contains("`show`, `die` (arguments: `tool_search`)"),
        "{}",
        names.text
    );
    let counts = at(1);
    assert!(
        counts.deferred && counts.text.contains("2 tools: `tool_search` finds them"),
        "{}",
        counts.text
    );
}

#[test]
fn a_tool_that_is_filtered_is_neither_told_nor_called() {
    let folder = tempfile::tempdir().unwrap();
    let state = tempfile::tempdir().unwrap();
    let filter = ToolFilter {
        deny: vec!["die".into()],
        ..ToolFilter::default()
    };
    let all = servers(
        state.path(),
        vec![ServerDefinition {
            filter,
            ..shell_server("s", folder.path())
        }],
    );
    block_on(async {
        all.listing("s", &CancellationToken::new()).await.unwrap();
        let document = ServerDocument::of(&all, 1_000, &count).text;
        assert!(
            document.contains("`show`") && !document.contains("`die`"),
            "{document}"
        );
        let refused = all
            .call(
                "s",
                "die",
                arguments(json!({})),
                nowhere(),
                &CancellationToken::new(),
            )
            .await;
        assert!(
            refused
                .unwrap_err()
                .to_string()
                .contains("the configuration does not offer it")
        );
    });
}
