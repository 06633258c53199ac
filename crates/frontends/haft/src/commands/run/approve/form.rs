//! Fills in a form of an MCP server on the terminal, line by line.

use std::io::{self, BufRead, Write};

use haft_text::reveal;
use haft_types::{Field, Filled, Form};
use serde_json::Map;

/// The input that declines the whole form.
const DECLINE: &str = "-";

/// Prints the form, calls `shown` once the user can see it, and reads one line for each field. The
/// end of the input cancels the form.
pub(super) fn fill(
    input: &mut impl BufRead,
    out: &mut impl Write,
    form: &Form,
    shown: impl FnOnce(),
) -> io::Result<Filled> {
    out.write_all(reveal(&heading(form)).as_bytes())?;
    shown();
    let mut answers = Map::new();
    if form.fields.is_empty() {
        return Ok(
            match line(input, out, text!("run-form-confirm"))?.as_deref() {
                Some(typed) if haft_messages::agreement(typed) == Some(true) => {
                    Filled::Accepted(answers)
                }
                Some(_) => Filled::Declined,
                None => Filled::Cancelled,
            },
        );
    }
    for field in &form.fields {
        loop {
            let typed = match line(input, out, &question(field))? {
                None => return Ok(Filled::Cancelled),
                Some(typed) if typed == DECLINE => return Ok(Filled::Declined),
                Some(typed) => typed,
            };
            match field.answer(&typed) {
                Ok(answer) => {
                    answers.extend(answer.map(|answer| (field.name.clone(), answer)));
                    break;
                }
                Err(wrong) => out.write_all(reveal(&format!("  {wrong}\n")).as_bytes())?,
            }
        }
    }
    Ok(Filled::Accepted(answers))
}

fn line(input: &mut impl BufRead, out: &mut impl Write, ask: &str) -> io::Result<Option<String>> {
    out.write_all(reveal(ask).as_bytes())?;
    out.flush()?;
    let mut line = String::new();
    let read = input.read_line(&mut line)?;
    Ok((read > 0).then(|| line.trim().to_owned()))
}

fn heading(form: &Form) -> String {
    let mut text = format!("\n{}\n\n", text!("run-form", from = form.from));
    for line in form.message.lines() {
        text.extend(["    ", line, "\n"]);
    }
    text.push('\n');
    if !form.fields.is_empty() {
        text.extend([text!("run-form-note"), "\n"]);
    }
    text
}

fn question(field: &Field) -> String {
    format!("{}{}: ", field.label(), field.notes())
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
            from: "the MCP server `s`".into(),
            message: "Who are you?\u{1b}[2K".into(),
            fields: vec![
                field("name", FieldKind::Text, true, None),
                field("age", FieldKind::Integer, false, None),
                field("sure", FieldKind::Boolean, true, Some(json!(true))),
            ],
        }
    }

    fn filled(typed: &str, form: &Form) -> (Filled, String) {
        let mut out = Vec::new();
        let filled = fill(&mut typed.as_bytes(), &mut out, form, || ()).unwrap();
        (filled, String::from_utf8(out).unwrap())
    }

    #[test]
    fn each_field_is_asked_until_it_can_be_read() {
        let (answers, shown) = filled("\nAda\nold\n36\n\n", &form());
        let wanted = json!({"name": "Ada", "age": 36, "sure": true});
        assert_eq!(
            answers,
            Filled::Accepted(wanted.as_object().unwrap().clone())
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
    fn what_may_be_left_out_is_left_out() {
        let (answers, _) = filled("Ada\n\nn\n", &form());
        assert_eq!(
            answers,
            Filled::Accepted(
                json!({"name": "Ada", "sure": false})
                    .as_object()
                    .unwrap()
                    .clone()
            )
        );
    }

    #[test]
    fn it_can_be_declined_and_the_end_of_input_cancels() {
        assert_eq!(filled("Ada\n-\n", &form()).0, Filled::Declined);
        assert_eq!(filled("Ada\n", &form()).0, Filled::Cancelled);
        let empty = Form {
            fields: Vec::new(),
            ..form()
        };
        assert_eq!(filled("y\n", &empty).0, Filled::Accepted(Map::new()));
        assert_eq!(filled("n\n", &empty).0, Filled::Declined);
    }
}
