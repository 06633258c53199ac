use proptest::prelude::*;

use super::*;

/// Parses pieces `name:tokens`, with `^` after marked ones and `*N` for N blocks.
fn parse_pieces(text: &str) -> Vec<CachePiece> {
    let piece = |word: &str| {
        let boundary = word.ends_with('^');
        let word = word.trim_end_matches('^');
        let (word, blocks) = word
            .split_once('*')
            .map_or((word, 1), |(word, blocks)| (word, blocks.parse().unwrap()));
        let (name, tokens) = word.split_once(':').unwrap();
        CachePiece {
            hash: ContentHash::from_content(name.as_bytes()),
            tokens: tokens.parse().unwrap(),
            blocks,
            boundary,
        }
    };
    text.split_whitespace().map(piece).collect()
}

fn cache(rule: CacheKind, min: u32) -> CacheSimulator {
    CacheSimulator::new(&CacheRule {
        rule,
        min,
        ..CacheRule::default()
    })
}

/// Returns the read, written and fresh tokens of each request; requests are a second apart.
fn send_all(cache: &mut CacheSimulator, requests: &[&str]) -> Vec<[u64; 3]> {
    let send = |(second, text): (usize, &&str)| {
        let usage = cache.send_request(Duration::from_secs(second as u64), &parse_pieces(text));
        [usage.cached_input, usage.cache_write, usage.input]
    };
    requests.iter().enumerate().map(send).collect()
}

/// Returns the tokens read.
fn read_tokens(sums: &[[u64; 3]]) -> Vec<u64> {
    sums.iter().map(|[read, _, _]| *read).collect()
}

#[test]
fn anthropic_writes_up_to_the_last_marker_and_finds_it_again() {
    let mut cache = cache(CacheKind::Anthropic, 1_024);
    let sums = send_all(
        &mut cache,
        &[
            "sys:2000^ a:500^",
            "sys:2000^ a:500 b:300^",
            "sys:2000^ x:500^ tail:7",
        ],
    );
    assert_eq!(sums, [[0, 2_500, 0], [2_500, 300, 0], [2_000, 500, 7]]);
}

#[test]
fn anthropic_caches_nothing_below_the_minimum_or_without_markers() {
    assert_eq!(
        send_all(
            &mut cache(CacheKind::Anthropic, 4_096),
            &["s:4095^", "s:4095^"]
        ),
        [[0, 0, 4_095]; 2]
    );
    assert_eq!(
        send_all(
            &mut cache(CacheKind::Anthropic, 1_024),
            &["s:5000", "s:5000"]
        ),
        [[0, 0, 5_000]; 2]
    );
}

/// The provider's own example: with one marker on block 30, a change in block 25 leaves 24 readable
/// blocks, and a change in block 5 is out of reach, because only blocks 11 to 30 are checked.
#[test]
fn anthropic_checks_twenty_blocks() {
    let blocks = |marked: &[usize], changed: usize| -> String {
        let block = |number: usize| {
            let name = if number == changed {
                format!("new{number}")
            } else {
                number.to_string()
            };
            format!(
                "{name}:100{}",
                if marked.contains(&number) { "^" } else { "" }
            )
        };
        (1..=30).map(block).collect::<Vec<_>>().join(" ")
    };
    let each: Vec<_> = (1..=30).collect();
    for (changed, read) in [(31, 3_000), (25, 2_400), (12, 1_100), (11, 0), (5, 0)] {
        let mut cache = cache(CacheKind::Anthropic, 100);
        cache.send_request(Duration::ZERO, &parse_pieces(&blocks(&each, 0)));
        let usage = cache.send_request(
            Duration::from_secs(1),
            &parse_pieces(&blocks(&[30], changed)),
        );
        assert_eq!((changed, usage.cached_input), (changed, read));
    }
}

#[test]
fn anthropic_message_of_many_blocks_puts_the_last_marker_out_of_reach() {
    let long = [
        "s:2000 a:10^",
        "s:2000 a:10 b:10 calls:100*10 results:100*10^",
    ];
    assert_eq!(
        send_all(&mut cache(CacheKind::Anthropic, 1_024), &long)[1],
        [0, 2_220, 0]
    );
    let short = ["s:2000 a:10^", "s:2000 a:10 calls:100*9 results:100*10^"];
    assert_eq!(
        send_all(&mut cache(CacheKind::Anthropic, 1_024), &short)[1],
        [2_010, 200, 0]
    );
}

#[test]
fn anthropic_hit_refreshes_the_ttl() {
    let mut five = cache(CacheKind::Anthropic, 1);
    let send = |cache: &mut CacheSimulator, at: u64| {
        cache
            .send_request(Duration::from_secs(at), &parse_pieces("s:2000^"))
            .cached_input
    };
    assert_eq!(
        [0, 300, 600, 901].map(|at| send(&mut five, at)),
        [0, 2_000, 2_000, 0]
    );
    let mut hour = CacheSimulator::new(&CacheRule {
        ttl: "1h".into(),
        ..five.rule.clone()
    });
    assert_eq!([0, 901, 4_502].map(|at| send(&mut hour, at)), [0, 2_000, 0]);
    // A slot is kept until it is used for another request.
    let mut slot = cache(CacheKind::LlamaCpp, 1);
    assert_eq!([0, 999_999].map(|at| send(&mut slot, at)), [0, 1_999]);
}

