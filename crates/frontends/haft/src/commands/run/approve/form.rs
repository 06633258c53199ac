//! Fills in a form of an MCP server on the terminal, line by line.

use std::io::{self, BufRead, Write};

use haft_text::reveal_controls;
use haft_types::{Field, Form, FormOutcome};
use serde_json::Map;

/// The input that declines the whole form.
const DECLINE: &str = "-";

/// Prints the form, calls `shown` once the user can see it, and reads one line for each field. The
/// end of the input cancels the form.
pub(super) fn fill_form(
    input: &mut impl BufRead,
    out: &mut impl Write,
    form: &Form,
    shown: impl FnOnce(),
) -> io::Result<FormOutcome> {
    out.write_all(reveal_controls(&form_heading(form)).as_bytes())?;
    shown();
    let mut answers = Map::new();
    if form.fields.is_empty() {
        return Ok(
            match prompt_line(input, out, text!("run-form-confirm"))?.as_deref() {
                Some(typed) if haft_messages::parse_yes_no(typed) == Some(true) => {
                    FormOutcome::Accepted(answers)
                }
                Some(_) => FormOutcome::Declined,
                None => FormOutcome::Canceled,
            },
        );
    }
    for field in &form.fields {
        loop {
            let typed = match prompt_line(input, out, &field_prompt(field))? {
                None => return Ok(FormOutcome::Canceled),
                Some(typed) if typed == DECLINE => return Ok(FormOutcome::Declined),
                Some(typed) => typed,
            };
            match field.parse_answer(&typed) {
                Ok(answer) => {
                    answers.extend(answer.map(|answer| (field.name.clone(), answer)));
                    break;
                }
                Err(wrong) => out.write_all(reveal_controls(&format!("  {wrong}\n")).as_bytes())?,
            }
        }
    }
    Ok(FormOutcome::Accepted(answers))
}

fn prompt_line(
    input: &mut impl BufRead,
    out: &mut impl Write,
    ask: &str,
) -> io::Result<Option<String>> {
    out.write_all(reveal_controls(ask).as_bytes())?;
    out.flush()?;
    let mut line = String::new();
    let read = input.read_line(&mut line)?;
    Ok((read > 0).then(|| line.trim().to_owned()))
}

fn form_heading(form: &Form) -> String {
    let mut text = format!("\n{}\n\n", text!("run-form", from = form.requester));
    for line in form.message.lines() {
        text.extend(["    ", line, "\n"]);
    }
    text.push('\n');
    if !form.fields.is_empty() {
        text.extend([text!("run-form-note"), "\n"]);
    }
    text
}

fn field_prompt(field: &Field) -> String {
    format!("{}{}: ", field.label(), field.answer_hint())
}

#[cfg(test)]
mod tests {
    use haft_types::FieldKind;
    use serde_json::json;

    use super::*;

    fn form() -> Form {
        let field = |name: &str, kind, required, default| Field {
            name: name.into(),
            title: String::new(),
            description: String::new(),
            kind,
            required,
            default,
        };
        Form {
            requester: "the MCP server `s`".into(),
            message: "Who are you?\u{1b}[2K".into(),
            fields: vec![
                field("name", FieldKind::Text, true, None),
                field("age", FieldKind::Integer, false, None),
                field("sure", FieldKind::Boolean, true, Some(json!(true))),
            ],
        }
    }

    fn fill_with_input(typed: &str, form: &Form) -> (FormOutcome, String) {
        let mut out = Vec::new();
        let filled = fill_form(&mut typed.as_bytes(), &mut out, form, || ()).unwrap();
        (filled, String::from_utf8(out).unwrap())
    }

    #[test]
    fn fill_form_repeats_a_field_until_it_is_valid() {
        let (answers, shown) = fill_with_input("\nAda\nold\n36\n\n", &form());
        let wanted = json!({"name": "Ada", "age": 36, "sure": true});
        assert_eq!(
            answers,
            FormOutcome::Accepted(wanted.as_object().unwrap().clone())
        );
        assert!(
            shown.contains("name (needed): ") && shown.contains("sure (y or n; default true): "),
            "{shown}"
        );
        assert!(
            shown.contains("it must be given") && shown.contains("type a whole number"),
            "{shown}"
        );
        assert!(!shown.contains('\u{1b}'), "nothing in it moves the cursor");
    }

    #[test]
    fn fill_form_leaves_out_optional_fields() {
        let (answers, _) = fill_with_input("Ada\n\nn\n", &form());
        assert_eq!(
            answers,
            FormOutcome::Accepted(
                json!({"name": "Ada", "sure": false})
                    .as_object()
                    .unwrap()
                    .clone()
            )
        );
    }

    #[test]
    fn fill_form_can_be_declined_and_is_canceled_at_end_of_input() {
        assert_eq!(
            fill_with_input("Ada\n-\n", &form()).0,
            FormOutcome::Declined
        );
        assert_eq!(fill_with_input("Ada\n", &form()).0, FormOutcome::Canceled);
        let empty = Form {
            fields: Vec::new(),
            ..form()
        };
        assert_eq!(
            fill_with_input("y\n", &empty).0,
            FormOutcome::Accepted(Map::new())
        );
        assert_eq!(fill_with_input("n\n", &empty).0, FormOutcome::Declined);
    }
}
