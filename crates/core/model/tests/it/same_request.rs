//! Sends one conversation to four APIs: the assembled context is encoded for each, checked by the
//! strict server and decoded by code that is independent of the encoder. All four must have equal
//! content.

use std::collections::BTreeMap;
use std::sync::Arc;

use haft_context::{
    Compress, Document, DocumentKind, Documents, MessageIds, Need, Placement, Policy, Reminders,
    Snapshot, SystemInput, View, assemble, render_system, repair_blocks, system_entry,
};
use haft_model::{Catalogue, Client, ModelConfig, Secret};
use haft_testkit::support::assert_all_replied;
use haft_testkit::{Reply, Script, ScriptedServer, Seen, SeenPart};
use haft_types::{
    Api, CacheKind, CacheRule, ContentHash, Entry, Envelope, Image, LlmMetadata, Message,
    MessageId, Origin, Part, Request, Role, Thinking, Timestamp, TokenCounter, ToolCall,
    ToolResult, ToolSet, ToolSpec,
};
use proptest::prelude::*;
use serde_json::json;

use super::{ask, provider, retry_without_waiting};

/// Counts one token per four bytes: fast, and accurate enough for these tests.
pub(super) struct Quarter;

impl TokenCounter for Quarter {
    fn count_text(&self, text: &str) -> u32 {
        text.len().div_ceil(4) as u32
    }
}

/// Every kind of placement, near and far.
pub(super) const PLACES: [Placement; 8] = [
    Placement::AfterToolResult(1),
    Placement::AfterToolResult(3),
    Placement::BeforeAssistant(1),
    Placement::BeforeAssistant(3),
    Placement::FromEnd(1),
    Placement::FromEnd(5),
    Placement::Front,
    Placement::Tail,
];

/// A strict server, and a client of it for each API.
pub(super) struct Rig {
    server: ScriptedServer,
    clients: Vec<Client>,
    runtime: tokio::runtime::Runtime,
}

impl Rig {
    /// `breakpoints` is the cache rule of the `OpenAI` models.
    pub(super) fn new(breakpoints: CacheKind) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let script = Script::replies([Reply::text("ok").times(u32::MAX)]).unwrap();
        let server = runtime.block_on(ScriptedServer::start(script)).unwrap();
        let client = |api: Api| {
            let rule = match api {
                Api::Anthropic => CacheKind::Anthropic,
                Api::OpenaiChat | Api::OpenaiResponses => breakpoints,
                Api::Gemini => CacheKind::Automatic,
            };
            let model = ModelConfig {
                max_output_tokens: Some(4096),
                cache: Some(CacheRule {
                    rule,
                    ..CacheRule::default()
                }),
                ..ModelConfig::default()
            };
            let providers = [("mock".to_owned(), provider(api, &server.base_url(api)))].into();
            let catalogue =
                Catalogue::new(providers, BTreeMap::from([("mock/test".to_owned(), model)]))
                    .unwrap();
            let declared = catalogue.resolve("mock/test").unwrap();
            Client::new(
                declared,
                Some(Secret::new("sk-test")),
                retry_without_waiting(),
            )
            .unwrap()
        };
        Self {
            clients: Api::ALL.map(client).into(),
            server,
            runtime,
        }
    }

    /// Assembles with `build` and sends the request for each API; a rejected request fails the
    /// test.
    pub(super) fn send(
        &mut self,
        what: &str,
        mut build: impl FnMut(&haft_types::ModelSpec) -> Request,
    ) {
        for client in &mut self.clients {
            let request = build(client.spec());
            let (_, reply) = self.runtime.block_on(ask(client, &request));
            let api = client.spec().api;
            assert!(
                reply.is_ok(),
                "{what}, {api}: {:?} {:?}",
                reply.err(),
                self.server.refusals().last()
            );
        }
    }

    /// Assembles for one API of each form of the execute view, without sending.
    pub(super) fn only_assemble(&self, build: impl Fn(&haft_types::ModelSpec) -> Request) {
        for client in self
            .clients
            .iter()
            .filter(|client| matches!(client.spec().api, Api::OpenaiChat | Api::Gemini))
        {
            build(client.spec());
        }
    }

    /// Returns the requests the server received, in rows of four.
    pub(super) fn seen(&self) -> Vec<Vec<Seen>> {
        assert_all_replied(&self.server)
            .chunks(Api::ALL.len())
            .map(<[Seen]>::to_vec)
            .collect()
    }
}

