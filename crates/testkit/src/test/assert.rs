//! Comparisons that say where two requests part.

use crate::{Handled, Recorded, ScriptedServer, Seen};

/// Compares what two requests say to the model.
///
/// # Panics
/// With the first difference, see [`Seen::difference`].
#[track_caller]
pub fn assert_same(one: &Seen, other: &Seen) {
    if let Some(difference) = one.difference(other) {
        panic!("{} and {} differ in {difference}", one.api, other.api);
    }
}

/// Compares the requests of several runs, the first run with each other one, request by request.
///
/// # Panics
/// With the first difference.
#[track_caller]
pub fn assert_same_on_all(runs: &[Vec<Seen>]) {
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

/// The requests for a reply, decoded; each must have got one from the script.
///
/// # Panics
/// With the first request that was refused or got no reply.
#[track_caller]
pub fn assert_all_replied(server: &ScriptedServer) -> Vec<Seen> {
    let decode = |request: Recorded| {
        let told = format!(
            "request {} ({} {})",
            request.number, request.method, request.path
        );
        match &request.handled {
            Handled::Replied { .. } => match request.seen() {
                Ok(seen) => seen,
                Err(error) => panic!("{told}: {error}"),
            },
            Handled::Refused(_)
            | Handled::RanOut
            | Handled::Unreadable { .. }
            | Handled::Informed
            | Handled::NotFound => panic!("{told}: {:#?}", request.handled),
        }
    };
    server.generations().into_iter().map(decode).collect()
}
