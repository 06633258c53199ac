use super::*;
use crate::testing::conversation;

#[test]
fn paragraphs_without_call_ids() {
    let text = transcript(
        &conversation("ΣUATTaU"),
        CompressLimits::default(),
        Labels::Roles,
    );
    assert!(!text.contains("call-"), "{text}");
    insta::assert_snapshot!(text);
}
