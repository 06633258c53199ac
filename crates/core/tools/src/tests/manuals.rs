//! Tests of the tools' manuals, and of the names that other agents use for the tools.

use serde_json::{Value, json};

use crate::testing::builtin;

#[test]
fn manual_example_is_a_valid_call_of_its_tool() {
    for tool in builtin() {
        let name = &tool.spec().name;
        let manual = tool.manual();
        let example: Value =
            serde_json::from_str(manual.example).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(!manual.example_of.is_empty(), "{name}");
        let schema = &tool.spec().parameters;
        for (parameter, value) in example.as_object().unwrap() {
            let kind = &schema["properties"][parameter];
            assert!(!kind.is_null(), "{name}: `{parameter}`");
            let fits = match kind["type"].as_str() {
                Some("string") => value.is_string(),
                Some("integer") => value.is_u64(),
                Some("boolean") => value.is_boolean(),
                Some("array") => value.is_array(),
                Some("object") => value.is_object(),
                other => panic!("{name}: `{parameter}` is {other:?}"),
            };
            assert!(fits, "{name}: `{parameter}` is {value}");
            if let Some(choices) = kind["enum"].as_array() {
                assert!(choices.contains(value), "{name}: `{parameter}` is {value}");
            }
        }
        for parameter in schema["required"].as_array().into_iter().flatten() {
            assert!(
                example.get(parameter.as_str().unwrap()).is_some(),
                "{name} lacks {parameter}"
            );
        }
    }
}

#[test]
fn tool_names_and_aliases_are_unique() {
    let tools = builtin();
    let own = tools.iter().map(|tool| tool.spec().name.as_str());
    let aliases = tools
        .iter()
        .flat_map(|tool| tool.manual().aliases)
        .map(|alias| alias.name);
    let mut names: Vec<_> = own.chain(aliases).collect();
    names.sort_unstable();
    let before = names.len();
    names.dedup();
    assert_eq!(names.len(), before);
}

/// Calls as other agents write them, and the calls they are converted to.
#[test]
fn alias_parameters_are_converted() {
    let cases = [
        (
            "Read",
            json!({"file_path": "a", "offset": 10, "limit": 5}),
            json!({"path": "a", "start_line": 10, "end_line": 14}),
        ),
        (
            "Read",
            json!({"file_path": "a", "limit": 5}),
            json!({"path": "a", "end_line": 5}),
        ),
        (
            "Read",
            json!({"path": "a", "start_line": 2}),
            json!({"path": "a", "start_line": 2}),
        ),
        (
            "Write",
            json!({"file_path": "a", "content": "x"}),
            json!({"path": "a", "content": "x"}),
        ),
        (
            "MultiEdit",
            json!({"file_path": "a", "edits": [{"old_string": "x", "new_string": "y"}]}),
            json!({"edits": [{"path": "a", "old_string": "x", "new_string": "y"}]}),
        ),
        (
            "Edit",
            json!({"file_path": "a", "old_string": "x", "new_string": "y", "replace_all": true}),
            json!({"path": "a", "old_text": "x", "new_text": "y", "replace_all": true}),
        ),
        (
            "str_replace",
            json!({"path": "a", "old_str": "x", "new_str": "y"}),
            json!({"path": "a", "old_text": "x", "new_text": "y"}),
        ),
        (
            "LS",
            json!({"path": "a", "ignore": ["b"]}),
            json!({"path": "a"}),
        ),
        (
            "Grep",
            json!({"pattern": "x+", "glob": "*.rs", "-i": true, "-n": true, "output_mode": "content", "-C": 2}),
            json!({"regex": "(?i)x+", "file_pattern": "*.rs", "path": "."}),
        ),
        (
            "Bash",
            json!({"command": "make", "timeout": 1500, "description": "Build"}),
            json!({"command": "make", "timeout": 2, "requires_approval": false}),
        ),
        (
            "TodoWrite",
            json!({"todos": [{"content": "a", "status": "pending", "activeForm": "Doing a", "id": "1"}]}),
            json!({"todos": [{"content": "a", "status": "pending"}]}),
        ),
    ];
    let tools = builtin();
    for (name, given, expected) in cases {
        let alias = tools
            .iter()
            .flat_map(|tool| tool.manual().aliases)
            .find(|alias| alias.name == name);
        let alias = alias.unwrap_or_else(|| panic!("nobody answers to {name}"));
        let mut became = Value::Object((alias.translate)(given.as_object().unwrap().clone()));
        let mut expected = expected;
        became.sort_all_objects();
        expected.sort_all_objects();
        assert_eq!(became, expected, "{name}");
    }
}
