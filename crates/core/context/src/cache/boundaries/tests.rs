use haft_types::{CacheKind, CacheRule, ModelSpec};

use super::*;
use crate::testing::{Quarter, conversation, model, system, tool_set};
use crate::{
    Account, Assembly, Compress, Document, DocumentKind, Documents, Need, Placement, Policy,
    Reminders, Snapshot, assemble,
};

struct Bench {
    documents: Documents,
    reminders: Reminders,
    policy: Policy,
}

impl Bench {
    fn new(place: Placement) -> Self {
        let rule = Document {
            kind: DocumentKind::Rules,
            heading: "a".into(),
            text: "b".into(),
            need: Need::Always,
        };
        Self {
            documents: Documents::new(vec![rule], &Quarter),
            reminders: Reminders {
                todo: Some("- [ ] x".into()),
                ..Reminders::default()
            },
            policy: Policy {
                reminders: place,
                compress: Some(Compress::Never),
                ..Policy::default()
            },
        }
    }

    fn build(&self, shape: &str, last: Option<&Account>) -> Assembly {
        let system = system();
        let tools = tool_set(&[]);
        let history = conversation(shape);
        let cache = CacheRule {
            rule: CacheKind::Anthropic,
            min: 1,
            ..CacheRule::default()
        };
        let model = ModelSpec { cache, ..model() };
        let plain = Snapshot::new(&model, &self.policy, &system, &tools, &history, &Quarter);
        let documents = Some(&self.documents);
        let reminders = Some(&self.reminders);
        assemble(&Snapshot {
            documents,
            reminders,
            last: last.map(|account| &account.sent),
            ..plain
        })
        .unwrap()
    }
}

/// Returns the request as letters, with a dot after each boundary.
fn marked_letters(assembly: &Assembly) -> String {
    let letter = |segment: &Segment| match segment.layer {
        Layer::System => 'S',
        Layer::Documents => 'D',
        Layer::Reminders => '*',
        Layer::Current => 'U',
        Layer::History => 'h',
    };
    let dotted = |segment: &Segment| {
        format!(
            "{}{}",
            letter(segment),
            if segment.boundary { "." } else { "" }
        )
    };
    assembly.request.segments.iter().map(dotted).collect()
}

#[test]
fn boundaries_follow_system_documents_and_stable_messages() {
    let bench = Bench::new(Placement::AfterToolResult(3));
    assert_eq!(marked_letters(&bench.build("UAT", None)), "S.DD.U.*hh.");
    assert_eq!(
        marked_letters(&bench.build("UATATATAT", None)),
        "S.DD.Uhhhh.*hhhh"
    );
    assert_eq!(
        marked_letters(&Bench::new(Placement::Front).build("UATAT", None)),
        "S.DD.*Uhhhh."
    );
    assert_eq!(
        marked_letters(&Bench::new(Placement::Tail).build("UATAT", None)),
        "S.DD.Uhhhh.*"
    );
}

#[test]
fn boundaries_end_the_request_without_reminders() {
    let bench = Bench {
        reminders: Reminders::default(),
        ..Bench::new(Placement::default())
    };
    assert_eq!(
        marked_letters(&bench.build("UATATATAT", None)),
        "S.DD.Uhhhhhhhh."
    );
}

#[test]
fn boundaries_repeat_the_last_mark_after_a_long_step() {
    let bench = Bench {
        reminders: Reminders::default(),
        ..Bench::new(Placement::default())
    };
    let first = bench.build("UAT", None);
    let short = bench.build("UATAT", Some(&first.account));
    assert_eq!(
        marked_letters(&short),
        "S.DD.Uhhhh.",
        "within reach of the mark before"
    );
    let long = bench.build(&format!("UATA{}", "T".repeat(14)), Some(&first.account));
    // 14 calls in one message and 14 results are 28 blocks.
    assert_eq!(
        marked_letters(&long),
        format!("S.DD.Uhh.{}.", "h".repeat(15))
    );
    assert_eq!(
        long.account.expected.cached_input + long.account.expected.cache_write + 2,
        long.request.estimated_tokens()
    );
}

#[test]
fn boundaries_are_never_more_than_four() {
    let bench = Bench::new(Placement::AfterToolResult(30));
    let first = bench.build("UAT", None);
    let long = bench.build(&format!("UATA{}", "T".repeat(20)), Some(&first.account));
    assert_eq!(
        marked_letters(&long),
        format!("SDD.U.*hh.{}.", "h".repeat(21))
    );
}

#[test]
fn reach_shrinks_with_the_look_back() {
    let rule = |look_back| CacheRule {
        look_back,
        ..CacheRule::default()
    };
    assert_eq!(
        (
            max_mark_distance(&rule(None)),
            max_mark_distance(&rule(Some(20))),
            max_mark_distance(&rule(Some(8)))
        ),
        (15, 15, 6)
    );
}
