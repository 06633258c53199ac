use futures::FutureExt as _;
use tokio_util::sync::CancellationToken;

use super::*;

/// Tools that are at hand, of one source, without any server.
struct AtHand {
    source: &'static str,
    tools: Result<Vec<&'static str>, &'static str>,
    called_by: Option<&'static str>,
}

#[async_trait]
impl ToolCatalogue for AtHand {
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

    async fn tools(
        &self,
        _: &str,
        patience: Patience,
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

    fn called_by(&self) -> Option<&str> {
        self.called_by
    }

    fn narrowed(&self, names: &[String]) -> Option<Arc<dyn ToolCatalogue>> {
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

fn catalogue(source: &'static str, tools: &[&'static str]) -> AtHand {
    AtHand {
        source,
        tools: Ok(tools.to_vec()),
        called_by: None,
    }
}

fn search(catalogues: impl IntoIterator<Item = AtHand>) -> ToolSearch {
    ToolSearch::new(
        catalogues
            .into_iter()
            .map(|one| Arc::new(one) as _)
            .collect(),
    )
}

fn call(tool: &dyn Tool, arguments: Value) -> Envelope {
    let context = ToolContext::bare("/nowhere", "call-1", CancellationToken::new());
    tool.call(&context, arguments)
        .now_or_never()
        .unwrap()
        .envelope
}

#[test]
fn tools_of_every_catalogue_are_found_without_a_server() {
    let broken = AtHand {
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
    let found = call(&tool, json!({"query": "add a fetch"}));
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
        call(&tool, json!({"query": "", "server_name": "notes"}))
            .text
            .contains("Can note_add, Full.")
    );
    let unknown = call(&tool, json!({"query": "", "server_name": "no"}))
        .error
        .unwrap();
    assert_eq!(unknown.code, "unknown_server");
    assert_eq!(
        unknown.message,
        "there is no group `no`; there are `notes`, `web`, `later`"
    );
}

#[test]
fn the_best_are_described_and_further_ones_named() {
    let tool = search([catalogue("many", &["a"; 57])]);
    let text = call(&tool, json!({"query": ""})).text;
    assert_eq!(text.matches("Group `many`").count(), SHOWN);
    assert!(
        text.contains("\n\nAlso: many/a, many/a") && text.ends_with(" and 2 more"),
        "{text}"
    );
    assert_eq!(
        call(&tool, json!({"query": "zebra"})).text,
        "None of 57 tools fits."
    );
}

#[test]
fn only_what_a_narrowed_tool_calls_is_narrowed_with_it() {
    let remote = || AtHand {
        called_by: Some("use_remote"),
        ..catalogue("remote", &["x", "y"])
    };
    let tool = search([catalogue("own", &["z"]), remote()]);
    assert_eq!(tool.narrowed_with(), Some("use_remote"));
    assert_eq!(search([catalogue("own", &["z"])]).narrowed_with(), None);
    let narrowed = tool.narrowed(&["y".to_owned()]).unwrap();
    let found = call(narrowed.as_ref(), json!({"query": ""})).data;
    assert_eq!(
        found["found"],
        json!([{"server": "own", "tool": "z"}, {"server": "remote", "tool": "y"}])
    );
    assert!(
        tool.narrowed(&["z".to_owned()]).is_none(),
        "a name that stands for nothing it can be narrowed to"
    );
}