/// Asserts that the four requests of a row have equal content. Wrappers around a summary or a part
/// of the execute view, which some APIs need, are ignored.
pub(super) fn assert_row_has_equal_content(what: &str, view: View, row: &[Seen]) {
    let mut plain = row.iter().map(|seen| remove_wrappers(seen, view));
    let first = plain.next().unwrap();
    assert!(!first.messages.is_empty(), "{what}: nothing was said");
    for other in plain {
        if let Some(difference) = first.difference(&other) {
            panic!(
                "{what}: {} and {} differ in {difference}",
                first.api, other.api
            );
        }
    }
}

fn remove_wrappers(seen: &Seen, view: View) -> Seen {
    let mut seen = seen.clone();
    for message in &mut seen.messages {
        if view == View::Execute {
            // The role differs between the APIs; the tag contains it.
            message.role = haft_testkit::SeenRole::User;
        }
        for part in &mut message.parts {
            let SeenPart::Text { text, .. } = part else {
                continue;
            };
            for tag in ["archived_summary", "dialogue", "window", "state"] {
                let inner = text
                    .strip_prefix(&format!("<{tag}>\n"))
                    .and_then(|rest| rest.strip_suffix(&format!("\n</{tag}>")))
                    .map(str::to_owned);
                if let Some(inner) = inner {
                    *text = inner;
                    break;
                }
            }
        }
    }
    seen
}

/// One step of a random conversation; a result may answer an open call, an old one or none.
#[derive(Clone, Debug)]
enum Step {
    Say(Role, Origin, usize),
    Picture(usize),
    Calls {
        count: usize,
        words: usize,
        thinks: bool,
        own: bool,
    },
    Result {
        back: usize,
        words: usize,
        status: usize,
        picture: bool,
    },
    Foreign,
}

/// Texts with characters that encoders may mishandle.
const TEXTS: [&str; 7] = [
    "Plain words.",
    "quotes \" and \\ and \u{7} and \u{2028}",
    "日本語 ünïcode 🦀 \u{feff}",
    "line\nline\r\n\tlast\n",
    "<tag attribute=\"x\"> & {\"json\": [1, 2]} </tag>",
    "  ",
    "",
];

const ARGUMENTS: [&str; 4] = [
    r#"{"path":"a.rs"}"#,
    "{}",
    r#"{"text": "zeile\n\"ü\" \u00e9", "n": [1, 2.5, null]}"#,
    r#"{"deep":{"a":{"b":[{}]}}}"#,
];

/// Ids in the forms of providers and proxies.
const IDS: [&str; 4] = ["call_", "toolu_01", "functions.read_file:", "世-"];

const NAMES: [&str; 3] = ["read_file", "search_files", "some tool!"];

/// One white pixel.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mP8/x8AAwMCAO+ip1sAAAAASUVORK5CYII=";

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let text = 0..TEXTS.len();
    let step = prop_oneof![
        3 => text.clone().prop_map(|text| Step::Say(Role::User, Origin::User, text)),
        1 => text.clone().prop_map(|text| Step::Say(Role::User, Origin::Joined, text)),
        1 => text.clone().prop_map(|text| Step::Say(Role::User, Origin::Engine, text)),
        2 => text.clone().prop_map(|text| Step::Say(Role::Assistant, Origin::User, text)),
        1 => text.clone().prop_map(|text| Step::Say(Role::Summary, Origin::User, text)),
        1 => text.clone().prop_map(|text| Step::Say(Role::System, Origin::User, text)),
        1 => text.clone().prop_map(Step::Picture),
        4 => (1_usize..4, text.clone(), any::<bool>(), any::<bool>())
            .prop_map(|(count, words, thinks, own)| Step::Calls { count, words, thinks, own }),
        8 => (0_usize..5, text, 0_usize..3, prop::bool::weighted(0.2))
            .prop_map(|(back, words, status, picture)| Step::Result { back, words, status, picture }),
        1 => Just(Step::Foreign),
    ];
    prop::collection::vec(step, 0..40)
}

