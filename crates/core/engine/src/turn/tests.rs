use std::time::Duration;

use super::*;

fn call(name: &str) -> ToolCall {
    ToolCall {
        id: format!("call_{name}"),
        name: name.into(),
        arguments: "{}".into(),
        signature: None,
    }
}

fn reply(text: &str, calls: Vec<ToolCall>) -> ReplySummary {
    let stop = if calls.is_empty() {
        StopReason::EndTurn
    } else {
        StopReason::ToolUse
    };
    ReplySummary {
        calls,
        text: text.into(),
        stop,
        unfinished: None,
    }
}

fn begin_turn(limits: TurnLimits) -> Turn {
    let mut turn = Turn::new(limits);
    assert_eq!(
        turn.step(Input::Begin(Position::WantsReply)),
        [TurnAction::BuildRequest]
    );
    assert_eq!(turn.step(Input::Built), [TurnAction::SendRequest]);
    turn
}

fn end(actions: &[TurnAction]) -> &TurnEnd {
    match actions {
        [TurnAction::End(end) | TurnAction::Conclude(end)] => end,
        other => panic!("expected an end, got {other:?}"),
    }
}

#[test]
fn turn_completes_with_a_reply_without_calls() {
    let mut turn = begin_turn(TurnLimits::default());
    let actions = turn.step(Input::Replied(reply("Done.", vec![])));
    assert_eq!(
        (end(&actions).outcome, end(&actions).text.as_str()),
        (Outcome::Completed, "Done.")
    );
    assert_eq!(turn.state(), TurnState::Concluding, "somebody may object");
    turn.step(Input::Concluded(Conclusion::Accepted { output: None }));
    assert_eq!(turn.state(), TurnState::Ended);
    assert_eq!(
        turn.step(Input::Built),
        [],
        "an ended turn asks for nothing"
    );
}

#[test]
fn turn_runs_calls_and_builds_the_next_request() {
    let mut turn = begin_turn(TurnLimits::default());
    let calls = vec![call("a"), call("b")];
    assert_eq!(
        turn.step(Input::Replied(reply("", calls.clone()))),
        [TurnAction::RunTools(calls)]
    );
    assert_eq!(
        turn.step(Input::ToolsDone(ToolsDone::default())),
        [TurnAction::BuildRequest]
    );
    assert_eq!(turn.replies(), 1);
}

#[test]
fn turn_ends_with_the_report_of_a_completion() {
    let mut turn = begin_turn(TurnLimits::default());
    turn.step(Input::Replied(reply(
        "I am done.",
        vec![call("attempt_completion")],
    )));
    let actions = turn.step(Input::ToolsDone(ToolsDone {
        completed: Some("Fixed.".into()),
        ..ToolsDone::default()
    }));
    assert_eq!(
        (end(&actions).outcome, end(&actions).text.as_str()),
        (Outcome::Completed, "Fixed.")
    );
}

#[test]
fn turn_waits_for_the_user_after_a_question() {
    let mut turn = begin_turn(TurnLimits::default());
    turn.step(Input::Replied(reply(
        "",
        vec![call("ask_followup_question")],
    )));
    let question = Question {
        question: "Which?".into(),
        options: vec![],
        about: QuestionKind::Question,
    };
    let actions = turn.step(Input::ToolsDone(ToolsDone {
        question: Some(question),
        ..ToolsDone::default()
    }));
    assert_eq!(
        (end(&actions).outcome, end(&actions).text.as_str()),
        (Outcome::Waiting, "Which?")
    );
}

#[test]
fn turn_waits_after_an_answer_right_after_a_denial() {
    let mut turn = begin_turn(TurnLimits::default());
    turn.step(Input::Replied(reply("", vec![call("write_to_file")])));
    turn.step(Input::ToolsDone(ToolsDone {
        denied: Some("not allowed".into()),
        ..ToolsDone::default()
    }));
    turn.step(Input::Built);
    let actions = turn.step(Input::Replied(reply("I may not write.", vec![])));
    assert_eq!(
        (end(&actions).outcome, end(&actions).reason.code.as_str()),
        (Outcome::Waiting, "denied")
    );
}

