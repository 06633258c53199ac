//! Builds the requests of a conversation, and prices each as a provider with a prefix cache bills
//! it.

use std::time::Duration;

use haft_context::*;

/// Counts a token per four bytes; a real program uses the tokenizer of its model.
struct Bytes;

impl TokenCounter for Bytes {
    fn count_text(&self, text: &str) -> u32 {
        text.len() as u32 / 4
    }
}

fn main() -> Result<(), ContextError> {
    let price = Price { input: 3.0, cached_input: Some(0.3), cache_write: Some(3.75), output: 15.0, long: None };
    let model = ModelSpec {
        provider: "example".into(),
        name: "model".into(),
        api: Api::Anthropic,
        context_window: 200_000,
        max_output_tokens: Some(8_192),
        price: Some(price),
        cache: CacheRule { rule: CacheKind::Anthropic, ..CacheRule::default() },
        tool_protocol: ToolProtocol::Native,
        capabilities: Capabilities::default(),
        tokenizer_factor: 1.0,
        profile: ModelProfile::Full,
    };
    let policy = Policy::default();
    let system = system_entry(render_system(&SystemInput::default())?, &Bytes);
    let tools = ToolSet::new(Vec::new(), &Bytes);
    let say = |role, text: &str| {
        let id = MessageId::from_hash(ContentHash::from_content(text.as_bytes()));
        Entry::new(Message::from_text(id, role, text, Timestamp::UNIX_EPOCH), &Bytes)
    };
    let (mut history, mut last) = (Vec::new(), None);
    let mut cache = CacheSimulator::new(&model.cache);
    for round in 1..=5 {
        let log = format!("Why does build {round} fail?\n{}", "error: mismatched types\n".repeat(1_000));
        history.push(say(Role::User, &log));
        let input = Snapshot::new(&model, &policy, &system, &tools, &history, &Bytes);
        let Assembly { request, account } = assemble(&Snapshot { last: last.as_ref(), ..input })?;
        let pieces = request_pieces(&request, model.tokenizer_factor);
        let usage = cache.send_request(Duration::from_secs(60 * round), &pieces);
        let cost = price.request_cost(Usage { output: 200, ..usage }).total;
        println!(
            "request {round}: {:>6} tokens in {} messages, {:>6} read from the cache, ${cost:.4}",
            account.budget.used_tokens(), request.segments.len(), usage.cached_input,
        );
        history.push(say(Role::Assistant, &format!("Build {round} fails because of a type.")));
        last = Some(account.sent);
    }
    Ok(())
}
