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
fn marked(assembly: &Assembly) -> String {
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
fn after_system_documents_before_the_run_and_at_the_end_if_it_stays() {
    let bench = Bench::new(Placement::AfterToolResult(3));
    assert_eq!(marked(&bench.build("UAT", None)), "S.DD.U.*hh.");
    assert_eq!(marked(&bench.build("UATATATAT", None)), "S.DD.Uhhhh.*hhhh");
    assert_eq!(
        marked(&Bench::new(Placement::Front).build("UATAT", None)),
        "S.DD.*Uhhhh."
    );
    assert_eq!(
        marked(&Bench::new(Placement::Tail).build("UATAT", None)),
        "S.DD.Uhhhh.*"
    );
}

#[test]
fn without_reminders_the_end_is_marked() {
    let bench = Bench {
        reminders: Reminders::default(),
        ..Bench::new(Placement::default())
    };
    assert_eq!(marked(&bench.build("UATATATAT", None)), "S.DD.Uhhhhhhhh.");
}

#[test]
fn after_a_long_step_the_last_mark_is_repeated() {
    let bench = Bench {
        reminders: Reminders::default(),
        ..Bench::new(Placement::default())
    };
    let first = bench.build("UAT", None);
    let short = bench.build("UATAT", Some(&first.account));
    assert_eq!(
        marked(&short),
        "S.DD.Uhhhh.",
        "within reach of the mark before"
    );
    let long = bench.build(&format!("UATA{}", "T".repeat(14)), Some(&first.account));
    // 14 calls in one message and 14 results are 28 blocks.
    assert_eq!(marked(&long), format!("S.DD.Uhh.{}.", "h".repeat(15)));
    assert_eq!(
        long.account.expected.cached_input + long.account.expected.cache_write + 2,
        long.request.tokens()
    );
}

#[test]
fn never_more_than_four() {
    let bench = Bench::new(Placement::AfterToolResult(30));
    let first = bench.build("UAT", None);
    let long = bench.build(&format!("UATA{}", "T".repeat(20)), Some(&first.account));
    assert_eq!(marked(&long), format!("SDD.U.*hh.{}.", "h".repeat(21)));
}

#[test]
fn a_shorter_look_back_asks_for_closer_marks() {
    let rule = |look_back| CacheRule {
        look_back,
        ..CacheRule::default()
    };
    assert_eq!(
        (
            reach(&rule(None)),
            reach(&rule(Some(20))),
            reach(&rule(Some(8)))
        ),
        (15, 15, 6)
    );
}
