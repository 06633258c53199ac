//! Tests with recorded conversations of other programs.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use haft_imports::{ImportFormat, SourceText, read_conversations};
use haft_store::{ConversationScope, Imported, SearchQuery, SqliteStore, Store, StoreConfig};
use haft_testkit::support::FakeClock;
use haft_types::{Message, Part, Timestamp};
use tempfile::TempDir;

/// Returns the time `seconds` after the start time of these tests.
fn tick(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_794_736_800 + seconds).unwrap()
}

/// Opens an empty store in `folder`.
fn open(folder: &TempDir) -> SqliteStore {
    let path = folder.path().join("conversations.db");
    SqliteStore::open(
        &path,
        &StoreConfig::default(),
        Arc::new(FakeClock::starting_at(tick(0))),
    )
    .unwrap()
}

/// Returns the text of the recorded trajectories, or prints a line and returns `None` if they are
/// absent.
fn trajectories() -> Option<String> {
    let Some(path) = std::env::var_os("HAFT_TRAJECTORIES") else {
        println!("skipped: HAFT_TRAJECTORIES does not name the recorded conversations");
        return None;
    };
    let mut text = String::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap())
        .read_to_string(&mut text)
        .unwrap();
    Some(text)
}

#[tokio::test]
async fn import_of_an_export_is_the_identity_for_recorded_conversations() {
    let Some(text) = trajectories() else { return };
    let read = || {
        read_conversations(
            SourceText {
                text: &text,
                now: tick(0),
            },
            None,
        )
        .unwrap()
    };
    let conversations = read();
    assert!(conversations.len() > 200, "{}", conversations.len());
    assert_eq!(read(), conversations, "the same text gives the same");
    let first = tempfile::tempdir().unwrap();
    let second = tempfile::tempdir().unwrap();
    let one = open(&first);
    let other = open(&second);
    for conversation in &conversations {
        let document = &conversation.document;
        let imported = one.import(document.clone(), "p").await.unwrap();
        assert!(matches!(imported, Imported::New(_)), "{}", document.id);
        let exported =
            serde_json::to_string_pretty(&one.export(&document.id).await.unwrap().unwrap())
                .unwrap();
        let again = read_conversations(
            SourceText {
                text: &exported,
                now: tick(9),
            },
            None,
        )
        .unwrap()
        .remove(0);
        assert_eq!(
            again.document, *document,
            "what was exported reads as what was imported"
        );
        other.import(again.document, "p").await.unwrap();
        let twice =
            serde_json::to_string_pretty(&other.export(&document.id).await.unwrap().unwrap())
                .unwrap();
        assert_eq!(twice, exported, "byte for byte");
        let same = one.import(document.clone(), "p").await.unwrap();
        assert!(matches!(same, Imported::Same(_)), "{}", document.id);
    }
    assert_eq!(
        one.list(ConversationScope::Everywhere).await.unwrap().len(),
        conversations.len()
    );
}

/// The store marks the calls of whatever it imports, so every format is covered.
#[tokio::test]
async fn import_marks_the_calls_of_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let mut marked = BTreeSet::new();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    for fixture in std::fs::read_dir(fixtures).unwrap() {
        let fixture = fixture.unwrap().path();
        let inputs = ["input.json", "input.jsonl"].map(|name| fixture.join(name));
        for text in inputs
            .iter()
            .filter_map(|file| std::fs::read_to_string(file).ok())
        {
            let source = SourceText {
                text: &text,
                now: tick(0),
            };
            for conversation in read_conversations(source, None).unwrap() {
                let id = conversation.document.id.clone();
                store.import(conversation.document, "p").await.unwrap();
                for message in store.messages(&id).await.unwrap() {
                    let has_calls = message.tool_calls().next().is_some();
                    assert_eq!(message.is_imported(), has_calls, "{}", fixture.display());
                    if has_calls {
                        marked.insert(fixture.clone());
                    }
                }
            }
        }
    }
    assert!(marked.len() >= 15, "{marked:#?}");
}

#[test]
fn read_conversations_reads_every_recorded_message() {
    let Some(text) = trajectories() else { return };
    let read = read_conversations(
        SourceText {
            text: &text,
            now: tick(0),
        },
        Some(ImportFormat::Trajectory),
    )
    .unwrap();
    assert_eq!(read.len(), text.lines().count());
    for (line, conversation) in text.lines().zip(&read) {
        let recorded: serde_json::Value = serde_json::from_str(line).unwrap();
        let messages = recorded["messages"].as_array().unwrap();
        let empty = |message: &&serde_json::Value| {
            message["content"].as_str().is_none_or(str::is_empty)
                && message["role"] != "tool"
                && message["tool_calls"].as_array().is_none_or(Vec::is_empty)
                && message["reasoning_content"]
                    .as_str()
                    .is_none_or(str::is_empty)
        };
        let left_out = messages.iter().filter(empty).count();
        let document = &conversation.document;
        assert_eq!(
            document.messages.len(),
            messages.len() - left_out,
            "{}",
            document.id
        );
        let calls =
            |message: &serde_json::Value| message["tool_calls"].as_array().map_or(0, Vec::len);
        assert_eq!(
            document
                .messages
                .iter()
                .map(|message| message.tool_calls().count())
                .sum::<usize>(),
            messages.iter().map(calls).sum::<usize>()
        );
        assert_eq!(document.metadata["source"], recorded["source"]);
    }
}

