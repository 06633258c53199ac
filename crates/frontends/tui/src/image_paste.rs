//! Pasted text that may be the path of an image, as terminals paste a file that is dropped on them.

/// The file extensions of images.
const IMAGE_EXTENSIONS: [&str; 5] = [".png", ".jpg", ".jpeg", ".gif", ".webp"];

/// An image to send with a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastedImage {
    /// The placeholder in the text, such as `[image shot.png 64×64]`.
    pub label: String,
    /// The path of the file.
    pub path: String,
}

/// The source of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageSource {
    /// The file at this path.
    Path(String),
    /// The clipboard.
    Clipboard,
}

/// Returns the path if the pasted text is the path of an image: quoted, escaped, or a `file://`
/// URL.
pub(crate) fn parse_image_path(text: &str) -> Option<String> {
    let text = text.trim();
    if text.is_empty() || text.contains(['\n', '\r']) {
        return None;
    }
    let quoted = ['\'', '"']
        .into_iter()
        .find_map(|mark| text.strip_prefix(mark)?.strip_suffix(mark));
    let path = match (quoted, text.strip_prefix("file://")) {
        (Some(inside), _) => inside.to_owned(),
        (None, Some(address)) => percent_decode(&address[address.find('/')?..])?,
        (None, None) => unescape_shell(text)?,
    };
    let name = path.to_lowercase();
    IMAGE_EXTENSIONS
        .iter()
        .any(|ending| name.ends_with(ending))
        .then_some(path)
}

/// Removes a shell's backslash escapes. Returns `None` if the text is several words.
fn unescape_shell(text: &str) -> Option<String> {
    let mut path = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => path.push(chars.next()?),
            // An unescaped space is part of a name only if the whole text is one path.
            ' ' if !text.starts_with(['/', '~']) => return None,
            c => path.push(c),
        }
    }
    Some(path)
}

/// Decodes the percent-encoding of a URL's path.
fn percent_decode(address: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(address.len());
    let mut rest = address.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (code, after) = rest.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(str::from_utf8(code).ok()?, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn image_path_reads_pasted_forms() {
        for (pasted, path) in [
            ("/tmp/shot.png", "/tmp/shot.png"),
            (" /tmp/My\\ Shot\\(1\\).PNG \n", "/tmp/My Shot(1).PNG"),
            ("'/tmp/my shot.jpeg'", "/tmp/my shot.jpeg"),
            ("\"/tmp/a.webp\"", "/tmp/a.webp"),
            ("file:///tmp/a%20b%C3%A4.gif", "/tmp/a bä.gif"),
            ("file://host/tmp/a.jpg", "/tmp/a.jpg"),
            ("/tmp/my shot.png", "/tmp/my shot.png"),
            ("shots/a.png", "shots/a.png"),
        ] {
            assert_eq!(parse_image_path(pasted).as_deref(), Some(path), "{pasted}");
        }
        for pasted in [
            "",
            "shot",
            "see a.png",
            "/a.png\n/b.png",
            "file://x",
            "file:///%zz.png",
            "let x = 1;",
            "a\\",
        ] {
            assert_eq!(parse_image_path(pasted), None, "{pasted}");
        }
    }

    proptest! {
        #[test]
        fn image_path_accepts_any_text(text in any::<String>()) {
            parse_image_path(&text);
            parse_image_path(&format!("file:///{text}.png"));
        }
    }
}
