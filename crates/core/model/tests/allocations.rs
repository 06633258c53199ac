//! Measures the allocations of the next request of a long conversation, in bytes and in number,
//! never in time.
//!
//! A separate binary, because it replaces the global allocator with one that counts.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::collections::BTreeMap;
use std::sync::Arc;

use allocation_counter::{AllocationInfo, measure};
use haft_context::{
    Account, Memo, Policy, Reminders, SafeZone, Snapshot, SystemInput, assemble, render_system,
    system_entry,
};
use haft_model::{Catalogue, Client, ModelConfig, ProviderConfig, RetryConfig};
use haft_types::{
    Api, ContentHash, Entry, Envelope, Message, MessageId, Part, Role, Timestamp, TokenCounter,
    ToolCall, ToolResult, ToolSet, ToolSpec,
};
use serde_json::json;

/// Counts one token per four bytes; allocates nothing.
struct Quarter;

impl TokenCounter for Quarter {
    fn count_text(&self, text: &str) -> u32 {
        text.len().div_ceil(4) as u32
    }
}

/// A conversation in one long round, with everything that is kept between requests.
struct Session {
    client: Client,
    policy: Policy,
    system: Arc<Entry>,
    tools: Arc<ToolSet>,
    reminders: Reminders,
    history: Vec<Arc<Entry>>,
    memo: Memo,
    last: Option<Account>,
    /// Size of each result in bytes.
    size: usize,
}

impl Session {
    fn new(api: Api, messages: usize, size: usize) -> Self {
        let model = ModelConfig {
            context_window: Some(2_000_000_000),
            max_output_tokens: Some(4096),
            ..ModelConfig::default()
        };
        let providers = [(
            "mock".to_owned(),
            ProviderConfig::new(api, "http://127.0.0.1:1"),
        )]
        .into();
        let catalogue =
            Catalogue::new(providers, BTreeMap::from([("mock/test".to_owned(), model)])).unwrap();
        let client = Client::new(
            catalogue.resolve("mock/test").unwrap(),
            None,
            RetryConfig::default(),
        )
        .unwrap();
        let spec = ToolSpec {
            name: "read_file".into(),
            description: "Reads.".into(),
            parameters: json!({"type": "object", "properties": {}}),
        };
        let mut session = Self {
            client,
            // Nothing is cleared, so that the bounds are those of a request that only grows.
            policy: Policy {
                safe_zone: Some(SafeZone::Share(0.9)),
                ..Policy::default()
            },
            system: system_entry(render_system(&SystemInput::default()).unwrap(), &Quarter),
            tools: ToolSet::new(vec![spec], &Quarter),
            reminders: Reminders {
                todo: Some("- [ ] one".into()),
                ..Reminders::default()
            },
            history: Vec::with_capacity(messages + 16),
            memo: Memo::default(),
            last: None,
            size,
        };
        session
            .history
            .push(entry(0, Role::User, Part::from_text("go")));
        while session.history.len() + 2 <= messages {
            session.step();
        }
        session
    }

    /// Appends two messages: a tool call and its result.
    fn step(&mut self) {
        let number = self.history.len();
        let id = format!("call-{number}");
        let call = ToolCall {
            id: id.clone(),
            name: "read_file".into(),
            arguments: "{}".into(),
            signature: None,
        };
        let result = ToolResult {
            tool_call_id: id,
            name: "read_file".into(),
            envelope: Envelope::success("x".repeat(self.size)),
        };
        self.history
            .push(entry(number, Role::Assistant, Part::ToolCall(call)));
        self.history.push(entry(
            number + 1,
            Role::Tool,
            Part::ToolResult(Box::new(result)),
        ));
    }

    /// Assembles and serializes the next request; returns the length of its body.
    fn request(&mut self) -> usize {
        let spec = self.client.spec().clone();
        let plain = Snapshot::new(
            &spec,
            &self.policy,
            &self.system,
            &self.tools,
            &self.history,
            &Quarter,
        );
        let assembly = assemble(&Snapshot {
            reminders: Some(&self.reminders),
            memo: Some(&self.memo),
            last: self.last.as_ref().map(|last| &last.sent),
            ..plain
        })
        .unwrap();
        let body = self.client.encode_request(&assembly.request);
        self.last = Some(assembly.account);
        body.len()
    }

    /// Returns the allocations of one more step and its request, and the length of the body.
    fn measure_next_request(&mut self) -> (AllocationInfo, u64) {
        let mut body = 0;
        let info = measure(|| {
            self.step();
            body = self.request();
        });
        (info, body as u64)
    }
}

fn entry(number: usize, role: Role, part: Part) -> Arc<Entry> {
    let id = MessageId::from_hash(ContentHash::from_content(&number.to_le_bytes()));
    Entry::new(
        Message::new(id, role, vec![part], Timestamp::UNIX_EPOCH),
        &Quarter,
    )
}

/// Measures the second request, after the first one has filled every cache.
fn measure_warm_request(api: Api, messages: usize, size: usize) -> (AllocationInfo, u64) {
    let mut session = Session::new(api, messages, size);
    session.request();
    session.step();
    session.request();
    session.measure_next_request()
}

/// Bytes that a message may occupy in all lists of pointers together: the history as laid out, the
/// request, the record of sent messages, and the encoder's table of fragments; plus the body's
/// spare room for brackets and commas.
const POINTERS: u64 = 400;

/// Bytes that do not depend on the conversation's length: hashes of settings, the budget, spare
/// room of the body.
const FIXED: u64 = 128 * 1024;

#[test]
fn request_allocates_only_new_messages_and_one_body() {
    for api in Api::ALL {
        let (info, body) = measure_warm_request(api, 10_000, 100);
        let rest = info.bytes_total - body;
        assert!(
            rest <= 10_000 * POINTERS + FIXED,
            "{api}: {rest} bytes beside the body of {body}"
        );
    }
}

#[test]
fn request_copies_earlier_messages_only_into_the_body() {
    for api in Api::ALL {
        let (small, small_body) = measure_warm_request(api, 10_000, 100);
        let (large, large_body) = measure_warm_request(api, 10_000, 1_000);
        assert!(large_body > small_body + 4_000_000);
        // Five thousand results are 900 bytes longer. Only the new one is created, hashed and
        // encoded.
        let more = (large.bytes_total - large_body).abs_diff(small.bytes_total - small_body);
        assert!(more <= 16 * 900, "{api}: {more} bytes more");
        assert!(
            small.count_total.abs_diff(large.count_total) <= 8,
            "{api}: {small:?} {large:?}"
        );
    }
}

#[test]
fn request_keeps_only_its_body_and_the_message_positions() {
    for api in Api::ALL {
        let mut session = Session::new(api, 10_000, 100);
        let mut body = 0;
        let info = measure(|| body = session.request());
        let rest = info
            .bytes_current
            .unsigned_abs()
            .saturating_sub(body as u64);
        assert!(
            rest <= 10_000 * 280 + FIXED,
            "{api}: {rest} bytes beside the body of {body}"
        );
    }
}

#[test]
fn request_allocation_count_does_not_grow_with_the_conversation() {
    for api in Api::ALL {
        let counts =
            [1_000, 10_000].map(|messages| measure_warm_request(api, messages, 100).0.count_total);
        // Lists that grow by doubling reallocate a few times more.
        assert!(counts[1] <= counts[0] + 16, "{api}: {counts:?}");
        assert!(counts[1] <= 200, "{api}: {counts:?}");
    }
}
