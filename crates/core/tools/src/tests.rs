mod calls;
mod declared;
mod manuals;
mod matrix;
mod notices;
mod outline;
mod permission;
mod previews;
mod small_models;
mod undo_edit;

use std::fmt::Write as _;

/// The whole specification of every built-in tool, as models read it: a change here is a change of
/// the product.
#[test]
fn specifications() {
    let mut text = String::new();
    for tool in crate::testing::builtin() {
        let spec = tool.spec();
        let schema = serde_json::to_string_pretty(&spec.parameters).unwrap();
        let _ = write!(
            text,
            "# {} ({:?})\n\n{}\n\n{schema}\n\n",
            spec.name,
            tool.access(),
            spec.description
        );
    }
    insta::assert_snapshot!("specifications", text);
}