fn picture() -> Part {
    Part::Image(Image {
        media_type: "image/png".into(),
        data: PIXEL.into(),
    })
}

/// Returns the conversation that the steps describe. It ends with an input, or with any other
/// message that expects an answer.
fn conversation(steps: &[Step], ends_with_input: bool) -> Vec<Arc<Entry>> {
    let mut made: Vec<(String, &str)> = Vec::new();
    let mut messages = vec![message(0, Role::User, vec![Part::from_text("Begin.")])];
    for step in steps {
        let number = messages.len();
        messages.push(match step {
            Step::Say(role, origin, text) => {
                message(number, *role, vec![Part::from_text(TEXTS[*text])]).with_origin(*origin)
            }
            Step::Picture(text) => message(
                number,
                Role::User,
                vec![Part::from_text(TEXTS[*text]), picture()],
            ),
            Step::Calls {
                count,
                words,
                thinks,
                own,
            } => {
                let mut parts = Vec::new();
                if *thinks {
                    let signature = Some("c2lnbmF0dXJl".to_owned());
                    parts.push(Part::Thinking(Thinking {
                        text: "Hm.".into(),
                        signature,
                        raw: None,
                    }));
                }
                parts.push(Part::from_text(TEXTS[*words]));
                for index in 0..*count {
                    let id = format!("{}{number}{index}", IDS[number % IDS.len()]);
                    let name = NAMES[index % 3];
                    made.push((id.clone(), name));
                    let arguments = ARGUMENTS[(number + index) % ARGUMENTS.len()].into();
                    parts.push(Part::ToolCall(ToolCall {
                        id,
                        name: name.into(),
                        arguments,
                        signature: None,
                    }));
                }
                let mut message = message(number, Role::Assistant, parts);
                let maker = if *own { "mock/test" } else { "elsewhere/model" };
                message.llm_metadata = Some(
                    LlmMetadata {
                        model_name: maker.into(),
                        ..LlmMetadata::default()
                    }
                    .into(),
                );
                message
            }
            Step::Result {
                back,
                words,
                status,
                picture: with_picture,
            } => {
                let answered = made.iter().rev().nth(*back).cloned();
                let (call, name) = answered.unwrap_or_else(|| ("early".into(), "read_file"));
                let envelope = match status {
                    0 => Envelope::success(TEXTS[*words]).with_data(json!({"path": "a.rs"})),
                    1 => Envelope::success(TEXTS[*words]),
                    // A failure always has a message; see
                    // `apis_accept_a_failure_without_a_message`.
                    _ => Envelope::failure("not_found", format!("Failed: {}", TEXTS[*words])),
                };
                result(number, &call, name, envelope, *with_picture)
            }
            Step::Foreign => result(
                number,
                "nobody",
                "read_file",
                Envelope::success("foreign"),
                false,
            ),
        });
    }
    let counted = |message: Message| Entry::new(message, &Quarter);
    let mut history: Vec<_> = messages.into_iter().map(counted).collect();
    let sent = repair_blocks(&history, &Quarter).entries;
    let last = sent
        .iter()
        .rfind(|entry| entry.message.role != Role::Summary)
        .map(|entry| &entry.message);
    // An input of whitespace is not sent, so there would be no message to answer.
    let is_answerable = last.is_some_and(|last| match last.role {
        Role::Tool => true,
        Role::User => !last.joined_text().trim().is_empty(),
        Role::System | Role::Assistant | Role::Summary => false,
    });
    if ends_with_input || !is_answerable {
        history.push(counted(message(
            history.len(),
            Role::User,
            vec![Part::from_text("Go on.")],
        )));
    }
    history
}

fn message(number: usize, role: Role, content: Vec<Part>) -> Message {
    let id = MessageId::from_hash(ContentHash::from_content(&number.to_le_bytes()));
    Message::new(id, role, content, Timestamp::UNIX_EPOCH)
}

fn result(
    number: usize,
    call: &str,
    name: &str,
    envelope: Envelope,
    with_picture: bool,
) -> Message {
    let result = ToolResult {
        tool_call_id: call.into(),
        name: name.into(),
        envelope,
    };
    let mut parts = vec![Part::ToolResult(Box::new(result))];
    parts.extend(with_picture.then(picture));
    message(number, Role::Tool, parts)
}