#[test]
fn openai_reads_in_steps_from_1024_on() {
    let sums = send_all(
        &mut cache(CacheKind::Openai, 1_024),
        &[
            "a:1000 b:6",
            "a:1000 b:6 c:100",
            "d:1023 e:1",
            "d:1023 e:1",
            "d:1023 e:1 f:200",
            "d:1023 e:1 f:200",
        ],
    );
    assert_eq!(
        sums,
        [
            [0, 0, 1_006],
            [0, 0, 1_106],
            [0, 0, 1_024],
            [1_024, 0, 0],
            [1_024, 0, 200],
            [1_152, 0, 72]
        ]
    );
}

/// A large stable prefix and a changing end, with a breakpoint only at the end: no request finds
/// anything.
#[test]
fn openai_breakpoints_match_nowhere_else() {
    let changing = ["big:50000 one:10", "big:50000 two:10"];
    assert_eq!(
        send_all(&mut cache(CacheKind::OpenaiBreakpoints, 1_024), &changing),
        [[0, 50_010, 0]; 2]
    );
    let marked = ["big:50000^ one:10", "big:50000^ two:10"];
    assert_eq!(
        send_all(&mut cache(CacheKind::OpenaiBreakpoints, 1_024), &marked)[1],
        [50_000, 10, 0]
    );
    // A request that was sent whole is found even with many blocks in between.
    let appended = ["big:50000 one:10", "big:50000 one:10 many:500*40"];
    assert_eq!(
        send_all(&mut cache(CacheKind::OpenaiBreakpoints, 1_024), &appended)[1],
        [50_010, 500, 0]
    );
}

#[test]
fn openai_breakpoints_keep_only_the_newest_eighty() {
    let mut cache = cache(CacheKind::OpenaiBreakpoints, 1);
    cache.send_request(Duration::ZERO, &parse_pieces("first:100"));
    for number in 0..79 {
        cache.send_request(Duration::ZERO, &parse_pieces(&format!("other{number}:100")));
    }
    assert_eq!(
        cache
            .send_request(Duration::ZERO, &parse_pieces("first:100 x:1"))
            .cached_input,
        100
    );
    assert_eq!(
        cache
            .send_request(Duration::ZERO, &parse_pieces("first:100 y:1"))
            .cached_input,
        0,
        "81 others by now"
    );
}

/// The provider's own three examples: an appended conversation, a document with two different
/// questions (which diverge after it), and a third question.
#[test]
fn deepseek_reads_whole_units() {
    let talk = ["s:100 q1:50", "s:100 q1:50 a1:80 q2:20"];
    assert_eq!(
        send_all(&mut cache(CacheKind::Deepseek, 1), &talk)[1],
        [150, 0, 100]
    );
    let document = [
        "s:10 doc:5000 q1:9",
        "s:10 doc:5000 q2:9",
        "s:10 doc:5000 q3:9",
    ];
    assert_eq!(
        send_all(&mut cache(CacheKind::Deepseek, 1), &document),
        [[0, 0, 5_019], [0, 0, 5_019], [5_010, 0, 9]]
    );
}

/// The provider's first rule: a request stores two units, at the end of the input and at the end of
/// the output.
#[test]
fn deepseek_stores_the_reply() {
    let mut cache = cache(CacheKind::Deepseek, 1);
    cache.send_request(Duration::ZERO, &parse_pieces("s:100 q1:50"));
    cache.record_reply(Duration::ZERO, &parse_pieces("a1:80")[0]);
    let usage = cache.send_request(Duration::ZERO, &parse_pieces("s:100 q1:50 a1:80 q2:20"));
    assert_eq!((usage.cached_input, usage.input), (230, 20));
    // A different answer than the one it gave.
    cache.record_reply(Duration::ZERO, &parse_pieces("a2:80")[0]);
    let usage = cache.send_request(
        Duration::ZERO,
        &parse_pieces("s:100 q1:50 a1:80 q2:20 other:80 q3:5"),
    );
    assert_eq!(usage.cached_input, 250);
}

/// The provider's third rule: a prefix that diverges from an earlier request is found up to the
/// last interval.
#[test]
fn deepseek_cuts_units_at_intervals() {
    let rule = CacheRule {
        rule: CacheKind::Deepseek,
        min: 1,
        interval: Some(1_000),
        ..CacheRule::default()
    };
    let mut cache = CacheSimulator::new(&rule);
    let sums = send_all(
        &mut cache,
        &[
            "s:600 doc:1900 q1:9",
            "s:600 doc:1900 q2:9",
            "s:600 x:1",
            "s:600 doc:1900 q3:9",
        ],
    );
    assert_eq!(read_tokens(&sums), [0, 2_000, 0, 2_500]);
}

