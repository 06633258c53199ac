//! The model that a replay assumes if none is named or recorded.
//!
//! The assumed model has a name, which is printed with every figure that rests on it. The tables of
//! `docs/context-lab.md` use it, so that a command always gives the same figures.

use haft_text::format_thousands;
use haft_types::{Api, CacheKind, CacheRule, Capabilities, ModelSpec, Price, ToolProtocol};

/// The model name with which a user selects the assumed model.
pub const ASSUMED_MODEL_NAME: &str = "assumed";

/// Cache prices as multiples of the input price, and the kind of cache they apply to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PriceTable {
    /// The price of a token read from the cache, as a multiple of the input price.
    pub read: f64,
    /// The price of a token written to the cache, as a multiple of the input price.
    pub write: f64,
    /// The kind of cache to which the prices apply.
    pub rule: CacheKind,
}

/// The typical cache prices of providers, one table for each kind of cache, with which policies are
/// compared.
pub const PRICE_TABLES: [PriceTable; 3] = [
    PriceTable {
        read: 0.1,
        write: 1.25,
        rule: CacheKind::Anthropic,
    },
    PriceTable {
        read: 0.1,
        write: 1.0,
        rule: CacheKind::Openai,
    },
    PriceTable {
        read: 0.02,
        write: 1.0,
        rule: CacheKind::Deepseek,
    },
];

/// The origin of the model that a replay simulates: chosen, recorded or assumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelSource {
    /// The user or the configuration chose the model.
    Named,
    /// The recording contains the name of the model that answered.
    Recorded,
    /// No model was chosen, and the recording names none of the catalogue, so a model with typical properties is assumed.
    Assumed,
}

impl ModelSource {
    /// Returns the name of the source for machine-readable output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Named => "named",
            Self::Recorded => "recorded",
            Self::Assumed => ASSUMED_MODEL_NAME,
        }
    }
}

/// Returns the assumed model with the cache prices of `table`.
pub fn assumed_model(table: PriceTable) -> ModelSpec {
    let cached_input = Some(table.read);
    let cache_write = Some(table.write);
    ModelSpec {
        provider: ASSUMED_MODEL_NAME.into(),
        name: "model".into(),
        api: Api::Anthropic,
        context_window: 200_000,
        max_output_tokens: Some(8_192),
        price: Some(Price {
            input: 1.0,
            cached_input,
            cache_write,
            output: 0.0,
            long: None,
        }),
        cache: documented_cache(table.rule),
        tool_protocol: ToolProtocol::Native,
        capabilities: Capabilities::default(),
        tokenizer_factor: 1.0,
        profile: haft_types::ModelProfile::Full,
    }
}

/// Returns a cache rule of this kind, with the values that the provider documents for its cache.
pub fn documented_cache(rule: CacheKind) -> CacheRule {
    let usual = CacheRule {
        rule,
        ..CacheRule::default()
    };
    match rule {
        CacheKind::Anthropic => CacheRule {
            look_back: Some(20),
            ..usual
        },
        CacheKind::OpenaiBreakpoints => CacheRule {
            ttl: "30m".into(),
            ..usual
        },
        CacheKind::Deepseek => CacheRule {
            min: 64,
            ttl: "1h".into(),
            ..usual
        },
        CacheKind::Automatic
        | CacheKind::Openai
        | CacheKind::Gemini
        | CacheKind::Vllm
        | CacheKind::LlamaCpp
        | CacheKind::None => usual,
    }
}

/// Describes the model of a replay in one line: the reason for its choice, its window and its
/// tokenizer factor.
pub fn format_model_line(model: &ModelSpec, source: ModelSource) -> String {
    let why = match source {
        ModelSource::Named => String::new(),
        ModelSource::Recorded => ", as recorded".to_owned(),
        ModelSource::Assumed => {
            ", because none is declared, and the recording names none of the catalogue; `--model` names one".to_owned()
        }
    };
    let reply = model.max_output_tokens.map_or_else(String::new, |tokens| {
        format!(", {} for the reply", format_thousands(tokens))
    });
    let name = model.full_name();
    let window = format_thousands(model.context_window);
    format!(
        "model {name}{why}: window {window}{reply}, {} tokens for each one counted",
        model.tokenizer_factor
    )
}
