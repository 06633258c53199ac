//! Comparisons that report the first difference between requests.

use crate::{Handled, Recorded, ScriptedServer, Seen};

/// Asserts that two requests are equivalent to the model.
///
/// # Panics
/// Reports the first difference; see [`Seen::difference`].
#[track_caller]
pub fn assert_equivalent(one: &Seen, other: &Seen) {
    if let Some(difference) = one.difference(other) {
        panic!("{} and {} differ in {difference}", one.api, other.api);
    }
}

/// Asserts that all runs sent equivalent requests, comparing the first run with each other run,
/// request by request.
///
/// # Panics
/// Reports the first difference.
#[track_caller]
pub fn assert_runs_equivalent(runs: &[Vec<Seen>]) {
    let Some((first, others)) = runs.split_first() else {
        return;
    };
    for other in others {
        for (number, (one, two)) in first.iter().zip(other).enumerate() {
            if let Some(difference) = one.difference(two) {
                panic!(
                    "request {}: {} and {} differ in {difference}",
                    number + 1,
                    one.api,
                    two.api
                );
            }
        }
        assert_eq!(first.len(), other.len(), "numbers of requests differ");
    }
}

/// Decodes all requests for a model reply, and asserts that each got one from the script.
///
/// # Panics
/// Reports the first request that was rejected or got no reply.
#[track_caller]
pub fn assert_all_replied(server: &ScriptedServer) -> Vec<Seen> {
    let decode = |request: Recorded| {
        let label = format!(
            "request {} ({} {})",
            request.number, request.method, request.path
        );
        match &request.handled {
            Handled::Replied { .. } => match request.decode() {
                Ok(seen) => seen,
                Err(error) => panic!("{label}: {error}"),
            },
            Handled::Refused(_)
            | Handled::RanOut
            | Handled::Unreadable { .. }
            | Handled::Informed
            | Handled::NotFound => panic!("{label}: {:#?}", request.handled),
        }
    };
    server
        .generation_requests()
        .into_iter()
        .map(decode)
        .collect()
}
