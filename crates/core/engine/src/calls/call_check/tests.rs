use async_trait::async_trait;
use haft_tool::{Access, Gateway, Intent, Registry, ToolContext, ToolOutput};
use haft_types::ToolSpec;

use super::*;

struct Fake(ToolSpec, Access);

#[async_trait]
impl Tool for Fake {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn gateway(&self) -> Option<&dyn Gateway> {
        Some(self)
    }

    fn access(&self) -> Access {
        self.1
    }

    fn intent(&self, _: &Value) -> Intent {
        Intent::Nothing
    }

    async fn call(&self, _: &ToolContext, _: Value) -> ToolOutput {
        Envelope::success("ran").into()
    }
}

impl Gateway for Fake {
    fn refusal(&self, arguments: &Value) -> Option<Envelope> {
        arguments
            .get("outside")
            .map(|_| Envelope::failure("not_offered", "outside"))
    }
}

fn registry() -> Registry {
    let mut registry = Registry::default();
    for (name, access) in [
        ("read_file", Access::Read),
        ("execute_command", Access::Execute),
        (names::COMPLETE_TOOL, Access::State),
    ] {
        let parameters = serde_json::json!({"required": if access == Access::Read { vec!["path"] } else { vec![] }});
        let spec = ToolSpec {
            name: name.into(),
            description: String::new(),
            parameters,
        };
        registry.register(Arc::new(Fake(spec, access)));
    }
    registry
}

fn admit_one(
    name: &str,
    arguments: &str,
    stop: &StopReason,
    calls: usize,
) -> Result<Value, String> {
    let call = ToolCall {
        id: "1".into(),
        name: name.into(),
        arguments: arguments.into(),
        signature: None,
    };
    let facts = ReplyFacts {
        stop,
        last: calls == 1,
    };
    let registry = registry();
    let audience = Audience {
        profile: ModelProfile::Full,
        registry: &registry,
        copied: None,
    };
    match check_call(call, &facts, audience) {
        Ok(admitted) => Ok(admitted.arguments),
        Err(refused) => Err(refused
            .envelope
            .error
            .map_or_else(String::new, |error| error.code)),
    }
}

/// Tool, arguments, stop reason, number of calls from this one to the end of the reply, and the
/// expected result.
type Case<'a> = (&'a str, &'a str, &'a StopReason, usize, Result<(), &'a str>);

