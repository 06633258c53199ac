//! Computes the wait before a failed request is sent again.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use reqwest::header::HeaderMap;
use serde_json::Value;

use crate::config::RetryConfig;

/// The maximum wait before the first retry, unless the server asks for a longer one.
const MAX_FIRST_DELAY: Duration = Duration::from_secs(1);
/// The maximum wait that haft accepts from a server's retry hint.
const MAX_HINTED_DELAY: Duration = Duration::from_hours(24);

/// Computes the waits between the attempts of one request. Each wait is twice the previous one,
/// with jitter so that many clients don't retry at the same moment.
pub(crate) struct Backoff {
    delays: ExponentialBackoff,
    max_delay: Duration,
    first: bool,
}

impl Backoff {
    pub(crate) fn new(config: &RetryConfig) -> Self {
        let max_delay = Duration::from_millis(config.max_delay_ms);
        let delays = ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(config.base_delay_ms))
            .with_max_delay(max_delay)
            .with_factor(2.0)
            .with_jitter()
            .without_max_times()
            .build();
        Self {
            delays,
            max_delay,
            first: true,
        }
    }

    /// Returns the next wait. A hint from the server takes precedence over the computed wait,
    /// whether the hint is shorter or longer.
    pub(crate) fn next_delay(&mut self, hint: Option<Duration>) -> Duration {
        let own = self
            .delays
            .next()
            .unwrap_or(self.max_delay)
            .min(self.max_delay);
        let own = if std::mem::replace(&mut self.first, false) {
            own.min(MAX_FIRST_DELAY)
        } else {
            own
        };
        hint.map_or(own, |hint| hint.min(MAX_HINTED_DELAY))
    }
}

/// Returns the wait before a retry as requested by the server: in the header `retry-after-ms`, in
/// the header `retry-after` (seconds or a date), or in the `RetryInfo` of a Gemini error. A date is
/// compared with the server's own clock, its `date` header.
pub(crate) fn parse_retry_hint(headers: &HeaderMap, error: &Value) -> Option<Duration> {
    let header = |name: &str| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .and_then(|text| parse_non_negative(text.trim()))
    };
    header("retry-after-ms")
        .map(|milliseconds| milliseconds / 1000.0)
        .or_else(|| header("retry-after"))
        .or_else(|| {
            Some(
                (parse_date_header(headers, "retry-after")? - parse_date_header(headers, "date")?)
                    .max(0.0),
            )
        })
        .or_else(|| parse_retry_info(error))
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
}

/// Parses the date in a header, as seconds since 1970.
fn parse_date_header(headers: &HeaderMap, name: &str) -> Option<f64> {
    let text = headers.get(name)?.to_str().ok()?;
    jiff::fmt::rfc2822::parse(text.trim())
        .ok()
        .map(|date| date.timestamp().as_second() as f64)
}

/// Returns the `retryDelay` of a Gemini error, in seconds.
fn parse_retry_info(error: &Value) -> Option<f64> {
    let details = error.get("details")?.as_array()?;
    let delay = details
        .iter()
        .find_map(|detail| detail.get("retryDelay"))?
        .as_str()?;
    parse_non_negative(delay.strip_suffix('s')?)
}

fn parse_non_negative(text: &str) -> Option<f64> {
    text.parse::<f64>()
        .ok()
        .filter(|number| number.is_finite() && *number >= 0.0)
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;
    use serde_json::json;

    use super::*;

    #[test]
    fn backoff_starts_within_a_second_and_grows_to_its_limit() {
        let config = RetryConfig {
            base_delay_ms: 5_000,
            max_delay_ms: 20_000,
            ..RetryConfig::default()
        };
        let mut backoff = Backoff::new(&config);
        assert!(backoff.next_delay(None) <= Duration::from_secs(1));
        let later: Vec<_> = (0..5).map(|_| backoff.next_delay(None)).collect();
        assert!(later[0] >= Duration::from_secs(10), "{later:?}");
        assert!(
            later.iter().all(|wait| *wait <= Duration::from_secs(20)),
            "{later:?}"
        );
    }

    #[test]
    fn backoff_prefers_the_servers_hint() {
        let mut backoff = Backoff::new(&RetryConfig::default());
        assert_eq!(
            backoff.next_delay(Some(Duration::from_secs(90))),
            Duration::from_secs(90)
        );
        assert_eq!(backoff.next_delay(Some(Duration::ZERO)), Duration::ZERO);
    }

    #[test]
    fn hint_reads_headers_and_error_details() {
        let mut headers = HeaderMap::new();
        let details = json!({"details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "13.5s"}]});
        assert_eq!(parse_retry_hint(&headers, &json!(null)), None);
        assert_eq!(
            parse_retry_hint(&headers, &details),
            Some(Duration::from_millis(13_500))
        );
        headers.insert(
            "retry-after",
            HeaderValue::from_static("Wed, 21 Oct 2026 07:28:00 GMT"),
        );
        assert_eq!(
            parse_retry_hint(&headers, &json!(null)),
            None,
            "nobody knows how long that is from now"
        );
        headers.insert(
            "date",
            HeaderValue::from_static("Wed, 21 Oct 2026 07:27:15 GMT"),
        );
        assert_eq!(
            parse_retry_hint(&headers, &json!(null)),
            Some(Duration::from_secs(45))
        );
        headers.insert(
            "date",
            HeaderValue::from_static("Wed, 21 Oct 2026 07:29:00 GMT"),
        );
        assert_eq!(
            parse_retry_hint(&headers, &json!(null)),
            Some(Duration::ZERO),
            "over already"
        );
        headers.insert("retry-after", HeaderValue::from_static("7"));
        assert_eq!(
            parse_retry_hint(&headers, &json!(null)),
            Some(Duration::from_secs(7))
        );
        headers.insert("retry-after-ms", HeaderValue::from_static("250"));
        assert_eq!(
            parse_retry_hint(&headers, &json!(null)),
            Some(Duration::from_millis(250))
        );
        headers.insert("retry-after-ms", HeaderValue::from_static("-1"));
        assert_eq!(
            parse_retry_hint(&headers, &json!(null)),
            Some(Duration::from_secs(7))
        );
    }
}
