//! Tests how the registry runs a call.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use haft_tool::{
    Access, BreakerLimits, CallObserver, Intent, Registry, Tool, ToolContext, ToolOutput,
};
use haft_types::{Envelope, ToolSpec, ToolStatus};
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

fn echo_text(arguments: &Value) -> ToolOutput {
    Envelope::success(arguments["text"].as_str().unwrap_or_default()).into()
}

/// Answers as it is told, and keeps the arguments it sees.
#[derive(Default)]
struct Watcher {
    seen: Arc<Mutex<Vec<Value>>>,
    refuses: bool,
    panics: bool,
}

#[async_trait]
impl CallObserver for Watcher {
    fn name(&self) -> &'static str {
        "watcher"
    }

    async fn before(&self, _: &str, _: &ToolContext, arguments: &Value) -> Result<(), String> {
        self.seen.lock().unwrap().push(arguments.clone());
        assert!(!self.panics);
        if self.refuses {
            Err("not today".into())
        } else {
            Ok(())
        }
    }

    async fn after(&self, _: &str, _: &ToolContext, output: &mut ToolOutput) -> Result<(), String> {
        let mark = match output.envelope.status {
            ToolStatus::Success | ToolStatus::Partial => "?",
            ToolStatus::Error => " (seen)",
        };
        output.envelope.text.push_str(mark);
        Ok(())
    }
}

fn registry(
    does: fn(&Value) -> ToolOutput,
    observers: impl IntoIterator<Item = Watcher>,
) -> Registry {
    let mut registry = Registry::default();
    registry.register(Arc::new(Echo::new("echo", does)));
    for observer in observers {
        registry.add_observer(Arc::new(observer));
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
async fn observers_see_arguments_and_results_in_order() {
    let watchers = [Watcher::default(), Watcher::default()];
    let seen = [0, 1].map(|at: usize| Arc::clone(&watchers[at].seen));
    let registry = registry(echo_text, watchers);
    assert_eq!(call(&registry, json!({"text": "hi"})).await, "hi??");
    for seen in seen {
        assert_eq!(*seen.lock().unwrap(), [json!({"text": "hi"})]);
    }
}

#[tokio::test]
async fn an_observer_that_refuses_or_crashes_is_an_error_result_and_the_tool_does_not_run() {
    for (observer, why) in [
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
        let registry = registry(|_| unreachable!(), [observer]);
        let told = call(&registry, json!({"text": "hi"})).await;
        assert!(told.contains("`watcher`") && told.contains(why), "{told}");
        assert_eq!(registry.tool_statistics("echo").calls, 0);
    }
}

#[tokio::test]
async fn an_error_result_is_observed_and_is_no_failure_of_the_tool() {
    let registry = registry(
        |_| Envelope::failure("no_match", "does not fit").into(),
        [Watcher::default()],
    );
    for _ in 0..5 {
        assert_eq!(call(&registry, json!({})).await, "does not fit (seen)");
    }
    let statistics = registry.tool_statistics("echo");
    assert_eq!(
        (statistics.calls, statistics.errors, statistics.broken),
        (5, 5, 0)
    );
}

#[tokio::test]
async fn tool_is_disabled_after_as_many_crashes_as_the_limit_allows() {
    let mut registry = registry(|_| panic!("broken"), []);
    registry.set_breaker_limits(BreakerLimits {
        failures: 1,
        ..BreakerLimits::default()
    });
    assert!(call(&registry, json!({})).await.contains("crashed"));
    let told = call(&registry, json!({})).await;
    assert!(told.contains("not called for another"), "{told}");
}

#[tokio::test]
async fn tool_is_disabled_after_three_crashes_in_a_row() {
    let registry = registry(|_| panic!("broken"), []);
    for _ in 0..3 {
        assert!(call(&registry, json!({})).await.contains("crashed"));
    }
    let told = call(&registry, json!({})).await;
    assert!(told.contains("3 times in a row"), "{told}");
    let statistics = registry.clone().tool_statistics("echo");
    assert_eq!(
        (statistics.calls, statistics.broken),
        (3, 3),
        "clones share them"
    );
}