#[test]
fn admit_checks_arguments_stop_reason_and_tool() {
    use StopReason::{Length, ToolUse};
    let cases: &[Case<'_>] = &[
        ("read_file", r#"{"path": "a"}"#, &ToolUse, 1, Ok(())),
        ("read_file", r#"{"path": "a"}"#, &Length, 1, Err("cut")),
        (
            "read_file",
            r#"{"path": "a""#,
            &ToolUse,
            1,
            Err("invalid_arguments"),
        ),
        (
            "read_file",
            r#"{"path": "a", "path": "b"}"#,
            &ToolUse,
            1,
            Err("invalid_arguments"),
        ),
        (
            "read_file",
            "<read_file>{\"path\": \"a\"}",
            &ToolUse,
            1,
            Err("not_closed"),
        ),
        (
            "read_file",
            "Action: read_file[{\"path\": \"a\"}",
            &ToolUse,
            1,
            Err("not_closed"),
        ),
        (
            "read_file",
            r#"{"outside": true}"#,
            &ToolUse,
            1,
            Err("not_offered"),
        ),
        ("raed_file", "{}", &ToolUse, 1, Err("unknown_tool")),
        ("execute_command", "{}", &ToolUse, 1, Ok(())),
        (names::COMPLETE_TOOL, "{}", &ToolUse, 1, Ok(())),
        (names::COMPLETE_TOOL, "{}", &ToolUse, 2, Err("not_alone")),
    ];
    for (name, arguments, stop, calls, expected) in cases {
        let found = admit_one(name, arguments, stop, *calls).map(|_| ());
        assert_eq!(
            found.as_ref().map_err(String::as_str),
            expected.as_ref().map_err(|code| *code).map(|()| &()),
            "{name} {arguments}"
        );
    }
}

#[test]
fn unknown_tool_suggests_similar_names() {
    let near = "There is no tool `read_fiel`. Did you mean `read_file` (path)?";
    let registry = registry();
    let message = |name: &str, profile| {
        let registry = &registry;
        unknown_tool_message(
            name,
            Audience {
                profile,
                registry,
                copied: None,
            },
        )
    };
    assert_eq!(message("read_fiel", ModelProfile::Full), near);
    let all = "There is no tool `zzz`. Do it with one of these: `read_file` (path), `execute_command` (), `attempt_completion` ().";
    assert_eq!(message("zzz", ModelProfile::Full), all);
    // The guidance for small models follows.
    let short = "There is no tool `zzz`.";
    assert_eq!(message("zzz", ModelProfile::Small), short);
}

/// `tool_search` finds each deferred tool by name and returns its schema, and a call under the
/// tool's own name or through another tool resolves to it.
#[tokio::test]
async fn tool_search_finds_every_deferred_tool_and_makes_it_callable() {
    let supervisor = Arc::new(haft_sandbox::Supervisor::for_tests().unwrap());
    let running = Arc::new(haft_tools::Running::new(
        supervisor,
        haft_tools::LimitsConfig::default(),
    ));
    let mut registry = crate::all_tools(&running, haft_types::PromptLanguage::English);
    registry
        .select_tools(&[], &std::collections::BTreeMap::new())
        .unwrap();
    let search = Arc::clone(registry.get("tool_search").unwrap());
    let context = ToolContext::bare(
        "/project",
        "c",
        tokio_util::sync::CancellationToken::default(),
    );
    let deferred: Vec<_> = registry
        .deferred_tools()
        .map(|tool| tool.spec().clone())
        .collect();
    assert!(deferred.len() >= 20, "{}", deferred.len());
    for spec in deferred {
        let name = &spec.name;
        assert!(search.spec().description.contains(name.as_str()), "{name}");
        let found = search
            .call(&context, serde_json::json!({"query": name}))
            .await
            .envelope
            .text;
        assert!(
            found.contains(&format!("- `{name}`: "))
                && found.contains(&spec.parameters.to_string()),
            "{found}"
        );
        let through = format!(r#"{{"name": "{name}", "arguments": {{"a": 1}}}}"#);
        for (called, arguments) in [
            (name.as_str(), r#"{"a": 1}"#),
            (ToolCall::INDIRECT_TOOL, through.as_str()),
        ] {
            let written = ToolCall {
                id: "c".into(),
                name: called.into(),
                arguments: arguments.into(),
                signature: None,
            };
            let meant = written.resolve_indirect().into_owned();
            let mut checked = check_calls(
                vec![meant],
                &StopReason::ToolUse,
                Audience {
                    profile: ModelProfile::Full,
                    registry: &registry,
                    copied: None,
                },
            );
            let Ok(AdmittedCall {
                call,
                tool,
                arguments,
            }) = checked.remove(0)
            else {
                panic!("{name} by {called}")
            };
            assert_eq!((&call.name, &tool.spec().name), (name, name));
            assert_eq!(arguments, serde_json::json!({"a": 1}));
        }
    }
}

#[test]
fn completion_objection_follows_failed_calls() {
    let call = |name: &str| ToolCall {
        id: "1".into(),
        name: name.into(),
        arguments: "{}".into(),
        signature: None,
    };
    for (name, any_failed, code) in [
        (names::COMPLETE_TOOL, false, None),
        (names::COMPLETE_TOOL, true, Some("not_alone")),
        ("read_file", true, None),
    ] {
        let before = ToolsDone {
            any_failed,
            ..ToolsDone::default()
        };
        let objection = completion_objection(&call(name), &before);
        let found = objection
            .and_then(|envelope| envelope.error)
            .map(|error| error.code);
        assert_eq!(found.as_deref(), code, "{name}");
    }
}
