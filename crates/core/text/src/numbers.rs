//! Formats numbers for people.

/// Formats a number with commas between groups of three digits: `-1234567` as `-1,234,567`.
pub fn format_thousands(number: impl Into<i128>) -> String {
    let number: i128 = number.into();
    let digits = number.unsigned_abs().to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3 + 1);
    if number < 0 {
        text.push('-');
    }
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a share between 0 and 1 as a percentage with one decimal, such as `12.5 %`.
pub fn format_percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// Formats an amount of dollars: with two decimals, or with four if it is below one dollar.
pub fn format_dollars(usd: f64) -> String {
    if usd.abs() < 1.0 {
        format!("${usd:.4}")
    } else {
        format!("${usd:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grouped_separates_thousands() {
        let texts: Vec<_> = [0, 7, 999, 1000, -12_345_i64, 100_000, 1_234_567]
            .into_iter()
            .map(format_thousands)
            .collect();
        assert_eq!(
            texts,
            ["0", "7", "999", "1,000", "-12,345", "100,000", "1,234,567"]
        );
        assert_eq!(format_thousands(u64::MAX), "18,446,744,073,709,551,615");
        assert_eq!(format_thousands(i64::MIN), "-9,223,372,036,854,775,808");
    }
}
