//! The two halves without a loop: `context::assemble` makes a request, `model::Client` sends it.
//!
//! `cargo run -p haft-agent --example by_hand -- http://127.0.0.1:8080 "Why is the sky blue?"` asks a model that speaks Anthropic's
//! protocol there, such as the scripted one.

#![expect(clippy::print_stdout, reason = "a program says what it found")]

use std::collections::BTreeMap;
use std::error::Error;

use haft_agent::{RandomIds, WallClock};
use haft_context::{
    Policy, Reminders, Snapshot, SystemInput, assemble, render_system, system_entry,
};
use haft_model::{Catalogue, Client, Delta, O200k, ProviderConfig, RetryConfig};
use haft_types::{Api, Clock, Entry, IdSource, Message, Role, ToolSet};
use tokio_util::sync::CancellationToken;

/// Asks one question; gives the answer, and where the tokens of the request went.
pub(crate) async fn ask(url: &str, question: &str) -> Result<(String, String), Box<dyn Error>> {
    let providers = BTreeMap::from([("mock".to_owned(), ProviderConfig::new(Api::Anthropic, url))]);
    let declared = Catalogue::new(providers, BTreeMap::new())?.resolve("mock/any")?;
    let mut client = Client::new(declared, None, RetryConfig::default())?;

    // What was said, counted and hashed once.
    let input = Message::from_text(
        RandomIds.new_message_id(),
        Role::User,
        question,
        WallClock.now(),
    );
    let history = [Entry::new(input, &O200k)];
    // What is sent besides it.
    let policy = Policy::default();
    let tools = ToolSet::new(Vec::new(), &O200k);
    let system = system_entry(render_system(&SystemInput::default())?, &O200k);
    let reminders = Reminders {
        todo: Some("- [ ] answer in one sentence".into()),
        ..Reminders::default()
    };
    let spec = client.spec().clone();
    let plain = Snapshot::new(&spec, &policy, &system, &tools, &history, &O200k);
    let assembly = assemble(&Snapshot {
        reminders: Some(&reminders),
        ..plain
    })?;

    let mut answer = String::new();
    let mut hear = |delta: Delta| {
        if let Delta::Text(text) = delta {
            answer.push_str(&text);
        }
    };
    client
        .stream_reply(&assembly.request, &CancellationToken::new(), &mut hear)
        .await?;
    Ok((answer, assembly.account.budget.format_table()))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let [_, url, question] = <[String; 3]>::try_from(std::env::args().collect::<Vec<_>>())
        .map_err(|_| "give an address and a question")?;
    let (answer, tokens) = ask(&url, &question).await?;
    println!("{answer}\n\n{tokens}");
    Ok(())
}
