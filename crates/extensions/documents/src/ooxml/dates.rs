//! Formats Excel dates, which are stored as day counts with a date format.

use haft_types::Timestamp;

/// The starting point from which a workbook counts days: 1900 or 1904.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Epoch {
    /// Days are counted from 1900, the default of Excel.
    #[default]
    From1900,
    /// Days are counted from 1904, as in workbooks made on old Macintosh computers.
    From1904,
}

impl Epoch {
    fn days_to_1970(self) -> f64 {
        match self {
            Self::From1900 => 25_569.0,
            Self::From1904 => 24_107.0,
        }
    }
}

/// True if the number format shows a date or a time. `code` is the code of a custom format.
/// Built-in formats are recognized by `id`.
pub(super) fn is_date_format(id: usize, code: Option<&str>) -> bool {
    match code {
        None => matches!(id, 14..=22 | 27..=36 | 45..=47 | 50..=58),
        Some(code) => {
            // Quoted text, escaped characters, colors, and conditions are skipped.
            let mut plain = String::new();
            let mut characters = code.chars();
            while let Some(one) = characters.next() {
                match one {
                    '"' => drop(characters.by_ref().find(|next| *next == '"')),
                    '[' => drop(characters.by_ref().find(|next| *next == ']')),
                    '\\' | '_' | '*' => drop(characters.next()),
                    other => plain.push(other.to_ascii_lowercase()),
                }
            }
            plain != "general" && plain.contains(['y', 'm', 'd', 'h', 's'])
        }
    }
}

/// Formats a day count as a date, and adds the time unless it is midnight. Returns `None` if the
/// date is outside the range that Excel supports.
pub(super) fn format_date(days: f64, epoch: Epoch) -> Option<String> {
    let seconds = ((days - epoch.days_to_1970()) * 86_400.0).round();
    // The range extends from the first date in Excel to the year 9999.
    if !(-2_209_161_600.0..=253_402_300_799.0).contains(&seconds) {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "the range was checked")]
    let text = Timestamp::from_second(seconds as i64).ok()?.to_string();
    let (date, time) = text.trim_end_matches('Z').split_once('T')?;
    Some(match time {
        "00:00:00" => date.to_owned(),
        // A day count below one is a time of day.
        time if days.abs() < 1.0 => time.to_owned(),
        time => format!("{date} {time}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_date_distinguishes_date_formats_from_numbers() {
        assert!(
            is_date_format(14, None)
                && is_date_format(165, Some("yyyy\\-mm\\-dd"))
                && is_date_format(1, Some("[h]:mm"))
        );
        assert!(
            !is_date_format(2, None)
                && !is_date_format(164, Some("General"))
                && !is_date_format(1, Some("0.00\" days\""))
        );
        assert!(!is_date_format(1, Some("[Red]#,##0")));
    }

    #[test]
    fn show_converts_day_counts_to_dates() {
        let show = |days| format_date(days, Epoch::From1900);
        assert_eq!(show(45_413.0).as_deref(), Some("2024-05-01"));
        assert_eq!(show(45_413.75).as_deref(), Some("2024-05-01 18:00:00"));
        assert_eq!(show(0.5).as_deref(), Some("12:00:00"));
        assert_eq!(
            format_date(43_951.0, Epoch::From1904).as_deref(),
            Some("2024-05-01")
        );
        assert_eq!(show(f64::NAN), None);
        assert_eq!(show(1e18), None);
    }
}
