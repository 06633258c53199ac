use serde_json::json;

use super::*;
use crate::knowledge::{useful_info_delete, useful_info_list};
use crate::testing::Bench;

#[tokio::test]
async fn useful_info_can_be_added_listed_and_deleted() {
    let bench = Bench::with_store().await;
    bench.write("src/a.rs", "one\ntwo\nthree\n");
    let empty = bench.ok(&useful_info_list::define_tool(), json!({})).await;
    assert_eq!(empty.envelope.text, "No useful information is kept.");
    let arguments =
        json!({"path": "src/a.rs", "start_line": 2, "end_line": 3, "description": " the\ncore "});
    let added = bench.ok(&define_tool(), arguments).await.envelope;
    assert_eq!(
        added.text,
        "Kept in view: 1. `src/a.rs` lines 2-3: the core"
    );
    let item = json!({"number": 1, "path": "src/a.rs", "start_line": 2, "end_line": 3, "description": "the core"});
    assert_eq!(
        added.data,
        json!({"item": item, "merged": 0, "dropped": []})
    );
    let listed = bench
        .ok(&useful_info_list::define_tool(), json!({}))
        .await
        .envelope;
    assert_eq!(
        (listed.text.as_str(), &listed.data),
        (
            "1. `src/a.rs` lines 2-3: the core",
            &json!({"items": [item]})
        )
    );
    let deleted = bench
        .ok(&useful_info_delete::define_tool(), json!({"number": 1}))
        .await
        .envelope;
    assert_eq!(
        deleted.text,
        "No longer kept in view: 1. `src/a.rs` lines 2-3: the core"
    );
    let (code, message) = bench
        .err(&useful_info_delete::define_tool(), json!({"number": 1}))
        .await;
    assert_eq!(code, "not_found");
    assert_eq!(
        message,
        "there is no useful information `1`; `useful_info_list` shows the numbers"
    );
}

#[tokio::test]
async fn useful_info_add_limits_a_range_to_the_end_of_the_file() {
    let bench = Bench::with_store().await;
    bench.write("a", "one\n\n");
    let arguments = json!({"path": "a", "start_line": 1, "end_line": 99, "description": "all"});
    let added = bench.ok(&define_tool(), arguments).await.envelope;
    assert_eq!(added.data["item"]["end_line"], 2);
}

#[tokio::test]
async fn useful_info_add_rejects_invalid_ranges_and_files() {
    let bench = Bench::with_store().await;
    bench.write("a", "one\n");
    bench.write("long", "x\n".repeat(2_001));
    bench.write("program", b"\x7FELF\0\0\0");
    for (path, start, end, description, code) in [
        ("missing", 1, 1, "why", "not_found"),
        ("a", 2, 3, "why", "out_of_range"),
        ("a", 0, 1, "why", "invalid_range"),
        ("a", 2, 1, "why", "invalid_range"),
        ("a", 1, 1, " \n", "invalid_arguments"),
        ("long", 1, 2_001, "why", "too_large"),
        ("program", 1, 1, "why", "binary_file"),
        ("/etc/passwd", 1, 1, "why", "outside_workspace"),
        ("a", 1, 1, &"why ".repeat(600), "invalid_arguments"),
    ] {
        let arguments =
            json!({"path": path, "start_line": start, "end_line": end, "description": description});
        let (found, message) = bench.err(&define_tool(), arguments).await;
        assert_eq!(found, code, "{path}: {message}");
    }
    assert_eq!(bench.shared::<StoredUseful>().list().await.unwrap(), []);
}
