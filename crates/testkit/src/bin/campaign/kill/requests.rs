//! Checks the requests of a case: each starts with the previous one unchanged, and the last matches
//! the stored conversation.

use haft_testkit::{Handled, Recorded, Seen, SeenPart, SeenRole};

use super::export::StoredPart;

/// Decodes the requests. Returns an error if any request got no reply from the script.
pub(crate) fn decode_requests(requests: &[Recorded]) -> Result<Vec<Seen>, String> {
    let decode = |request: &Recorded| match &request.handled {
        Handled::Replied { .. } => request
            .decode()
            .map(remove_reminders)
            .map_err(|error| format!("request {}: {error}", request.number)),
        handled @ (Handled::Refused(_)
        | Handled::RanOut
        | Handled::Unreadable { .. }
        | Handled::Informed
        | Handled::NotFound) => Err(format!(
            "request {} got no reply: {handled:?}",
            request.number
        )),
    };
    requests.iter().map(decode).collect()
}

/// Removes the reminders from a request. They are not part of the conversation, and their positions
/// change from request to request.
fn remove_reminders(mut seen: Seen) -> Seen {
    const HEADINGS: [&str; 4] = [
        "## Agent Role Definition",
        "## TODO List",
        "## Useful Information",
        "## Folder Notes",
    ];
    const TAG: &str = "<system-reminder>\n";
    for message in seen
        .messages
        .iter_mut()
        .filter(|message| message.role == SeenRole::User)
    {
        message.parts.retain(|part| {
            let SeenPart::Text { text, .. } = part else {
                return true;
            };
            text.strip_prefix(TAG)
                .is_none_or(|text| !HEADINGS.iter().any(|heading| text.starts_with(heading)))
        });
    }
    seen
}

/// Checks that each request only appends to the one before it, even after a kill.
pub(crate) fn check_append_only(requests: &[Seen]) -> Result<(), String> {
    for (index, pair) in requests.windows(2).enumerate() {
        let [before, after] = pair else { continue };
        let number = index + 2;
        if before.system != after.system {
            return Err(format!(
                "request {number} has another system text:\n{}\n{}",
                before.system, after.system
            ));
        }
        if before.tools != after.tools {
            return Err(format!("request {number} offers other tools"));
        }
        let mut later = after.parts();
        for (place, part) in before.parts().enumerate() {
            let now = later.next();
            if now != Some(part) {
                return Err(format!(
                    "request {number} changes part {place}: it was {part:?}, it is {now:?}"
                ));
            }
        }
    }
    Ok(())
}

/// Checks that the stored conversation begins with the content of the last request. Because
/// requests only append, the content of every request is then stored exactly once and in order.
pub(crate) fn check_stored(requests: &[Seen], stored: &[StoredPart]) -> Result<(), String> {
    let Some(last) = requests.last() else {
        return Err("no request was sent".into());
    };
    let mut stored = stored.iter();
    for part in last.parts().filter_map(to_stored_part) {
        let kept = stored.next();
        if kept != Some(&part) {
            return Err(format!(
                "the last request says {part:?} where the store has {kept:?}"
            ));
        }
    }
    Ok(())
}

fn to_stored_part((role, part): (SeenRole, &SeenPart)) -> Option<StoredPart> {
    match part {
        SeenPart::Text { text, .. } if role == SeenRole::Assistant => {
            Some(StoredPart::Reply(text.clone()))
        }
        SeenPart::Text { text, .. } => Some(StoredPart::User(text.clone())),
        SeenPart::ToolCall {
            name, arguments, ..
        } => Some(StoredPart::Call {
            name: name.clone(),
            arguments: arguments.clone(),
        }),
        SeenPart::ToolResult { text, .. } => Some(StoredPart::Result(text.clone())),
        SeenPart::Thinking { .. } | SeenPart::Image { .. } | SeenPart::Other { .. } => None,
    }
}