#[test]
fn turn_forgets_a_denial_the_model_worked_around() {
    let mut turn = begin_turn(TurnLimits::default());
    turn.step(Input::Replied(reply("", vec![call("write_to_file")])));
    turn.step(Input::ToolsDone(ToolsDone {
        denied: Some("not allowed".into()),
        ..ToolsDone::default()
    }));
    turn.step(Input::Built);
    turn.step(Input::Replied(reply("", vec![call("read_file")])));
    turn.step(Input::ToolsDone(ToolsDone::default()));
    turn.step(Input::Built);
    let actions = turn.step(Input::Replied(reply("Found another way.", vec![])));
    assert_eq!(end(&actions).outcome, Outcome::Completed);
}

#[test]
fn turn_nudges_about_open_todos_at_most_three_times_in_a_row() {
    let mut turn = begin_turn(TurnLimits::default());
    let answer = || {
        Input::Replied(ReplySummary {
            unfinished: Some(Unfinished::OpenTodos(2)),
            ..reply("Half done.", vec![])
        })
    };
    for _ in 0..3 {
        assert_eq!(
            turn.step(answer()),
            [
                TurnAction::Nudge(Nudge::OpenTodos(2)),
                TurnAction::BuildRequest
            ]
        );
        turn.step(Input::Built);
    }
    assert_eq!(end(&turn.step(answer())).outcome, Outcome::Completed);
}

#[test]
fn turn_without_completion_is_nudged_and_ends_as_answered() {
    let mut turn = begin_turn(TurnLimits::default());
    let unfinished = Some(Unfinished::NoCompletion);
    let answer = || {
        Input::Replied(ReplySummary {
            unfinished,
            ..reply("It is 4.", vec![])
        })
    };
    for _ in 0..3 {
        assert_eq!(
            turn.step(answer()),
            [
                TurnAction::Nudge(Nudge::NoCompletion),
                TurnAction::BuildRequest
            ]
        );
        turn.step(Input::Built);
    }
    let actions = turn.step(answer());
    assert_eq!(
        (end(&actions).outcome, end(&actions).reason.code.as_str()),
        (Outcome::Completed, "answered")
    );
    assert_eq!(end(&actions).text, "It is 4.");
}

#[test]
fn turn_resets_the_nudges_after_a_tool_call() {
    let mut turn = begin_turn(TurnLimits::default());
    for _ in 0..5 {
        let actions = turn.step(Input::Replied(ReplySummary {
            unfinished: Some(Unfinished::OpenTodos(2)),
            ..reply("Half done.", vec![])
        }));
        assert_eq!(
            actions,
            [
                TurnAction::Nudge(Nudge::OpenTodos(2)),
                TurnAction::BuildRequest
            ]
        );
        turn.step(Input::Built);
        turn.step(Input::Replied(reply("", vec![call("a")])));
        turn.step(Input::ToolsDone(ToolsDone::default()));
        turn.step(Input::Built);
    }
}

#[test]
fn turn_fails_after_three_nudges_about_empty_replies() {
    let mut turn = begin_turn(TurnLimits::default());
    for _ in 0..3 {
        assert_eq!(
            turn.step(Input::Replied(reply("", vec![]))),
            [TurnAction::Nudge(Nudge::Empty), TurnAction::BuildRequest]
        );
        turn.step(Input::Built);
    }
    let actions = turn.step(Input::Replied(reply("", vec![])));
    assert_eq!(
        (end(&actions).outcome, end(&actions).reason.code.as_str()),
        (Outcome::Failed, "empty_reply")
    );
}

#[test]
fn turn_follows_the_configured_limit_of_nudges() {
    for (nudges, profile) in [
        (0, ModelProfile::Full),
        (1, ModelProfile::Full),
        (5, ModelProfile::Full),
        (0, ModelProfile::Small),
    ] {
        let mut turn = Turn::new(TurnLimits::default())
            .with_profile(profile)
            .with_loop_limits(LoopLimits {
                nudges,
                ..LoopLimits::default()
            });
        turn.step(Input::Begin(Position::WantsReply));
        turn.step(Input::Built);
        let half = || {
            Input::Replied(ReplySummary {
                unfinished: Some(Unfinished::NoCompletion),
                ..reply("Half done.", vec![])
            })
        };
        for number in 1..=nudges {
            assert!(matches!(turn.step(half())[..], [TurnAction::Nudge(_), _]));
            let notice = turn.nudge_notice(Nudge::NoCompletion);
            assert!(
                notice.ends_with(&format!("continue, {number} of {nudges}")),
                "{notice}"
            );
            turn.step(Input::Built);
        }
        assert_eq!(end(&turn.step(half())).reason.code, "answered");
    }
}

