use super::*;
use crate::testing::conversation;

#[test]
fn transcript_is_paragraphs_without_call_ids() {
    let text = render_transcript(
        &conversation("ΣUATTaU"),
        CompressLimits::default(),
        Labels::Roles,
    );
    assert!(!text.contains("call-"), "{text}");
    insta::assert_snapshot!(text);
}
