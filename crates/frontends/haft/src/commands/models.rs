//! `haft models`: lists, shows, adds and tests models.

mod add;
mod list;
mod live_test;
mod roles;
mod show;
mod trial;

use clap::{Args, Subcommand};
use haft_agent::config::Config;
use haft_model::{Catalogue, ProfileReason};
use haft_types::{Api, ModelProfile, ModelSpec};

use crate::cli::options::{Common, JsonArgs, parse_positive};
use crate::exit::{ProcessExit, usage_error};
use crate::haft::Haft;

pub(crate) use trial::ModelTrial;

#[derive(Debug, Args)]
pub(crate) struct ModelsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<ModelsCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// List the models you added and the built-in ones you have a key for.
    List(ListArgs),
    /// Show a model's settings, and where each comes from.
    Show(ShowModelArgs),
    /// List the roles of models and the model for each.
    Roles(JsonArgs),
    /// Add a model, and its provider if that is new, to config.toml.
    Add(Box<AddArgs>),
    /// Test a model with one tiny request.
    Test(ModelTestArgs),
}

#[derive(Debug, Default, Args)]
pub(crate) struct ListArgs {
    /// Include built-in models without a key.
    #[arg(long)]
    pub(crate) all: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the built-in catalogue as a page of the documentation.
    #[arg(long, hide = true, conflicts_with_all = ["all", "json"])]
    pub(crate) markdown: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct ShowModelArgs {
    /// The model, as `provider/model`.
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) output: JsonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// The model, as `provider/model`.
    pub(crate) name: String,

    /// The provider's wire protocol: openai-chat, openai-responses, anthropic or gemini.
    #[arg(long)]
    pub(crate) api: Option<Api>,
    /// The base URL of the provider.
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// The environment variable that holds the provider's key.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["api_key_file", "api_key_command"])]
    pub(crate) api_key_env: Option<String>,
    /// The file that holds the provider's key.
    #[arg(long, value_name = "PATH", conflicts_with = "api_key_command")]
    pub(crate) api_key_file: Option<String>,
    /// The command that prints the provider's key.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) api_key_command: Option<String>,

    /// The context window: input and output tokens together.
    #[arg(long, value_name = "TOKENS")]
    pub(crate) context_window: Option<u32>,
    /// The maximum tokens of one reply.
    #[arg(long, value_name = "TOKENS")]
    pub(crate) max_output_tokens: Option<u32>,
    /// The price of input, in USD per million tokens.
    #[arg(long, value_name = "USD", value_parser = parse_positive, requires = "price_output")]
    pub(crate) price_input: Option<f64>,
    /// The price of input read from the cache.
    #[arg(long, value_name = "USD", value_parser = parse_positive, requires = "price_input")]
    pub(crate) price_cached_input: Option<f64>,
    /// The price of input written to the cache.
    #[arg(long, value_name = "USD", value_parser = parse_positive, requires = "price_input")]
    pub(crate) price_cache_write: Option<f64>,
    /// The price of output.
    #[arg(long, value_name = "USD", value_parser = parse_positive, requires = "price_input")]
    pub(crate) price_output: Option<f64>,
    /// The model's tokens per token of `o200k`.
    #[arg(long, value_name = "FACTOR", value_parser = parse_positive)]
    pub(crate) tokenizer_factor: Option<f64>,

    /// Make it the main model.
    #[arg(long)]
    pub(crate) main: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ModelTestArgs {
    /// The model, as `provider/model`; the main model when absent.
    pub(crate) name: Option<String>,
    /// Send two requests long enough for the prefix cache, and report what the second read from
    /// it.
    #[arg(long)]
    pub(crate) cache: bool,
    #[command(flatten)]
    pub(crate) output: JsonArgs,
}

pub(crate) use show::list_model_settings;

pub(crate) fn run(haft: &Haft, command: Option<ModelsCommand>) -> anyhow::Result<ProcessExit> {
    match command.unwrap_or_else(|| ModelsCommand::List(ListArgs::default())) {
        ModelsCommand::List(args) => list::run(haft, &args),
        ModelsCommand::Show(args) => show::run(haft, &args),
        ModelsCommand::Roles(args) => roles::run(haft, &args),
        ModelsCommand::Add(args) => add::run(haft, &args),
        ModelsCommand::Test(args) => live_test::run(haft, &args),
    }
}

/// Builds the catalogue of declared and built-in models.
fn build_catalogue(config: &Config) -> anyhow::Result<Catalogue> {
    haft_agent::build_catalogue(config).map_err(|error| usage_error(error.to_string()))
}

/// Returns the reason for a model's profile as a word for JSON output.
pub(crate) fn profile_reason_name(model: &ModelSpec) -> &'static str {
    match ProfileReason::for_model(model) {
        ProfileReason::Entry => "entry",
        ProfileReason::Default => "default",
        ProfileReason::Window => "window",
        ProfileReason::Name => "name",
    }
}

/// Returns a sentence with a model's profile and the reason for it.
pub(crate) fn profile_text(model: &ModelSpec) -> String {
    let profile = match model.profile {
        ModelProfile::Full => "full",
        ModelProfile::Small => "small",
    };
    text!(
        "models-profile",
        profile,
        reason = profile_reason_name(model)
    )
}

/// Formats an amount of money with the sign of its currency, or with the currency's code if no sign
/// is known.
fn format_money(currency: &str, amount: f64) -> String {
    let amount = format_number(amount);
    match currency {
        "USD" => format!("${amount}"),
        "CNY" => format!("¥{amount}"),
        "EUR" => format!("€{amount}"),
        code => format!("{code} {amount}"),
    }
}

/// Formats a number without trailing zeros.
fn format_number(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
