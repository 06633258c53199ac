use serde_json::json;

use super::*;
use crate::testing::Bench;

#[tokio::test]
async fn ac_mod_list_shows_modules_with_their_first_paragraph() {
    let bench = Bench::new();
    let none = bench.ok(&define_tool(), json!({})).await.envelope;
    assert_eq!(none.text, "There are no module documents below `.`.");
    bench.write(".gitignore", "build\n");
    bench.write("src/pay/.ac.mod.md", "# pay\n\nTakes money.\n\nMore.\n");
    bench.write("src/.ac.mod.md", "# The sources\n");
    bench.write("build/.ac.mod.md", "Ignored.\n");
    bench.write("web/.ac.mod.md", format!("{}\n", "long ".repeat(100)));
    bench.write("empty/.ac.mod.md", "");
    let listed = bench.ok(&define_tool(), json!({})).await.envelope;
    let lines: Vec<_> = listed.text.lines().collect();
    assert_eq!(
        lines[..3],
        [
            "- `empty`",
            "- `src`: The sources",
            "- `src/pay`: Takes money."
        ]
    );
    assert!(
        lines[3].ends_with('…') && lines[3].chars().count() < 140,
        "{}",
        lines[3]
    );
    assert_eq!((lines.len(), &listed.data["total"]), (4, &json!(4)));
    assert_eq!(
        bench
            .ok(&define_tool(), json!({"path": "src/pay/"}))
            .await
            .envelope
            .data["total"],
        1
    );
    assert_eq!(
        bench
            .err(&define_tool(), json!({"path": "nowhere"}))
            .await
            .0,
        "not_a_folder"
    );
}
