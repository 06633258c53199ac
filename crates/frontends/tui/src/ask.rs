//! A one-line question at the terminal, before the interface starts.

use std::io::{self, Write};

use crossterm::event::{Event, EventStream, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use futures::StreamExt;
use haft_text::display_width;

use crate::call::wrap_text;
use crate::line::{StyledLine, TextStyle};
use crate::run::{Signals, TuiError};
use crate::terminal::RawTerminal;
use crate::wrap::wrap_hanging;

/// Selects how typed characters are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputEcho {
    /// Shows every character.
    Visible,
    /// Shows a star for each character of a secret.
    Masked,
}

/// Returns the width of the terminal, or `None` if there is no terminal or its width is unknown.
pub fn terminal_columns() -> Option<usize> {
    // A terminal whose size was never set reports a width of 0.
    crossterm::terminal::size()
        .ok()
        .map(|size| size.0.into())
        .filter(|columns| *columns > 0)
}

/// Breaks lines between words if the lines are wider than the terminal.
pub fn wrap_to_terminal(text: &str) -> String {
    let columns = terminal_columns().map_or(usize::MAX, |columns| columns.max(16));
    let rows = wrap_text(text, TextStyle::Plain, columns);
    // Keeps the input that follows apart from the question.
    let end = ["\n", " "]
        .into_iter()
        .find(|end| text.ends_with(end))
        .unwrap_or_default();
    format!("{}{end}", join_rows(&rows))
}

/// Joins rows with line breaks, except where a row continues in the next one: the terminal itself
/// breaks such a row.
fn join_rows(rows: &[StyledLine]) -> String {
    let mut text = String::new();
    for (at, row) in rows.iter().enumerate() {
        text.push_str(row.plain().trim_end());
        if at + 1 < rows.len() && !row.continues() {
            text.push('\n');
        }
    }
    text
}

/// Puts `text` after `front` and wraps the result to `columns`. Further rows are indented to the
/// column at which `text` starts.
pub fn wrap_after_front(front: &str, text: &str, columns: usize) -> String {
    let of = |text: &str| StyledLine::new(text, TextStyle::Plain);
    let rows = wrap_hanging(
        &of(text),
        &of(front),
        &of(&" ".repeat(display_width(front))),
        columns,
    );
    join_rows(&rows)
}

/// The user's reaction to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answered<T> {
    /// The user answered.
    Given(T),
    /// The user pressed Esc to go back.
    Back,
    /// The user left with Ctrl-C or Ctrl-D, or a signal arrived.
    Left,
}

/// Asks a question and waits for a line.
pub fn ask_line(question: &str, echo: InputEcho) -> Result<Answered<String>, TuiError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let _taken = RawTerminal::enter()?;
        let mut out = io::stdout();
        let mut typed = LineInput {
            text: String::new(),
            echo,
        };
        let answer = read_line(&mut out, question, &mut typed).await?;
        write_text(&mut out, "\r\n")?;
        Ok(answer)
    })
}

async fn read_line(
    out: &mut impl Write,
    question: &str,
    typed: &mut LineInput,
) -> io::Result<Answered<String>> {
    let mut keys = EventStream::new();
    let mut signals = Signals::new()?;
    // Keys and signals are watched first, so that an answer isn't lost once the question is
    // visible.
    write_text(out, &StyledLine::new(question, TextStyle::Plain).plain())?;
    loop {
        let event = tokio::select! {
            biased;
            () = Signals::wait_for_any(&mut signals.end) => return Ok(Answered::Left),
            event = keys.next() => event,
        };
        match event {
            Some(Ok(Event::Key(key))) => match typed.handle_key(key) {
                LineInputStep::On(shown) => write_text(out, &shown)?,
                LineInputStep::Done => {
                    return Ok(Answered::Given(std::mem::take(&mut typed.text)));
                }
                LineInputStep::Back => return Ok(Answered::Back),
                LineInputStep::Left => return Ok(Answered::Left),
            },
            Some(Ok(Event::Paste(text))) => {
                let shown: String = text
                    .lines()
                    .next()
                    .unwrap_or_default()
                    .chars()
                    .map(|c| typed.push_char(c))
                    .collect();
                write_text(out, &shown)?;
            }
            Some(Ok(
                Event::Resize(..) | Event::FocusGained | Event::FocusLost | Event::Mouse(_),
            )) => {}
            Some(Err(_)) | None => return Ok(Answered::Left),
        }
    }
}

