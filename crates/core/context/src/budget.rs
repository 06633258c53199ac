//! The token budget of a request.

use std::fmt::Write as _;

use haft_text::format_thousands;
use haft_types::{BudgetLayer, Layer, ModelSpec, Request};
use serde::{Deserialize, Serialize};

use crate::scale::Scale;

/// The number of tokens in each layer of a request, compared with the model's context window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// All layers of the request in order, including empty ones.
    pub layers: Vec<BudgetLayer>,
    /// The number of tokens reserved for the reply.
    pub output_reserve: u64,
    /// The number of tokens left in the window after the layers and the reserve; negative if the
    /// request does not fit.
    pub remaining: i64,
    /// The size of the model's context window in tokens.
    pub window: u64,
}

impl Budget {
    /// Adds up the tokens of each layer, scaled to the model's tokenizer. The tools, and the few
    /// tokens that each API adds to a request, count as part of the system layer.
    pub fn for_request(request: &Request, model: &ModelSpec, output_reserve: u64) -> Self {
        let window = u64::from(model.context_window);
        let mut tokens = [0_u64; Layer::ALL.len()];
        for segment in &request.segments {
            tokens[segment.layer as usize] += u64::from(segment.entry.tokens);
        }
        tokens[Layer::System as usize] += request.estimated_tokens() - tokens.iter().sum::<u64>();
        let scale = Scale::for_model(model);
        let tokens = tokens.map(|counted| scale.to_model_tokens(counted));
        let total = tokens.iter().sum::<u64>();
        let layers = Layer::ALL.into_iter().zip(tokens);
        let layers = layers
            .map(|(layer, tokens)| BudgetLayer {
                layer,
                tokens,
                share: compute_window_share(tokens, window),
            })
            .collect();
        let remaining = i64::try_from(window)
            .unwrap_or(i64::MAX)
            .saturating_sub_unsigned(total + output_reserve);
        Self {
            layers,
            output_reserve,
            remaining,
            window,
        }
    }

    /// Returns the estimated number of tokens in the request.
    pub fn used_tokens(&self) -> u64 {
        self.layers.iter().map(|layer| layer.tokens).sum()
    }

    /// Returns the maximum number of input tokens: the window without the output reserve.
    pub fn max_input_tokens(&self) -> u64 {
        self.window.saturating_sub(self.output_reserve)
    }

    /// Formats a table with one line per layer, then the reserve, the remaining tokens, and the
    /// window.
    pub fn format_table(&self) -> String {
        let mut table = String::new();
        let rows = self
            .layers
            .iter()
            .map(|layer| (layer.layer.name(), layer.tokens.cast_signed()));
        let rest = [
            ("output reserve", self.output_reserve.cast_signed()),
            ("remaining", self.remaining),
            ("window", self.window.cast_signed()),
        ];
        for (name, tokens) in rows.chain(rest) {
            let share = 100.0 * tokens as f64 / self.window.max(1) as f64;
            // Writing to a String cannot fail.
            let _ = writeln!(
                table,
                "{name:<14} {:>11} {share:>6.1} %",
                format_thousands(tokens)
            );
        }
        table
    }
}

fn compute_window_share(tokens: u64, window: u64) -> f64 {
    tokens as f64 / window.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budget_table_has_a_line_for_every_layer_and_total() {
        let tokens = [3_200, 0, 120_000, 900, 40];
        let layers = Layer::ALL.into_iter().zip(tokens);
        let layers = layers.map(|(layer, tokens)| BudgetLayer {
            layer,
            tokens,
            share: compute_window_share(tokens, 200_000),
        });
        let budget = Budget {
            layers: layers.collect(),
            output_reserve: 80_000,
            remaining: -4_140,
            window: 200_000,
        };
        insta::assert_snapshot!(budget.format_table());
    }
}
