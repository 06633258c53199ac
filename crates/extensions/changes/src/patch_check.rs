//! The property that fuzzing and tests check on patches.

use std::fmt::Write as _;

use haft_tools::{BlockAnchor, BlockLine, EditBlock, ParsedPatch, PatchAction, PatchSection};

use crate::patch::parse_patch;

/// Checks any text as a patch: written anew, its sections parse to equal sections. Returns the
/// sections, or `None` if the text is no patch.
///
/// # Panics
///
/// If the property does not hold.
pub fn check_patch(patch: &str) -> Option<Vec<PatchSection>> {
    let sections = parse_patch(patch).ok()?.sections;
    let mut written = "*** Begin Patch\n".to_owned();
    for section in &sections {
        write_section(&mut written, section);
    }
    written.push_str("*** End Patch\n");
    let again = parse_patch(&written);
    let expected = ParsedPatch {
        sections,
        padded: false,
    };
    assert_eq!(again.as_ref(), Ok(&expected), "{written:?}");
    Some(expected.sections)
}

/// Writes a section. Lines end in CR LF, because a line may end in a carriage return of its own.
/// Writing to a string cannot fail.
fn write_section(out: &mut String, PatchSection { path, action }: &PatchSection) {
    match action {
        PatchAction::Add { text } => {
            let _ = writeln!(out, "*** Add File: {path}");
            for line in text.split_terminator('\n') {
                let _ = write!(out, "+{line}\r\n");
            }
        }
        PatchAction::Delete => {
            let _ = writeln!(out, "*** Delete File: {path}");
        }
        PatchAction::Update { move_to, chunks } => {
            let _ = writeln!(out, "*** Update File: {path}");
            if let Some(to) = move_to {
                let _ = writeln!(out, "*** Move to: {to}");
            }
            for chunk in chunks {
                write_chunk(out, chunk);
            }
        }
    }
}

fn write_chunk(out: &mut String, chunk: &EditBlock) {
    if chunk.headings.is_empty() {
        out.push_str("@@\n");
    }
    for heading in &chunk.headings {
        let _ = write!(out, "@@ {heading}\r\n");
    }
    for piece in &chunk.pieces {
        let (sign, line) = match piece {
            BlockLine::Keep(line) => (' ', line),
            BlockLine::Remove(line) => ('-', line),
            BlockLine::Add(line) => ('+', line),
        };
        let _ = write!(out, "{sign}{line}\r\n");
    }
    match chunk.place {
        BlockAnchor::Anywhere => {}
        BlockAnchor::AtEnd => out.push_str("*** End of File\n"),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// Every seed of the fuzz target, including its findings. A NUL separates text and patch.
    #[test]
    fn check_patch_holds_for_the_seeds_of_its_fuzz_target() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/seeds/patch");
        let mut patches = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let seed = std::fs::read(entry.unwrap().path()).unwrap();
            let seed = String::from_utf8_lossy(&seed);
            let (_, patch) = seed.split_once('\0').unwrap_or(("", &seed));
            patches += usize::from(super::check_patch(patch).is_some());
        }
        assert!(patches >= 3, "only {patches} seeds are patches");
    }
}
