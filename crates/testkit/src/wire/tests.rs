use super::split_into_pieces;

#[test]
fn pieces_never_cut_a_character_and_join_to_the_text() {
    let text = "aé漢😀z";
    for size in 1..=6 {
        let found: Vec<&str> = split_into_pieces(text, size).collect();
        assert_eq!(found.concat(), text, "size {size}");
        assert!(
            found
                .iter()
                .rev()
                .skip(1)
                .all(|piece| piece.chars().count() == size),
            "size {size}: {found:?}"
        );
    }
    assert_eq!(split_into_pieces("", 3).count(), 0);
}
