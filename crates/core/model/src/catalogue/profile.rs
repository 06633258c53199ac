//! Decides whether a model is small, and why.

use haft_types::{ModelProfile, ModelSpec};

/// Models with a context window up to this size, in tokens, use the `small` profile.
const SMALL_WINDOW: u32 = 16_384;

/// Models with fewer parameters than this, in billions, use the `small` profile.
const SMALL_PARAMETERS: f64 = 10.0;

/// The reason why a model has its profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProfileReason {
    /// The model's entry sets a profile other than the default.
    Entry,
    /// Neither the name nor the context window indicates a small model.
    Default,
    /// The context window is small enough for the `small` profile.
    Window,
    /// The model's name contains the name of a known small model or a small number of parameters.
    Name,
}

impl ProfileReason {
    /// Returns the reason for the profile of a resolved model.
    pub fn for_model(model: &ModelSpec) -> Self {
        match model.profile {
            profile if profile != default_profile(&model.name, model.context_window) => Self::Entry,
            ModelProfile::Full => Self::Default,
            ModelProfile::Small if model.context_window <= SMALL_WINDOW => Self::Window,
            ModelProfile::Small => Self::Name,
        }
    }
}

/// Returns the profile of a model whose entry does not set one.
pub(super) fn default_profile(name: &str, window: u32) -> ModelProfile {
    if window <= SMALL_WINDOW || has_small_name(name) {
        ModelProfile::Small
    } else {
        ModelProfile::Full
    }
}

/// True if a model's name contains the name of a known small model, or if the largest parameter
/// count in `name` is small: `1.5b`, `270m` and `e4b` are small, `8x7b` and `30b-a3b` are not.
fn has_small_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let sizes = name
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '.')
        .filter_map(|word| {
            let (count, size) = word
                .split_once('x')
                .map_or((Some(1.0), word), |(count, size)| {
                    (count.parse().ok(), size)
                });
            let number = |unit| {
                size.strip_suffix(unit)?
                    .trim_start_matches('e')
                    .parse::<f64>()
                    .ok()
            };
            Some(count? * number('b').or_else(|| number('m').map(|millions| millions / 1000.0))?)
        });
    let known = include_str!("small_models.txt")
        .lines()
        .any(|known| name.contains(known));
    known
        || sizes
            .reduce(f64::max)
            .is_some_and(|size| size < SMALL_PARAMETERS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profile_is_small_by_name_or_window() {
        for small in [
            "qwen2.5-coder-1.5b",
            "Qwen2.5-Coder-7B-Instruct-Q4_K_M.gguf",
            "qwen2.5-coder:3b",
            "llama3.2:1b",
            "Meta-Llama-3.1-8B-Instruct",
            "gemma-3-270m-it",
            "gemma3n:e4b",
            "gemma-2-9b-it",
            "mistral-7b-instruct-v0.3",
            "deepseek-r1:1.5b",
            "deepseek-coder-6.7b-instruct",
            "phi4-mini:latest",
            "Phi-3.5-mini-instruct",
            "smollm2:latest",
            "tinyllama",
            "codellama/CodeLlama-7b-hf",
            "granite3.3:8b",
            "starcoder2-3b",
        ] {
            assert_eq!(
                default_profile(small, 131_072),
                ModelProfile::Small,
                "{small}"
            );
        }
        for full in [
            "qwen2.5-coder:32b",
            "Qwen3-30B-A3B-Instruct",
            "mixtral-8x7b-instruct",
            "llama-3.3-70b-versatile",
            "gpt-oss-120b",
            "gpt-oss:20b",
            "gemma-3-27b-it",
            "qwen2.5-coder-14b",
            "gpt-4o-mini",
            "o4-mini",
            "gpt-5.2",
            "claude-sonnet-4-5",
            "deepseek-chat",
            "kimi-k2-0905",
            "glm-4.6",
            "MiniMax-M2",
            "qwen3-coder-plus",
            "gemini-2.5-flash",
            "mock",
            "devstral-small-2507",
            "qwen3-235b-a22b",
            "",
        ] {
            assert_eq!(default_profile(full, 131_072), ModelProfile::Full, "{full}");
        }
        assert_eq!(
            default_profile("gpt-4", 8_192),
            ModelProfile::Small,
            "its window is small"
        );
    }
}