#[test]
fn turn_follows_the_configured_limits_of_repetitions() {
    let limits = LoopLimits {
        corrections: 1,
        equal_results: 2,
        cycle_calls: 5,
        ..LoopLimits::default()
    };
    for (calls, before_the_note) in [(&["x"][..], 1), (&["a", "b", "c", "d", "e"], 9)] {
        let mut turn = begin_turn(TurnLimits::default()).with_loop_limits(limits);
        let mut calls = calls.iter().cycle();
        let mut next = || run_call_with_results(&mut turn, &[calls.next().unwrap()]);
        for _ in 0..before_the_note {
            assert_eq!(next(), [TurnAction::BuildRequest]);
        }
        assert_eq!(
            next(),
            [TurnAction::Nudge(Nudge::Repeated), TurnAction::BuildRequest]
        );
        assert_eq!(end(&next()).reason.code, "loop");
    }
}

#[test]
fn turn_follows_the_configured_limit_of_objections() {
    let mut turn = begin_turn(TurnLimits::default()).with_loop_limits(LoopLimits {
        corrections: 0,
        ..LoopLimits::default()
    });
    turn.step(Input::Replied(reply("Done.", vec![])));
    let actions = turn.step(Input::Concluded(Conclusion::Rejected(Objection {
        text: "not yet".into(),
        failure: None,
    })));
    assert_eq!(end(&actions).outcome, Outcome::Completed);
    assert_eq!(turn.state(), TurnState::Ended);
}

#[test]
fn turn_is_exhausted_by_a_reply_still_cut_after_continuations() {
    let cut = || ReplySummary {
        stop: StopReason::Length,
        ..reply("half a sen", vec![])
    };
    let mut turn = begin_turn(TurnLimits::default());
    let actions = turn.step(Input::Replied(cut()));
    assert_eq!(
        (end(&actions).outcome, end(&actions).reason.code.as_str()),
        (Outcome::Exhausted, "output_limit")
    );
    let stored = Turn::new(TurnLimits::default()).step(Input::Begin(Position::HasReply(cut())));
    assert_eq!(
        stored,
        [TurnAction::Nudge(Nudge::Cut), TurnAction::BuildRequest],
        "a stored one is gone on with"
    );
}

#[test]
fn turn_stops_at_each_limit_before_the_next_request() {
    let cases = [
        (
            TurnLimits {
                turns: Some(1),
                ..TurnLimits::default()
            },
            Spent::default(),
            "max_turns",
        ),
        (
            TurnLimits {
                budget_usd: Some(0.5),
                ..TurnLimits::default()
            },
            Spent {
                usd: 0.5,
                ..Spent::default()
            },
            "max_budget",
        ),
        (
            TurnLimits {
                tokens: Some(9),
                ..TurnLimits::default()
            },
            Spent {
                tokens: 9,
                ..Spent::default()
            },
            "max_tokens",
        ),
        (
            TurnLimits {
                wall_time: Some(Duration::from_secs(3)),
                ..TurnLimits::default()
            },
            Spent {
                elapsed: Duration::from_secs(4),
                ..Spent::default()
            },
            "max_wall_time",
        ),
    ];
    for (limits, spent, code) in cases {
        let mut turn = begin_turn(limits);
        turn.step(Input::Replied(reply("", vec![call("a")])));
        let actions = turn.step(Input::ToolsDone(ToolsDone {
            spent,
            ..ToolsDone::default()
        }));
        assert_eq!(
            (end(&actions).outcome, end(&actions).reason.code.as_str()),
            (Outcome::Exhausted, code)
        );
    }
}

#[test]
fn turn_ends_in_every_state_when_canceled() {
    for inputs in [
        vec![],
        vec![Input::Begin(Position::WantsReply)],
        vec![Input::Begin(Position::WantsReply), Input::Built],
        vec![Input::Begin(Position::WantsTools(vec![call("a")]))],
    ] {
        let mut turn = Turn::new(TurnLimits::default());
        for input in inputs {
            turn.step(input);
        }
        assert_eq!(end(&turn.step(Input::Cancelled)).outcome, Outcome::Aborted);
    }
}