/// Returns the searchable text of a message in lower case.
fn searchable_text(message: &Message) -> String {
    let of_part = |part: &Part| match part {
        Part::Text { text, .. } => text.clone(),
        Part::ToolCall(call) => format!("{} {}", call.name, call.arguments),
        Part::ToolResult(result) => result.envelope.text.clone(),
        Part::Thinking(_) | Part::Image(_) => String::new(),
    };
    message
        .content
        .iter()
        .map(of_part)
        .collect::<Vec<_>>()
        .join("\n")
        .to_lowercase()
}

fn is_han(c: char) -> bool {
    ('\u{4e00}'..='\u{9fff}').contains(&c)
}

/// Returns the longest lowercase word of 5 to 20 letters.
fn longest_word(text: &str) -> Option<String> {
    let words = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.chars().all(|c| c.is_ascii_lowercase()));
    words
        .filter(|word| (5..=20).contains(&word.len()))
        .max_by_key(|word| word.len())
        .map(str::to_owned)
}

/// Returns three consecutive Chinese characters.
fn three_han_characters(text: &str) -> Option<String> {
    let run = text
        .split(|c| !is_han(c))
        .find(|run| run.chars().count() >= 3)?;
    Some(run.chars().take(3).collect())
}

#[tokio::test]
async fn search_finds_words_of_recorded_conversations_exactly() {
    let Some(text) = trajectories() else { return };
    let all = read_conversations(
        SourceText {
            text: &text,
            now: tick(0),
        },
        None,
    )
    .unwrap();
    let chinese = |messages: &[Message]| {
        messages
            .iter()
            .any(|message| three_han_characters(&searchable_text(message)).is_some())
    };
    let chosen = all
        .into_iter()
        .enumerate()
        .filter(|(n, one)| n % 12 == 0 || chinese(&one.document.messages));
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let mut texts = Vec::new();
    for (_, one) in chosen {
        let document = one.document;
        texts.extend(document.messages.iter().map(|message| {
            (
                document.id.clone(),
                message.message_id,
                searchable_text(message),
            )
        }));
        store.import(document, "p").await.unwrap();
    }
    let words: BTreeSet<String> = texts
        .iter()
        .step_by(97)
        .filter_map(|(_, _, text)| longest_word(text))
        .collect();
    let han: BTreeSet<String> = texts
        .iter()
        .filter_map(|(_, _, text)| three_han_characters(text))
        .take(40)
        .collect();
    assert!(
        words.len() >= 15 && han.len() >= 10,
        "{} words, {} Chinese",
        words.len(),
        han.len()
    );
    for word in words.iter().chain(&han) {
        let query = SearchQuery {
            text: word,
            scope: ConversationScope::Everywhere,
            limit: 1_000_000,
        };
        let hits = store.search(query).await.unwrap();
        let found: BTreeSet<_> = hits
            .iter()
            .filter_map(|hit| {
                Some((
                    hit.conversation.id.clone(),
                    hit.message.as_ref()?.message_id,
                ))
            })
            .collect();
        for (conversation, message, text) in &texts {
            let there = found.contains(&(conversation.clone(), *message));
            // The very end of long outputs is not indexed.
            let indexed = &text[..text.floor_char_boundary(200_000)];
            let must = if word.chars().all(is_han) {
                indexed.contains(word)
            } else {
                indexed
                    .split(|c: char| !c.is_alphanumeric() || is_han(c))
                    .any(|one| one == word)
            };
            assert!(
                there || !must,
                "`{word}` is in {message} of {conversation} and was not found"
            );
            assert!(
                !there || text.contains(word.as_str()),
                "`{word}` is not in {message} of {conversation}"
            );
        }
    }
}

#[test]
fn recorded_results_of_known_tools_have_data() {
    let Some(text) = trajectories() else { return };
    let read = read_conversations(
        SourceText {
            text: &text,
            now: tick(0),
        },
        None,
    )
    .unwrap();
    let results = || {
        let messages = read.iter().flat_map(|one| &one.document.messages);
        messages.flat_map(|message| message.tool_results().map(move |result| (message, result)))
    };
    for (name, tool) in [
        ("Read", "read_file"),
        ("Edit", "replace_in_file"),
        ("Write", "write_to_file"),
        ("Bash", "execute_command"),
        ("bash", "execute_command"),
        ("execute_bash", "execute_command"),
        ("Grep", "search_files"),
        ("Glob", "glob"),
        ("TodoWrite", "todo_write"),
        ("read", "read_file"),
        ("edit", "replace_in_file"),
    ] {
        let named: Vec<_> = results()
            .filter(|(_, result)| result.name == name)
            .collect();
        let shaped =
            |(_, result): &&(&Message, &haft_types::ToolResult)| result.envelope.data.is_object();
        let told = named.iter().filter(shaped).count();
        assert!(
            named.len() > 10 && told * 100 >= named.len() * 90,
            "{name}: {told} of {}",
            named.len()
        );
        assert!(
            named
                .iter()
                .any(|(message, _)| message.metadata["tool"] == tool),
            "{name}"
        );
    }
}
