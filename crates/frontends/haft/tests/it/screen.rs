//! The text that a user sees of one command, for inline snapshots: everything that differs between
//! two runs or two machines is replaced.

use std::sync::LazyLock;

use regex::Regex;

use crate::rig::{Ran, Rig, haft};

/// Patterns and their replacements, in the order in which they are applied.
static FILTERS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    [
        (
            r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
            "ID",
        ),
        // Ids of messages and beginnings of ids. A number has a digit group separator or fewer
        // digits.
        (
            r"\b[0-9a-f]{64}\b|\b[0-9a-f]{32}\b|\b[0-9a-f]{16}\b|\b[0-9a-f]{8}\b",
            "ID",
        ),
        (
            r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|[+-]\d\d:\d\d)?",
            "TIME",
        ),
        (r"\d{8}T\d{6}Z", "TIME"),
        (r"as of \d{4}-\d\d-\d\d", "as of DATE"),
        (r"\b\d+(\.\d+)? (ms|s|min)( ago)?\b", "DURATION"),
        (r"\(\d+(\.\d+)? (kB|MB)\)", "(SIZE)"),
        // The list grows with every provider.
        (r"declared are: .*", "declared are: …"),
        (r"127\.0\.0\.1:\d{4,5}", "127.0.0.1:PORT"),
        (r"\.tmp[0-9A-Za-z]{6}", "TEMPORARY"),
        // Padding depends on the length of paths and ids.
        (r"(\S)  +", "$1  "),
        (r"(?m) +$", ""),
    ]
    .map(|(pattern, with)| (Regex::new(pattern).unwrap(), with))
    .into()
});

impl Rig {
    /// Runs a command and returns its output, then its errors and its exit code if there are any.
    pub(crate) fn screen(&self, arguments: &[&str]) -> String {
        self.mask(&self.run(arguments))
    }

    /// Returns the output, the errors and the exit code of a run, masked.
    pub(crate) fn mask(&self, ran: &Ran) -> String {
        let mut text = ran.stdout();
        if !ran.stderr().is_empty() {
            text = format!("{text}-- errors\n{}", ran.stderr());
        }
        if ran.code() != 0 {
            text = format!("{text}-- exit {}\n", ran.code());
        }
        self.mask_text(&text)
    }

    /// Replaces ids, times, durations, paths, ports, the version and padding.
    pub(crate) fn mask_text(&self, text: &str) -> String {
        let home = self.home().canonicalize().unwrap();
        let mut text = text.to_owned();
        for (path, name) in [
            (self.project().as_path(), "PROJECT"),
            (&home, "HOME"),
            (self.home(), "HOME"),
            (haft(), "HAFT"),
        ] {
            text = text.replace(&path.display().to_string(), name);
        }
        text = text.replace(concat!("haft ", env!("CARGO_PKG_VERSION")), "haft VERSION");
        for (pattern, with) in FILTERS.iter() {
            text = pattern.replace_all(&text, *with).into_owned();
        }
        text
    }
}

/// Replaces every number by `N` and removes bars, for counts of tokens: they change with every
/// prompt.
pub(crate) fn without_numbers(text: &str) -> String {
    static NUMBER: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\d+([,.]\d+)*").unwrap());
    static BAR: LazyLock<Regex> = LazyLock::new(|| Regex::new(r" *[█▉▊▋▌▍▎▏]+").unwrap());
    let text = NUMBER.replace_all(text, "N");
    BAR.replace_all(&text, "").into_owned()
}

/// Replaces every price, for costs that depend on the length of the project's path.
pub(crate) fn without_costs(text: &str) -> String {
    static COST: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\$\d+\.\d+").unwrap());
    COST.replace_all(text, "$$COST").into_owned()
}

#[test]
fn mask_text_replaces_ids_times_paths_and_padding() {
    let rig = Rig::new(
        haft_types::Api::OpenaiChat,
        haft_testkit::Script::replies([haft_testkit::Reply::text("x")]).unwrap(),
    );
    let text = format!(
        "a1b2c3d4  {}/a      2026-11-19 01:02:03\nhttp://127.0.0.1:40123/v1 in 12.5 ms, 131072 tokens\n",
        rig.project().display()
    );
    assert_eq!(
        rig.mask_text(&text),
        "ID  PROJECT/a  TIME\nhttp://127.0.0.1:PORT/v1 in DURATION, 131072 tokens\n"
    );
}
