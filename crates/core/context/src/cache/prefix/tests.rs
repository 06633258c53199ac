use std::sync::Arc;

use haft_types::{CacheKind, CacheRule, Entry, Envelope, Message, Part, Price, Role, ToolSet};
use proptest::prelude::*;

use super::*;
use crate::testing::{Quarter, at, entry, id, lengthy, model, system, text, tool_set};
use crate::{
    Account, ArchiveWish, Assembly, Cleared, Compress, Document, DocumentKind, Documents, Marks,
    MessageIds, Need, Placement, Reminders, SafeZone, Snapshot, assemble, new_summary_message,
    plan_compaction, repair_blocks, system_entry,
};

/// All inputs of a request, so that a test can change one at a time.
#[derive(Clone)]
struct World {
    model: ModelSpec,
    policy: Policy,
    system: Arc<Entry>,
    tools: Arc<ToolSet>,
    history: Vec<Arc<Entry>>,
    documents: Documents,
    reminders: Reminders,
    marks: Marks,
    cleared: Cleared,
}

impl World {
    fn new(shape: &str) -> Self {
        let price = Price {
            input: 3.0,
            cached_input: Some(0.3),
            cache_write: Some(3.75),
            output: 15.0,
            long: None,
        };
        let cache = CacheRule {
            rule: CacheKind::Anthropic,
            min: 1,
            ..CacheRule::default()
        };
        Self {
            model: ModelSpec {
                price: Some(price),
                cache,
                ..model()
            },
            policy: Policy {
                reminders: Placement::AfterToolResult(3),
                compress: Some(Compress::RoundEnd),
                ..Policy::default()
            },
            system: system(),
            tools: tool_set(&["read_file"]),
            history: lengthy(shape),
            documents: rules("Be brief."),
            reminders: Reminders {
                todo: Some("- [ ] x".into()),
                ..Reminders::default()
            },
            marks: Marks::default(),
            cleared: Cleared::default(),
        }
    }

    fn build(&self, last: Option<&Account>) -> Assembly {
        let plain = Snapshot::new(
            &self.model,
            &self.policy,
            &self.system,
            &self.tools,
            &self.history,
            &Quarter,
        );
        assemble(&Snapshot {
            documents: Some(&self.documents),
            reminders: Some(&self.reminders),
            marks: Some(&self.marks),
            cleared: Some(&self.cleared),
            last: last.map(|account| &account.sent),
            ..plain
        })
        .unwrap()
    }

    /// Returns the break caused by a change.
    fn break_after(&self, change: impl FnOnce(&mut Self)) -> Option<Break> {
        let first = self.build(None);
        let mut later = self.clone();
        change(&mut later);
        later
            .build(Some(&first.account))
            .account
            .prefix
            .unwrap()
            .broken
    }
}

type ContextChange = fn(&mut World);

fn rules(text: &str) -> Documents {
    let rule = Document {
        kind: DocumentKind::Rules,
        heading: "a.md".into(),
        text: text.into(),
        need: Need::Always,
    };
    Documents::new(vec![rule], &Quarter)
}

fn cause(change: Option<Break>) -> Option<Cause> {
    change.map(|broken| broken.cause)
}

#[test]
fn prefix_does_not_break_when_messages_are_appended() {
    let world = World::new("UAT");
    let change = world.break_after(|world| world.history = lengthy("UATAT"));
    assert_eq!(change, None);
    assert_eq!(world.break_after(|_| ()), None, "the same request again");
}

