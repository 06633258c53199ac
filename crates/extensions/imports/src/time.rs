//! Parses times in the formats of other programs.

use haft_types::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde_json::Value;

/// Parses a time: RFC 3339, RFC 3339 without a zone (read as UTC), or seconds since 1970, with or
/// without decimals. Large integers are read as milliseconds.
pub(crate) fn parse_timestamp(value: &Value) -> Option<Timestamp> {
    match value {
        Value::String(text) => text.parse().ok().or_else(|| {
            let zoned = text
                .replacen(' ', "T", 1)
                .parse::<DateTime>()
                .ok()?
                .to_zoned(TimeZone::UTC)
                .ok()?;
            Some(zoned.timestamp())
        }),
        Value::Number(number) => timestamp_from_seconds(number),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn timestamp_from_seconds(number: &serde_json::Number) -> Option<Timestamp> {
    if let Some(seconds) = number.as_i64() {
        // Larger values are milliseconds: as seconds, they would be after the year 5000.
        const MIN_MILLISECONDS: i64 = 100_000_000_000;
        return if seconds < MIN_MILLISECONDS {
            Timestamp::from_second(seconds)
        } else {
            Timestamp::from_millisecond(seconds)
        }
        .ok();
    }
    // A double holds current times with microsecond precision. Further digits would be noise.
    let microseconds = (number.as_f64()? * 1e6).round();
    let fits = microseconds.is_finite() && microseconds.abs() < 1e17;
    fits.then(|| Timestamp::from_microsecond(microseconds as i64).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn read_accepts_every_spelling_of_a_time() {
        let moment: Timestamp = "2026-11-15T10:00:00.25Z".parse().unwrap();
        for spelling in [
            json!("2026-11-15T10:00:00.25Z"),
            json!("2026-11-15T11:00:00.250+01:00"),
            json!("2026-11-15T10:00:00.250000"),
            json!("2026-11-15 10:00:00.25"),
            json!(1_794_736_800.25),
            json!(1_794_736_800_250_i64),
        ] {
            assert_eq!(parse_timestamp(&spelling), Some(moment), "{spelling}");
        }
        assert_eq!(
            parse_timestamp(&json!(1_794_736_800)),
            Some("2026-11-15T10:00:00Z".parse().unwrap())
        );
        for wrong in [json!("yesterday"), json!(null), json!(1e300), json!([])] {
            assert_eq!(parse_timestamp(&wrong), None, "{wrong}");
        }
    }
}
