use serde_json::json;

use super::*;
use crate::files::read_file;
use crate::testing::Bench;

#[tokio::test]
async fn ac_mod_read_accepts_a_folder_or_a_document() {
    let bench = Bench::new();
    bench.write("src/pay/.ac.mod.md", "# pay\n\nTakes money.\n");
    bench.write("src/pay/deep/a.rs", "x\n");
    let tool = define_tool();
    for path in ["src/pay", "src/pay/", "src/pay/.ac.mod.md"] {
        let read = bench.ok(&tool, json!({"path": path})).await.envelope;
        assert_eq!(read.text, "1\t# pay\n2\t\n3\tTakes money.", "{path}");
    }
    let (code, message) = bench.err(&tool, json!({"path": "src/pay/deep"})).await;
    assert_eq!(code, "not_found");
    assert!(
        message.contains("the nearest module above it is `src/pay`"),
        "{message}"
    );
    assert!(
        bench
            .err(&tool, json!({"path": "."}))
            .await
            .1
            .contains("none above it either")
    );
    assert_eq!(
        bench.err(&tool, json!({"path": "../elsewhere"})).await.0,
        "outside_workspace"
    );
    assert_eq!(
        tool.intent(&json!({"path": "src/pay"})),
        Intent::Files(vec![FileUse::Read("src/pay/.ac.mod.md".to_owned())])
    );
}

#[tokio::test]
async fn read_file_names_the_module_of_a_file_once() {
    let bench = Bench::new();
    bench.write("src/pay/.ac.mod.md", "Takes money.\n");
    bench.write("src/pay/deep/a.rs", "x\n");
    bench.write("src/pay/b.rs", "x\n");
    bench.write("src/c.rs", "x\n");
    let read = async |path: &str| {
        bench
            .ok(&read_file::define_tool(), json!({"path": path}))
            .await
            .envelope
    };
    assert_eq!(read("src/c.rs").await.text, "1\tx");
    let first = read("src/pay/deep/a.rs").await;
    assert_eq!(
        first.text,
        "1\tx\n[It belongs to the module `src/pay`, which `src/pay/.ac.mod.md` describes.]"
    );
    assert_eq!(first.data["module"], "src/pay/.ac.mod.md");
    assert_eq!(read("src/pay/b.rs").await.text, "1\tx", "once");

    let other = Bench::new();
    other.write("m/.ac.mod.md", "M.\n");
    other.write("m/a.rs", "x\n");
    other.ok(&define_tool(), json!({"path": "m"})).await;
    let read = other
        .ok(&read_file::define_tool(), json!({"path": "m/a.rs"}))
        .await
        .envelope;
    assert_eq!(
        read.text, "1\tx",
        "who has read the document need not be told of it"
    );
}