#[test]
fn break_after_every_kind_of_change_names_its_cause() {
    let world = World::new("UATaUATATATAT");
    let same = |_: &mut World| ();
    assert_eq!(cause(world.break_after(same)), None);
    let changes: [(Cause, ContextChange); 10] = [
        (Cause::ModelSwitched, |world| {
            world.model.name = "other".into();
        }),
        (Cause::ToolsChanged, |world| {
            world.tools = tool_set(&["read_file", "new"]);
        }),
        (Cause::SystemChanged, |world| {
            world.system = system_entry(
                format!("New.\n\n{}", world.system.message.joined_text()),
                &Quarter,
            );
        }),
        (Cause::DocumentsChanged, |world| {
            world.documents = rules("Be long.");
        }),
        (Cause::RemindersChanged, |world| {
            world.reminders.todo = Some("- [x] x".into());
        }),
        (Cause::RemindersChanged, |world| {
            world.reminders = Reminders::default();
        }),
        (Cause::RemindersMoved, |world| {
            world.history = lengthy("UATaUATATATATAT");
        }),
        (Cause::Compression, |world| {
            world.history = lengthy("UATaUATATATATaU");
        }),
        (Cause::MessagesDeleted, |world| {
            world.marks.deleted = [id(1)].into();
        }),
        (Cause::PolicyChanged, |world| {
            world.policy.message_ids = MessageIds::All;
        }),
    ];
    for (expected, change) in changes {
        assert_eq!(cause(world.break_after(change)), Some(expected));
    }
    let quiet = World {
        reminders: Reminders::default(),
        ..World::new("UATaU")
    };
    assert_eq!(
        cause(quiet.break_after(|world| world.policy.compress = Some(Compress::Never))),
        Some(Cause::PolicyChanged)
    );
    let edited = quiet.break_after(|world| world.history[0] = text(0, Role::User, "edited"));
    assert_eq!(cause(edited), Some(Cause::MessageEdited));
    let policy = Policy {
        compress: Some(Compress::Never),
        ..Policy::default()
    };
    let running = World {
        reminders: Reminders::default(),
        policy,
        ..World::new("UATATAT")
    };
    assert_eq!(
        cause(running.break_after(|world| world.history.truncate(5))),
        Some(Cause::Rewound)
    );
    let retold = running.break_after(|world| {
        world.history = [&world.history[..3], &[text(90, Role::User, "no")]].concat();
    });
    assert_eq!(cause(retold), Some(Cause::Rewound));
    let restored = World {
        marks: Marks {
            deleted: [id(1)].into(),
        },
        ..quiet
    };
    assert_eq!(
        cause(restored.break_after(|world| world.marks.deleted.clear())),
        Some(Cause::MessagesRestored)
    );
}

#[test]
fn breaks_by_pruning_compaction_and_the_ladder_are_named() {
    let big = |world: &mut World| {
        for entry in &mut world.history {
            let mut message = entry.message.clone();
            for part in &mut message.content {
                if let Part::ToolResult(result) = part {
                    result.envelope = Envelope::success("word ".repeat(400));
                }
            }
            *entry = Entry::new(message, &Quarter);
        }
    };
    let mut world = World {
        reminders: Reminders::default(),
        ..World::new(&format!("U{}", "AT".repeat(10)))
    };
    big(&mut world);
    let pruned = world.break_after(|world| world.policy.safe_zone = Some(SafeZone::Tokens(5_000)));
    assert_eq!(cause(pruned), Some(Cause::Pruning));
    let mut tight = world.clone();
    tight.policy.safe_zone = Some(SafeZone::Tokens(5_000));
    assert_eq!(
        cause(tight.break_after(|world| world.policy.safe_zone = Some(SafeZone::default()))),
        Some(Cause::PruningUndone)
    );

    let mut long = World {
        reminders: Reminders::default(),
        ..World::new(&"UATa".repeat(12))
    };
    long.history.push(text(500, Role::User, "next"));
    let compacted = long.break_after(|world| {
        let plan = plan_compaction(
            &world.history,
            ArchiveWish::ByHand,
            &world.policy,
            &world.model,
            &Quarter,
        )
        .unwrap();
        world
            .history
            .push(entry(new_summary_message(id(600), at(600), "Σ", &plan)));
    });
    assert_eq!(cause(compacted), Some(Cause::Compaction));
    long.policy.prune_keep = Some(1_000);
    let too_large = long.break_after(|world| {
        let tokens = world.build(None).request.estimated_tokens() as u32;
        world.model.context_window = tokens + world.model.max_output_tokens.unwrap();
    });
    assert_eq!(cause(too_large), Some(Cause::TooLarge));
}

