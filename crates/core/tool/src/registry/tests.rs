use std::collections::BTreeMap;

use async_trait::async_trait;
use serde_json::json;

use super::*;
use crate::{Access, Availability, Gateway, Group, Intent, Manual, ToolSearch, UseTool};

struct Echo {
    spec: ToolSpec,
}

impl Echo {
    fn new(name: &str) -> Self {
        Self {
            spec: ToolSpec {
                name: name.into(),
                description: String::new(),
                parameters: json!({}),
            },
        }
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
    ..Manual::for_group(Group::Dialogue)
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

fn registry_with_echo() -> Registry {
    let mut registry = Registry::default();
    registry.register(Arc::new(Echo::new("echo")));
    registry
}

#[test]
fn register_replaces_in_place_and_remove_reports_presence() {
    let mut registry = registry_with_echo();
    registry.register(Arc::new(Echo::new("other")));
    registry.register(Arc::new(Echo::new("echo")));
    let names: Vec<_> = registry.specs().into_iter().map(|spec| spec.name).collect();
    assert_eq!(names, ["echo", "other"], "in its old place");
    assert!(registry.remove("echo"));
    assert!(!registry.remove("echo"));
}

#[test]
fn resolve_finds_a_tool_by_alias_and_converts_its_parameters() {
    let registry = registry_with_echo();
    let found = registry.resolve("Echo").unwrap();
    assert_eq!(found.tool.spec().name, "echo");
    let translated =
        (found.alias.unwrap().translate)(json!({"words": "hi"}).as_object().unwrap().clone());
    assert_eq!(Value::Object(translated), json!({"text": "hi"}));
    assert!(registry.resolve("echo").unwrap().alias.is_none());
    assert!(registry.resolve("ECHO").is_none());
}

#[test]
fn cases_include_those_with_an_offered_tool() {
    let mut registry = registry_with_echo();
    let case = |name: &str, tools: &[&str]| CaseDocument {
        name: name.into(),
        text: String::new(),
        tools: tools.iter().map(|tool| (*tool).to_owned()).collect(),
    };
    registry.add_case(case("one", &["missing", "echo"]));
    registry.add_case(case("two", &["missing"]));
    assert_eq!(
        registry
            .case_documents()
            .map(|case| case.name.as_str())
            .collect::<Vec<_>>(),
        ["one"]
    );
    registry.remove("echo");
    assert_eq!(registry.case_documents().count(), 0);
}

/// A tool with the parts `part_1` and `part_2`, and one that tells of them.
struct PartedTool {
    spec: ToolSpec,
    tells_of: Option<&'static str>,
    parts: Vec<String>,
}

impl PartedTool {
    fn new(name: &str, tells_of: Option<&'static str>, parts: &[String]) -> Self {
        let spec = ToolSpec {
            name: name.into(),
            description: parts.join(" "),
            parameters: json!({}),
        };
        Self {
            spec,
            tells_of,
            parts: parts.to_vec(),
        }
    }
}

#[async_trait]
impl Tool for PartedTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn gateway(&self) -> Option<&dyn Gateway> {
        Some(self)
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

impl Gateway for PartedTool {
    fn stand_in_arguments(&self, name: &str, _: &Value) -> Option<Value> {
        name.starts_with("part_").then(|| json!({}))
    }

    fn narrowed(&self, names: &[String]) -> Option<Arc<dyn Tool>> {
        let all_there = names.iter().all(|name| self.parts.contains(name));
        all_there
            .then(|| Arc::new(Self::new(&self.spec.name, self.tells_of, names)) as Arc<dyn Tool>)
    }

    fn narrowed_with(&self) -> Option<&str> {
        self.tells_of
    }
}

#[test]
fn select_by_a_part_keeps_that_part_and_the_tool_that_lists_it() {
    let parts = ["part_1".to_owned(), "part_2".to_owned()];
    for (wanted, kept) in [
        (&["part_1"][..], &["user: part_1", "teller: part_1"][..]),
        (
            &["part_2", "part_1"],
            &["user: part_2 part_1", "teller: part_2 part_1"],
        ),
        (&["part_1", "teller"], &["user: part_1", "teller: part_1"]),
        (
            &["read-only", "user", "part_1"],
            &["echo: ", "user: part_1 part_2", "teller: part_1 part_2"],
        ),
        (&["part_1", "user"], &["user: part_1 part_2"]),
        (&["mine"], &["echo: ", "user: part_1", "teller: part_1"]),
        (&["teller"], &["teller: part_1 part_2"]),
        (&["none"], &[]),
    ] {
        let mut registry = registry_with_echo();
        registry.register(Arc::new(PartedTool::new("user", None, &parts)));
        registry.register(Arc::new(PartedTool::new("teller", Some("user"), &parts)));
        let wanted: Vec<_> = wanted.iter().map(|name| (*name).to_owned()).collect();
        let profiles = [(
            "mine".to_owned(),
            vec!["Echo".to_owned(), "part_1".to_owned()],
        )]
        .into();
        registry.select_tools(&wanted, &profiles).unwrap();
        let found: Vec<_> = registry
            .specs()
            .into_iter()
            .map(|one| format!("{}: {}", one.name, one.description))
            .collect();
        assert_eq!(found, kept, "{wanted:?}");
    }
}

#[test]
fn select_rejects_a_part_that_only_resolve_accepts() {
    let mut registry = registry_with_echo();
    registry.register(Arc::new(PartedTool::new(
        "user",
        None,
        &["part_1".to_owned()],
    )));
    assert!(
        registry.resolve("part_3").is_some(),
        "a call of it is understood"
    );
    assert!(
        registry
            .select_tools(&["part_3".to_owned()], &BTreeMap::new())
            .is_err()
    );
}

/// A tool of a set.
struct Member(Echo, Manual);

#[async_trait]
impl Tool for Member {
    fn spec(&self) -> &ToolSpec {
        self.0.spec()
    }

    fn manual(&self) -> &Manual {
        &self.1
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

fn registry_with_sets() -> Registry {
    let mut registry = Registry::default();
    let tools = [
        ("first", Availability::Default),
        ("native", Availability::Native),
        ("text", Availability::Text),
        ("further", Availability::Extension),
    ];
    for (name, set) in tools {
        registry.register(Arc::new(Member(
            Echo::new(name),
            Manual {
                availability: set,
                ..Manual::for_group(Group::Files)
            },
        )));
    }
    registry.register(Arc::new(ToolSearch::new(Vec::new())));
    registry.register(Arc::new(UseTool::default()));
    registry
}

fn select_and_list(
    choice: &[&str],
    protocol: ToolProtocol,
) -> (Registry, Vec<String>, Vec<String>) {
    let mut registry = registry_with_sets();
    registry.set_protocol(protocol);
    let choice: Vec<_> = choice.iter().map(|name| (*name).to_owned()).collect();
    registry.select_tools(&choice, &BTreeMap::new()).unwrap();
    let names =
        |tools: Vec<&Arc<dyn Tool>>| tools.iter().map(|tool| tool.spec().name.clone()).collect();
    let offered = names(registry.offered_tools().collect());
    let deferred = names(registry.deferred_tools().collect());
    (registry, offered, deferred)
}

#[test]
fn default_set_depends_on_the_protocol_and_defers_the_rest() {
    let (mut registry, direct, deferred) = select_and_list(&[], ToolProtocol::Native);
    assert_eq!(direct, ["first", "native", "tool_search", "use_tool"]);
    assert_eq!(deferred, ["text", "further"]);
    let guide = &registry.get("tool_search").unwrap().spec().description;
    assert!(
        guide.ends_with("`use_tool`: files: text, further."),
        "{guide}"
    );
    assert!(registry.resolve("further").is_some() && !registry.offers_tool("further"));
    registry.set_protocol(ToolProtocol::Xml);
    let direct: Vec<_> = registry.specs().into_iter().map(|spec| spec.name).collect();
    assert_eq!(direct, ["first", "text", "tool_search", "use_tool"]);
    let guide = &registry.get("tool_search").unwrap().spec().description;
    assert!(
        guide.ends_with("`use_tool`: files: native, further."),
        "{guide}"
    );
}

#[test]
fn select_offers_named_tools_and_defers_nothing_for_them() {
    let (_, direct, deferred) = select_and_list(&["default", "further"], ToolProtocol::React);
    assert_eq!(
        direct,
        ["first", "text", "further", "tool_search", "use_tool"]
    );
    assert_eq!(deferred, ["native"]);
    let (registry, direct, deferred) = select_and_list(&["text", "first"], ToolProtocol::Native);
    assert_eq!(
        (direct, deferred),
        (vec!["first".to_owned(), "text".to_owned()], vec![])
    );
    assert!(registry.resolve("further").is_none());
    let (_, direct, deferred) = select_and_list(&["*"], ToolProtocol::Native);
    assert_eq!(
        direct,
        ["first", "native", "text", "further"],
        "there is nothing to search for"
    );
    assert!(deferred.is_empty());
}

#[test]
fn set_unusable_offers_a_tool_only_by_name() {
    let mut registry = registry_with_sets();
    registry.set_unusable("first");
    let mut named = registry.clone();
    registry.select_tools(&[], &BTreeMap::new()).unwrap();
    assert!(
        !registry.offers_tool("first")
            && registry
                .deferred_tools()
                .all(|tool| tool.spec().name != "first")
    );
    assert!(
        registry.resolve("first").is_some(),
        "a call of it is answered"
    );
    named
        .select_tools(&["first".to_owned()], &BTreeMap::new())
        .unwrap();
    assert!(named.offers_tool("first"));
}
