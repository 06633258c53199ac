//! Sends the ends of tasks to the address of `worker.webhook`.

use std::time::Duration;

use haft_agent::HostEnvironment;
use haft_worker::{Webhook, WorkerConfig};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};

use crate::exit::usage_error;
use crate::wiring;

/// The time limit of one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);

/// Returns the configured webhook, or `None` if there is none.
pub(super) fn build_webhook(
    environment: &HostEnvironment,
    config: &WorkerConfig,
) -> anyhow::Result<Option<Webhook>> {
    let Some(address) = &config.webhook else {
        return Ok(None);
    };
    let url = reqwest::Url::parse(address)
        .map_err(|error| usage_error(text!("worker-bad-webhook", error)))?;
    let authorization = match &config.webhook_authorization_env {
        None => None,
        Some(name) => {
            let value = environment.variable(name).ok_or_else(|| {
                usage_error(text!("worker-no-authorization", name = name.as_str()))
            })?;
            Some(HeaderValue::from_str(&value)?)
        }
    };
    // Fails if a model's client has already installed a cryptography provider.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .timeout(REQUEST_TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent("haft")
        // Each request has a runtime of its own, with which its connection ends.
        .pool_max_idle_per_host(0)
        .build()?;
    let send = move |document: &serde_json::Value| {
        let mut request = client
            .post(url.clone())
            .header(CONTENT_TYPE, "application/json")
            .body(document.to_string());
        if let Some(value) = &authorization {
            request = request.header(AUTHORIZATION, value.clone());
        }
        let runtime = wiring::build_runtime().map_err(|error| format!("{error:#}"))?;
        let sent = runtime.block_on(async { request.send().await?.error_for_status() });
        // The address may contain a secret.
        sent.map(drop)
            .map_err(|error| error.without_url().to_string())
    };
    Ok(Some(Webhook {
        send: Box::new(send),
    }))
}