#[test]
fn turn_continues_from_each_stored_position() {
    let step = |position| Turn::new(TurnLimits::default()).step(Input::Begin(position));
    assert_eq!(
        step(Position::WantsTools(vec![call("a")])),
        [TurnAction::RunTools(vec![call("a")])]
    );
    assert_eq!(
        end(&step(Position::HasReply(reply("Done.", vec![])))).text,
        "Done."
    );
    assert_eq!(
        end(&step(Position::Completed("Fixed.".into()))).outcome,
        Outcome::Completed
    );
    let question = Question {
        question: "Which?".into(),
        options: vec![],
        about: QuestionKind::Question,
    };
    assert_eq!(
        end(&step(Position::WantsAnswer(question))).outcome,
        Outcome::Waiting
    );
}

#[test]
fn turn_reports_unexpected_input_as_a_bug() {
    let mut turn = Turn::new(TurnLimits::default());
    let actions = turn.step(Input::Built);
    assert_eq!(
        (end(&actions).outcome, end(&actions).reason.code.as_str()),
        (Outcome::Failed, "internal")
    );
}

fn hash_text(text: &str) -> ContentHash {
    let mut hasher = haft_types::Hasher::default();
    hasher.update(text.as_bytes());
    hasher.finish()
}

/// Steps the turn through one reply with a call that returned the results `seen`.
fn run_call_with_results(turn: &mut Turn, seen: &[&str]) -> Vec<TurnAction> {
    turn.step(Input::Replied(reply("", vec![call("a")])));
    let seen = seen.iter().map(|text| hash_text(text)).collect();
    let actions = turn.step(Input::ToolsDone(ToolsDone {
        seen,
        ..ToolsDone::default()
    }));
    turn.step(Input::Built);
    actions
}

#[test]
fn turn_notes_a_call_repeated_three_times_and_later_ends() {
    let mut turn = begin_turn(TurnLimits::default());
    for _ in 0..2 {
        assert_eq!(
            run_call_with_results(&mut turn, &["x", "y"]),
            [TurnAction::BuildRequest]
        );
    }
    for _ in 0..3 {
        assert_eq!(
            run_call_with_results(&mut turn, &["x"]),
            [TurnAction::Nudge(Nudge::Repeated), TurnAction::BuildRequest]
        );
    }
    let actions = run_call_with_results(&mut turn, &["x"]);
    assert_eq!(
        (end(&actions).outcome, end(&actions).reason.code.as_str()),
        (Outcome::Failed, "loop")
    );
}

#[test]
fn turn_counts_no_repetition_across_other_results() {
    let mut turn = begin_turn(TurnLimits::default());
    for round in 0..9 {
        assert_eq!(
            run_call_with_results(&mut turn, &["x"]),
            [TurnAction::BuildRequest]
        );
        assert_eq!(
            run_call_with_results(&mut turn, &["x"]),
            [TurnAction::BuildRequest]
        );
        assert_eq!(
            run_call_with_results(&mut turn, &[&format!("z{round}")]),
            [TurnAction::BuildRequest]
        );
    }
}

#[test]
fn turn_notices_cyclic_calls_in_the_third_round() {
    for cycle in [
        &["read", "edit"][..],
        &["list", "read", "edit"],
        &["read", "read", "edit"],
        &["list", "read", "search", "edit"],
        &["read", "edit", "read", "command"],
    ] {
        let mut turn = begin_turn(TurnLimits::default());
        // The call before the cycle is no part of it.
        run_call_with_results(&mut turn, &["first"]);
        let mut calls = cycle.iter().cycle();
        let mut next = || run_call_with_results(&mut turn, &[calls.next().unwrap()]);
        for _ in 1..3 * cycle.len() {
            assert_eq!(next(), [TurnAction::BuildRequest], "{cycle:?}");
        }
        for _ in 0..3 {
            assert_eq!(
                next(),
                [TurnAction::Nudge(Nudge::Repeated), TurnAction::BuildRequest],
                "{cycle:?}"
            );
        }
        let actions = next();
        assert_eq!(
            (end(&actions).outcome, end(&actions).reason.code.as_str()),
            (Outcome::Failed, "loop")
        );
    }
}

#[test]
fn turn_counts_no_cycle_with_changing_results_or_five_steps() {
    let mut turn = begin_turn(TurnLimits::default());
    for round in 0..9 {
        for step in [
            "read".to_owned(),
            format!("edit {round}"),
            "test".to_owned(),
        ] {
            assert_eq!(
                run_call_with_results(&mut turn, &[&step]),
                [TurnAction::BuildRequest]
            );
        }
    }
    let mut turn = begin_turn(TurnLimits::default());
    for step in ["a", "b", "c", "d", "e"].iter().cycle().take(20) {
        assert_eq!(
            run_call_with_results(&mut turn, &[step]),
            [TurnAction::BuildRequest]
        );
    }
}

