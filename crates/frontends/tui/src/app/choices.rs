//! The lists that the interface itself offers: permission modes, and the options for a plan.

use haft_types::PermissionMode;

use crate::picker::{PickerAction, PickerList, PickerRow};

/// Describes a permission mode in one row.
pub(super) fn describe_mode(mode: PermissionMode) -> &'static str {
    match mode {
        PermissionMode::Plan => text!("app-mode-plan"),
        PermissionMode::Ask => text!("app-mode-ask"),
        PermissionMode::AcceptEdits => text!("app-mode-accept-edits"),
        PermissionMode::Auto => text!("app-mode-auto"),
        PermissionMode::Yolo => text!("app-mode-yolo"),
    }
}

/// Returns the mode that follows `current` when the user cycles through the modes. The modes that
/// run commands without asking are included only if haft was started in one of them, so that nobody
/// passes through them on the way to another mode.
pub(super) fn next_mode(current: PermissionMode, started_in: PermissionMode) -> PermissionMode {
    match current {
        PermissionMode::Ask => PermissionMode::AcceptEdits,
        PermissionMode::AcceptEdits
            if matches!(started_in, PermissionMode::Auto | PermissionMode::Yolo) =>
        {
            PermissionMode::Auto
        }
        PermissionMode::Auto if started_in == PermissionMode::Yolo => PermissionMode::Yolo,
        PermissionMode::AcceptEdits | PermissionMode::Auto | PermissionMode::Yolo => {
            PermissionMode::Plan
        }
        PermissionMode::Plan => PermissionMode::Ask,
    }
}

/// Lists the permission modes to choose from. `yolo` is offered only if haft was started in that
/// mode.
pub(super) fn list_modes(current: PermissionMode, started_in: PermissionMode) -> PickerList {
    let row = |mode: PermissionMode| {
        let name = mode.name().to_owned();
        let (text, then) = if mode == current {
            (text!("app-mode-current", mode = name), PickerAction::Leave)
        } else {
            (name, PickerAction::Mode { mode, prompt: None })
        };
        PickerRow {
            text,
            about: describe_mode(mode).to_owned(),
            then,
        }
    };
    let modes = [
        PermissionMode::Plan,
        PermissionMode::Ask,
        PermissionMode::AcceptEdits,
        PermissionMode::Auto,
    ];
    let yolo = (started_in == PermissionMode::Yolo).then_some(PermissionMode::Yolo);
    let modes: Vec<_> = modes.into_iter().chain(yolo).collect();
    PickerList {
        title: text!("app-mode-title").to_owned(),
        selected: modes.iter().position(|mode| *mode == current).unwrap_or(0),
        rows: modes.into_iter().map(row).collect(),
        ..PickerList::default()
    }
}

/// Lists the answers that the model proposes to its own question.
pub(super) fn list_answers(options: &[String]) -> PickerList {
    PickerList {
        title: text!("app-answers-title").to_owned(),
        rows: list_options(options).collect(),
        is_question: true,
        ..PickerList::default()
    }
}

fn list_options(options: &[String]) -> impl Iterator<Item = PickerRow> {
    options.iter().map(|option| PickerRow {
        text: option.clone(),
        about: String::new(),
        then: PickerAction::Send(option.clone()),
    })
}

/// Asks whether to leave although these commands are still running.
pub(super) fn list_quit_options(running: &[String]) -> PickerList {
    let row = |text: &str, then| PickerRow {
        text: text.to_owned(),
        about: String::new(),
        then,
    };
    PickerList {
        title: text!("app-leave-title", count = running.len()),
        notes: running
            .iter()
            .map(|command| haft_text::reveal_controls(command).into_owned())
            .collect(),
        rows: vec![
            row(text!("app-leave-stay"), PickerAction::Leave),
            row(text!("app-leave-quit"), PickerAction::Quit),
        ],
        is_question: true,
        ..PickerList::default()
    }
}

/// Lists the user's possible answers to the model's plan. `options` are the answers that the model
/// proposes, and `note` is a further note for the user.
pub(super) fn list_plan_options(options: &[String], note: Option<String>) -> PickerList {
    let row = |text: &str, then| PickerRow {
        text: text.to_owned(),
        about: String::new(),
        then,
    };
    let carry_out = |mode| PickerAction::Mode {
        mode,
        prompt: Some(text!("app-plan-prompt").to_owned()),
    };
    let mut rows = vec![
        row(
            text!("app-plan-accept"),
            carry_out(PermissionMode::AcceptEdits),
        ),
        row(text!("app-plan-ask"), carry_out(PermissionMode::Ask)),
        row(text!("app-plan-more"), PickerAction::Leave),
    ];
    rows.extend(list_options(options));
    PickerList {
        title: text!("app-plan-title").to_owned(),
        notes: std::iter::once(text!("app-plan-note").to_owned())
            .chain(note)
            .collect(),
        rows,
        is_question: true,
        ..PickerList::default()
    }
}
