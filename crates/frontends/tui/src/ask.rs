//! One question on one line of the terminal, before the interface begins.

use std::io::{self, Write};

use crossterm::event::{Event, EventStream, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use futures::StreamExt;
use haft_text::width;

use crate::call::text_rows;
use crate::line::{StyledLine, TextStyle};
use crate::run::{Signals, TuiError};
use crate::terminal::RawTerminal;
use crate::wrap::hang;

/// What is seen of what is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputEcho {
    /// Every character.
    Visible,
    /// A star for each: it is a secret.
    Masked,
}

/// How wide the terminal is, where there is one.
pub fn columns() -> Option<usize> {
    crossterm::terminal::size().ok().map(|size| size.0.into())
}

/// The text with lines that do not fit the terminal broken between words.
pub fn fitted(text: &str) -> String {
    let columns = columns().map_or(usize::MAX, |columns| columns.max(16));
    let rows: Vec<_> = text_rows(text, TextStyle::Plain, columns)
        .iter()
        .map(StyledLine::plain)
        .collect();
    // What is typed next stands apart from what it answers.
    let end = ["\n", " "]
        .into_iter()
        .find(|end| text.ends_with(end))
        .unwrap_or_default();
    let rows: Vec<_> = rows.iter().map(|row| row.trim_end()).collect();
    format!("{}{end}", rows.join("\n"))
}

/// A text behind what stands in front of it, broken to so many columns below where it begins.
pub fn hung(front: &str, text: &str, columns: usize) -> String {
    let of = |text: &str| StyledLine::of(text, TextStyle::Plain);
    let rows = hang(
        &of(text),
        &of(front),
        &of(&" ".repeat(width(front))),
        columns,
    );
    rows.iter()
        .map(StyledLine::plain)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Asks, and waits for a line. None when the user left with Esc, Ctrl-C or Ctrl-D, or a signal
/// came.
pub fn ask(question: &str, echo: InputEcho) -> Result<Option<String>, TuiError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let _taken = RawTerminal::take()?;
        let mut out = io::stdout();
        let mut typed = LineInput {
            text: String::new(),
            echo,
        };
        let answer = read(&mut out, question, &mut typed).await?;
        put(&mut out, "\r\n")?;
        Ok(answer)
    })
}

async fn read(
    out: &mut impl Write,
    question: &str,
    typed: &mut LineInput,
) -> io::Result<Option<String>> {
    let mut keys = EventStream::new();
    let mut signals = Signals::new()?;
    // Whoever sees the question can answer it.
    put(out, &StyledLine::of(question, TextStyle::Plain).plain())?;
    loop {
        let event = tokio::select! {
            biased;
            () = Signals::any_end(&mut signals.end) => return Ok(None),
            event = keys.next() => event,
        };
        match event {
            Some(Ok(Event::Key(key))) => match typed.key(key) {
                LineInputStep::On(shown) => put(out, &shown)?,
                LineInputStep::Done => return Ok(Some(std::mem::take(&mut typed.text))),
                LineInputStep::Left => return Ok(None),
            },
            Some(Ok(Event::Paste(text))) => {
                let shown: String = text
                    .lines()
                    .next()
                    .unwrap_or_default()
                    .chars()
                    .map(|c| typed.push_char(c))
                    .collect();
                put(out, &shown)?;
            }
            Some(Ok(
                Event::Resize(..) | Event::FocusGained | Event::FocusLost | Event::Mouse(_),
            )) => {}
            Some(Err(_)) | None => return Ok(None),
        }
    }
}

fn put(out: &mut impl Write, text: &str) -> io::Result<()> {
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// What a key does.
#[derive(Debug, PartialEq, Eq)]
enum LineInputStep {
    /// This is to be written.
    On(String),
    Done,
    Left,
}

struct LineInput {
    text: String,
    echo: InputEcho,
}

impl LineInput {
    fn key(&mut self, key: KeyEvent) -> LineInputStep {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            _ if key.kind == KeyEventKind::Release => LineInputStep::On(String::new()),
            KeyCode::Enter => LineInputStep::Done,
            // Enter that was pressed before the terminal was taken.
            KeyCode::Char('j') if control => LineInputStep::Done,
            KeyCode::Esc => LineInputStep::Left,
            KeyCode::Char('c' | 'd') if control => LineInputStep::Left,
            KeyCode::Char('u') if control => {
                let count = self.text.chars().count();
                LineInputStep::On((0..count).map(|_| self.back()).collect())
            }
            KeyCode::Char('h') if control => LineInputStep::On(self.back()),
            KeyCode::Backspace => LineInputStep::On(self.back()),
            KeyCode::Char(c) if !control => LineInputStep::On(self.push_char(c)),
            _ => LineInputStep::On(String::new()),
        }
    }

    fn push_char(&mut self, c: char) -> String {
        if c.is_control() {
            return String::new();
        }
        self.text.push(c);
        self.shown(c)
    }

    fn shown(&self, c: char) -> String {
        match self.echo {
            InputEcho::Visible => StyledLine::of(c.to_string(), TextStyle::Plain).plain(),
            InputEcho::Masked => "*".to_owned(),
        }
    }

    /// Removes the last character, on the terminal too.
    fn back(&mut self) -> String {
        self.text
            .pop()
            .map_or_else(String::new, |c| "\u{8} \u{8}".repeat(width(&self.shown(c))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(typed: &mut LineInput, code: KeyCode) -> LineInputStep {
        typed.key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn a_secret_is_not_shown() {
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
    fn what_is_taken_back_goes_from_the_terminal() {
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
            typed.key(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL)),
            LineInputStep::On("\u{8} \u{8}".repeat(3))
        );
        assert_eq!(
            press(&mut typed, KeyCode::Backspace),
            LineInputStep::On(String::new())
        );
        assert_eq!(press(&mut typed, KeyCode::Esc), LineInputStep::Left);
    }
}
