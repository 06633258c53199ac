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

fn reply(text: &str, calls: Vec<ToolCall>) -> Replied {
    let stop = if calls.is_empty() {
        StopReason::EndTurn
    } else {
        StopReason::ToolUse
    };
    Replied {
        calls,
        text: text.into(),
        stop,
        unfinished: None,
    }
}

fn begun(limits: TurnLimits) -> Turn {
    let mut turn = Turn::new(limits);
    assert_eq!(
        turn.step(Input::Begin(Position::WantsReply)),
        [Action::BuildRequest]
    );
    assert_eq!(turn.step(Input::Built), [Action::SendRequest]);
    turn
}

fn end(actions: &[Action]) -> &End {
    match actions {
        [Action::End(end) | Action::Conclude(end)] => end,
        other => panic!("expected an end, got {other:?}"),
    }
}

#[test]
fn a_reply_without_calls_completes_the_turn() {
    let mut turn = begun(TurnLimits::default());
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
fn calls_run_and_lead_to_the_next_request() {
    let mut turn = begun(TurnLimits::default());
    let calls = vec![call("a"), call("b")];
    assert_eq!(
        turn.step(Input::Replied(reply("", calls.clone()))),
        [Action::RunTools(calls)]
    );
    assert_eq!(
        turn.step(Input::ToolsDone(ToolsDone::default())),
        [Action::BuildRequest]
    );
    assert_eq!(turn.replies(), 1);
}

#[test]
fn a_completion_ends_with_its_report() {
    let mut turn = begun(TurnLimits::default());
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
fn a_question_waits_for_the_user() {
    let mut turn = begun(TurnLimits::default());
    turn.step(Input::Replied(reply(
        "",
        vec![call("ask_followup_question")],
    )));
    let question = Question {
        question: "Which?".into(),
        options: vec![],
        about: About::Question,
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
fn an_answer_right_after_a_denial_waits() {
    let mut turn = begun(TurnLimits::default());
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
fn a_denial_that_the_model_worked_around_is_forgotten() {
    let mut turn = begun(TurnLimits::default());
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
fn open_todos_are_nudged_three_times_in_a_row_at_most() {
    let mut turn = begun(TurnLimits::default());
    let answer = || {
        Input::Replied(Replied {
            unfinished: Some(Unfinished::OpenTodos(2)),
            ..reply("Half done.", vec![])
        })
    };
    for _ in 0..3 {
        assert_eq!(
            turn.step(answer()),
            [Action::Nudge(Nudge::OpenTodos(2)), Action::BuildRequest]
        );
        turn.step(Input::Built);
    }
    assert_eq!(end(&turn.step(answer())).outcome, Outcome::Completed);
}

#[test]
fn without_completion_a_text_protocol_is_nudged_and_ends_as_answered() {
    let mut turn = begun(TurnLimits::default());
    let unfinished = Some(Unfinished::NoCompletion);
    let answer = || {
        Input::Replied(Replied {
            unfinished,
            ..reply("It is 4.", vec![])
        })
    };
    for _ in 0..3 {
        assert_eq!(
            turn.step(answer()),
            [Action::Nudge(Nudge::NoCompletion), Action::BuildRequest]
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
fn a_tool_call_resets_the_nudges() {
    let mut turn = begun(TurnLimits::default());
    for _ in 0..5 {
        let actions = turn.step(Input::Replied(Replied {
            unfinished: Some(Unfinished::OpenTodos(2)),
            ..reply("Half done.", vec![])
        }));
        assert_eq!(
            actions,
            [Action::Nudge(Nudge::OpenTodos(2)), Action::BuildRequest]
        );
        turn.step(Input::Built);
        turn.step(Input::Replied(reply("", vec![call("a")])));
        turn.step(Input::ToolsDone(ToolsDone::default()));
        turn.step(Input::Built);
    }
}

#[test]
fn empty_replies_fail_after_three_nudges() {
    let mut turn = begun(TurnLimits::default());
    for _ in 0..3 {
        assert_eq!(
            turn.step(Input::Replied(reply("", vec![]))),
            [Action::Nudge(Nudge::Empty), Action::BuildRequest]
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
fn a_reply_still_cut_after_its_continuations_exhausts_the_turn() {
    let cut = || Replied {
        stop: StopReason::Length,
        ..reply("half a sen", vec![])
    };
    let mut turn = begun(TurnLimits::default());
    let actions = turn.step(Input::Replied(cut()));
    assert_eq!(
        (end(&actions).outcome, end(&actions).reason.code.as_str()),
        (Outcome::Exhausted, "output_limit")
    );
    let stored = Turn::new(TurnLimits::default()).step(Input::Begin(Position::HasReply(cut())));
    assert_eq!(
        stored,
        [Action::Nudge(Nudge::Cut), Action::BuildRequest],
        "a stored one is gone on with"
    );
}

#[test]
fn each_limit_stops_before_the_next_request() {
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
        let mut turn = begun(limits);
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
fn cancelling_ends_every_state() {
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
fn a_stored_conversation_goes_on_where_it_left_off() {
    let step = |position| Turn::new(TurnLimits::default()).step(Input::Begin(position));
    assert_eq!(
        step(Position::WantsTools(vec![call("a")])),
        [Action::RunTools(vec![call("a")])]
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
        about: About::Question,
    };
    assert_eq!(
        end(&step(Position::WantsAnswer(question))).outcome,
        Outcome::Waiting
    );
}

#[test]
fn input_that_does_not_fit_is_reported_as_a_bug() {
    let mut turn = Turn::new(TurnLimits::default());
    let actions = turn.step(Input::Built);
    assert_eq!(
        (end(&actions).outcome, end(&actions).reason.code.as_str()),
        (Outcome::Failed, "internal")
    );
}

fn hash(text: &str) -> ContentHash {
    let mut hasher = haft_types::Hasher::default();
    hasher.update(text.as_bytes());
    hasher.finish()
}

/// Steps the turn through one reply with a call that returned the results `seen`.
fn called(turn: &mut Turn, seen: &[&str]) -> Vec<Action> {
    turn.step(Input::Replied(reply("", vec![call("a")])));
    let seen = seen.iter().map(|text| hash(text)).collect();
    let actions = turn.step(Input::ToolsDone(ToolsDone {
        seen,
        ..ToolsDone::default()
    }));
    turn.step(Input::Built);
    actions
}

#[test]
fn a_call_with_the_same_result_three_times_in_a_row_gets_a_note_and_in_the_end_an_outcome() {
    let mut turn = begun(TurnLimits::default());
    for _ in 0..2 {
        assert_eq!(called(&mut turn, &["x", "y"]), [Action::BuildRequest]);
    }
    for _ in 0..3 {
        assert_eq!(
            called(&mut turn, &["x"]),
            [Action::Nudge(Nudge::Repeated), Action::BuildRequest]
        );
    }
    let actions = called(&mut turn, &["x"]);
    assert_eq!(
        (end(&actions).outcome, end(&actions).reason.code.as_str()),
        (Outcome::Failed, "loop")
    );
}

#[test]
fn what_happens_between_makes_a_call_no_repetition() {
    let mut turn = begun(TurnLimits::default());
    for round in 0..9 {
        assert_eq!(called(&mut turn, &["x"]), [Action::BuildRequest]);
        assert_eq!(called(&mut turn, &["x"]), [Action::BuildRequest]);
        assert_eq!(
            called(&mut turn, &[&format!("z{round}")]),
            [Action::BuildRequest]
        );
    }
}

#[test]
fn calls_that_go_round_are_noticed_in_the_third_round() {
    for cycle in [
        &["read", "edit"][..],
        &["list", "read", "edit"],
        &["read", "read", "edit"],
        &["list", "read", "search", "edit"],
        &["read", "edit", "read", "command"],
    ] {
        let mut turn = begun(TurnLimits::default());
        // The call before the cycle is no part of it.
        called(&mut turn, &["first"]);
        let mut calls = cycle.iter().cycle();
        let mut next = || called(&mut turn, &[calls.next().unwrap()]);
        for _ in 1..3 * cycle.len() {
            assert_eq!(next(), [Action::BuildRequest], "{cycle:?}");
        }
        for _ in 0..3 {
            assert_eq!(
                next(),
                [Action::Nudge(Nudge::Repeated), Action::BuildRequest],
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
fn other_results_or_longer_ways_are_no_cycle() {
    let mut turn = begun(TurnLimits::default());
    for round in 0..9 {
        for step in [
            "read".to_owned(),
            format!("edit {round}"),
            "test".to_owned(),
        ] {
            assert_eq!(called(&mut turn, &[&step]), [Action::BuildRequest]);
        }
    }
    let mut turn = begun(TurnLimits::default());
    for step in ["a", "b", "c", "d", "e"].iter().cycle().take(20) {
        assert_eq!(called(&mut turn, &[step]), [Action::BuildRequest]);
    }
}

#[test]
fn a_model_that_takes_the_note_to_heart_starts_from_nought() {
    let mut turn = begun(TurnLimits::default());
    for round in 0..5 {
        for _ in 0..2 {
            called(&mut turn, &["x"]);
        }
        assert_eq!(
            called(&mut turn, &["x"]),
            [Action::Nudge(Nudge::Repeated), Action::BuildRequest]
        );
        assert_eq!(
            called(&mut turn, &[&format!("z{round}")]),
            [Action::BuildRequest]
        );
    }
}

#[test]
fn an_objection_keeps_the_model_going_three_times_at_most() {
    let object = |otherwise| {
        Input::Concluded(Conclusion::Rejected(Objection {
            text: "not yet".into(),
            otherwise,
        }))
    };
    let failure = Reason {
        code: "schema".into(),
        message: "never".into(),
    };
    for (otherwise, outcome) in [(None, Outcome::Completed), (Some(failure), Outcome::Failed)] {
        let mut turn = begun(TurnLimits::default());
        for _ in 0..3 {
            assert!(matches!(
                turn.step(Input::Replied(reply("Done.", vec![])))[..],
                [Action::Conclude(_)]
            ));
            assert_eq!(
                turn.step(object(otherwise.clone())),
                [Action::Correct("not yet".into()), Action::BuildRequest]
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
fn what_is_accepted_ends_the_turn_with_its_data() {
    let mut turn = begun(TurnLimits::default());
    turn.step(Input::Replied(reply("[1]", vec![])));
    let output = Some(serde_json::json!([1]));
    let actions = turn.step(Input::Concluded(Conclusion::Accepted {
        output: output.clone(),
    }));
    assert!(
        matches!(&actions[..], [Action::End(end)] if end.output == output && end.text == "[1]"),
        "{actions:?}"
    );
}

#[test]
fn an_objection_does_not_get_around_a_limit() {
    let mut turn = begun(TurnLimits {
        turns: Some(1),
        ..TurnLimits::default()
    });
    turn.step(Input::Replied(reply("Done.", vec![])));
    let objection = Objection {
        text: "not yet".into(),
        otherwise: None,
    };
    let actions = turn.step(Input::Concluded(Conclusion::Rejected(objection)));
    assert_eq!(
        (end(&actions).outcome, end(&actions).reason.code.as_str()),
        (Outcome::Exhausted, "max_turns")
    );
}

#[test]
fn whoever_may_can_end_it_anywhere() {
    let mut turn = begun(TurnLimits::default());
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
fn what_was_not_read_is_read_before_the_end_but_not_beyond_a_limit() {
    let unread = || Input::Concluded(Conclusion::Unread { output: None });
    let mut turn = begun(TurnLimits {
        turns: Some(6),
        ..TurnLimits::default()
    });
    for _ in 0..5 {
        assert!(matches!(
            turn.step(Input::Replied(reply("Done.", vec![])))[..],
            [Action::Conclude(_)]
        ));
        assert_eq!(turn.step(unread()), [Action::BuildRequest]);
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

fn tried(turn: &mut Turn, effects: EffectCount) -> Vec<Action> {
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
    not_run: 0,
};

#[test]
fn who_is_done_after_nothing_but_failures_is_told_once_and_then_marked() {
    let mut turn = begun(TurnLimits::default());
    tried(&mut turn, FAILED);
    tried(&mut turn, FAILED);
    let told = turn.step(Input::Replied(reply("Done.", vec![])));
    assert_eq!(
        told,
        [Action::Nudge(Nudge::NothingChanged), Action::BuildRequest]
    );
    turn.step(Input::Built);
    turn.step(Input::Replied(reply("Done.", vec![])));
    let actions = turn.step(Input::Concluded(Conclusion::Accepted { output: None }));
    assert!(
        matches!(&actions[..], [Action::End(end)] if end.nothing_changed),
        "{actions:?}"
    );
}

#[test]
fn one_success_an_answer_or_a_denial_is_no_failure() {
    let succeeded = EffectCount {
        took_effect: 1,
        ..EffectCount::default()
    };
    let denied = EffectCount {
        not_run: 1,
        ..EffectCount::default()
    };
    for (effects, marked) in [
        (vec![FAILED, succeeded], false),
        (vec![succeeded, FAILED], false),
        (vec![EffectCount::default()], false),
        // The turn is marked, but the model gets no nudge to try again.
        (vec![denied], true),
    ] {
        let mut turn = begun(TurnLimits::default());
        for one in &effects {
            tried(&mut turn, *one);
        }
        assert!(
            matches!(
                turn.step(Input::Replied(reply("Done.", vec![])))[..],
                [Action::Conclude(_)]
            ),
            "{effects:?}"
        );
        let actions = turn.step(Input::Concluded(Conclusion::Accepted { output: None }));
        assert!(
            matches!(&actions[..], [Action::End(end)] if end.nothing_changed == marked),
            "{actions:?}"
        );
    }
}

#[test]
fn a_limit_leaves_no_room_for_the_note_but_for_the_mark() {
    let mut turn = begun(TurnLimits {
        turns: Some(2),
        ..TurnLimits::default()
    });
    tried(&mut turn, FAILED);
    turn.step(Input::Replied(reply("Done.", vec![])));
    let actions = turn.step(Input::Concluded(Conclusion::Accepted { output: None }));
    assert!(
        matches!(&actions[..], [Action::End(end)] if end.nothing_changed),
        "{actions:?}"
    );
}

/// Every kind of nudge.
const NUDGES: [Nudge; 7] = [
    Nudge::OpenTodos(2),
    Nudge::NoCompletion,
    Nudge::Goal,
    Nudge::Cut,
    Nudge::Empty,
    Nudge::NothingChanged,
    Nudge::Repeated,
];

#[test]
fn nudges_name_only_tools_that_the_model_was_told_of() {
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
            let text = nudge.told_text(language, &tools);
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
    let asks =
        Nudge::Repeated.told_text(PromptLanguage::English, &all().map(str::to_owned).collect());
    assert!(
        asks.ends_with("ask with `ask_followup_question`."),
        "{asks}"
    );
}
