use std::sync::Arc;

use haft_types::{CacheKind, CacheRule, Entry, Envelope, Message, Part, Price, Role, ToolSet};
use proptest::prelude::*;

use super::*;
use crate::testing::{Quarter, at, entry, id, lengthy, model, system, text, tool_set};
use crate::{
    Account, ArchiveWish, Assembly, Cleared, Compress, Document, DocumentKind, Documents, Marks,
    MessageIds, Need, Placement, Reminders, SafeZone, Snapshot, assemble, plan_compaction, repair,
    summary_message, system_entry,
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
    fn then(&self, change: impl FnOnce(&mut Self)) -> Option<Break> {
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
fn appending_breaks_nothing() {
    let world = World::new("UAT");
    let change = world.then(|world| world.history = lengthy("UATAT"));
    assert_eq!(change, None);
    assert_eq!(world.then(|_| ()), None, "the same request again");
}

#[test]
fn every_break_has_its_cause() {
    let world = World::new("UATaUATATATAT");
    let same = |_: &mut World| ();
    assert_eq!(cause(world.then(same)), None);
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
        assert_eq!(cause(world.then(change)), Some(expected));
    }
    let quiet = World {
        reminders: Reminders::default(),
        ..World::new("UATaU")
    };
    assert_eq!(
        cause(quiet.then(|world| world.policy.compress = Some(Compress::Never))),
        Some(Cause::PolicyChanged)
    );
    let edited = quiet.then(|world| world.history[0] = text(0, Role::User, "edited"));
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
        cause(running.then(|world| world.history.truncate(5))),
        Some(Cause::Rewound)
    );
    let retold = running.then(|world| {
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
        cause(restored.then(|world| world.marks.deleted.clear())),
        Some(Cause::MessagesRestored)
    );
}

#[test]
fn pruning_compaction_and_the_ladder_are_named() {
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
    let pruned = world.then(|world| world.policy.safe_zone = Some(SafeZone::Tokens(5_000)));
    assert_eq!(cause(pruned), Some(Cause::Pruning));
    let mut tight = world.clone();
    tight.policy.safe_zone = Some(SafeZone::Tokens(5_000));
    assert_eq!(
        cause(tight.then(|world| world.policy.safe_zone = Some(SafeZone::default()))),
        Some(Cause::PruningUndone)
    );

    let mut long = World {
        reminders: Reminders::default(),
        ..World::new(&"UATa".repeat(12))
    };
    long.history.push(text(500, Role::User, "next"));
    let compacted = long.then(|world| {
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
            .push(entry(summary_message(id(600), at(600), "Σ", &plan)));
    });
    assert_eq!(cause(compacted), Some(Cause::Compaction));
    long.policy.prune_keep = Some(1_000);
    let too_large = long.then(|world| {
        let tokens = world.build(None).request.tokens() as u32;
        world.model.context_window = tokens + world.model.max_output_tokens.unwrap();
    });
    assert_eq!(cause(too_large), Some(Cause::TooLarge));
}

#[test]
fn a_break_tells_where_and_what_it_costs() {
    let world = World::new("UATATATAT");
    let broken = world
        .then(|world| world.history = lengthy("UATATATATAT"))
        .unwrap();
    assert_eq!(
        (broken.cause, broken.first.layer),
        (Cause::RemindersMoved, Layer::Reminders)
    );
    // The reminders themselves and two blocks lie behind the old place of the reminders.
    let tokens = |entries: &[Arc<Entry>]| entries.iter().map(|entry| entry.tokens).sum::<u32>();
    let run = broken.first.tokens;
    assert_eq!(broken.tokens, u64::from(tokens(&world.history[5..]) + run));
    // The block that now precedes the reminders is written to the cache; everything behind it is
    // not.
    let written = tokens(&world.history[5..7]);
    let fresh = tokens(&world.history[7..]) + run;
    let expected = (f64::from(written) * (3.75 - 0.3) + f64::from(fresh) * (3.0 - 0.3)) / 1e6;
    assert!((broken.cost.unwrap() - expected).abs() < 1e-12);
}

#[test]
fn what_was_sent_survives_a_restart() {
    let sent = World::new("UAT").build(None).account.sent;
    let json = serde_json::to_string(&sent).unwrap();
    assert_eq!(serde_json::from_str::<Sent>(&json).unwrap(), sent);
}

/// Builds requests while the conversation grows message by message.
fn grow(history: &[Arc<Entry>], policy: Policy) -> Result<(), TestCaseError> {
    let mut world = World {
        policy,
        history: Vec::new(),
        ..World::new("")
    };
    let mut last: Option<Account> = None;
    for message in history {
        world.history.push(Arc::clone(message));
        let whole = repair(&world.history, &Quarter).repairs.is_empty();
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
    fn a_growing_conversation_breaks_only_for_a_reason(history in crate::testing::whole_conversation(60)) {
        grow(&history, Policy::default())?;
        grow(&history, Policy { safe_zone: Some(SafeZone::Tokens(1_200)), prune_keep: Some(2), ..Policy::default() })?;
        grow(&history, Policy { reminders: Placement::FromEnd(4), message_ids: MessageIds::All, ..Policy::default() })?;
    }

    #[test]
    fn without_run_and_compression_it_only_appends(history in crate::testing::whole_conversation(60)) {
        let policy = Policy { reminders: Placement::Front, compress: Some(Compress::Never), ..Policy::default() };
        let mut world = World { policy, history: Vec::new(), ..World::new("") };
        let mut last: Option<Account> = None;
        for message in &history {
            world.history.push(Arc::clone(message));
            if repair(&world.history, &Quarter).repairs.is_empty() && message.message.role != Role::Assistant {
                let account = world.build(last.as_ref()).account;
                prop_assert!(account.prefix.as_ref().is_none_or(|prefix| prefix.broken.is_none()));
                last = Some(account);
            }
        }
    }
}

#[test]
fn a_message_is_compared_by_what_is_sent_of_it() {
    let world = World {
        reminders: Reminders::default(),
        ..World::new("U")
    };
    let same_text = world.then(|world| {
        let copy = Message::text(id(77), Role::User, "input 0", at(9));
        world.history = vec![entry(copy)];
    });
    assert_eq!(same_text, None);
}
