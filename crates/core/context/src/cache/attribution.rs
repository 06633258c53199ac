//! Divides the provider's token counts of a request among the parts of the request.
//!
//! A provider reports only how many input tokens it read from its cache, wrote to it, and did
//! neither with. In every cache these are the front, the middle and the end of the request.

use haft_types::Usage;

/// Returns the input usage of each part of a request, in order. `tokens` holds the estimated size of
/// the parts in sending order, and is scaled to the provider's count.
pub fn divide_usage(tokens: &[u64], usage: Usage) -> Vec<Usage> {
    let estimated: u64 = tokens.iter().sum();
    let read = usage.cached_input;
    let written = read + usage.cache_write;
    let all = usage.all_input();
    let mut before = 0;
    let mut begin = 0;
    tokens
        .iter()
        .map(|tokens| {
            before += tokens;
            // The cast cannot overflow: the quotient is at most `all`.
            let end = (u128::from(all) * u128::from(before) / u128::from(estimated.max(1))) as u64;
            let within = |from: u64, to: u64| end.min(to).saturating_sub(begin.max(from));
            let part = Usage {
                cached_input: within(0, read),
                cache_write: within(read, written),
                input: within(written, all),
                ..Usage::default()
            };
            begin = end;
            part
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(cached_input: u64, cache_write: u64, input: u64) -> Usage {
        Usage {
            cached_input,
            cache_write,
            input,
            ..Usage::default()
        }
    }

    #[test]
    fn divide_usage_reads_the_front_and_writes_the_middle() {
        assert_eq!(
            divide_usage(&[100, 50, 50], usage(120, 60, 20)),
            [usage(100, 0, 0), usage(20, 30, 0), usage(0, 30, 20)]
        );
    }

    #[test]
    fn divide_usage_scales_to_the_provider_and_loses_no_token() {
        let all = usage(1_001, 2_003, 7);
        let parts = divide_usage(&[7, 0, 11, 13], all);
        let sum = |of: fn(&Usage) -> u64| parts.iter().map(of).sum::<u64>();
        assert_eq!(
            (
                sum(|part| part.cached_input),
                sum(|part| part.cache_write),
                sum(|part| part.input)
            ),
            (1_001, 2_003, 7)
        );
        assert_eq!(parts[1], Usage::default());
    }

    #[test]
    fn divide_usage_accepts_requests_without_tokens() {
        assert_eq!(divide_usage(&[], usage(1, 0, 0)), []);
        assert_eq!(divide_usage(&[0], usage(1, 2, 3)), [Usage::default()]);
    }
}
