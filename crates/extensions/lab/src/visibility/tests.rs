use haft_types::{Envelope, Layer, Segment, ToolSet};

use super::*;
use crate::testing::{Quarter, at, call, entry, id, named_result, text};

fn step(number: usize, tool: &str, arguments: &Value, envelope: Envelope) -> [Arc<Entry>; 2] {
    let call_id = format!("call-{number}");
    let parts = vec![call(&call_id, tool, &arguments.to_string())];
    [
        entry(Message::new(id(number), Role::Assistant, parts, at(number))),
        named_result(number + 1, &call_id, tool, envelope),
    ]
}

fn request(entries: &[Arc<Entry>], owner: &'static str) -> Request {
    let segment = |entry: &Arc<Entry>| Segment {
        layer: Layer::History,
        owner,
        entry: Arc::clone(entry),
        boundary: false,
    };
    Request {
        segments: entries.iter().map(segment).collect(),
        tools: ToolSet::new(Vec::new(), &Quarter),
        max_output_tokens: None,
        cache_key: None,
    }
}

fn read() -> Vec<Arc<Entry>> {
    let arguments = serde_json::json!({"path": "a.rs"});
    let lines = Envelope::success("1\tfn main() {\n2\t    start();\n3\t}");
    let mut history = vec![text(0, Role::User, "go")];
    history.extend(step(1, "read_file", &arguments, lines));
    history
}

fn edit(tool: &str, arguments: &Value) -> Message {
    step(9, tool, arguments, Envelope::success("ok"))[0]
        .message
        .clone()
}

#[test]
fn an_edit_is_blind_if_only_messages_left_out_hold_its_text() {
    let history = read();
    let search = "<<<<<<< SEARCH\n    start();\n=======\n    stop();\n>>>>>>> REPLACE";
    let patch = "*** Begin Patch\n*** Update File: a.rs\n fn main() {\n-    start();\n+    stop();\n*** End Patch";
    let edits = [
        (
            "edit_file",
            serde_json::json!({"path": "a.rs", "old_text": "    start();"}),
        ),
        (
            "multi_edit",
            serde_json::json!({"edits": [{"path": "a.rs", "old_string": "start();"}]}),
        ),
        (
            "replace_in_file",
            serde_json::json!({"path": "a.rs", "diff": search}),
        ),
        ("apply_patch", serde_json::json!({"patch": patch})),
    ];
    for (tool, arguments) in edits {
        let reply = edit(tool, &arguments);
        let seen = |sent: &[Arc<Entry>]| seen_edits(&reply, &history, &request(sent, "history"));
        let whole = seen(&history);
        assert_eq!((whole.edits, whole.blind), (1, 0), "{tool}");
        let without = seen(&history[..2]);
        assert_eq!((without.edits, without.blind), (1, 1), "{tool}");
        assert_eq!(without.tokens, u64::from(history[2].tokens));
    }
    let unknown = edit(
        "edit_file",
        &serde_json::json!({"path": "a.rs", "old_text": "never read"}),
    );
    let seen = seen_edits(&unknown, &history, &request(&history[..1], "history"));
    assert_eq!((seen.edits, seen.blind), (1, 0), "no message holds it");
    let created = edit(
        "edit_file",
        &serde_json::json!({"path": "b.rs", "old_text": ""}),
    );
    let seen = seen_edits(&created, &history, &request(&history[..1], "history"));
    assert_eq!(seen, SeenEdits::default());
}

#[test]
fn lines_of_a_failed_edit_are_not_visible() {
    let mut history = read();
    let old = serde_json::json!({"path": "a.rs", "old_text": "begin();"});
    let failed = Envelope::failure("no_match", "The nearest lines:\n    start();");
    history.extend(step(3, "edit_file", &old, failed));
    let reply = edit(
        "edit_file",
        &serde_json::json!({"path": "a.rs", "old_text": "start();"}),
    );
    let seen = seen_edits(&reply, &history, &request(&history[3..], "history"));
    assert_eq!((seen.edits, seen.blind), (1, 1));
}

#[test]
fn results_count_as_seen_whole_or_spilled() {
    let history = read();
    let shortened = read()[..2].to_vec().into_iter().chain([named_result(
        2,
        "call-1",
        "read_file",
        Envelope::success("[Cleared]"),
    )]);
    let shortened: Vec<_> = shortened.collect();
    let unseen = |sent: &[Arc<Entry>], owner| unseen_results(&history, &request(sent, owner));
    assert_eq!(unseen(&history, "history"), 0);
    assert_eq!(unseen(&history[..2], "history"), 1);
    assert_eq!(unseen(&shortened, "history:cleared"), 1);
    assert_eq!(unseen(&shortened, "history:excerpt"), 0);
}

#[test]
fn results_count_as_seen_in_the_window_and_as_json() {
    let history = read();
    let whole = "observation: read_file (success)\n1\tfn main() {\n2\t    start();\n3\t}";
    let window = |text_shown: &str| [text(77, Role::User, text_shown)];
    let unseen = |sent: &[Arc<Entry>], owner| unseen_results(&history, &request(sent, owner));
    assert_eq!(unseen(&window(whole), "view:window"), 0);
    assert_eq!(unseen(&window(&whole[..50]), "view:window"), 1);
    assert_eq!(unseen(&window(whole), "history"), 1, "only the window");
    let json = r#"{"status":"success","text":"1\tfn main() {\n2\t    start();\n3\t}"}"#;
    let react = [named_result(
        2,
        "call-1",
        "read_file",
        Envelope::success(json),
    )];
    assert_eq!(unseen(&react, "history"), 0);
}
