//! The options of a session: permission mode and model.

use agent_client_protocol::v1::schema::{
    SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelectOption, SessionMode,
    SessionModeState,
};
use haft_types::PermissionMode;

pub(crate) const MODE_OPTION: &str = "mode";
pub(crate) const MODEL_OPTION: &str = "model";

/// The permission modes that an editor may choose, with names and descriptions for users, up to the
/// configured mode. `Yolo`, which has no protection, can be chosen only on the command line.
const EDITOR_MODES: [(PermissionMode, &str, &str); 4] = [
    (
        PermissionMode::Plan,
        "Plan",
        "Reads only, and proposes a plan.",
    ),
    (
        PermissionMode::Ask,
        "Ask",
        "Asks before it changes files or runs commands.",
    ),
    (
        PermissionMode::AcceptEdits,
        "Accept edits",
        "Changes files of the project without asking; asks before it runs commands.",
    ),
    (
        PermissionMode::Auto,
        "Auto",
        "Asks for nothing that stays inside the sandbox.",
    ),
];

/// Returns the mode with this name, or `None` if an editor may not choose it.
pub(crate) fn parse_mode(name: &str) -> Option<PermissionMode> {
    EDITOR_MODES
        .iter()
        .map(|(mode, ..)| *mode)
        .find(|mode| mode.name() == name)
}

/// Returns the current permission mode and the modes that the editor may choose: those up to
/// `limit`. `Yolo` is listed only if it is current.
pub(crate) fn mode_state(current: PermissionMode, limit: PermissionMode) -> SessionModeState {
    let shown = |(mode, name, about): &(PermissionMode, &str, &str)| {
        SessionMode::new(mode.name(), (*name).to_owned()).description((*about).to_owned())
    };
    let mut all: Vec<_> = EDITOR_MODES
        .iter()
        .filter(|(mode, ..)| *mode <= limit || *mode == current)
        .map(shown)
        .collect();
    if current == PermissionMode::Yolo {
        all.push(
            SessionMode::new(current.name(), "Yolo".to_owned())
                .description("No approvals and no sandbox.".to_owned()),
        );
    }
    SessionModeState::new(current.name(), all)
}

/// Returns the session options of the protocol for choosing the permission mode and the model. The
/// current model is listed even if `models` does not contain it.
pub(crate) fn config_options(
    mode: PermissionMode,
    limit: PermissionMode,
    model: &str,
    models: &[String],
) -> Vec<SessionConfigOption> {
    let of_modes = mode_state(mode, limit).available_modes;
    let of_modes = of_modes.into_iter().map(|mode| {
        SessionConfigSelectOption::new(mode.id.0.to_string(), mode.name)
            .description(mode.description)
    });
    let mut known: Vec<_> = models.iter().map(String::as_str).collect();
    if !known.contains(&model) {
        known.insert(0, model);
    }
    let of_models = known
        .into_iter()
        .map(|name| SessionConfigSelectOption::new(name.to_owned(), name.to_owned()));
    vec![
        SessionConfigOption::select(
            MODE_OPTION,
            "Mode",
            mode.name(),
            of_modes.collect::<Vec<_>>(),
        )
        .category(SessionConfigOptionCategory::Mode),
        SessionConfigOption::select(
            MODEL_OPTION,
            "Model",
            model.to_owned(),
            of_models.collect::<Vec<_>>(),
        )
        .category(SessionConfigOptionCategory::Model),
    ]
}
