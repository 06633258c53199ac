//! Tests of real inputs of small models: every error names existing files or texts, and no error
//! repeats advice that has just failed.

use serde_json::{Value, json};

use super::super::files::{
    edit_file, list_files, multi_edit, read_file, replace_in_file, search_files, write_to_file,
};
use crate::testing::{Bench, builtin};

const LETTER: &str =
    "Dear reader,\n\nwe recieve many letters.\n    Please send what you recieve.\nThe End\n";

fn project_with_letter() -> Bench {
    let bench = Bench::new();
    bench.write("letter.txt", LETTER);
    bench
}

fn diff_arguments(labels: [&str; 3], search: &str, replace: &str) -> Value {
    let [open, middle, close] = labels;
    json!({"path": "letter.txt", "diff": format!("<<<<<<<{open}\n{search}\n======={middle}\n{replace}\n>>>>>>>{close}\n")})
}

#[tokio::test]
async fn replace_in_file_accepts_any_marker_label_and_notes_it() {
    for labels in [
        [" 1.2.3", "", " 1.2.3"],
        ["", "", ""],
        [" letter.txt", "", " REPLACE"],
        [" SEARCH", " 1.2.3", " NEW"],
        [" ORIGINAL", "", " UPDATED"],
    ] {
        let bench = project_with_letter();
        let output = bench
            .ok(
                &replace_in_file::define_tool(),
                diff_arguments(labels, "The End", "The end"),
            )
            .await;
        assert!(
            output.envelope.text.contains("were read as `SEARCH`"),
            "{}",
            output.envelope.text
        );
        assert_eq!(output.envelope.data.get("fallback"), None);
        assert!(
            String::from_utf8(bench.read("letter.txt"))
                .unwrap()
                .ends_with("The end\n")
        );
    }
    let bench = project_with_letter();
    let output = bench
        .ok(
            &replace_in_file::define_tool(),
            diff_arguments([" SEARCH", "", " REPLACE"], "The End", "End"),
        )
        .await;
    assert!(
        !output.envelope.text.contains("were read as"),
        "{}",
        output.envelope.text
    );
}

#[tokio::test]
async fn replace_in_file_keeps_conflict_markers_inside_correct_blocks() {
    let bench = Bench::new();
    let conflict = "<<<<<<< HEAD\na\n>>>>>>> branch\n";
    bench.write("letter.txt", conflict);
    bench
        .ok(
            &replace_in_file::define_tool(),
            diff_arguments([" SEARCH", "", " REPLACE"], conflict.trim_end(), "a"),
        )
        .await;
    assert_eq!(bench.read("letter.txt"), b"a\n");
    // An ambiguous diff is rejected.
    let (code, _) = bench
        .err(
            &replace_in_file::define_tool(),
            diff_arguments([" 1", "", " 2"], "<<<<<<< HEAD\na", "b"),
        )
        .await;
    assert_eq!(code, "invalid_diff");
}

#[tokio::test]
async fn replace_in_file_names_lines_that_contain_the_text() {
    let (code, message) = project_with_letter()
        .err(
            &replace_in_file::define_tool(),
            diff_arguments([" SEARCH", "", " REPLACE"], "recieve", "receive"),
        )
        .await;
    assert_eq!(code, "no_match");
    assert!(
        !message.contains("Nothing similar") && message.contains("inside line 3, 4"),
        "{message}"
    );
    assert!(
        message.contains("line 3 is `we recieve many letters.`") && message.contains("whole"),
        "{message}"
    );
}

#[tokio::test]
async fn edit_file_names_lines_with_other_case_or_indentation() {
    for (old, says) in [
        ("the end", "line 5 in other upper and lower case"),
        ("MANY LETTERS", "line 3 in other upper and lower case"),
        (
            "Please  send what you recieve.\nThe End",
            "differs in white space: it is `    Please send",
        ),
        (
            "we recieve many letters.\nPlease send what you recieve.",
            "differs in white space",
        ),
    ] {
        let arguments = json!({"path": "letter.txt", "old_text": old, "new_text": "x"});
        let (code, message) = project_with_letter()
            .err(&edit_file::define_tool(), arguments)
            .await;
        assert_eq!(code, "no_match", "{old}");
        assert!(message.contains(says), "{old}: {message}");
        let edits =
            json!({"edits": [{"path": "letter.txt", "old_string": old, "new_string": "x"}]});
        assert!(
            project_with_letter()
                .err(&multi_edit::define_tool(), edits)
                .await
                .1
                .contains(says),
            "{old}"
        );
    }
}

