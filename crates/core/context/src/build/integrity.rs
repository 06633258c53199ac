//! Checks that a finished request follows the rules for all requests. A violation is a bug or a
//! broken import, so the error names the message.

use haft_types::{MessageId, Part, Request, Role};

use crate::build::system::SystemSection;
use crate::error::IntegrityError;

/// Returns an error if the finished request breaks a rule of [`IntegrityError`]. The size of the
/// request is not checked here, but by the budget.
pub(crate) fn check_request(
    request: &Request,
    required: &[SystemSection],
) -> Result<(), IntegrityError> {
    let messages = || {
        request
            .segments
            .iter()
            .map(|segment| &segment.entry.message)
    };
    let (Some(first), Some(last)) = (messages().next(), messages().next_back()) else {
        return Err(IntegrityError::Empty);
    };
    if first.role != Role::System {
        return Err(IntegrityError::FirstNotSystem {
            id: first.message_id,
            role: first.role,
        });
    }
    let system = first.content.first();
    let text = match system {
        Some(Part::Text { text, .. }) => text.as_str(),
        Some(Part::Thinking(_) | Part::ToolCall(_) | Part::ToolResult(_) | Part::Image(_))
        | None => "",
    };
    for section in required {
        if !section.is_part_of(text) {
            return Err(IntegrityError::MissingSection {
                id: first.message_id,
                section: section.heading(),
            });
        }
    }
    match last.role {
        Role::User | Role::Tool => {}
        Role::System | Role::Assistant | Role::Summary => {
            return Err(IntegrityError::LastNotAnswerable {
                id: last.message_id,
                role: last.role,
            });
        }
    }
    check_blocks(messages().skip(1))
}

fn check_blocks<'a>(
    messages: impl Iterator<Item = &'a haft_types::Message>,
) -> Result<(), IntegrityError> {
    // Calls without a result so far, and the message that made them.
    let mut waiting: Vec<&str> = Vec::new();
    let mut caller = None;
    for message in messages {
        let id = message.message_id;
        let role = message.role;
        if role == Role::System {
            return Err(IntegrityError::SecondSystem { id });
        }
        if role == Role::Tool {
            for result in message.tool_results() {
                match waiting.iter().position(|call| *call == result.tool_call_id) {
                    Some(found) => drop(waiting.swap_remove(found)),
                    None => {
                        return Err(IntegrityError::OrphanResult {
                            id,
                            call: result.tool_call_id.clone(),
                        });
                    }
                }
            }
            continue;
        }
        check_all_answered(caller, &waiting)?;
        let has_result = message.tool_results().next().is_some();
        let has_call = message.tool_calls().next().is_some();
        if has_result || has_call && role != Role::Assistant {
            return Err(IntegrityError::MisplacedPart { id, role });
        }
        if has_call {
            caller = Some(id);
            waiting.extend(message.tool_calls().map(|call| call.id.as_str()));
        }
    }
    check_all_answered(caller, &waiting)
}

fn check_all_answered(caller: Option<MessageId>, waiting: &[&str]) -> Result<(), IntegrityError> {
    match (caller, waiting.first()) {
        (Some(id), Some(call)) => Err(IntegrityError::BrokenBlock {
            id,
            call: (*call).to_owned(),
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