#[test]
fn break_reports_its_place_and_cost() {
    let world = World::new("UATATATAT");
    let broken = world
        .break_after(|world| world.history = lengthy("UATATATATAT"))
        .unwrap();
    assert_eq!(
        (broken.cause, broken.first.layer),
        (Cause::RemindersMoved, Layer::Reminders)
    );
    // The reminders themselves and two blocks lie behind the old place of the reminders.
    let tokens = |entries: &[Arc<Entry>]| entries.iter().map(|entry| entry.tokens).sum::<u32>();
    let run = broken.first.tokens;
    assert_eq!(
        broken.price.tokens,
        u64::from(tokens(&world.history[5..]) + run)
    );
    // The block that now precedes the reminders is written to the cache; everything behind it is
    // not.
    let written = tokens(&world.history[5..7]);
    let fresh = tokens(&world.history[7..]) + run;
    let expected = (f64::from(written) * (3.75 - 0.3) + f64::from(fresh) * (3.0 - 0.3)) / 1e6;
    assert!((broken.price.cost.unwrap() - expected).abs() < 1e-12);
}

#[test]
fn sent_round_trips_through_json() {
    let sent = World::new("UAT").build(None).account.sent;
    let json = serde_json::to_string(&sent).unwrap();
    assert_eq!(serde_json::from_str::<Sent>(&json).unwrap(), sent);
}

/// Builds requests while the conversation grows message by message.
fn check_growing(history: &[Arc<Entry>], policy: Policy) -> Result<(), TestCaseError> {
    let mut world = World {
        policy,
        history: Vec::new(),
        ..World::new("")
    };
    let mut last: Option<Account> = None;
    for message in history {
        world.history.push(Arc::clone(message));
        let whole = repair_blocks(&world.history, &Quarter).repairs.is_empty();
        if !whole || !matches!(message.message.role, Role::User | Role::Tool) {
            continue;
        }
        let account = world.build(last.as_ref()).account;
        if let Some(prefix) = &account.prefix {
            prop_assert!(prefix.kept >= 1, "the system message is always kept");
            let causes = [Cause::RemindersMoved, Cause::Compression, Cause::Pruning];
            if let Some(broken) = &prefix.broken {
                prop_assert!(causes.contains(&broken.cause), "{:?}", broken);
            }
        }
        if let Some(cleared) = &account.cleared {
            world.cleared = cleared.clone();
        }
        last = Some(account);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn prefix_of_a_growing_conversation_breaks_only_for_known_causes(history in crate::testing::whole_conversation(60)) {
        check_growing(&history, Policy::default())?;
        check_growing(&history, Policy { safe_zone: Some(SafeZone::Tokens(1_200)), prune_keep: Some(2), ..Policy::default() })?;
        check_growing(&history, Policy { reminders: Placement::FromEnd(4), message_ids: MessageIds::All, ..Policy::default() })?;
    }

    #[test]
    fn prefix_without_reminders_and_compression_never_breaks(history in crate::testing::whole_conversation(60)) {
        let policy = Policy { reminders: Placement::Front, compress: Some(Compress::Never), ..Policy::default() };
        let mut world = World { policy, history: Vec::new(), ..World::new("") };
        let mut last: Option<Account> = None;
        for message in &history {
            world.history.push(Arc::clone(message));
            if repair_blocks(&world.history, &Quarter).repairs.is_empty() && message.message.role != Role::Assistant {
                let account = world.build(last.as_ref()).account;
                prop_assert!(account.prefix.as_ref().is_none_or(|prefix| prefix.broken.is_none()));
                last = Some(account);
            }
        }
    }
}

#[test]
fn prefix_compares_messages_by_what_is_sent() {
    let world = World {
        reminders: Reminders::default(),
        ..World::new("U")
    };
    let same_text = world.break_after(|world| {
        let copy = Message::from_text(id(77), Role::User, "input 0", at(9));
        world.history = vec![entry(copy)];
    });
    assert_eq!(same_text, None);
}
