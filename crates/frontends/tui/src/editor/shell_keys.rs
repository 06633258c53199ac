//! The key bindings of shells.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::Editor;

impl Editor {
    /// Handles a key that edits the text or moves the cursor, with the bindings of readline.
    pub(crate) fn handle_shell_key(&mut self, key: KeyEvent) {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        match key.code {
            KeyCode::Char('a') if control => self.move_to_line_start(),
            KeyCode::Char('e') if control => self.move_to_line_end(),
            KeyCode::Char('b') if control => self.move_left(),
            KeyCode::Char('f') if control => self.move_right(),
            KeyCode::Char('p') if control => self.move_up(),
            KeyCode::Char('n') if control => self.move_down(),
            KeyCode::Char('k') if control => self.cut_to_end(),
            KeyCode::Char('u') if control => self.cut_to_start(),
            KeyCode::Char('w') if control => self.cut_word(),
            KeyCode::Char('y') if control => self.paste_cut(),
            KeyCode::Char('d') if control => self.delete(),
            KeyCode::Char('h') if control => self.backspace(),
            KeyCode::Char('b') if alt => self.move_word_left(),
            KeyCode::Char('f') if alt => self.move_word_right(),
            KeyCode::Char(c) if !control && !alt => self.insert(c.encode_utf8(&mut [0; 4])),
            KeyCode::Backspace if control || alt => self.cut_word(),
            KeyCode::Backspace => self.backspace(),
            KeyCode::Delete => self.delete(),
            KeyCode::Left if control || alt => self.move_word_left(),
            KeyCode::Right if control || alt => self.move_word_right(),
            KeyCode::Left => self.move_left(),
            KeyCode::Right => self.move_right(),
            KeyCode::Up => self.move_up(),
            KeyCode::Down => self.move_down(),
            KeyCode::Home => self.move_to_line_start(),
            KeyCode::End => self.move_to_line_end(),
            _ => {}
        }
    }
}