#[test]
fn turn_counts_repetitions_from_zero_after_a_different_call() {
    let mut turn = begin_turn(TurnLimits::default());
    for round in 0..5 {
        for _ in 0..2 {
            run_call_with_results(&mut turn, &["x"]);
        }
        assert_eq!(
            run_call_with_results(&mut turn, &["x"]),
            [TurnAction::Nudge(Nudge::Repeated), TurnAction::BuildRequest]
        );
        assert_eq!(
            run_call_with_results(&mut turn, &[&format!("z{round}")]),
            [TurnAction::BuildRequest]
        );
    }
}

#[test]
fn turn_goes_on_after_at_most_three_objections() {
    let object = |otherwise| {
        Input::Concluded(Conclusion::Rejected(Objection {
            text: "not yet".into(),
            failure: otherwise,
        }))
    };
    let failure = Reason {
        code: "schema".into(),
        message: "never".into(),
    };
    for (otherwise, outcome) in [(None, Outcome::Completed), (Some(failure), Outcome::Failed)] {
        let mut turn = begin_turn(TurnLimits::default());
        for _ in 0..3 {
            assert!(matches!(
                turn.step(Input::Replied(reply("Done.", vec![])))[..],
                [TurnAction::Conclude(_)]
            ));
            assert_eq!(
                turn.step(object(otherwise.clone())),
                [
                    TurnAction::Correct("not yet".into()),
                    TurnAction::BuildRequest
                ]
            );
            turn.step(Input::Built);
        }
        turn.step(Input::Replied(reply("Done.", vec![])));
        let actions = turn.step(object(otherwise));
        assert_eq!(
            (end(&actions).outcome, end(&actions).text.as_str()),
            (outcome, "Done.")
        );
        assert_eq!(turn.state(), TurnState::Ended);
    }
}

#[test]
fn turn_ends_with_the_data_of_an_accepted_answer() {
    let mut turn = begin_turn(TurnLimits::default());
    turn.step(Input::Replied(reply("[1]", vec![])));
    let output = Some(serde_json::json!([1]));
    let actions = turn.step(Input::Concluded(Conclusion::Accepted {
        output: output.clone(),
    }));
    assert!(
        matches!(&actions[..], [TurnAction::End(end)] if end.output == output && end.text == "[1]"),
        "{actions:?}"
    );
}

#[test]
fn turn_stops_at_a_limit_despite_an_objection() {
    let mut turn = begin_turn(TurnLimits {
        turns: Some(1),
        ..TurnLimits::default()
    });
    turn.step(Input::Replied(reply("Done.", vec![])));
    let objection = Objection {
        text: "not yet".into(),
        failure: None,
    };
    let actions = turn.step(Input::Concluded(Conclusion::Rejected(objection)));
    assert_eq!(
        (end(&actions).outcome, end(&actions).reason.code.as_str()),
        (Outcome::Exhausted, "max_turns")
    );
}

#[test]
fn turn_stopped_by_a_hook_waits() {
    let mut turn = begin_turn(TurnLimits::default());
    let actions = turn.step(Input::Stopped(Reason {
        code: "hook_stopped".into(),
        message: "enough".into(),
    }));
    assert_eq!(
        (end(&actions).outcome, end(&actions).reason.code.as_str()),
        (Outcome::Waiting, "hook_stopped")
    );
}

#[test]
fn turn_reads_unread_messages_before_the_end_within_limits() {
    let unread = || Input::Concluded(Conclusion::Unread { output: None });
    let mut turn = begin_turn(TurnLimits {
        turns: Some(6),
        ..TurnLimits::default()
    });
    for _ in 0..5 {
        assert!(matches!(
            turn.step(Input::Replied(reply("Done.", vec![])))[..],
            [TurnAction::Conclude(_)]
        ));
        assert_eq!(turn.step(unread()), [TurnAction::BuildRequest]);
        turn.step(Input::Built);
    }
    assert_eq!(turn.objections(), 0, "nobody objected");
    turn.step(Input::Replied(reply("All done.", vec![])));
    let actions = turn.step(unread());
    assert_eq!(
        (end(&actions).outcome, end(&actions).text.as_str()),
        (Outcome::Completed, "All done.")
    );
}

