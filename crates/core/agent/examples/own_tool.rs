//! An agent with a tool of its own and no file system: no project, no store, no built-in tools.
//!
//! `cargo run -p haft-agent --example own_tool -- http://127.0.0.1:8080 "Roll two dice"` asks a model that speaks Anthropic's
//! protocol there, such as the scripted one.

#![expect(clippy::print_stdout, reason = "a program says what it found")]

use std::error::Error;
use std::sync::Arc;

use async_trait::async_trait;
use haft_agent::Agent;
use haft_model::ProviderConfig;
use haft_tool::{Access, Intent, Tool, ToolContext, ToolOutput};
use haft_types::{Api, Envelope, Event, ToolSpec, TurnResult};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// Dice that always show the same: this is an example.
struct Dice(ToolSpec);

#[async_trait]
impl Tool for Dice {
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
        match arguments["dice"].as_u64() {
            Some(dice @ 1..=6) => {
                Envelope::success(format!("{dice} dice show {} in all.", dice * 4)).into()
            }
            _ => Envelope::failure("no_dice", "Say how many `dice`, 1 to 6.").into(),
        }
    }
}

/// Asks the model at this address, which may roll dice.
pub(crate) async fn ask(url: &str, question: &str) -> Result<TurnResult, Box<dyn Error>> {
    let parameters = json!({"type": "object", "properties": {"dice": {"type": "integer"}}, "required": ["dice"]});
    let spec = ToolSpec {
        name: "roll".into(),
        description: "Rolls dice.".into(),
        parameters,
    };
    let mut agent = Agent::builder()
        .provider("mock", ProviderConfig::new(Api::Anthropic, url))
        .model("mock/any")
        .tool(Arc::new(Dice(spec)))
        .build_loop("You are a croupier.")?;
    Ok(agent
        .run(question, &mut |_: &Event| {}, &CancellationToken::new())
        .await)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let [_, url, question] = <[String; 3]>::try_from(std::env::args().collect::<Vec<_>>())
        .map_err(|_| "give an address and a question")?;
    println!("{}", ask(&url, &question).await?.text);
    Ok(())
}
