//! Tests that the parsers examine each character at most twice, for every input and every split.

use super::*;

const MEGABYTE: usize = 1 << 20;
/// Large enough to distinguish linear from quadratic time, small enough to finish within seconds.
const INPUT_BYTES: usize = 1 << 16;

#[test]
fn parser_reads_a_megabyte_of_single_bytes_in_linear_time() {
    let unclosed = "<write_to_file><path>a</path><content>".to_owned();
    let hard = [
        "x".repeat(MEGABYTE),
        "<".repeat(INPUT_BYTES),
        "<read_fil".repeat(INPUT_BYTES / 9),
        unclosed.clone() + &"</content>".repeat(MEGABYTE / 10),
        unclosed.clone() + &"</content> <path".repeat(INPUT_BYTES / 16),
        unclosed + &"</write_to_file".repeat(INPUT_BYTES / 15),
        "```\n".repeat(INPUT_BYTES / 4),
        "Action: read_file".repeat(INPUT_BYTES / 17),
        "Action: read_file\n".repeat(INPUT_BYTES / 18),
        "Action: Finish[".to_owned() + &"]".repeat(INPUT_BYTES),
        "Action: read_file[".to_owned() + &"{".repeat(MEGABYTE),
        " ".repeat(INPUT_BYTES),
    ];
    for protocol in [ToolProtocol::Xml, ToolProtocol::React] {
        for text in &hard {
            let mut parser = TextParser::new(protocol, &tools());
            for piece in pieces(text, 1) {
                parser.feed(piece, &mut |_| {});
            }
            let start = &text[..40];
            assert!(
                parser.examined() <= 2 * text.len(),
                "{protocol:?} {start:?}: {}",
                parser.examined()
            );
            parser.finish(&mut |_| {});
        }
    }
}
