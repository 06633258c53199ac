//! Tests how the registry runs a call.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use haft_tool::{Access, Intent, Plugin, Registry, Switch, Tool, ToolContext, ToolOutput};
use haft_types::{Envelope, ToolSpec};
use serde_json::{Value, json};

use crate::testing::Bench;

/// A tool that runs a function on its arguments.
struct Echo {
    spec: ToolSpec,
    does: fn(&Value) -> ToolOutput,
}

impl Echo {
    fn new(name: &str, does: fn(&Value) -> ToolOutput) -> Self {
        Self {
            spec: ToolSpec {
                name: name.into(),
                description: String::new(),
                parameters: json!({}),
            },
            does,
        }
    }
}

#[async_trait]
impl Tool for Echo {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn access(&self) -> Access {
        Access::Read
    }

    fn intent(&self, _: &Value) -> Intent {
        Intent::Nothing
    }

    async fn call(&self, _: &ToolContext, arguments: Value) -> ToolOutput {
        (self.does)(&arguments)
    }
}

fn said(arguments: &Value) -> ToolOutput {
    Envelope::success(arguments["text"].as_str().unwrap_or_default()).into()
}

/// A plugin that records calls and refuses or panics as configured.
#[derive(Default)]
struct Watcher {
    asked: AtomicU32,
    refuses: bool,
    panics: bool,
}

#[async_trait]
impl Plugin for Watcher {
    fn name(&self) -> &'static str {
        "watcher"
    }

    async fn before(&self, _: &str, _: &ToolContext, arguments: &mut Value) -> Result<(), String> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        assert!(!self.panics);
        arguments["text"] = json!(format!(
            "{}!",
            arguments["text"].as_str().unwrap_or_default()
        ));
        if self.refuses {
            Err("not today".into())
        } else {
            Ok(())
        }
    }

    async fn after(&self, _: &str, _: &ToolContext, output: &mut ToolOutput) -> Result<(), String> {
        output.envelope.text.push('?');
        Ok(())
    }

    async fn on_error(
        &self,
        _: &str,
        _: &ToolContext,
        output: &mut ToolOutput,
    ) -> Result<(), String> {
        output.envelope.text.push_str(" (seen)");
        Ok(())
    }
}

fn registry(
    does: fn(&Value) -> ToolOutput,
    plugins: impl IntoIterator<Item = Watcher>,
) -> Registry {
    let mut registry = Registry::default();
    registry.register(Arc::new(Echo::new("echo", does)));
    for plugin in plugins {
        registry.add_plugin(Arc::new(plugin));
    }
    registry
}

async fn call(registry: &Registry, arguments: Value) -> String {
    let tool = Arc::clone(registry.get("echo").unwrap());
    registry
        .call(tool.as_ref(), &Bench::new().context, arguments)
        .await
        .envelope
        .text
}

#[tokio::test]
async fn plugins_see_arguments_and_results_in_order_and_can_be_switched() {
    let mut registry = registry(said, [Watcher::default()]);
    assert_eq!(call(&registry, json!({"text": "hi"})).await, "hi!?");
    assert!(registry.switch_plugin("watcher", Switch::Off));
    assert_eq!(call(&registry, json!({"text": "hi"})).await, "hi");
    assert!(!registry.switch_plugin("nobody", Switch::On));
}

#[tokio::test]
async fn a_plugin_that_refuses_or_crashes_is_an_error_result_and_the_tool_does_not_run() {
    for (plugin, why) in [
        (
            Watcher {
                refuses: true,
                ..Watcher::default()
            },
            "not today",
        ),
        (
            Watcher {
                panics: true,
                ..Watcher::default()
            },
            "it crashed",
        ),
    ] {
        let registry = registry(|_| unreachable!(), [plugin]);
        let told = call(&registry, json!({"text": "hi"})).await;
        assert!(told.contains("`watcher`") && told.contains(why), "{told}");
        assert_eq!(registry.statistics("echo").calls, 0);
    }
}

#[tokio::test]
async fn an_error_result_goes_to_on_error_and_is_no_failure_of_the_tool() {
    let registry = registry(
        |_| Envelope::failure("no_match", "does not fit").into(),
        [Watcher::default()],
    );
    for _ in 0..5 {
        assert_eq!(call(&registry, json!({})).await, "does not fit (seen)");
    }
    let statistics = registry.statistics("echo");
    assert_eq!(
        (statistics.calls, statistics.errors, statistics.broken),
        (5, 5, 0)
    );
}

#[tokio::test]
async fn a_tool_that_crashes_three_times_is_left_alone() {
    let registry = registry(|_| panic!("broken"), []);
    for _ in 0..3 {
        assert!(call(&registry, json!({})).await.contains("crashed"));
    }
    let told = call(&registry, json!({})).await;
    assert!(told.contains("three times in a row"), "{told}");
    let statistics = registry.clone().statistics("echo");
    assert_eq!(
        (statistics.calls, statistics.broken),
        (3, 3),
        "clones share them"
    );
}
