//! The lifetime of cache entries: bought when the prefix is written, and measured by billed reads.

use std::time::Duration;

use haft_context::Policy;
use haft_engine::{Presence, Session};
use haft_testkit::{Reply, Script};
use haft_types::{Event, EventBody, Message, MessageId, Role, Timestamp, Usage};
use tokio_util::sync::CancellationToken;

use crate::desk::Desk;

const MODEL: &str = "context_window = 200_000, max_output_tokens = 4000, \
                     price = { input = 2.0, cached_input = 0.2, cache_write = 2.5, output = 10.0 }, \
                     cache_write_1h = 4.0, cache = { rule = 'anthropic', min = 1024, ttls = ['5m', '1h'] }";

/// Runs a turn. Returns the notices about lifetimes.
async fn run_turn(session: &mut Session) -> Vec<String> {
    let mut notices = Vec::new();
    let mut sink = |event: &Event| {
        if let EventBody::Notice { code, message } = &event.body
            && code == "cache_lifetime"
        {
            notices.push(message.clone());
        }
    };
    let report = session
        .run(Some("go".into()), &mut sink, &CancellationToken::new())
        .await;
    assert_eq!(report.result.text, "Done.", "{}", report.result.message);
    notices
}

/// Conversations whose user comes back after `minutes`.
fn messages_with_pauses(minutes: i64) -> Vec<Message> {
    let message = |index: i64| {
        let role = if index % 2 == 0 {
            Role::User
        } else {
            Role::Assistant
        };
        let second = 1_700_000_000 + index / 2 * minutes * 60 + index % 2;
        let at = Timestamp::from_second(second).unwrap();
        let id = MessageId::from_hash(haft_types::ContentHash::from_content(&index.to_le_bytes()));
        Message::from_text(id, role, "some words of a long dialogue ".repeat(40), at)
    };
    (0..80).map(message).collect()
}

#[tokio::test]
async fn the_hour_is_bought_for_a_user_with_long_pauses() {
    for (minutes, presence, marker) in [
        (20, Presence::Person, r#"{"type":"ephemeral","ttl":"1h"}"#),
        (1, Presence::Person, r#"{"type":"ephemeral"}"#),
        (20, Presence::Headless, r#"{"type":"ephemeral"}"#),
    ] {
        let script = Script::replies([Reply::text("Done."), Reply::text("Done.")]).unwrap();
        let desk = Desk::new(script, messages_with_pauses(minutes))
            .await
            .unwrap();
        let attend = |config: &mut haft_engine::SessionConfig| config.task.presence = presence;
        let mut session = desk
            .open_with(Policy::default(), MODEL, attend)
            .await
            .unwrap();
        desk.clock.advance(Duration::from_hours(2));
        run_turn(&mut session).await;
        drop(session);
        let mut resumed = desk
            .open_with(Policy::default(), MODEL, attend)
            .await
            .unwrap();
        desk.clock.advance(Duration::from_mins(2));
        run_turn(&mut resumed).await;
        for request in desk.server.generation_requests() {
            let body = String::from_utf8(request.body.to_vec()).unwrap();
            let markers: Vec<_> = body.match_indices("\"cache_control\":").collect();
            assert!(!markers.is_empty());
            for (at, name) in markers {
                assert!(
                    body[at + name.len()..].starts_with(marker),
                    "{minutes} minutes, {presence:?}: {}",
                    &body[at..at + 60]
                );
            }
        }
    }
}

#[tokio::test]
async fn an_entry_that_expires_early_is_reported_once_and_measured() {
    let used = |read, written| {
        Reply::text("Done.").with_usage(Usage {
            cached_input: read,
            cache_write: written,
            ..Usage::default()
        })
    };
    let replies = [
        used(0, 5_000),
        used(5_000, 50),
        used(0, 5_100),
        used(0, 5_200),
        used(0, 5_300),
    ];
    let desk = Desk::new(Script::replies(replies).unwrap(), messages_with_pauses(1))
        .await
        .unwrap();
    let mut session = desk.open(Policy::default(), MODEL).await.unwrap();
    let mut notices = Vec::new();
    for pause in [60, 90, 200, 220, 210] {
        desk.clock.advance(Duration::from_secs(pause));
        notices.extend(run_turn(&mut session).await);
    }
    assert_eq!(
        notices,
        [
            "`mock/m` keeps cached input for about 90 s, not for the declared 300 s: haft uses the measured time in this \
             conversation"
        ]
    );
    assert_eq!(session.model().ttl_in_force(), "90s");
    assert_eq!(
        session.model().cache.ttl,
        "5m",
        "other settings follow the declared one"
    );
}
