//! Compares the cost of breaks of the cached prefix with sums calculated by hand in
//! `fixtures/breaks.txt`.

use std::collections::HashMap;
use std::sync::Arc;

use haft_context::{
    ArchiveWish, Assembly, Compress, Document, DocumentKind, Documents, Need, Placement, Policy,
    Reminders, SafeZone, Snapshot, assemble, new_summary_message, plan_compaction,
};
use haft_types::{
    CacheKind, CacheRule, Entry, Envelope, Message, ModelSpec, Price, Request, Role, Timestamp,
    ToolSet, ToolSpec,
};
use serde_json::json;

use super::{Words, block, call, entry, id, model, result, system, text, words};

const FIXTURE: &str = include_str!("../fixtures/breaks.txt");

/// One case of the fixture: its keys and values.
struct Case(HashMap<&'static str, &'static str>);

impl Case {
    fn get(&self, key: &str) -> &'static str {
        self.0
            .get(key)
            .copied()
            .unwrap_or_else(|| panic!("`{key}` is missing"))
    }

    fn number<T: std::str::FromStr>(&self, key: &str) -> T {
        self.get(key)
            .parse()
            .unwrap_or_else(|_| panic!("`{key}` is no number"))
    }

    /// Returns the segments of a request without their stars, and the sum of the tokens of starred
    /// ones.
    fn segments(&self, key: &str) -> (String, u64) {
        let mut starred = 0;
        let segment = |part: &str| match part.trim().strip_prefix("* ") {
            Some(again) => {
                let tokens = again
                    .split(' ')
                    .nth(1)
                    .and_then(|tokens| tokens.parse::<u64>().ok());
                starred += tokens.unwrap_or_else(|| panic!("`{again}` has no tokens"));
                again.to_owned()
            }
            None => part.trim().to_owned(),
        };
        (
            self.get(key)
                .split('|')
                .map(segment)
                .collect::<Vec<_>>()
                .join(" | "),
            starred,
        )
    }
}

fn cases() -> Vec<(&'static str, Case)> {
    let sections = FIXTURE.split("\n== ").skip(1);
    let case = |section: &'static str| {
        let (name, lines) = section.split_once('\n').unwrap();
        let lines = lines
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        (
            name,
            Case(lines.map(|line| line.split_once(": ").unwrap()).collect()),
        )
    };
    sections.map(case).collect()
}

/// Formats a request as in the fixture. Marks are shown only for providers that use them.
fn format_request(request: &Request, cache: CacheKind) -> String {
    let marks = cache == CacheKind::Anthropic;
    let segments = request.segments.iter().map(|segment| {
        let mark = if segment.boundary && marks { " ^" } else { "" };
        format!("{} {}{mark}", segment.owner, segment.entry.tokens)
    });
    std::iter::once(format!("tools {}", request.tools.tokens))
        .chain(segments)
        .collect::<Vec<_>>()
        .join(" | ")
}

/// All inputs of a request.
struct Build {
    model: ModelSpec,
    policy: Policy,
    system: Arc<Entry>,
    tools: Arc<ToolSet>,
    documents: Documents,
    reminders: Reminders,
    history: Vec<Arc<Entry>>,
}

impl Build {
    fn new(rule: CacheKind) -> Self {
        let price = Price {
            input: 3.0,
            cached_input: Some(0.3),
            cache_write: Some(3.75),
            output: 15.0,
            long: None,
        };
        let tool = ToolSpec {
            name: "read_file".into(),
            description: words(4_998),
            parameters: json!({"type": "object", "properties": {}}),
        };
        Self {
            model: ModelSpec {
                price: Some(price),
                cache: CacheRule {
                    rule,
                    ..CacheRule::default()
                },
                ..model(2_000_000)
            },
            policy: Policy {
                compress: Some(Compress::Never),
                reminders: Placement::AfterToolResult(3),
                prune_to: Some(1.0),
                ..Policy::default()
            },
            system: system(10_000),
            tools: ToolSet::new(vec![tool], &Words),
            documents: Documents::default(),
            reminders: Reminders::default(),
            history: vec![text(0, Role::User, words(96))],
        }
    }

    /// Adds blocks with results of 100,000 tokens.
    fn blocks(mut self, count: usize) -> Self {
        for _ in 0..count {
            let number = self.history.len();
            self.history.extend(block(number, 99_988));
        }
        self
    }

    fn todo(mut self, word: &str) -> Self {
        self.reminders.todo = Some(vec![word; 991].join(" "));
        self
    }

