use proptest::prelude::*;

use super::*;

const COLUMNS: u16 = 20;
const ROWS: u16 = 8;

fn frame(rows: &[&str], cursor: (usize, usize)) -> LiveRegion {
    let rows = rows
        .iter()
        .map(|row| StyledLine::new(row, TextStyle::Accent))
        .collect();
    LiveRegion {
        rows,
        cursor,
        shows_cursor: true,
    }
}

fn lines(rows: &[&str]) -> Vec<StyledLine> {
    rows.iter()
        .map(|row| StyledLine::new(row, TextStyle::Plain))
        .collect()
}

/// A terminal emulator that receives the bytes of a screen.
fn new_terminal() -> (TerminalScreen<Vec<u8>>, vt100::Parser) {
    (
        TerminalScreen::new(Vec::new(), Palette::Colour),
        vt100::Parser::new(ROWS, COLUMNS, 1_000),
    )
}

fn screen_rows(screen: &mut TerminalScreen<Vec<u8>>, terminal: &mut vt100::Parser) -> Vec<String> {
    terminal.process(&std::mem::take(&mut screen.out));
    terminal
        .screen()
        .rows(0, COLUMNS)
        .map(|row| row.trim_end().to_owned())
        .collect()
}

#[test]
fn screen_prints_above_the_live_region() {
    let (mut screen, mut terminal) = new_terminal();
    screen
        .draw(&[], &frame(&["> a", "status"], (0, 3)))
        .unwrap();
    screen
        .draw(
            &lines(&["one", "two"]),
            &frame(&["", "> ab", "status"], (1, 4)),
        )
        .unwrap();
    assert_eq!(
        screen_rows(&mut screen, &mut terminal)[..5],
        ["one", "two", "", "> ab", "status"]
    );
    assert_eq!(terminal.screen().cursor_position(), (3, 4));
    screen
        .draw(&[], &frame(&["> abc", "other"], (0, 5)))
        .unwrap();
    assert_eq!(
        screen_rows(&mut screen, &mut terminal)[..6],
        ["one", "two", "> abc", "other", "", ""]
    );
    screen
        .draw(&[], &frame(&["x", "> abc", "y", "other"], (1, 5)))
        .unwrap();
    assert_eq!(
        screen_rows(&mut screen, &mut terminal)[..6],
        ["one", "two", "x", "> abc", "y", "other"]
    );
    screen.close_region().unwrap();
    assert_eq!(
        screen_rows(&mut screen, &mut terminal)[..3],
        ["one", "two", ""]
    );
    assert_eq!(terminal.screen().cursor_position(), (2, 0));
}

#[test]
fn screen_keeps_the_last_character_of_a_full_row() {
    let (mut screen, mut terminal) = new_terminal();
    let full = "x".repeat(COLUMNS.into());
    screen
        .draw(&lines(&[&full]), &frame(&[&full, &full], (1, 3)))
        .unwrap();
    assert_eq!(
        screen_rows(&mut screen, &mut terminal)[..4],
        [&*full, &*full, &*full, ""]
    );
}

#[test]
fn screen_without_colors_sends_none() {
    let mut screen = TerminalScreen::new(Vec::new(), Palette::Attributes);
    let line = StyledLine::new("a", TextStyle::Bad)
        .with_text("b", TextStyle::Added)
        .with_text("c", TextStyle::Link);
    screen.draw(&[line], &LiveRegion::default()).unwrap();
    let bytes = String::from_utf8(screen.out).unwrap();
    assert!(
        !(30..38).any(|colour| bytes.contains(&format!("{colour}m"))),
        "{bytes:?}"
    );
}

proptest! {
    /// The terminal always shows the end of the finished rows, then the live region.
    #[test]
    fn screen_updates_equal_a_full_redraw(
        steps in prop::collection::vec(
            (prop::collection::vec("[a-z]{0,20}", 0..12), prop::collection::vec("[A-Z]{1,20}", 1..7), 0usize..7),
            1..12,
        )
    ) {
        let (mut screen, mut terminal) = new_terminal();
        let mut all: Vec<String> = Vec::new();
        for (finished, live, row) in steps {
            let row = row.min(live.len() - 1);
            let finished: Vec<_> = finished.iter().map(String::as_str).collect();
            let live: Vec<_> = live.iter().map(String::as_str).collect();
            screen.draw(&lines(&finished), &frame(&live, (row, 0))).unwrap();
            all.extend(finished.iter().map(|line| (*line).to_owned()));
            let rows = screen_rows(&mut screen, &mut terminal);
            let cursor = usize::from(terminal.screen().cursor_position().0);
            let top = cursor - row;
            prop_assert_eq!(&rows[top..top + live.len()], &live[..]);
            let above = &rows[..top];
            prop_assert_eq!(above, &all[all.len() - above.len()..]);
            prop_assert!(rows[top + live.len()..].iter().all(String::is_empty));
        }
    }
}
