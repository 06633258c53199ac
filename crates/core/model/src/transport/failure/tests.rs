use serde_json::json;

use super::*;

fn failure(status: u16, body: &Value) -> ExchangeFailure {
    ProviderMessage::from_body(body).into_failure(status, &HeaderMap::new())
}

#[test]
fn provider_message_finds_code_and_text_of_every_provider() {
    for (body, code, message) in [
        (
            json!({"error": {"message": "no", "type": "invalid_request_error", "code": "bad"}}),
            "bad",
            "no",
        ),
        (
            json!({"error": {"message": "no", "type": "server_error", "code": null}}),
            "server_error",
            "no",
        ),
        (
            json!({"type": "error", "error": {"type": "overloaded_error", "message": "no"}}),
            "overloaded_error",
            "no",
        ),
        (
            json!([{"error": {"code": 503, "message": "no", "status": "UNAVAILABLE"}}]),
            "UNAVAILABLE",
            "no",
        ),
        (json!({"error": "no"}), "", "no"),
        (json!({"message": "no"}), "", "no"),
        (json!({"detail": "no"}), "", "no"),
        (json!({"odd": 1}), "", "{\"odd\":1}"),
    ] {
        let said = ProviderMessage::from_body(&body);
        assert_eq!(
            (said.code.as_str(), said.message.as_str()),
            (code, message),
            "{body}"
        );
    }
}

#[test]
fn failure_distinguishes_spend_limits_from_rate_limits() {
    let spent = [
        (
            429,
            json!({"error": {"code": "insufficient_quota", "message": "You exceeded your current quota"}}),
        ),
        (
            429,
            json!({"error": {"type": "insufficient_quota", "code": null, "message": "quota"}}),
        ),
        (
            400,
            json!({"error": {"type": "invalid_request_error", "message": "Your credit balance is too low"}}),
        ),
        (402, json!({"error": {"message": "Insufficient Balance"}})),
        (
            429,
            json!({"error": {"message": "The project has exceeded its monthly spending cap."}}),
        ),
    ];
    for (status, body) in &spent {
        assert_eq!(failure(*status, body).error.code(), "spend_limit", "{body}");
    }
    let haste = json!({"error": {
        "code": 429, "status": "RESOURCE_EXHAUSTED",
        "message": "You exceeded your current quota, please check your plan and billing details.",
        "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "3s"}],
    }});
    let failure = failure(429, &haste);
    assert!(failure.is_transient(), "{failure:?}");
    assert_eq!(failure.hint, Some(Duration::from_secs(3)));
}

#[test]
fn status_of_an_error_in_a_stream_follows_its_code() {
    let status =
        |error: Value| ProviderMessage::from_body(&json!({ "error": error })).implied_status();
    assert_eq!(status(json!({"type": "overloaded_error"})), 529);
    assert_eq!(status(json!({"code": "rate_limit_exceeded"})), 429);
    assert_eq!(
        status(json!({"type": "invalid_request_error", "code": "context_length_exceeded"})),
        400
    );
    assert_eq!(status(json!({"code": 502})), 502);
    assert_eq!(status(json!({"code": "something_new"})), 500);
    assert_eq!(status(json!({"status": "UNAVAILABLE"})), 503);
}

#[test]
fn failure_for_an_invalid_key_is_unauthorized() {
    let body = json!({"error": {
        "code": 400, "status": "INVALID_ARGUMENT", "message": "API key not valid.",
        "details": [{"reason": "API_KEY_INVALID"}],
    }});
    assert_eq!(failure(400, &body).error.code(), "unauthorized");
}

#[test]
fn failure_with_x_should_retry_false_is_permanent() {
    let mut headers = HeaderMap::new();
    headers.insert(
        "x-should-retry",
        reqwest::header::HeaderValue::from_static("false"),
    );
    let failure = ProviderMessage::from_body(&json!({"error": {"message": "no"}}))
        .into_failure(500, &headers);
    assert!(!failure.is_transient());
}
