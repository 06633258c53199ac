//! The messages of this front end, in `messages/LANGUAGE/NAME.ftl`. Every key begins with `NAME-`.

use haft_messages::MessageFile;

macro_rules! files {
    ($($name:literal)+) => {
        [$(MessageFile::new(
            $name,
            include_str!(concat!("../../messages/en/", $name, ".ftl")),
            include_str!(concat!("../../messages/zh-CN/", $name, ".ftl")),
        )),+]
    };
}

/// All message files. A file is parsed when one of its messages is first shown.
pub(crate) static MESSAGES: [MessageFile; 43] = files! {
    "attach"
    "catalogue"
    "changes"
    "claude"
    "cli"
    "commit"
    "config"
    "context"
    "conversations"
    "count"
    "demo"
    "doctor"
    "edits"
    "hints"
    "hooks"
    "init"
    "interactive"
    "jobs"
    "lib"
    "logs"
    "man"
    "mcp"
    "models"
    "notes"
    "output"
    "permissions"
    "proxy"
    "queue"
    "rag"
    "replay"
    "review"
    "run"
    "sandbox"
    "serve"
    "setup"
    "slash"
    "table"
    "tools"
    "trust"
    "useful"
    "worker"
    "workflows"
    "worktrees"
};
