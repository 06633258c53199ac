//! Prompts from an editor: text, images, links to files, and attached files.

use std::path::Path;

use agent_client_protocol::v1::schema::{ContentBlock, EmbeddedResourceResource, ResourceLink};
use haft_types::Image;

/// A prompt from the editor, converted to the text and the images that the model receives.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct EditorPrompt {
    /// The text, followed by the contents of attached files.
    pub(crate) text: String,
    pub(crate) images: Vec<Image>,
}

impl EditorPrompt {
    /// Converts the content blocks of a prompt. The error names a block that is not supported.
    pub(crate) fn from_blocks(blocks: Vec<ContentBlock>, cwd: &Path) -> Result<Self, String> {
        let mut prompt = Self::default();
        let mut attached = String::new();
        for (at, block) in blocks.into_iter().enumerate() {
            match block {
                ContentBlock::Text(text) => prompt.append_text(&text.text),
                ContentBlock::Image(image) => {
                    prompt.images.push(Image {
                        media_type: image.mime_type,
                        data: image.data,
                    });
                }
                ContentBlock::ResourceLink(link) => prompt.append_text(&format_link(&link, cwd)),
                ContentBlock::Resource(resource) => match resource.resource {
                    EmbeddedResourceResource::TextResourceContents(file) => {
                        prompt.append_text(&format_mention(&file.uri, cwd));
                        attached.extend([
                            "\n\n<file uri=\"",
                            &file.uri,
                            "\">\n",
                            file.text.trim_end(),
                            "\n</file>",
                        ]);
                    }
                    EmbeddedResourceResource::BlobResourceContents(file) => {
                        let media_type = file.mime_type.unwrap_or_default();
                        if !media_type.starts_with("image/") {
                            return Err(format!(
                                "block {at}: `{}` is neither text nor a picture",
                                file.uri
                            ));
                        }
                        prompt.images.push(Image {
                            media_type,
                            data: file.blob,
                        });
                    }
                    _ => return Err(format!("block {at} is a resource of an unknown kind")),
                },
                ContentBlock::Audio(_) => {
                    return Err(format!("block {at} is audio, which haft does not take"));
                }
                _ => return Err(format!("block {at} is of an unknown kind")),
            }
        }
        prompt.text.push_str(&attached);
        Ok(prompt)
    }

    /// Appends the text of a block, separated by a space, because only a space ends a mention.
    fn append_text(&mut self, text: &str) {
        let is_separated = self.text.is_empty()
            || self.text.ends_with(char::is_whitespace)
            || text.starts_with(char::is_whitespace);
        if !is_separated {
            self.text.push(' ');
        }
        self.text.push_str(text);
    }

    /// True if the prompt has neither text nor images.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.trim().is_empty() && self.images.is_empty()
    }
}

/// Formats a link in a prompt. A link to a file becomes a mention, as a user would type it at the
/// terminal; any other link becomes a Markdown link.
fn format_link(link: &ResourceLink, cwd: &Path) -> String {
    match parse_file_uri(&link.uri) {
        Some(_) => format_mention(&link.uri, cwd),
        None => format!("[{}]({})", link.name, link.uri),
    }
}

/// Formats a file's URI as `@path`, relative to `cwd` if the file is inside `cwd`. Any other URI is
/// returned unchanged.
fn format_mention(uri: &str, cwd: &Path) -> String {
    let Some(path) = parse_file_uri(uri) else {
        return uri.to_owned();
    };
    let path = Path::new(&path)
        .strip_prefix(cwd)
        .map_or(path.clone(), |below| below.display().to_string());
    if path.contains(char::is_whitespace) {
        format!("@\"{path}\"")
    } else {
        format!("@{path}")
    }
}

/// Returns the path of a `file://` URI, without its query and fragment.
fn parse_file_uri(uri: &str) -> Option<String> {
    let path = uri.strip_prefix("file://")?;
    let path = path.split(['#', '?']).next()?;
    let path = &path[path.find('/')?..];
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let escaped = (*first == b'%').then(|| after.get(..2)).flatten();
        let escaped = escaped
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() {
            &after[2..]
        } else {
            after
        };
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use agent_client_protocol::v1::schema::{
        AudioContent, EmbeddedResource, ImageContent, TextResourceContents,
    };

    use super::*;

    #[test]
    fn from_blocks_mentions_files_and_appends_embedded_content() {
        let file = TextResourceContents::new("fn main() {}\n", "file:///work/src/main.rs");
        let blocks = vec![
            "Explain ".into(),
            ContentBlock::ResourceLink(ResourceLink::new("notes", "file:///work/my%20notes.md#L3")),
            " and ".into(),
            ContentBlock::Resource(EmbeddedResource::new(
                EmbeddedResourceResource::TextResourceContents(file),
            )),
            ContentBlock::ResourceLink(ResourceLink::new("issue", "https://example.com/1")),
            ContentBlock::Image(ImageContent::new("AAAA", "image/png")),
        ];
        let prompt = EditorPrompt::from_blocks(blocks, Path::new("/work")).unwrap();
        let text = "Explain @\"my notes.md\" and @src/main.rs [issue](https://example.com/1)\n\n\
                    <file uri=\"file:///work/src/main.rs\">\nfn main() {}\n</file>";
        assert_eq!(prompt.text, text);
        assert_eq!(
            prompt.images,
            [Image {
                media_type: "image/png".into(),
                data: "AAAA".into()
            }]
        );
    }

    #[test]
    fn from_blocks_separates_text_and_mentions() {
        let link = |name: &str| {
            ContentBlock::ResourceLink(ResourceLink::new(name, format!("file:///work/{name}")))
        };
        for (blocks, text) in [
            (
                vec![link("a.txt"), link("b.txt"), "compare these".into()],
                "@a.txt @b.txt compare these",
            ),
            (vec!["Look".into(), link("a.txt")], "Look @a.txt"),
            (vec!["One.\n".into(), "Two.".into()], "One.\nTwo."),
        ] {
            let prompt = EditorPrompt::from_blocks(blocks, Path::new("/work")).unwrap();
            assert_eq!(prompt.text, text);
        }
    }

    #[test]
    fn from_blocks_rejects_audio_by_name() {
        let audio = ContentBlock::Audio(AudioContent::new("AAAA", "audio/wav"));
        let refused =
            EditorPrompt::from_blocks(vec!["a".into(), audio], Path::new("/")).unwrap_err();
        assert_eq!(refused, "block 1 is audio, which haft does not take");
    }

    #[test]
    fn parse_file_uri_accepts_malformed_uris() {
        for (uri, path) in [
            ("file:///a%2", Some("/a%2")),
            ("file:///a%zz", Some("/a%zz")),
            ("file://host/a", Some("/a")),
            ("file://", None),
            ("file:///%ff", None),
            ("https://a/b", None),
        ] {
            assert_eq!(parse_file_uri(uri).as_deref(), path, "{uri}");
        }
    }
}
