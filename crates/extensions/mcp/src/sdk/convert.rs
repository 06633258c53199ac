//! Converts types of the SDK to types of this crate.

use haft_types::Image;
use rmcp::model::{
    CallToolResult, ContentBlock, GetPromptResult, Prompt, ReadResourceResult, Resource,
    ResourceContents, ResourceTemplate, ServerPeerInfo, Tool,
};

use crate::listing::{PromptArgument, PromptInfo, ResourceInfo, ServerListing, ToolInfo};
use crate::output::{AnswerContent, ServerAnswer};

pub(super) fn convert_server_info(info: &ServerPeerInfo) -> ServerListing {
    let program = info
        .server_info
        .as_ref()
        .map(|program| format!("{} {}", program.name, program.version));
    ServerListing {
        program: program.unwrap_or_default(),
        protocol: info.protocol_version.to_string(),
        instructions: info.instructions.clone().unwrap_or_default(),
        ..ServerListing::default()
    }
}

pub(super) fn convert_tool(tool: Tool) -> ToolInfo {
    let description = tool.description.map(Into::into).or(tool.title);
    ToolInfo {
        name: tool.name.into(),
        description: description.unwrap_or_default(),
        schema: tool.input_schema.as_ref().clone(),
    }
}

pub(super) fn convert_resource(resource: Resource) -> ResourceInfo {
    ResourceInfo {
        uri: resource.uri,
        name: resource.name,
        description: resource.description.unwrap_or_default(),
        media_type: resource.mime_type.unwrap_or_default(),
    }
}

pub(super) fn convert_template(template: ResourceTemplate) -> ResourceInfo {
    ResourceInfo {
        uri: template.uri_template,
        name: template.name,
        description: template.description.unwrap_or_default(),
        media_type: template.mime_type.unwrap_or_default(),
    }
}

pub(super) fn convert_prompt(prompt: Prompt) -> PromptInfo {
    let arguments = prompt
        .arguments
        .unwrap_or_default()
        .into_iter()
        .map(|argument| PromptArgument {
            name: argument.name,
            description: argument.description.unwrap_or_default(),
            required: argument.required.unwrap_or_default(),
        });
    PromptInfo {
        name: prompt.name,
        description: prompt.description.or(prompt.title).unwrap_or_default(),
        arguments: arguments.collect(),
    }
}

pub(super) fn convert_tool_result(result: CallToolResult) -> ServerAnswer {
    ServerAnswer {
        content: result.content.into_iter().map(convert_content).collect(),
        structured: result.structured_content,
        is_error: result.is_error.unwrap_or_default(),
    }
}

pub(super) fn convert_resource_result(result: ReadResourceResult) -> ServerAnswer {
    ServerAnswer {
        content: result
            .contents
            .into_iter()
            .map(convert_resource_contents)
            .collect(),
        ..ServerAnswer::default()
    }
}

pub(super) fn convert_prompt_result(result: GetPromptResult) -> ServerAnswer {
    ServerAnswer {
        content: result
            .messages
            .into_iter()
            .map(|message| convert_content(message.content))
            .collect(),
        ..ServerAnswer::default()
    }
}

fn convert_content(block: ContentBlock) -> AnswerContent {
    match block {
        ContentBlock::Text(text) => AnswerContent::Text(text.text),
        ContentBlock::Image(image) => AnswerContent::Image(Image {
            media_type: image.mime_type,
            data: image.data,
        }),
        ContentBlock::Audio(audio) => AnswerContent::Other(format!(
            "[a sound ({}), which cannot be shown]",
            audio.mime_type
        )),
        ContentBlock::Resource(embedded) => convert_resource_contents(embedded.resource),
        ContentBlock::ResourceLink(link) => {
            let about = link
                .description
                .map(|text| format!(": {text}"))
                .unwrap_or_default();
            AnswerContent::Other(format!("[resource `{}` ({}){about}]", link.uri, link.name))
        }
        _ => AnswerContent::Other("[something of a kind that is not known here]".into()),
    }
}

fn convert_resource_contents(contents: ResourceContents) -> AnswerContent {
    match contents {
        ResourceContents::TextResourceContents { text, .. } => AnswerContent::Text(text),
        ResourceContents::BlobResourceContents {
            uri,
            mime_type,
            blob,
            ..
        } => {
            let media_type = mime_type.unwrap_or_default();
            if media_type.starts_with("image/") {
                return AnswerContent::Image(Image {
                    media_type,
                    data: blob,
                });
            }
            let kind = if media_type.is_empty() {
                "unknown type".to_owned()
            } else {
                media_type
            };
            AnswerContent::Other(format!(
                "[`{uri}` holds {} bytes of {kind}, which cannot be shown]",
                blob.len() / 4 * 3
            ))
        }
        _ => AnswerContent::Other("[a resource of a kind that is not known here]".into()),
    }
}
