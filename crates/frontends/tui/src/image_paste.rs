//! Pasted text that may be the path of a picture, as terminals paste a file that is dropped on
//! them.

/// How the names of pictures end.
const ENDINGS: [&str; 5] = [".png", ".jpg", ".jpeg", ".gif", ".webp"];

/// A picture to be sent with a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastedImage {
    /// What stands for it in the text, such as `[image shot.png 64×64]`.
    pub label: String,
    /// Where it is.
    pub path: String,
}

/// Where a picture comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageSource {
    /// The file at this path.
    Path(String),
    /// The clipboard.
    Clipboard,
}

/// The path that a pasted text is, if it is one of a picture: quoted, escaped, or as a `file://` address.
pub(crate) fn image_path(text: &str) -> Option<String> {
    let text = text.trim();
    if text.is_empty() || text.contains(['\n', '\r']) {
        return None;
    }
    let quoted = ['\'', '"']
        .into_iter()
        .find_map(|mark| text.strip_prefix(mark)?.strip_suffix(mark));
    let path = match (quoted, text.strip_prefix("file://")) {
        (Some(inside), _) => inside.to_owned(),
        (None, Some(address)) => decoded(&address[address.find('/')?..])?,
        (None, None) => unescaped(text)?,
    };
    let name = path.to_lowercase();
    ENDINGS
        .iter()
        .any(|ending| name.ends_with(ending))
        .then_some(path)
}

/// A word as a shell reads it: a backslash stands before what is special. None where there are
/// several words.
fn unescaped(text: &str) -> Option<String> {
    let mut path = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => path.push(chars.next()?),
            // An unquoted blank is part of a name only where the whole is one path.
            ' ' if !text.starts_with(['/', '~']) => return None,
            c => path.push(c),
        }
    }
    Some(path)
}

/// The path of an address, its `%20` and the like read.
fn decoded(address: &str) -> Option<String> {
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
    fn paths_as_terminals_paste_them() {
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
            assert_eq!(image_path(pasted).as_deref(), Some(path), "{pasted}");
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
            assert_eq!(image_path(pasted), None, "{pasted}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in any::<String>()) {
            image_path(&text);
            image_path(&format!("file:///{text}.png"));
        }
    }
}