#[test]
fn vllm_shares_whole_blocks_of_sixteen() {
    let sums = send_all(
        &mut cache(CacheKind::Vllm, 1_024),
        &["a:40", "a:40 b:2", "a:15 c:3", "a:15 c:3"],
    );
    assert_eq!(sums, [[0, 0, 40], [32, 0, 10], [0, 0, 18], [16, 0, 2]]);
}

#[test]
fn llama_cpp_slot_keeps_the_previous_request() {
    let sums = send_all(
        &mut cache(CacheKind::LlamaCpp, 1_024),
        &["a:7 b:3", "a:7 c:3", "a:7 b:3", "a:7 b:3 d:1"],
    );
    assert_eq!(sums, [[0, 0, 10], [7, 0, 3], [7, 0, 3], [10, 0, 1]]);
}

/// A slot keeps the generated tokens, and the last token of a prompt is computed even if all of it
/// is cached.
#[test]
fn local_servers_keep_replies_but_compute_the_last_token() {
    for (rule, read) in [
        (CacheKind::LlamaCpp, [159, 160, 64]),
        (CacheKind::Vllm, [144, 160, 64]),
    ] {
        let mut cache = cache(rule, 1_024);
        cache.send_request(Duration::ZERO, &parse_pieces("s:64 q:96"));
        let again = cache
            .send_request(Duration::ZERO, &parse_pieces("s:64 q:96"))
            .cached_input;
        cache.record_reply(Duration::ZERO, &parse_pieces("a:32")[0]);
        let longer = cache
            .clone()
            .send_request(Duration::ZERO, &parse_pieces("s:64 q:96 b:32 q2:8"))
            .cached_input;
        let other = cache
            .clone()
            .send_request(Duration::ZERO, &parse_pieces("s:64 r:96"))
            .cached_input;
        assert_eq!([again, longer, other], read, "{rule:?}");
        let goes_on = cache
            .send_request(Duration::ZERO, &parse_pieces("s:64 q:96 a:32 q2:8"))
            .cached_input;
        assert_eq!(goes_on, 192, "{rule:?}");
    }
}

#[test]
fn gemini_and_unknown_caches_read_the_common_prefix() {
    for rule in [CacheKind::Gemini, CacheKind::Automatic] {
        let sums = send_all(
            &mut cache(rule, 2_048),
            &["a:2000 b:100", "a:2000 b:100 c:1", "a:2000 d:1"],
        );
        assert_eq!(sums, [[0, 0, 2_100], [2_100, 0, 1], [0, 0, 2_001]]);
    }
    assert_eq!(
        send_all(&mut cache(CacheKind::None, 1), &["a:9", "a:9"]),
        [[0, 0, 9]; 2]
    );
    let rule = CacheRule {
        rule: CacheKind::Gemini,
        min: 1_024,
        interval: Some(2_000),
        ..CacheRule::default()
    };
    let steps = send_all(
        &mut CacheSimulator::new(&rule),
        &[
            "a:2000 b:1999",
            "a:2000 b:1999 c:9",
            "a:2000 b:1999 c:9 d:1",
        ],
    );
    assert_eq!(read_tokens(&steps), [0, 2_000, 4_000]);
}

const ALL: [CacheKind; 9] = [
    CacheKind::Anthropic,
    CacheKind::Automatic,
    CacheKind::Openai,
    CacheKind::OpenaiBreakpoints,
    CacheKind::Gemini,
    CacheKind::Deepseek,
    CacheKind::Vllm,
    CacheKind::LlamaCpp,
    CacheKind::None,
];

proptest! {
    #[test]
    fn cache_simulator_counts_every_token_once(
        requests in prop::collection::vec(prop::collection::vec((0_u8..6, 1_u64..3_000, any::<bool>()), 0..12), 1..20),
        rule in prop::sample::select(ALL.to_vec()),
    ) {
        let mut cache = cache(rule, 1_024);
        for (second, request) in requests.iter().enumerate() {
            // The number of tokens is part of a piece's identity.
            let piece = |(name, tokens, boundary): &(u8, u64, bool)| {
                let hash = ContentHash::from_content(format!("{name} {tokens}").as_bytes());
                CachePiece { hash, tokens: *tokens, blocks: 1, boundary: *boundary }
            };
            let request: Vec<_> = request.iter().map(piece).collect();
            let total = request.iter().map(|piece| piece.tokens).sum::<u64>();
            let usage = cache.send_request(Duration::from_secs(second as u64), &request);
            prop_assert_eq!(usage.all_input(), total);
            // If repeated at once, the request finds at least as much.
            let again = cache.clone().send_request(Duration::from_secs(second as u64), &request);
            prop_assert!(again.cached_input >= usage.cached_input, "{:?} then {:?}", usage, again);
        }
    }
}
