use super::*;

const SERVERS: [&str; 3] = ["a", "ab", "b"];

fn scope(names: &[&str]) -> Option<ToolScope> {
    within(&ToolScope::default(), names)
}

fn within(scope: &ToolScope, names: &[&str]) -> Option<ToolScope> {
    let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    scope.restrict_to(&names, &SERVERS)
}

#[test]
fn narrowed_scope_admits_only_named_tools() {
    for (names, server, tool, given) in [
        (&["mcp__a__x"][..], "a", "x", true),
        (&["mcp__a__x"], "a", "y", false),
        (&["mcp__a__x"], "a", "xx", false),
        (&["mcp__a__x"], "a", "read_resource", false),
        (&["mcp__a__x"], "b", "x", false),
        (&["mcp__a__x"], "nowhere", "x", false),
        (&["mcp__a__get_*"], "a", "get_me", true),
        (&["mcp__a__get_*"], "a", "set_me", false),
        (&["mcp__a__get_*"], "a", "read_resource", false),
        (&["mcp__a__get_*"], "ab", "get_me", false),
        (&["mcp__a"], "a", "read_resource", true),
        (&["mcp__a"], "ab", "x", false),
        (&["mcp__a__*"], "a", "y", true),
        (&["mcp__a__*"], "b", "y", false),
        (&["mcp__*"], "b", "y", true),
        (&["mcp__a__x", "mcp__b__y"], "b", "y", true),
        (&["mcp__a__x", "mcp__b__y"], "b", "x", false),
        (&["mcp__a__x", "mcp__a"], "a", "y", true),
    ] {
        let scope = scope(names).unwrap();
        assert_eq!(
            scope.check_tool(server, tool).is_ok(),
            given,
            "{names:?}: {server} {tool}"
        );
    }
    assert_eq!(ToolScope::default().check_tool("any", "thing"), Ok(()));
}

#[test]
fn narrowed_is_none_for_names_without_a_match() {
    for name in [
        "x",
        "mcp__",
        "mcp__c__x",
        "mcp__a__",
        "mcp__a*",
        "mcp__*__x",
        "mcp__a__*x",
        "mcp__a__x**",
        "MCP__a__x",
    ] {
        assert_eq!(scope(&["mcp__a", name]), None, "{name}");
    }
}

#[test]
fn narrowed_twice_never_admits_more() {
    let told = |scope: Option<ToolScope>| scope.map(|scope| scope.describe().unwrap());
    let given = scope(&["mcp__a__get_*", "mcp__b__x"]).unwrap();
    for (names, left) in [
        (&["mcp__*"][..], Some("`mcp__a__get_*`, `mcp__b__x`")),
        (&["mcp__a"], Some("`mcp__a__get_*`")),
        (&["mcp__a__get_all_*"], Some("`mcp__a__get_all_*`")),
        (&["mcp__a__g*"], Some("`mcp__a__get_*`")),
        (&["mcp__a__get_me"], Some("`mcp__a__get_me`")),
        (&["mcp__a__set_me"], None),
        (&["mcp__a__s*"], None),
        (&["mcp__b__*"], Some("`mcp__b__x`")),
        (&["mcp__ab"], None),
    ] {
        assert_eq!(told(within(&given, names)).as_deref(), left, "{names:?}");
    }
}

#[test]
fn narrowed_ignores_the_order_and_errors_list_the_names() {
    assert_eq!(
        scope(&["mcp__b__x", "mcp__a", "mcp__a__*"]),
        scope(&["mcp__a__*", "mcp__b__x"])
    );
    let error = scope(&["mcp__a__x"])
        .unwrap()
        .check_tool("b", "y")
        .unwrap_err();
    assert_eq!(error.code(), "not_offered");
    let told = error.to_string();
    assert!(
        told.starts_with("`mcp__b__y` is not among") && told.ends_with("only `mcp__a__x`"),
        "{told}"
    );
}

#[test]
fn tool_of_accepts_servers_that_end_in_an_underscore() {
    assert_eq!(split_server_tool("mcp__a___x", "a_"), Some(("a_", "x")));
    assert_eq!(split_server_tool("mcp__a__x", "ab"), None);
    assert_eq!(split_server_tool("mcp__a__", "a"), None);
}