fn documents(count: usize) -> Documents {
    let kinds = [
        DocumentKind::LibraryDocs,
        DocumentKind::ExternalTools,
        DocumentKind::Rules,
        DocumentKind::CodeLaw,
    ];
    let document = |kind: DocumentKind| Document {
        kind,
        heading: "docs/a.md".into(),
        text: TEXTS[2].into(),
        need: Need::Always,
    };
    Documents::new(
        kinds.into_iter().take(count).map(document).collect(),
        &Quarter,
    )
}

fn reminders(kinds: u8) -> Reminders {
    let kind = |bit: u8, text: &str| (kinds & bit != 0).then(|| text.to_owned());
    Reminders {
        role: kind(1, "You are careful."),
        todo: kind(2, "- [ ] one\n- [x] two"),
        useful: kind(4, "### `a.rs` lines 1-2: \"quoted\""),
        folder_notes: kind(8, "### `src`\n\n- a note"),
        clock: None,
    }
}

pub(super) fn tools() -> Arc<ToolSet> {
    let spec = |name: &str| ToolSpec {
        name: name.into(),
        description: "Reads \"a\" file.".into(),
        parameters: json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}),
    };
    ToolSet::new(vec![spec("read_file"), spec("search_files")], &Quarter)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn encoders_send_equal_content_to_all_apis(
        steps in steps(),
        ends_with_input in any::<bool>(),
        document_kinds in 0_usize..5,
        reminder_kinds in 0_u8..16,
        ids in prop_oneof![Just(MessageIds::Off), Just(MessageIds::Results), Just(MessageIds::All)],
        compress in prop_oneof![Just(Compress::RoundEnd), Just(Compress::Never)],
        breakpoints in prop_oneof![Just(CacheKind::Automatic), Just(CacheKind::OpenaiBreakpoints)],
    ) {
        let history = conversation(&steps, ends_with_input);
        let documents = documents(document_kinds);
        let reminders = reminders(reminder_kinds);
        let tools = tools();
        let input = SystemInput { tools: &tools.specs, ..SystemInput::default() };
        let system = system_entry(render_system(&input).unwrap(), &Quarter);
        let layered = PLACES.map(|place| (place, View::Layered));
        let cases: Vec<_> = layered.into_iter().chain([(Placement::default(), View::Execute)]).collect();

        let mut rig = Rig::new(breakpoints);
        for (place, view) in &cases {
            let policy =
                Policy { reminders: *place, view: *view, message_ids: ids, compress: Some(compress), ..Policy::default() };
            rig.send(&format!("{place} {view:?}"), |model| {
                let plain = Snapshot::new(model, &policy, &system, &tools, &history, &Quarter);
                let full = Snapshot {
                    documents: Some(&documents),
                    reminders: Some(&reminders),
                    cache_key: Some("conversation-1"),
                    ..plain
                };
                assemble(&full).unwrap_or_else(|error| panic!("{place} {view:?}: {error:?}")).request
            });
        }
        for ((place, view), row) in cases.iter().zip(rig.seen()) {
            assert_row_has_equal_content(&format!("{place} {view:?}"), *view, &row);
        }
    }
}

#[test]
fn apis_accept_a_failure_without_a_message() {
    let call = ToolCall {
        id: "call_1".into(),
        name: "read_file".into(),
        arguments: "{}".into(),
        signature: None,
    };
    let history: Vec<_> = [
        message(0, Role::User, vec![Part::from_text("Begin.")]),
        message(1, Role::Assistant, vec![Part::ToolCall(call)]),
        result(
            2,
            "call_1",
            "read_file",
            Envelope::failure("failed", ""),
            false,
        ),
    ]
    .map(|message| Entry::new(message, &Quarter))
    .into();
    let system = system_entry(render_system(&SystemInput::default()).unwrap(), &Quarter);
    let policy = Policy::default();
    let tools = tools();
    Rig::new(CacheKind::Automatic).send("a failure without words", |model| {
        assemble(&Snapshot::new(
            model, &policy, &system, &tools, &history, &Quarter,
        ))
        .unwrap()
        .request
    });
}
