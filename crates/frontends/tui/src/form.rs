//! A form from an MCP server, filled in field by field in the input line.
//!
//! All its text is untrusted and is shown as such. Invariant: nothing is sent that was typed before
//! the question could be read (`armed`), and one key declines the form.

use haft_text::reveal;
use haft_types::{Filled, Form};
use serde_json::{Map, Value};

use crate::line::{StyledLine, TextStyle};
use crate::wrap::wrap;

/// An open form.
#[derive(Debug)]
pub(crate) struct FormDialog {
    form: Form,
    /// True once keys answer the form.
    pub(crate) armed: bool,
    /// The index of the current field.
    at: usize,
    answers: Map<String, Value>,
}

/// The effect of a typed line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FormProgress {
    /// Moved to the next field.
    Next,
    /// Completed the form.
    Done(Filled),
    /// Was rejected for this reason.
    Wrong(String),
}

impl FormDialog {
    pub(crate) fn new(form: Form) -> Self {
        Self {
            form,
            armed: false,
            at: 0,
            answers: Map::new(),
        }
    }

    /// Sets the current field.
    pub(crate) fn fill_field(&mut self, text: &str) -> FormProgress {
        if let Some(field) = self.form.fields.get(self.at) {
            match field.answer(text) {
                Ok(answer) => self
                    .answers
                    .extend(answer.map(|answer| (field.name.clone(), answer))),
                Err(why) => return FormProgress::Wrong(why),
            }
            self.at += 1;
            if self.at < self.form.fields.len() {
                return FormProgress::Next;
            }
        }
        FormProgress::Done(Filled::Accepted(std::mem::take(&mut self.answers)))
    }

    /// Draws the sender and the message of the form.
    pub(crate) fn subject(&self, columns: usize) -> Vec<StyledLine> {
        let title = text!("form-subject", from = self.form.from);
        let mut rows = wrap(
            &StyledLine::new("? ", TextStyle::Warning).and(reveal(&title), TextStyle::Strong),
            columns,
        );
        for line in reveal(&self.form.message).lines() {
            rows.extend(wrap(
                &StyledLine::new(format!("  {line}"), TextStyle::Plain),
                columns,
            ));
        }
        rows
    }

    /// Returns the label of the current field and its notes, in one line.
    pub(crate) fn wanted(&self) -> String {
        match self.form.fields.get(self.at) {
            Some(field) => format!("{}{}", field.label(), field.notes()),
            None => text!("form-confirm").to_owned(),
        }
    }

    /// Draws the current field and the keys.
    pub(crate) fn question(&self, columns: usize) -> Vec<StyledLine> {
        let style = if self.armed {
            TextStyle::Accent
        } else {
            TextStyle::Dim
        };
        let Some(field) = self.form.fields.get(self.at) else {
            return vec![StyledLine::new(text!("form-confirm-keys"), style).cut(columns)];
        };
        let label = StyledLine::new(reveal(field.label()), TextStyle::Warning)
            .and(reveal(&field.notes()), TextStyle::Plain);
        let mut rows = wrap(&label, columns);
        let keys = text!(
            "form-field-keys",
            at = self.at + 1,
            count = self.form.fields.len()
        );
        rows.push(StyledLine::new(keys, style).cut(columns));
        rows
    }
}

#[cfg(test)]
mod tests {
    use haft_types::{Field, FieldKind};
    use serde_json::json;

    use super::*;

    fn field(name: &str, kind: FieldKind, required: bool) -> Field {
        Field {
            name: name.into(),
            title: String::new(),
            description: String::new(),
            kind,
            required,
            default: None,
        }
    }

    fn filling(fields: Vec<Field>) -> FormDialog {
        FormDialog::new(Form {
            from: "The MCP server `x`".into(),
            message: "Who\u{1b}[2J?".into(),
            fields,
        })
    }

    #[test]
    fn form_takes_field_after_field() {
        let mut filling = filling(vec![
            field("name", FieldKind::Text, true),
            field("age", FieldKind::Integer, false),
        ]);
        assert_eq!(
            filling.fill_field(" "),
            FormProgress::Wrong("it must be given".into())
        );
        assert_eq!(filling.fill_field("Ada"), FormProgress::Next);
        assert_eq!(
            filling.fill_field("old"),
            FormProgress::Wrong("type a whole number".into())
        );
        let FormProgress::Done(Filled::Accepted(answers)) = filling.fill_field("36") else {
            panic!("it was the last")
        };
        assert_eq!(Value::Object(answers), json!({"name": "Ada", "age": 36}));
    }

    #[test]
    fn form_without_fields_is_accepted() {
        assert_eq!(
            filling(Vec::new()).fill_field(""),
            FormProgress::Done(Filled::Accepted(Map::new()))
        );
    }

    #[test]
    fn form_text_is_sanitized() {
        let rows = filling(Vec::new()).subject(40);
        assert!(
            rows.iter()
                .all(|row| !row.plain().contains('\u{1b}') && row.width() <= 40)
        );
    }
}