fn write_text(out: &mut impl Write, text: &str) -> io::Result<()> {
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// The effect of a key on the line that is being typed.
#[derive(Debug, PartialEq, Eq)]
enum LineInputStep {
    /// The line continues, and this text is written to the terminal.
    On(String),
    Done,
    Back,
    Left,
}

struct LineInput {
    text: String,
    echo: InputEcho,
}

impl LineInput {
    fn handle_key(&mut self, key: KeyEvent) -> LineInputStep {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            _ if key.kind == KeyEventKind::Release => LineInputStep::On(String::new()),
            KeyCode::Enter => LineInputStep::Done,
            // Enter that was pressed before the terminal was in raw mode.
            KeyCode::Char('j') if control => LineInputStep::Done,
            KeyCode::Esc => LineInputStep::Back,
            KeyCode::Char('c' | 'd') if control => LineInputStep::Left,
            KeyCode::Char('u') if control => {
                let count = self.text.chars().count();
                LineInputStep::On((0..count).map(|_| self.erase_last()).collect())
            }
            KeyCode::Char('h') if control => LineInputStep::On(self.erase_last()),
            KeyCode::Backspace => LineInputStep::On(self.erase_last()),
            KeyCode::Char(c) if !control => LineInputStep::On(self.push_char(c)),
            _ => LineInputStep::On(String::new()),
        }
    }

    fn push_char(&mut self, c: char) -> String {
        if c.is_control() {
            return String::new();
        }
        self.text.push(c);
        self.echo_char(c)
    }

    fn echo_char(&self, c: char) -> String {
        match self.echo {
            InputEcho::Visible => StyledLine::new(c.to_string(), TextStyle::Plain).plain(),
            InputEcho::Masked => "*".to_owned(),
        }
    }

    /// Removes the last character and returns the bytes that erase it on the terminal.
    fn erase_last(&mut self) -> String {
        self.text.pop().map_or_else(String::new, |c| {
            "\u{8} \u{8}".repeat(display_width(&self.echo_char(c)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(typed: &mut LineInput, code: KeyCode) -> LineInputStep {
        typed.handle_key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn ask_masks_secrets() {
        let mut typed = LineInput {
            text: String::new(),
            echo: InputEcho::Masked,
        };
        let shown: Vec<_> = "s日k"
            .chars()
            .map(|c| press(&mut typed, KeyCode::Char(c)))
            .collect();
        assert!(
            shown
                .iter()
                .all(|step| *step == LineInputStep::On("*".into()))
        );
        assert_eq!(
            press(&mut typed, KeyCode::Backspace),
            LineInputStep::On("\u{8} \u{8}".into())
        );
        assert_eq!(
            (press(&mut typed, KeyCode::Enter), typed.text.as_str()),
            (LineInputStep::Done, "s日")
        );
    }

    #[test]
    fn ask_erases_deleted_characters() {
        let mut typed = LineInput {
            text: String::new(),
            echo: InputEcho::Visible,
        };
        press(&mut typed, KeyCode::Char('a'));
        assert_eq!(
            press(&mut typed, KeyCode::Char('日')),
            LineInputStep::On("日".into())
        );
        assert_eq!(
            typed.handle_key(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL)),
            LineInputStep::On("\u{8} \u{8}".repeat(3))
        );
        assert_eq!(
            press(&mut typed, KeyCode::Backspace),
            LineInputStep::On(String::new())
        );
        assert_eq!(press(&mut typed, KeyCode::Esc), LineInputStep::Back);
    }
}
