//! Replaces the parts of a tool's result that differ between two runs of the same call: folders,
//! times, durations, process ids and addresses.

use super::drive::ReplayPlace;

/// The folders that results name, with the names that replace them.
pub(super) struct PathNames(Vec<(String, &'static str)>);

impl PathNames {
    pub(super) fn new(place: &ReplayPlace) -> Self {
        let mut names = Vec::new();
        if let Some(copy) = &place.copy {
            names.push((copy.display().to_string(), "PROJECT"));
            if let Ok(real) = copy.canonicalize() {
                names.push((real.display().to_string(), "PROJECT"));
            }
        }
        names.push((
            place.scratch.join("outputs").display().to_string(),
            "OUTPUTS",
        ));
        let spill = place.settings.places.spill_folder();
        names.push((spill.display().to_string(), "OUTPUTS"));
        names.push((place.project.root.display().to_string(), "PROJECT"));
        // Longer paths come first: one may begin with another.
        names.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        names.retain(|(path, _)| path.len() > 1);
        Self(names)
    }
}

/// The units of durations.
const UNITS: [&str; 10] = [
    "s", "ms", "µs", "us", "ns", "m", "min", "sec", "seconds", "second",
];

/// Replaces volatile parts of a text with names in capitals.
pub(super) fn normalize_volatile(text: &str, names: &PathNames) -> String {
    let mut placed = text.to_owned();
    for (path, name) in &names.0 {
        placed = placed.replace(path, name);
    }
    let mut normal = String::with_capacity(placed.len());
    let mut rest = placed.as_str();
    let mut before = None;
    while let Some(next) = rest.chars().next() {
        let is_start = before.is_none_or(|before: char| !before.is_alphanumeric() && before != '.');
        let found = next
            .is_ascii_digit()
            .then(|| measure_volatile(rest, &normal))
            .flatten()
            .filter(|_| is_start);
        let (length, shown) = match found {
            Some((length, name)) => (length, name.to_owned()),
            None => (next.len_utf8(), next.to_string()),
        };
        normal.push_str(&shown);
        before = rest[..length].chars().next_back();
        rest = &rest[length..];
    }
    normal
}

/// Returns the length and the name of the volatile part with which `rest` begins. `before` is the
/// text before it.
fn measure_volatile(rest: &str, before: &str) -> Option<(usize, &'static str)> {
    if let Some(digits) = rest.strip_prefix("0x") {
        let length = digits.bytes().take_while(u8::is_ascii_hexdigit).count();
        return (length >= 6).then_some((length + 2, "ADDRESS"));
    }
    let token: usize = rest
        .bytes()
        .take_while(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b':' | b'-'))
        .count();
    let shape: String = rest[..token]
        .chars()
        .map(|c| if c.is_ascii_digit() { '9' } else { c })
        .collect();
    if shape.starts_with("9999-99-99") {
        let after = &rest[10..];
        let time = after.strip_prefix('T').or_else(|| after.strip_prefix(' '));
        let length = time.map_or(0, |time| 1 + clock_length(time));
        let zone = zone_length(&rest[10 + if length > 1 { length } else { 0 }..]);
        return Some((10 + if length > 1 { length + zone } else { 0 }, "TIME"));
    }
    let clock = clock_length(rest);
    if clock >= 8 {
        return Some((clock, "TIME"));
    }
    let number = rest
        .bytes()
        .take_while(|byte| byte.is_ascii_digit() || *byte == b'.')
        .count();
    let number = rest[..number].trim_end_matches('.').len();
    let after = &rest[number..];
    let spaced = after.strip_prefix(' ').unwrap_or(after);
    let word: usize = spaced
        .chars()
        .take_while(|c| c.is_alphabetic())
        .map(char::len_utf8)
        .sum();
    if UNITS.contains(&&spaced[..word]) {
        return Some((number + (after.len() - spaced.len()) + word, "DURATION"));
    }
    let told = before.trim_end().trim_end_matches([':', '=']);
    (told.ends_with("pid") || told.ends_with("PID")).then_some((number, "PID"))
}

/// Returns the length of a time of day such as `12:30:05.250`, or 0.
fn clock_length(text: &str) -> usize {
    let shape: String = text
        .chars()
        .take(8)
        .map(|c| if c.is_ascii_digit() { '9' } else { c })
        .collect();
    if shape != "99:99:99" {
        return 0;
    }
    let fraction = text[8..].strip_prefix('.').map_or(0, |fraction| {
        1 + fraction.bytes().take_while(u8::is_ascii_digit).count()
    });
    8 + fraction
}

/// Returns the length of a time zone such as `Z`, `+02:00` or ` +0200`, or 0.
fn zone_length(text: &str) -> usize {
    if text.starts_with('Z') {
        return 1;
    }
    let sign = text.strip_prefix(' ').unwrap_or(text);
    let Some(digits) = sign.strip_prefix(['+', '-']) else {
        return 0;
    };
    let length = digits
        .bytes()
        .take_while(|byte| byte.is_ascii_digit() || *byte == b':')
        .count();
    if length >= 4 {
        text.len() - sign.len() + 1 + length
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalize(text: &str) -> String {
        let names = PathNames(vec![
            ("/tmp/copy/project".into(), "PROJECT"),
            ("/home/ada/app".into(), "PROJECT"),
        ]);
        normalize_volatile(text, &names)
    }

    #[test]
    fn times_durations_and_folders_are_normalized() {
        assert_eq!(
            normalize("finished in 0.03s, 12 ms at 2026-01-02T03:04:05.678Z"),
            "finished in DURATION, DURATION at TIME"
        );
        assert_eq!(
            normalize("2026-01-02 03:04:05 +0200 and 10:11:12"),
            "TIME and TIME"
        );
        assert_eq!(normalize("on 2026-01-02."), "on TIME.");
        assert_eq!(
            normalize("pid 4711, at 0x7ffd1234abcd"),
            "pid PID, at ADDRESS"
        );
        assert_eq!(
            normalize("/tmp/copy/project/a.rs /home/ada/app/a.rs"),
            "PROJECT/a.rs PROJECT/a.rs"
        );
    }

    #[test]
    fn other_numbers_are_kept() {
        let text = "3 files, line 12: x = 5; v1.2.3, 16 tests, 7 more, 3.5 kB, 0x1F";
        assert_eq!(normalize(text), text);
    }
}