#[tokio::test]
async fn edit_file_shows_a_short_file_without_similar_text() {
    let arguments = json!({"path": "letter.txt", "old_text": "def main():", "new_text": "x"});
    let message = project_with_letter()
        .err(&edit_file::define_tool(), arguments.clone())
        .await
        .1;
    assert!(
        message.contains("The whole file is:\nDear reader,\n"),
        "{message}"
    );
    assert!(
        message.ends_with("The End\nSend the whole corrected file with `write_to_file`."),
        "{message}"
    );
    let long = Bench::new();
    long.write("letter.txt", LETTER.repeat(9));
    assert!(
        long.err(&edit_file::define_tool(), arguments)
            .await
            .1
            .contains("read the file and copy")
    );
}

/// The error asks for the whole file. Eleven runs sent it and were refused because the file had not
/// been read.
#[tokio::test]
async fn edit_file_error_with_the_whole_file_counts_as_a_read() {
    let arguments = json!({"path": "letter.txt", "old_text": "def main():", "new_text": "x"});
    let write = json!({"path": "letter.txt", "content": "Dear all,\n"});
    let bench = project_with_letter();
    let output = bench
        .run(&edit_file::define_tool(), arguments.clone())
        .await;
    let stored = &output.envelope.context["file"];
    assert_eq!(stored["size"], LETTER.len());
    bench.ok(&write_to_file::define_tool(), write.clone()).await;
    // Not if a part of it is not shown, or shown in another form.
    for content in [
        LETTER.repeat(9),
        format!("{LETTER}{}\n", "x".repeat(200)),
        LETTER.replace('\n', "\r\n"),
    ] {
        let bench = Bench::new();
        bench.write("letter.txt", &content);
        bench
            .err(&edit_file::define_tool(), arguments.clone())
            .await;
        let (code, _) = bench
            .err(&write_to_file::define_tool(), write.clone())
            .await;
        assert_eq!(code, "not_read", "{content}");
    }
}

#[tokio::test]
async fn missing_path_error_suggests_existing_paths() {
    let bench = project_with_letter();
    bench.write("tools/report.py", "");
    bench.write("secret.txt", "");
    bench.write(".gitignore", "secret.txt\n");
    for (path, says) in [
        (
            "out",
            "`out` does not exist; `.` holds `letter.txt`, `tools/`",
        ),
        ("src/report.py", "near it there is `tools/report.py`"),
        ("Letter.TXT", "near it there is `letter.txt`"),
        ("leter.txt", "near it there is `letter.txt`"),
        ("letter", "near it there is `letter.txt`"),
        ("tools/deep/main.rs", "`tools` holds `tools/report.py`"),
        ("secrets.txt", "`.` holds `letter.txt`, `tools/`"),
    ] {
        for (tool, arguments) in [
            (
                &list_files::define_tool() as &dyn haft_tool::Tool,
                json!({"path": path}),
            ),
            (&read_file::define_tool(), json!({"path": path})),
            (
                &search_files::define_tool(),
                json!({"path": path, "regex": "x"}),
            ),
            (
                &edit_file::define_tool(),
                json!({"path": path, "old_text": "a", "new_text": "b"}),
            ),
        ] {
            let (code, message) = bench.err(tool, arguments).await;
            assert_eq!(code, "not_found", "{path}");
            assert!(
                message.contains(says) && !message.contains("list_files"),
                "{path}: {message}"
            );
        }
    }
    let empty = Bench::new();
    assert_eq!(
        empty
            .err(&list_files::define_tool(), json!({"path": "out"}))
            .await
            .1,
        "`out` does not exist; `.` is empty"
    );
}

#[test]
fn few_parameters_suffice_for_a_call() {
    let mut seen = 0;
    for tool in builtin()
        .iter()
        .filter(|tool| !tool.manual().few_parameters.is_empty())
    {
        let (spec, few): (_, Vec<_>) = (
            tool.spec(),
            tool.manual().few_parameters.split(", ").collect(),
        );
        let known = spec.parameters["properties"].as_object().unwrap();
        assert!(
            few.iter().all(|name| known.contains_key(*name)),
            "{}: {few:?}",
            spec.name
        );
        let required = spec.parameters["required"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str);
        assert!(
            required.clone().all(|name| few.contains(&name)),
            "{}: {few:?}",
            spec.name
        );
        seen += 1;
    }
    assert_eq!(seen, 3);
}