fn run_call_with_effects(turn: &mut Turn, effects: EffectCount) -> Vec<TurnAction> {
    turn.step(Input::Replied(reply("", vec![call("a")])));
    let actions = turn.step(Input::ToolsDone(ToolsDone {
        effects,
        ..ToolsDone::default()
    }));
    turn.step(Input::Built);
    actions
}

const FAILED: EffectCount = EffectCount {
    took_effect: 0,
    failed: 1,
    refused: 0,
};

#[test]
fn turn_nudges_once_and_is_marked_if_every_call_failed() {
    let mut turn = begin_turn(TurnLimits::default());
    run_call_with_effects(&mut turn, FAILED);
    run_call_with_effects(&mut turn, FAILED);
    let told = turn.step(Input::Replied(reply("Done.", vec![])));
    assert_eq!(
        told,
        [
            TurnAction::Nudge(Nudge::NothingChanged),
            TurnAction::BuildRequest
        ]
    );
    turn.step(Input::Built);
    turn.step(Input::Replied(reply("Done.", vec![])));
    let actions = turn.step(Input::Concluded(Conclusion::Accepted { output: None }));
    assert!(
        matches!(&actions[..], [TurnAction::End(end)] if end.nothing_changed),
        "{actions:?}"
    );
}

#[test]
fn turn_is_marked_only_if_there_were_attempts_and_all_failed() {
    let succeeded = EffectCount {
        took_effect: 1,
        ..EffectCount::default()
    };
    let refused = EffectCount {
        refused: 1,
        ..EffectCount::default()
    };
    for effects in [
        vec![FAILED, succeeded],
        vec![succeeded, FAILED],
        // Commands alone.
        vec![EffectCount::default()],
        vec![refused],
        vec![refused, succeeded],
    ] {
        let mut turn = begin_turn(TurnLimits::default());
        for one in &effects {
            run_call_with_effects(&mut turn, *one);
        }
        assert!(
            matches!(
                turn.step(Input::Replied(reply("Done.", vec![])))[..],
                [TurnAction::Conclude(_)]
            ),
            "{effects:?}"
        );
        let actions = turn.step(Input::Concluded(Conclusion::Accepted { output: None }));
        assert!(
            matches!(&actions[..], [TurnAction::End(end)] if !end.nothing_changed),
            "{actions:?}"
        );
    }
}

#[test]
fn turn_at_a_limit_is_marked_without_a_nudge() {
    let mut turn = begin_turn(TurnLimits {
        turns: Some(2),
        ..TurnLimits::default()
    });
    run_call_with_effects(&mut turn, FAILED);
    turn.step(Input::Replied(reply("Done.", vec![])));
    let actions = turn.step(Input::Concluded(Conclusion::Accepted { output: None }));
    assert!(
        matches!(&actions[..], [TurnAction::End(end)] if end.nothing_changed),
        "{actions:?}"
    );
}

/// Lets a small model's turn make the call 1 with an equal result, `times` times, and returns the
/// last actions.
fn repeat_call(turn: &mut Turn, done: &ToolsDone, times: usize) -> Vec<TurnAction> {
    let mut actions = Vec::new();
    for _ in 0..times {
        turn.step(Input::Built);
        turn.step(Input::Replied(reply("", vec![call("1")])));
        actions = turn.step(Input::ToolsDone(done.clone()));
    }
    actions
}

#[test]
fn small_turn_ends_as_completed_after_repeated_successes() {
    let seen = ContentHash::from_content(b"1");
    let changed = ToolsDone {
        seen: vec![seen],
        effects: EffectCount {
            took_effect: 1,
            ..EffectCount::default()
        },
        ..ToolsDone::default()
    };
    let small = || {
        let mut turn = Turn::new(TurnLimits::default()).with_profile(ModelProfile::Small);
        turn.step(Input::Begin(Position::WantsReply));
        turn
    };
    let mut turn = small();
    assert_eq!(
        repeat_call(&mut turn, &changed, 3)[0],
        TurnAction::Nudge(Nudge::RepeatedSuccess)
    );
    let actions = repeat_call(&mut turn, &changed, 1);
    assert!(
        matches!(&actions[..], [TurnAction::Conclude(end)] if end.outcome == Outcome::Completed && end.reason.code == "repeated"),
        "{actions:?}"
    );
    // Reads alone solve nothing, and neither do failures.
    let read = ToolsDone {
        effects: EffectCount::default(),
        ..changed.clone()
    };
    let failed = ToolsDone {
        failed: vec![seen],
        any_failed: true,
        ..changed.clone()
    };
    for (done, nudge) in [(read, Nudge::RepeatedSuccess), (failed, Nudge::Repeated)] {
        let mut turn = small();
        assert_eq!(
            repeat_call(&mut turn, &done, 3)[0],
            TurnAction::Nudge(nudge)
        );
        assert_eq!(
            repeat_call(&mut turn, &done, 1)[0],
            TurnAction::Nudge(nudge)
        );
        let actions = repeat_call(&mut turn, &done, 2);
        assert!(
            matches!(&actions[..], [TurnAction::End(end)] if end.outcome == Outcome::Failed && end.reason.code == "loop"),
            "{actions:?}"
        );
    }
}

