//! An agent with one tool of its own, and none for files or commands. It asks a server of
//! Anthropic's protocol, such as the scripted model.

#![expect(clippy::print_stdout, reason = "an example prints what happens")]

use std::{error::Error, future::ready, path::Path, sync::Arc};

use haft_agent::{Agent, HostEnvironment, Places, config::Config};
use haft_model::ProviderConfig;
use haft_tool::{Access, Group, Intent, Manual, ToolDefinition};
use haft_types::{Api, Envelope, Event};
use tokio_util::sync::CancellationToken;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Roll {
    dice: u64,
}

pub(crate) fn croupier(url: &str, folder: &Path) -> Agent {
    let manual = &const { Manual::for_group(Group::Others) };
    let roll = ToolDefinition::new("roll", "Rolls dice.", manual, Access::Read, |_| {
        Intent::Nothing
    });
    let roll = roll.with_function(|_, Roll { dice }| {
        let text = format!("{dice} dice show {} in all.", dice * 4);
        Box::pin(ready(Ok::<_, Envelope>(Envelope::success(text))))
    });
    let home = folder.join(".haft-example");
    let places = Places::under_home(&home, HostEnvironment::default());
    Agent::new(places, Config::default())
        .with_provider("mock", ProviderConfig::new(Api::Anthropic, url))
        .model("mock/any")
        .project(folder)
        .role("You are a croupier.")
        .with_tool(Arc::new(roll))
        .offer(["roll"])
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let agent = croupier("http://127.0.0.1:8080", Path::new("."));
    let mut session = agent.start("Roll two dice").await?;
    let task = Some("Roll two dice".to_owned());
    let mut print = |event: &Event| println!("{event:?}");
    let cancel = CancellationToken::new();
    session.run(task, &mut print, &cancel).await;
    Ok(())
}
