//! Another agent on the base loop: no files, no store, no project; one tool of its own and its own
//! system prompt.
//!
//! `cargo run -p haft-engine --example weather -- http://127.0.0.1:8080 "Will it rain in Zürich?"` asks a model that speaks
//! Anthropic's protocol there, such as the scripted one.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program says what it found"
)]

use std::sync::Arc;

use async_trait::async_trait;
use haft_engine::BaseLoop;
use haft_model::{Catalogue, Client, RetryConfig};
use haft_testkit::test::{FakeClock, SequentialIds};
use haft_tool::{Access, Intent, Registry, Tool, ToolContext, ToolOutput};
use haft_types::{Envelope, Event, EventBody, ToolSpec, TurnResult};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

struct Forecast(ToolSpec);

#[async_trait]
impl Tool for Forecast {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn access(&self) -> Access {
        Access::Read
    }

    fn intent(&self, _: &Value) -> Intent {
        Intent::Nothing
    }

    async fn call(&self, _: &ToolContext, arguments: Value) -> ToolOutput {
        match arguments["city"].as_str() {
            Some(city) => Envelope::success(format!("{city}: rain from noon on.")).into(),
            None => Envelope::failure("no_city", "Name a `city`.").into(),
        }
    }
}

/// Asks the model at this address; what happens is told as it happens.
pub(crate) async fn ask(
    url: &str,
    question: &str,
    tell: &mut (dyn FnMut(&Event) + Send),
) -> Result<TurnResult, Box<dyn std::error::Error>> {
    let providers = toml::from_str(&format!(
        "mock = {{ api = 'anthropic', base_url = '{url}' }}"
    ))?;
    let client = Client::new(
        Catalogue::new(providers, toml::from_str("")?)?.resolve("mock/any")?,
        None,
        RetryConfig::default(),
    )?;
    let mut tools = Registry::default();
    let parameters =
        json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let spec = ToolSpec {
        name: "forecast".into(),
        description: "The weather of a city today.".into(),
        parameters,
    };
    tools.register(Arc::new(Forecast(spec)));
    let mut agent = BaseLoop::new(
        client,
        tools,
        "You answer questions about the weather.",
        Arc::new(FakeClock::default()),
        Arc::new(SequentialIds::default()),
    );
    Ok(agent
        .run(
            question,
            &mut |event: &Event| tell(event),
            &CancellationToken::new(),
        )
        .await)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [_, url, question] = <[String; 3]>::try_from(std::env::args().collect::<Vec<_>>())
        .map_err(|_| "give an address and a question")?;
    let mut tell = |event: &Event| {
        if let EventBody::ToolCall {
            name,
            arguments: Some(arguments),
            ..
        } = &event.body
        {
            eprintln!("{name} {arguments}");
        }
    };
    println!("{}", ask(&url, &question, &mut tell).await?.text);
    Ok(())
}
