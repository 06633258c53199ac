//! A form that a server wants filled in: one field after another, typed into the input.
//!
//! All its text comes from outside and is shown as such. Invariant: nothing is sent that was typed
//! before the question could be read (`armed`), and declining is always one key away.

use haft_text::reveal;
use haft_types::{Filled, Form};
use serde_json::{Map, Value};

use crate::line::{StyledLine, TextStyle};
use crate::wrap::wrap;

/// A form that is open.
#[derive(Debug)]
pub(crate) struct FormDialog {
    form: Form,
    /// Whether keys answer it yet.
    pub(crate) armed: bool,
    /// The field that is being asked for.
    at: usize,
    answers: Map<String, Value>,
}

/// What a line that was typed did.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FormProgress {
    /// The next field is asked for.
    Next,
    /// It was the last.
    Done(Filled),
    /// It is no answer, and why.
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

    /// Takes what was typed for the field that is asked for.
    pub(crate) fn typed(&mut self, text: &str) -> FormProgress {
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

    /// Who asks for what, to be printed.
    pub(crate) fn subject(&self, columns: usize) -> Vec<StyledLine> {
        let title = text!("form-subject", from = self.form.from);
        let mut rows = wrap(
            &StyledLine::of("? ", TextStyle::Warning).and(reveal(&title), TextStyle::Strong),
            columns,
        );
        for line in reveal(&self.form.message).lines() {
            rows.extend(wrap(
                &StyledLine::of(format!("  {line}"), TextStyle::Plain),
                columns,
            ));
        }
        rows
    }

    /// The field that is asked for now, as one line of text.
    pub(crate) fn wanted(&self) -> String {
        match self.form.fields.get(self.at) {
            Some(field) => format!("{}{}", field.label(), field.notes()),
            None => text!("form-confirm").to_owned(),
        }
    }

    /// What is asked for now.
    pub(crate) fn question(&self, columns: usize) -> Vec<StyledLine> {
        let style = if self.armed {
            TextStyle::Accent
        } else {
            TextStyle::Dim
        };
        let Some(field) = self.form.fields.get(self.at) else {
            return vec![StyledLine::of(text!("form-confirm-keys"), style).cut(columns)];
        };
        let label = StyledLine::of(reveal(field.label()), TextStyle::Warning)
            .and(reveal(&field.notes()), TextStyle::Plain);
        let mut rows = wrap(&label, columns);
        let keys = text!(
            "form-field-keys",
            at = self.at + 1,
            count = self.form.fields.len()
        );
        rows.push(StyledLine::of(keys, style).cut(columns));
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
    fn field_after_field() {
        let mut filling = filling(vec![
            field("name", FieldKind::Text, true),
            field("age", FieldKind::Integer, false),
        ]);
        assert_eq!(
            filling.typed(" "),
            FormProgress::Wrong("it must be given".into())
        );
        assert_eq!(filling.typed("Ada"), FormProgress::Next);
        assert_eq!(
            filling.typed("old"),
            FormProgress::Wrong("type a whole number".into())
        );
        let FormProgress::Done(Filled::Accepted(answers)) = filling.typed("36") else {
            panic!("it was the last")
        };
        assert_eq!(Value::Object(answers), json!({"name": "Ada", "age": 36}));
    }

    #[test]
    fn a_form_without_fields_is_a_yes() {
        assert_eq!(
            filling(Vec::new()).typed(""),
            FormProgress::Done(Filled::Accepted(Map::new()))
        );
    }

    #[test]
    fn its_words_cannot_move_the_cursor() {
        let rows = filling(Vec::new()).subject(40);
        assert!(
            rows.iter()
                .all(|row| !row.plain().contains('\u{1b}') && row.width() <= 40)
        );
    }
}
