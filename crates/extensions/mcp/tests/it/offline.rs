//! Tests what is known without starting a server.

use std::fs;

use haft_mcp::{ServerDefinition, ServerDocument, ServerState, ToolFilter};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{arguments, block_on, nowhere, program, servers, shell_server};

fn estimate_tokens(text: &str) -> usize {
    text.len() / 4
}

/// Fifty servers, forty-five of which hang: no step before the first request starts one.
#[test]
fn servers_are_not_started_for_the_first_request() {
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
                .current_listing(&format!("good{number}"), &CancellationToken::new())
                .await
                .unwrap();
        }
        first.close().await;
    });
    assert_eq!(starts(), 5, "the count works");
    // Without a runtime: code that waited or started a server would panic.
    let second = servers(state.path(), all());
    let document = ServerDocument::new(&second, 10_000, &estimate_tokens);
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
fn document_fits_the_budget_and_is_stable() {
    let folder = tempfile::tempdir().unwrap();
    let state = tempfile::tempdir().unwrap();
    let declared = || vec![shell_server("s", folder.path())];
    block_on(servers(state.path(), declared()).current_listing("s", &CancellationToken::new()))
        .unwrap();
    let known = servers(state.path(), declared());
    let at = |budget| ServerDocument::new(&known, budget, &estimate_tokens);
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
fn tool_filter_hides_a_tool_and_blocks_its_calls() {
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
        all.current_listing("s", &CancellationToken::new())
            .await
            .unwrap();
        let document = ServerDocument::new(&all, 1_000, &estimate_tokens).text;
        assert!(
            document.contains("`show`") && !document.contains("`die`"),
            "{document}"
        );
        let refused = all
            .call_tool(
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