    fn request(&self, last: Option<&Assembly>) -> Assembly {
        let plain = Snapshot::new(
            &self.model,
            &self.policy,
            &self.system,
            &self.tools,
            &self.history,
            &Words,
        );
        assemble(&Snapshot {
            documents: Some(&self.documents),
            reminders: Some(&self.reminders),
            last: last.map(|last| &last.account.sent),
            ..plain
        })
        .unwrap()
    }
}

/// Returns the two requests of a case.
fn requests_of_case(name: &str, rule: CacheKind) -> (Assembly, Assembly) {
    let build = Build::new(rule);
    let (first, then) = match name {
        "reminders moved" => {
            let first = build.blocks(2).todo("one");
            (first.request(None), first.blocks(1))
        }
        "reminder changed" => {
            let first = build.blocks(1).todo("one");
            (first.request(None), first.blocks(1).todo("two"))
        }
        "round compressed" => {
            let mut build = build;
            build.policy.compress = Some(Compress::RoundEnd);
            build.history = vec![text(0, Role::User, words(49_996))];
            for number in [1, 3] {
                let envelope = Envelope::success(words(99_988)).with_data(json!({"path": "a"}));
                build.history.extend([
                    call(number, "{}"),
                    result(number + 1, (number, 0), envelope),
                ]);
            }
            let first = build.request(None);
            build.history.push(text(5, Role::Assistant, words(96)));
            build.history.push(text(6, Role::User, words(96)));
            (first, build)
        }
        "pruned" => {
            let mut build = build.blocks(8);
            build.policy.safe_zone = Some(SafeZone::Tokens(900_000));
            let rules = Document {
                kind: DocumentKind::Rules,
                heading: "rules.md".into(),
                text: words(981),
                need: Need::Always,
            };
            build.documents = Documents::new(vec![rules], &Words);
            (build.request(None), build.blocks(1))
        }
        "rounds archived" => {
            let mut build = build.blocks(1);
            build.policy.keep_rounds = 1;
            build.policy.compact_frees = 0.01;
            build.history.push(text(3, Role::Assistant, words(96)));
            build.history.push(text(4, Role::User, words(96)));
            let mut build = build.blocks(1);
            let first = build.request(None);
            let plan = plan_compaction(
                &build.history,
                ArchiveWish::Automatic,
                &build.policy,
                &build.model,
                &Words,
            )
            .unwrap();
            let summary: Message =
                new_summary_message(id(100), Timestamp::UNIX_EPOCH, words(496), &plan);
            build.history.push(entry(summary));
            (first, build)
        }
        "model switched" => {
            let mut build = build.blocks(1);
            build.model.name = "other".into();
            let first = build.request(None);
            build.model.name = "model".into();
            (first, build.blocks(1))
        }
        other => panic!("no such case: {other}"),
    };
    let now = then.request(Some(&first));
    (first, now)
}

/// Asserts equality to a billionth of a dollar.
fn assert_money(what: &str, expected: f64, real: f64) {
    assert!(
        (expected - real).abs() < 1e-9,
        "{what}: {expected} by hand, {real} by the engine"
    );
}

#[test]
fn break_costs_agree_with_sums_calculated_by_hand() {
    let cases = cases();
    assert_eq!(cases.len(), 6);
    for (name, case) in cases {
        let rule = match case.get("cache") {
            "anthropic" => CacheKind::Anthropic,
            "automatic" => CacheKind::Automatic,
            other => panic!("{name}: no such cache: {other}"),
        };
        let (last, now) = requests_of_case(name, rule);
        assert_eq!(
            format_request(&last.request, rule),
            case.segments("last").0,
            "{name}"
        );
        let (segments, starred) = case.segments("now");
        assert_eq!(format_request(&now.request, rule), segments, "{name}");

        let broken = now
            .account
            .prefix
            .unwrap()
            .broken
            .unwrap_or_else(|| panic!("{name}: no break"));
        assert_eq!(
            serde_json::to_value(broken.cause).unwrap(),
            case.get("cause"),
            "{name}"
        );
        assert_eq!(broken.first.owner, case.get("first"), "{name}");

        let expected = now.account.expected;
        let classes = ["read", "written", "fresh"].map(|key| case.number::<u64>(key));
        assert_eq!(
            [expected.cached_input, expected.cache_write, expected.input],
            classes,
            "{name}"
        );
        assert_eq!(
            classes.iter().sum::<u64>(),
            now.request.estimated_tokens(),
            "{name}"
        );
        assert_money(
            name,
            case.number("total"),
            now.account.expected_cost.unwrap().total,
        );

        assert_eq!(
            starred,
            case.number::<u64>("tokens"),
            "{name}: the fixture's own sum"
        );
        assert_eq!(broken.price.tokens, starred, "{name}: tokens paid again");
        assert_money(name, case.number("cost"), broken.price.cost.unwrap());
    }
}
