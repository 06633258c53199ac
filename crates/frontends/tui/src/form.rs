//! A form from an MCP server, filled in field by field in the input line.
//!
//! All its text is untrusted and is shown as such. Invariant: nothing is sent that was typed before
//! the question could be read (`armed`), and one key declines the form.

use haft_text::reveal_controls;
use haft_types::{Form, FormOutcome};
use serde_json::{Map, Value};

use crate::line::{StyledLine, TextStyle};
use crate::wrap::wrap_line;

/// The dialog of an open form, which asks for one field at a time.
#[derive(Debug)]
pub(crate) struct FormDialog {
    form: Form,
    /// True once keys can answer the form.
    pub(crate) armed: bool,
    /// The index of the current field.
    at: usize,
    answers: Map<String, Value>,
}

/// The effect of a typed line on the form.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FormProgress {
    /// The form moved to the next field.
    Next,
    /// The form is complete.
    Done(FormOutcome),
    /// The line was rejected for this reason.
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

    /// Sets the current field to the typed text.
    pub(crate) fn fill_field(&mut self, text: &str) -> FormProgress {
        if let Some(field) = self.form.fields.get(self.at) {
            match field.parse_answer(text) {
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
        FormProgress::Done(FormOutcome::Accepted(std::mem::take(&mut self.answers)))
    }

    /// Draws the server that sent the form, and the form's message.
    pub(crate) fn draw_subject(&self, columns: usize) -> Vec<StyledLine> {
        let title = text!("form-subject", from = self.form.requester);
        let mut rows = wrap_line(
            &StyledLine::new("? ", TextStyle::Warning)
                .with_text(reveal_controls(&title), TextStyle::Strong),
            columns,
        );
        for line in reveal_controls(&self.form.message).lines() {
            rows.extend(wrap_line(
                &StyledLine::new(format!("  {line}"), TextStyle::Plain),
                columns,
            ));
        }
        rows
    }

    /// Returns the label of the current field and its notes, in one line.
    pub(crate) fn field_label(&self) -> String {
        match self.form.fields.get(self.at) {
            Some(field) => format!("{}{}", field.label(), field.answer_hint()),
            None => text!("form-confirm").to_owned(),
        }
    }

    /// Draws the current field and the keys.
    pub(crate) fn draw_question(&self, columns: usize) -> Vec<StyledLine> {
        let style = if self.armed {
            TextStyle::Accent
        } else {
            TextStyle::Dim
        };
        let Some(field) = self.form.fields.get(self.at) else {
            return vec![StyledLine::new(text!("form-confirm-keys"), style).cut(columns)];
        };
        let label = StyledLine::new(reveal_controls(field.label()), TextStyle::Warning)
            .with_text(reveal_controls(&field.answer_hint()), TextStyle::Plain);
        let mut rows = wrap_line(&label, columns);
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

    fn form_dialog(fields: Vec<Field>) -> FormDialog {
        FormDialog::new(Form {
            requester: "The MCP server `x`".into(),
            message: "Who\u{1b}[2J?".into(),
            fields,
        })
    }

    #[test]
    fn form_takes_field_after_field() {
        let mut filling = form_dialog(vec![
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
        let FormProgress::Done(FormOutcome::Accepted(answers)) = filling.fill_field("36") else {
            panic!("it was the last")
        };
        assert_eq!(Value::Object(answers), json!({"name": "Ada", "age": 36}));
    }

    #[test]
    fn form_without_fields_is_accepted() {
        assert_eq!(
            form_dialog(Vec::new()).fill_field(""),
            FormProgress::Done(FormOutcome::Accepted(Map::new()))
        );
    }

    #[test]
    fn form_text_is_sanitized() {
        let rows = form_dialog(Vec::new()).draw_subject(40);
        assert!(
            rows.iter()
                .all(|row| !row.plain().contains('\u{1b}') && row.width() <= 40)
        );
    }
}
