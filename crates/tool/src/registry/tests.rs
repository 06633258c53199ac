use async_trait::async_trait;
use serde_json::json;

use super::*;
use crate::{Access, Group, Intent, Manual};

struct Echo {
    spec: ToolSpec,
}

impl Echo {
    fn new(name: &str) -> Self {
        Self { spec: ToolSpec { name: name.into(), description: String::new(), parameters: json!({}) } }
    }
}

static MANUAL: Manual = Manual {
    aliases: &[Alias {
        name: "Echo",
        translate: |mut arguments| {
            let moved = arguments.remove("words").unwrap_or_default();
            arguments.insert("text".into(), moved);
            arguments
        },
    }],
    ..Manual::of(Group::Dialogue)
};

#[async_trait]
impl Tool for Echo {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn manual(&self) -> &Manual {
        &MANUAL
    }

    fn access(&self) -> Access {
        Access::Read
    }

    fn intent(&self, _: &Value) -> Intent {
        Intent::Nothing
    }

    async fn call(&self, _: &ToolContext, _: Value) -> ToolOutput {
        ToolOutput::default()
    }
}

fn registry() -> Registry {
    let mut registry = Registry::default();
    registry.register(Arc::new(Echo::new("echo")), Source::Embedded);
    registry
}

#[test]
fn registering_again_replaces_and_removing_says_whether_it_was_there() {
    let mut registry = registry();
    registry.register(Arc::new(Echo::new("other")), Source::BuiltIn);
    registry.register(Arc::new(Echo::new("echo")), Source::BuiltIn);
    let names: Vec<_> = registry.specs().into_iter().map(|spec| spec.name).collect();
    assert_eq!(names, ["echo", "other"], "in its old place");
    assert_eq!(registry.source("echo"), Some(&Source::BuiltIn));
    assert!(registry.remove("echo"));
    assert!(!registry.remove("echo"));
}

#[test]
fn an_alias_leads_to_its_tool_and_brings_its_parameters() {
    let registry = registry();
    let found = registry.resolve("Echo").unwrap();
    assert_eq!(found.tool.spec().name, "echo");
    let translated = (found.alias.unwrap().translate)(json!({"words": "hi"}).as_object().unwrap().clone());
    assert_eq!(Value::Object(translated), json!({"text": "hi"}));
    assert!(registry.resolve("echo").unwrap().alias.is_none());
    assert!(registry.resolve("ECHO").is_none());
}

#[test]
fn a_case_is_told_while_one_of_its_tools_is_offered() {
    let mut registry = registry();
    let case = |name: &str, tools: &[&str]| CaseDocument {
        name: name.into(),
        text: String::new(),
        tools: tools.iter().map(|tool| (*tool).to_owned()).collect(),
    };
    registry.add_case(case("one", &["missing", "echo"]));
    registry.add_case(case("two", &["missing"]));
    assert_eq!(registry.cases().map(|case| case.name.as_str()).collect::<Vec<_>>(), ["one"]);
    registry.remove("echo");
    assert_eq!(registry.cases().count(), 0);
}
