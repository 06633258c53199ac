//! Finds the files of a folder that belong to a collection, and decodes their text.
//!
//! Ignore files inside the folder are respected. Hidden, binary, and large files are skipped, and
//! files whose names suggest secrets. Links are not followed, so a collection contains only files
//! below its folders.

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use ignore::WalkBuilder;

/// The maximum size of a file, in bytes. Larger files are considered to be data and are skipped.
pub(crate) const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// The names of files that usually contain secrets. A `*` at the beginning or the end matches any
/// text.
const SECRET_NAMES: [&str; 22] = [
    ".env",
    ".env.*",
    "*.env",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "*.ppk",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "credentials",
    "credentials.*",
    "secrets.*",
    ".netrc",
    ".npmrc",
    ".pypirc",
    "*.tfstate",
];

/// A file in a collection's folder that is a candidate for indexing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CollectionFile {
    pub(crate) path: PathBuf,
    /// The size and the times of the file, as text. Comparing it shows whether the file may have
    /// changed.
    pub(crate) stamp: String,
}

/// Lists the files below a folder that are candidates for indexing, in no particular order.
pub(crate) fn list_files(folder: &Path) -> Vec<CollectionFile> {
    let mut builder = WalkBuilder::new(folder);
    builder
        .require_git(false)
        .git_global(false)
        .follow_links(false);
    let entries = builder.build().filter_map(Result::ok);
    let files = entries.filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    let named = files.filter(|entry| !is_secret(&entry.file_name().to_string_lossy()));
    named
        .filter_map(|entry| {
            let about = entry
                .metadata()
                .ok()
                .filter(|about| about.len() <= MAX_FILE_BYTES)?;
            // The change time of the inode reveals a change even if the modification time was set
            // back afterwards.
            let stamp = format!(
                "{}:{}.{:09}:{}.{:09}",
                about.len(),
                about.mtime(),
                about.mtime_nsec(),
                about.ctime(),
                about.ctime_nsec()
            );
            Some(CollectionFile {
                path: entry.into_path(),
                stamp,
            })
        })
        .collect()
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_NAMES.iter().any(|pattern| {
        match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
            (Some(end), _) => name.ends_with(end),
            (None, Some(start)) => name.starts_with(start),
            (None, None) => name == *pattern,
        }
    })
}

/// Reads the first [`MAX_FILE_BYTES`] bytes of a file. Returns `None` if the file cannot be read.
pub(crate) fn read_file(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .ok()?
        .take(MAX_FILE_BYTES)
        .read_to_end(&mut bytes)
        .ok()?;
    Some(bytes)
}

/// Detects the encoding of a file's content and decodes it. Returns `None` if the content is not
/// text.
pub(crate) fn decode_text(bytes: &[u8]) -> Option<String> {
    if let Some((encoding, mark)) = encoding_rs::Encoding::for_bom(bytes) {
        let (text, broken) = encoding.decode_without_bom_handling(bytes.get(mark..)?);
        return (!broken).then(|| text.into_owned());
    }
    if bytes.contains(&0) {
        return None;
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Some(text.to_owned());
    }
    // Text in a legacy encoding contains no other control characters; compressed or compiled data
    // does.
    let is_text =
        |byte: &u8| !byte.is_ascii_control() || matches!(byte, b'\t' | b'\n' | b'\r' | 0x0C | 0x1B);
    if !bytes.iter().all(is_text) {
        return None;
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(bytes, true);
    let (text, broken) = detector
        .guess(None, Utf8Detection::Deny)
        .decode_without_bom_handling(bytes);
    (!broken).then(|| text.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_secret_recognizes_names_of_secret_files() {
        for name in [
            ".env",
            ".env.local",
            "prod.env",
            "server.PEM",
            "id_rsa",
            "id_ed25519.pub",
            "secrets.yaml",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in [
            "environment.rs",
            "keys.md",
            "secret.rs",
            "monkey",
            "credentials_test.go",
        ] {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn text_rejects_binary_data() {
        assert_eq!(decode_text("né\n".as_bytes()).as_deref(), Some("né\n"));
        assert_eq!(decode_text(b"\xFF\xFEa\0b\0").as_deref(), Some("ab"));
        let chinese = encoding_rs::GBK
            .encode("// 这是一个配置文件，请不要修改\n")
            .0
            .into_owned();
        assert_eq!(
            decode_text(&chinese).as_deref(),
            Some("// 这是一个配置文件，请不要修改\n")
        );
        assert_eq!(decode_text(b"\x7FELF\0\0"), None);
        assert_eq!(decode_text(b"\x89PNG\r\n\x1a\n\x01\xFF"), None);
    }

    #[test]
    fn walk_skips_ignored_hidden_large_and_secret_files() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        for name in [
            "a.md",
            "sub/b.rs",
            "built/c.js",
            ".hidden/d.md",
            "server.key",
        ] {
            write(name, "text");
        }
        write(".gitignore", "built/\n");
        write("large.txt", &"x".repeat(MAX_FILE_BYTES as usize + 1));
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("link.txt")).unwrap();
        let mut names: Vec<_> = list_files(folder.path())
            .into_iter()
            .map(|one| {
                one.path
                    .strip_prefix(folder.path())
                    .unwrap()
                    .display()
                    .to_string()
            })
            .collect();
        names.sort();
        assert_eq!(names, ["a.md", "sub/b.rs"]);
    }
}