/// Solved runs ended as failed, because the model had nothing to add to its last change.
#[test]
fn small_turn_ends_as_completed_after_a_change_and_empty_replies() {
    let done = ToolsDone {
        seen: vec![ContentHash::from_content(b"1")],
        effects: EffectCount {
            took_effect: 1,
            ..EffectCount::default()
        },
        ..ToolsDone::default()
    };
    for (profile, outcome) in [
        (ModelProfile::Small, Outcome::Completed),
        (ModelProfile::Full, Outcome::Failed),
    ] {
        let mut turn = Turn::new(TurnLimits::default()).with_profile(profile);
        turn.step(Input::Begin(Position::WantsReply));
        let mut actions = repeat_call(&mut turn, &done, 1);
        while !matches!(&actions[..], [TurnAction::End(_) | TurnAction::Conclude(_)]) {
            turn.step(Input::Built);
            actions = turn.step(Input::Replied(reply("", vec![])));
        }
        assert_eq!(end(&actions).outcome, outcome, "{profile:?}");
    }
}

#[test]
fn small_nudges_repeat_the_task_and_are_short() {
    let tools: ToolNames = ["edit_file".to_owned()].into_iter().collect();
    for nudge in NUDGES {
        for language in [PromptLanguage::English, PromptLanguage::Chinese] {
            let text = nudge.small_text(language, &tools, "Fix the port in a.toml.\n");
            assert!(text.ends_with(" Fix the port in a.toml."), "{text}");
            assert!(text.chars().count() < 260, "{text}");
        }
    }
    let long = Nudge::Empty.small_text(PromptLanguage::English, &tools, &"word ".repeat(1_000));
    assert!(long.ends_with('…') && long.chars().count() < 750, "{long}");
}

/// Every kind of nudge.
const NUDGES: [Nudge; 8] = [
    Nudge::OpenTodos(2),
    Nudge::NoCompletion,
    Nudge::Goal,
    Nudge::Cut,
    Nudge::Empty,
    Nudge::NothingChanged,
    Nudge::Repeated,
    Nudge::RepeatedSuccess,
];

#[test]
fn nudges_name_only_tools_the_model_knows() {
    let all = || haft_tool::ALL_TOOL_NAMES.into_iter();
    let sets = [
        Vec::new(),
        all().collect(),
        vec!["read_file"],
        vec!["attempt_completion", "execute_command", "read_file"],
        all()
            .filter(|name| *name != "ask_followup_question")
            .collect(),
        all().filter(|name| *name != "attempt_completion").collect(),
    ];
    for (nudge, set) in NUDGES
        .into_iter()
        .flat_map(|nudge| sets.iter().map(move |set| (nudge, set)))
    {
        for language in [PromptLanguage::English, PromptLanguage::Chinese] {
            let tools: ToolNames = set.iter().map(|name| (*name).to_owned()).collect();
            let text = nudge.text_with_tools(language, &tools)
                + &nudge.small_text(language, &tools, "Fix it.");
            let named = text.split('`').skip(1).step_by(2);
            let unknown: Vec<_> = named
                .filter(|name| all().any(|tool| tool == *name) && !set.contains(name))
                .collect();
            assert!(
                unknown.is_empty(),
                "{nudge:?} with {set:?} names {unknown:?}: {text}"
            );
            assert!(
                !text.trim().is_empty(),
                "{nudge:?} with {set:?} says nothing"
            );
        }
    }
    let asks = Nudge::Repeated
        .text_with_tools(PromptLanguage::English, &all().map(str::to_owned).collect());
    assert!(
        asks.ends_with("ask with `ask_followup_question`."),
        "{asks}"
    );
}
