use futures::FutureExt as _;
use tokio_util::sync::CancellationToken;

use super::*;

/// Tools that are at hand, of one source, without any server.
struct LocalCatalogue {
    source: &'static str,
    tools: Result<Vec<&'static str>, &'static str>,
    called_by: Option<&'static str>,
}

#[async_trait]
impl ToolCatalogue for LocalCatalogue {
    fn guide(&self) -> &'static str {
        "Find further tools.\n"
    }

    fn source_noun(&self) -> &'static str {
        "group"
    }

    fn sources(&self) -> Vec<String> {
        vec![self.source.to_owned()]
    }

    fn heading(&self, source: &str) -> String {
        format!("Group `{source}`")
    }

    async fn list_tools(
        &self,
        _: &str,
        patience: SourceWait,
        _: &CancellationToken,
    ) -> Result<Vec<ToolSpec>, String> {
        let spec = |name: &&str| ToolSpec {
            name: (*name).to_owned(),
            description: format!("Can {name}, {patience:?}."),
            parameters: json!({"type": "object"}),
        };
        Ok(self
            .tools
            .as_ref()
            .map_err(|reason| (*reason).to_owned())?
            .iter()
            .map(spec)
            .collect())
    }

    fn calling_tool(&self) -> Option<&str> {
        self.called_by
    }

    fn narrow_to(&self, names: &[String]) -> Option<Arc<dyn ToolCatalogue>> {
        let mut tools = self.tools.clone().unwrap_or_default();
        tools.retain(|tool| names.iter().any(|name| name == tool));
        (!tools.is_empty()).then(|| {
            Arc::new(Self {
                tools: Ok(tools),
                ..*self
            }) as _
        })
    }
}

fn catalogue(source: &'static str, tools: &[&'static str]) -> LocalCatalogue {
    LocalCatalogue {
        source,
        tools: Ok(tools.to_vec()),
        called_by: None,
    }
}

fn search(catalogues: impl IntoIterator<Item = LocalCatalogue>) -> ToolSearch {
    ToolSearch::new(
        catalogues
            .into_iter()
            .map(|one| Arc::new(one) as _)
            .collect(),
    )
}

fn call_tool(tool: &dyn Tool, arguments: Value) -> Envelope {
    let context = ToolContext::bare("/nowhere", "call-1", CancellationToken::new());
    tool.call(&context, arguments)
        .now_or_never()
        .unwrap()
        .envelope
}

#[test]
fn tool_search_finds_tools_of_every_catalogue() {
    let broken = LocalCatalogue {
        tools: Err("not \u{1b}[2Jnow"),
        ..catalogue("later", &[])
    };
    let tool = search([
        catalogue("notes", &["note_add", "note_query"]),
        catalogue("web", &["fetch"]),
        broken,
    ]);
    assert!(
        tool.spec()
            .description
            .ends_with(".\n\nFind further tools.\n\nFind further tools.\n\nFind further tools.")
    );
    let found = call_tool(&tool, json!({"query": "add a fetch"}));
    assert!(
        found
            .text
            .starts_with("3 of 3 tools fit:\n\nGroup `web`\n- `fetch`: Can fetch, Short.\n"),
        "{}",
        found.text
    );
    assert!(found.text.ends_with("\n[not now]"), "{}", found.text);
    assert_eq!(
        found.data["found"][0],
        json!({"server": "web", "tool": "fetch"})
    );
    assert!(
        call_tool(&tool, json!({"query": "", "server_name": "notes"}))
            .text
            .contains("Can note_add, Full.")
    );
    let unknown = call_tool(&tool, json!({"query": "", "server_name": "no"}))
        .error
        .unwrap();
    assert_eq!(unknown.code, "unknown_server");
    assert_eq!(
        unknown.message,
        "there is no group `no`; there are `notes`, `web`, `later`"
    );
}

#[test]
fn tool_search_describes_the_best_tools_and_names_others() {
    let tool = search([catalogue("many", &["a"; 57])]);
    let text = call_tool(&tool, json!({"query": ""})).text;
    assert_eq!(text.matches("Group `many`").count(), MAX_SHOWN);
    assert!(
        text.contains("\n\nAlso: many/a, many/a") && text.ends_with(" and 2 more"),
        "{text}"
    );
    assert_eq!(
        call_tool(&tool, json!({"query": "zebra"})).text,
        "None of 57 tools fits."
    );
}

#[test]
fn tool_search_narrows_only_catalogues_of_the_narrowed_tool() {
    let remote = || LocalCatalogue {
        called_by: Some("use_remote"),
        ..catalogue("remote", &["x", "y"])
    };
    let tool = search([catalogue("own", &["z"]), remote()]);
    assert_eq!(tool.narrowed_with(), Some("use_remote"));
    assert_eq!(search([catalogue("own", &["z"])]).narrowed_with(), None);
    let narrowed = tool.narrowed(&["y".to_owned()]).unwrap();
    let found = call_tool(narrowed.as_ref(), json!({"query": ""})).data;
    assert_eq!(
        found["found"],
        json!([{"server": "own", "tool": "z"}, {"server": "remote", "tool": "y"}])
    );
    assert!(
        tool.narrowed(&["z".to_owned()]).is_none(),
        "a name that stands for nothing it can be narrowed to"
    );
}
