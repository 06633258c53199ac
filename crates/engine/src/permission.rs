//! Whether a call may run without asking. There is nobody to ask yet, so what would be asked is refused.

use haft_tool::Access;
use haft_types::{Decision, PermissionMode};

pub(crate) fn decide(mode: PermissionMode, access: Access, tool: &str) -> Decision {
    let what = match access {
        Access::Read | Access::State => return Decision::Allow,
        Access::Write => "changes files",
        Access::Execute => "runs commands",
    };
    match mode {
        PermissionMode::Yolo => Decision::Allow,
        PermissionMode::Plan => Decision::Deny {
            reason: format!(
                "`{tool}` {what}, and this run may only read (permission mode `plan`). Describe what you would do instead."
            ),
        },
        PermissionMode::Ask | PermissionMode::AcceptEdits | PermissionMode::Auto => Decision::Deny {
            reason: format!(
                "`{tool}` {what}, which needs the user's permission, and nobody can be asked in this run (permission mode `{mode}`). The user can allow it with `--permission-mode yolo`."
            ),
        },
    }
}
