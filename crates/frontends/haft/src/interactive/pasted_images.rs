//! Pasted images: files dropped on the terminal, and the image in the clipboard.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use haft_agent::{HostEnvironment, own_command};
use haft_tui::{ImageSource, PastedImage};

/// The time limit for a program that outputs the clipboard's image.
const CLIPBOARD_TIMEOUT: Duration = Duration::from_secs(3);
/// Programs that write the clipboard's image to stdout. The first installed program is used.
const CLIPBOARD_PROGRAMS: [&[&str]; 3] = [
    &["wl-paste", "--no-newline", "--type", "image/png"],
    &[
        "xclip",
        "-selection",
        "clipboard",
        "-target",
        "image/png",
        "-out",
    ],
    &["pngpaste", "-"],
];

/// Reads image files that are dropped on the terminal, and the image in the clipboard. Clipboard
/// images are kept until the session ends.
pub(super) struct PastedImages {
    environment: HostEnvironment,
    folder: PathBuf,
    home: Option<PathBuf>,
    kept: Option<tempfile::TempDir>,
}

impl PastedImages {
    pub(super) fn new(environment: HostEnvironment, folder: PathBuf) -> Self {
        let home = environment.absolute_home();
        Self {
            environment,
            folder,
            home,
            kept: haft_files::create_temporary_folder(&std::env::temp_dir(), "haft-").ok(),
        }
    }

    /// Returns the image, or `None` if the path names no image that can be sent.
    pub(super) fn find_image(&self, source: &ImageSource) -> Result<Option<PastedImage>, String> {
        match source {
            ImageSource::Path(path) => {
                let path = match (path.strip_prefix("~/"), &self.home) {
                    (Some(rest), Some(home)) => home.join(rest),
                    _ => self.folder.join(path),
                };
                Ok(std::fs::read(&path)
                    .ok()
                    .and_then(|bytes| describe_image(&path, &bytes)))
            }
            ImageSource::Clipboard => {
                let bytes = read_clipboard(&self.environment)?;
                let folder = self
                    .kept
                    .as_ref()
                    .ok_or_else(|| text!("interactive-clipboard-none").to_owned())?;
                let number = std::fs::read_dir(folder.path()).map_or(0, Iterator::count) + 1;
                let path = folder.path().join(format!("clipboard-{number}.png"));
                haft_files::create_new(&path)
                    .and_then(|mut file| file.write_all(&bytes))
                    .map_err(|error| format!("haft: {error}"))?;
                describe_image(&path, &bytes)
                    .map(Some)
                    .ok_or_else(|| text!("interactive-clipboard-none").to_owned())
            }
        }
    }
}

fn describe_image(path: &Path, bytes: &[u8]) -> Option<PastedImage> {
    haft_tools::encode_image(bytes)?;
    let name = path.file_name()?.to_string_lossy();
    let size = read_image_size(bytes)
        .map_or_else(String::new, |(width, height)| format!(" {width}×{height}"));
    let label = text!("interactive-image", name = haft_text::sanitize(&name), size);
    Some(PastedImage {
        label,
        path: path.display().to_string(),
    })
}

fn read_clipboard(environment: &HostEnvironment) -> Result<Vec<u8>, String> {
    for arguments in CLIPBOARD_PROGRAMS {
        let Ok(mut command) = own_command(environment, arguments[0]) else {
            continue;
        };
        command
            .args(&arguments[1..])
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let Ok(mut child) = command.spawn() else {
            continue;
        };
        let since = Instant::now();
        let Some(mut output) = child.stdout.take() else {
            continue;
        };
        let reader = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut output, &mut bytes)
                .map(|_| bytes)
                .unwrap_or_default()
        });
        while !reader.is_finished() && since.elapsed() < CLIPBOARD_TIMEOUT {
            std::thread::sleep(Duration::from_millis(5));
        }
        // The program may have ended by itself.
        drop(child.kill());
        drop(child.wait());
        return match reader.join() {
            Ok(bytes) if !bytes.is_empty() => Ok(bytes),
            _ => Err(text!("interactive-clipboard-none").to_owned()),
        };
    }
    Err(text!("interactive-clipboard-no-program").to_owned())
}

/// Returns the width and height from the header of the file.
fn read_image_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let at = |from: usize| {
        bytes
            .get(from..from + 4)
            .map(|four| [four[0], four[1], four[2], four[3]])
    };
    let short = |from: usize| {
        Some(u32::from(u16::from_le_bytes([
            *bytes.get(from)?,
            *bytes.get(from + 1)?,
        ])))
    };
    if bytes.starts_with(b"\x89PNG") {
        return Some((u32::from_be_bytes(at(16)?), u32::from_be_bytes(at(20)?)));
    }
    if bytes.starts_with(b"GIF8") {
        return Some((short(6)?, short(8)?));
    }
    if bytes.starts_with(b"RIFF") {
        let three = |from: usize| at(from).map(|[a, b, c, _]| u32::from_le_bytes([a, b, c, 0]) + 1);
        return match bytes.get(12..16)? {
            b"VP8X" => Some((three(24)?, three(27)?)),
            b"VP8L" => at(21)
                .map(u32::from_le_bytes)
                .map(|bits| ((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1)),
            _ => Some((short(26)? & 0x3fff, short(28)? & 0x3fff)),
        };
    }
    // JPEG: the frame follows other segments, each of which begins with its length.
    let mut from = 2;
    loop {
        let [0xff, kind, high, low] = at(from)? else {
            return None;
        };
        if matches!(kind, 0xc0..=0xcf) && !matches!(kind, 0xc4 | 0xc8 | 0xcc) {
            let [a, b, c, d] = at(from + 5)?;
            return Some((
                u16::from_be_bytes([c, d]).into(),
                u16::from_be_bytes([a, b]).into(),
            ));
        }
        from += 2 + usize::from(u16::from_be_bytes([high, low]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_size_reads_png_gif_jpeg_and_webp() {
        let png = [
            &b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..],
            &64_u32.to_be_bytes(),
            &48_u32.to_be_bytes(),
        ]
        .concat();
        assert_eq!(read_image_size(&png), Some((64, 48)));
        assert_eq!(read_image_size(b"GIF89a\x40\0\x30\0"), Some((64, 48)));
        let jpeg = [
            &b"\xff\xd8\xff\xe0\0\x04ab\xff\xc0\0\x11\x08"[..],
            &48_u16.to_be_bytes(),
            &64_u16.to_be_bytes(),
        ];
        assert_eq!(read_image_size(&jpeg.concat()), Some((64, 48)));
        let webp = [
            &b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0"[..],
            b"\x3f\0\0\x2f\0\0\0",
        ]
        .concat();
        assert_eq!(read_image_size(&webp), Some((64, 48)));
        for text in ["", "\u{89}PNG", "RIFF", "\u{ff}\u{d8}"] {
            assert_eq!(read_image_size(text.as_bytes()), None, "{text:?}");
        }
    }
}
