use haft_types::ChangeKind;
use serde_json::json;

use super::*;
use crate::knowledge::ac_mod_read;
use crate::testing::Bench;

#[tokio::test]
async fn ac_mod_write_replaces_a_document_only_after_it_was_read() {
    let bench = Bench::new();
    bench.write("src/pay/a.rs", "x\n");
    let tool = define_tool();
    let made = bench
        .ok(&tool, json!({"path": "src/pay", "content": "# pay\n"}))
        .await;
    assert_eq!(bench.read("src/pay/.ac.mod.md"), b"# pay\n");
    assert_eq!(
        (made.changes.len(), made.changes[0].kind),
        (1, ChangeKind::Added)
    );
    bench.write("src/pay/.ac.mod.md", "# pay, by somebody else\n");
    let again = json!({"path": "src/pay", "content": "# pay, anew\n"});
    assert_eq!(
        bench.err(&tool, again.clone()).await.0,
        "changed_since_read"
    );
    bench
        .ok(&ac_mod_read::define_tool(), json!({"path": "src/pay"}))
        .await;
    bench.ok(&tool, again).await;
    assert_eq!(bench.read("src/pay/.ac.mod.md"), b"# pay, anew\n");
    assert_eq!(
        bench
            .err(&tool, json!({"path": "src/none", "content": "x"}))
            .await
            .0,
        "not_a_folder"
    );
    assert_eq!(
        bench
            .err(&tool, json!({"path": "src", "content": " "}))
            .await
            .0,
        "invalid_arguments"
    );
    assert_eq!(
        tool.intent(&json!({"path": "src/"})),
        Intent::Files(vec![FileUse::Write("src/.ac.mod.md".to_owned())])
    );
}
