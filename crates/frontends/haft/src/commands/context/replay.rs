//! `haft context replay`: replays recorded conversations under other policies. The command sends
//! nothing and writes only the files that its options name.
//!
//! ```text
//! a conversation of haft's, a file, a folder ─► recordings ─► the lab replays them under each policy ─► table, JSON, plot
//! ```

mod files;
mod stored;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Context as _;
use clap::Args;
use haft_agent::HostEnvironment;
use haft_agent::config::Config;
use haft_context::Cause;
use haft_lab::{
    DEFAULT_POLICIES, ImaginedReminders, ModelSource, OUTCOME_HEADINGS, PolicyOutcome,
    RecordedConversation, Recording, Variant,
};
use haft_model::{BodyEncoding, BuiltIn, O200k};
use haft_types::{Api, CacheKind, CacheRule, ModelSpec, Price};
use serde_json::json;

use crate::cli::options::Common;
use crate::exit::usage_error;
use crate::haft::{Haft, Settings};
use crate::output;
use crate::output::TextTable;

/// The policy name for the requests as they were actually sent.
const RECORDED: &str = "recorded";

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// An id, the beginning of one, or a name; the current conversation when absent.
    pub(crate) conversation: Option<String>,

    /// Take the conversations from a file (`-` is standard input): an export, recorded chats one a
    /// line, a session of another agent; may be gzipped.
    #[arg(long, value_name = "FILE", conflicts_with = "conversation")]
    pub(crate) from_file: Option<PathBuf>,

    /// Take the conversations from a file or all files of a folder, such as the sessions of
    /// another agent.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["conversation", "from_file"])]
    pub(crate) import: Option<PathBuf>,

    /// The policies to compare, separated by commas.
    #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
    pub(crate) policy: Vec<String>,

    /// Window, cache and prices of this model, as `provider/model`; `assumed` is the one of the
    /// documentation's tables. When absent: the configured one, the recorded one, or the
    /// assumed one.
    #[arg(short, long)]
    pub(crate) model: Option<String>,

    /// The cache to imagine: anthropic, openai, openai-breakpoints, gemini, deepseek, vllm,
    /// llama-cpp, automatic or none.
    #[arg(long, value_name = "NAME")]
    pub(crate) rule: Option<String>,

    /// The prices of reading and writing the cache, as multiples of the input price, such as
    /// `0.1/1.25`.
    #[arg(long, value_name = "READ/WRITE", value_parser = parse_prices)]
    pub(crate) prices: Option<(f64, f64)>,

    /// Reminders for recordings in which no TODO list is kept: their tokens, and the share of
    /// requests that change them, the first of which makes them.
    #[arg(long, value_name = "TOKENS[:SHARE]", default_value = "1000:0.05")]
    pub(crate) reminders: ReminderScenario,

    /// Write the body of every request to this folder, as `POLICY/0001.json`.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) bodies: Option<PathBuf>,

    /// Write a picture (.svg) or a page with table and picture (.html) to this file.
    #[arg(long, value_name = "FILE", value_parser = parse_plot_path)]
    pub(crate) plot: Option<PathBuf>,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) common: Common,
}

/// Imaginary reminders for recordings that have none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReminderScenario {
    pub(crate) tokens: u32,
    /// The share of requests in which the reminders change.
    pub(crate) changes: f64,
}

impl FromStr for ReminderScenario {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const MAX_TOKENS: u32 = 100_000;
        let (tokens, changes) = text.split_once(':').unwrap_or((text, "0.05"));
        let tokens = tokens.parse().ok().filter(|tokens| *tokens <= MAX_TOKENS);
        let changes = changes
            .parse()
            .ok()
            .filter(|share| (0.0..=1.0).contains(share));
        let read = tokens
            .zip(changes)
            .map(|(tokens, changes)| Self { tokens, changes });
        read.ok_or_else(|| text!("replay-bad-tail", most = MAX_TOKENS))
    }
}

fn parse_prices(text: &str) -> Result<(f64, f64), String> {
    let number = |text: &str| {
        text.trim()
            .parse()
            .ok()
            .filter(|price: &f64| price.is_finite() && *price >= 0.0)
    };
    let read = text
        .split_once('/')
        .and_then(|(read, write)| number(read).zip(number(write)));
    read.ok_or_else(|| text!("replay-bad-prices").to_owned())
}

fn parse_plot_path(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let known = path
        .extension()
        .is_some_and(|end| end.eq_ignore_ascii_case("svg") || end.eq_ignore_ascii_case("html"));
    if known {
        Ok(path)
    } else {
        Err(text!("replay-bad-plot").to_owned())
    }
}

impl ReplayArgs {
    /// Creates the arguments for a stored conversation and the default policies.
    #[cfg(feature = "serve")]
    pub(super) fn for_conversation(conversation: String, common: Common) -> Self {
        Self {
            conversation: Some(conversation),
            from_file: None,
            import: None,
            policy: Vec::new(),
            model: None,
            rule: None,
            prices: None,
            reminders: ReminderScenario {
                tokens: 1_000,
                changes: 0.05,
            },
            bodies: None,
            plot: None,
            json: false,
            common,
        }
    }
}

/// Reports the progress of a comparison, and decides how much is compared.
pub(super) struct ReplayProgress<'a> {
    /// Called with the number of requests that will be replayed.
    pub(super) begin: &'a dyn Fn(u64),
    /// Called for each replayed request. The comparison stops if it returns false.
    pub(super) advance: &'a dyn Fn() -> bool,
    pub(super) bodies: BodyComparison,
}

/// Whether replayed requests are compared with the bodies that were sent, byte for byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyComparison {
    Compare,
    #[cfg(feature = "serve")]
    Skip,
}

impl ReplayProgress<'static> {
    /// The progress of a comparison that is not watched.
    pub(super) const UNWATCHED: Self = Self {
        begin: &|_| (),
        advance: &|| true,
        bodies: BodyComparison::Compare,
    };
}

/// The outcomes of policies for one set of conversations.
pub(super) struct PolicyComparison {
    pub(super) title: String,
    conversations: usize,
    pub(super) outcomes: Vec<PolicyOutcome>,
    /// The encoding of the simulated requests.
    pub(super) encoding: BodyEncoding,
    pub(super) source: ModelSource,
}

/// Replays the selected conversations under every policy.
pub(super) async fn compare_policies(
    haft: &Haft,
    args: &ReplayArgs,
    progress: &ReplayProgress<'_>,
) -> anyhow::Result<PolicyComparison> {
    let settings = haft.load(&args.common)?;
    let mut names: Vec<&str> = if args.policy.is_empty() {
        DEFAULT_POLICIES.to_vec()
    } else {
        args.policy.iter().map(String::as_str).collect()
    };
    // Unknown policies are reported before any conversation is read.
    let any = haft_lab::assumed_model(haft_lab::PRICE_TABLES[0]);
    names
        .iter()
        .try_for_each(|name| parse_policy(name, &settings.config, &any).map(drop))?;
    let cache = args.rule.as_deref().map(parse_cache_rule).transpose()?;
    let (mut conversations, own) = if args.from_file.is_some() || args.import.is_some() {
        (files::read_recordings(args)?, None)
    } else {
        let (conversation, encoding) = stored::read_stored(haft, args, progress.bodies).await?;
        (vec![conversation], encoding)
    };
    let (encoding, source) = choose_model(args, &settings, own, &conversations)?;
    if args.policy.is_empty()
        && conversations
            .iter()
            .all(RecordedConversation::has_enough_counts)
    {
        // The other policies are compared with the requests that were really sent.
        names.insert(0, RECORDED);
    }
    if names.contains(&RECORDED) {
        remove_uncounted_conversations(&mut conversations)?;
    }
    let encoding = with_cache_and_prices(encoding, cache, args.prices);
    let variants = names
        .iter()
        .map(|name| parse_policy(name, &settings.config, &encoding.spec));
    let variants = variants.collect::<anyhow::Result<Vec<_>>>()?;
    let replayed = variants.iter().flatten().count();
    let requests: usize = conversations.iter().map(|one| one.steps.len()).sum();
    (progress.begin)((replayed * requests) as u64);
    let mut outcomes = Vec::with_capacity(variants.len());
    for (name, variant) in names.iter().zip(&variants) {
        outcomes.push(match variant {
            Some(variant) => {
                let mut bodies = BodyWriter::new(args.bodies.as_deref(), name)?;
                let outcome = PolicyOutcome::from_replays(
                    variant,
                    &conversations,
                    &encoding.spec,
                    &O200k,
                    |request, sent| {
                        bodies.write(|| encoding.encode_request(request).to_vec());
                        sent.is_some_and(|sent| *sent == *encoding.encode_request(request))
                    },
                    progress.advance,
                );
                bodies.finish()?;
                outcome.ok_or_else(|| usage_error(text!("replay-stopped")))?
            }
            None => PolicyOutcome::from_provider_counts(name, &conversations, &encoding.spec),
        });
    }
    let title = match conversations.as_slice() {
        [one] => haft_text::sanitize(&one.name).into_owned(),
        several => output::localize_text(format_args!("{} conversations", several.len())),
    };
    Ok(PolicyComparison {
        title,
        conversations: conversations.len(),
        outcomes,
        encoding,
        source,
    })
}

pub(super) async fn run(haft: &Haft, args: &ReplayArgs) -> anyhow::Result<()> {
    let PolicyComparison {
        title,
        conversations,
        outcomes,
        encoding,
        source,
    } = compare_policies(haft, args, &ReplayProgress::UNWATCHED).await?;
    if let Some(path) = &args.plot {
        let words: haft_lab::Wording<'_> = &|text| output::localize_text(text);
        let html = path
            .extension()
            .is_some_and(|extension| extension.eq_ignore_ascii_case("html"));
        let text = if html {
            haft_lab::render_outcome_page(&title, &outcomes, &encoding.spec, source, words)
        } else {
            haft_lab::draw_plot(&title, &outcomes, words)
        };
        let wrong = || usage_error(text!("replay-unwritable", path = path.display()));
        std::fs::write(path, text).with_context(wrong)?;
        output::print_to_stderr(&format!(
            "haft: {}",
            text!("replay-written", path = path.display())
        ));
    }
    if args.json {
        let told =
            haft_lab::outcomes_to_json(&title, conversations, &outcomes, &encoding.spec, source);
        return output::print_json(&told);
    }
    output::print_text(&outcomes_to_table(
        &title,
        &outcomes,
        &encoding.spec,
        source,
    ))
}

/// Replays the conversations of a file under the configured policy, and returns the cause of each
/// break of the cached prefix. No imaginary reminders are added.
pub(super) fn find_break_causes(file: &Path, settings: &Settings) -> anyhow::Result<Vec<Cause>> {
    let none = ImaginedReminders {
        tokens: 0,
        changes: 0.0,
        from_first: false,
    };
    let model = haft_inspect::declare_unknown_model(
        settings.environment(),
        "anthropic/model",
        Api::Anthropic,
    )?
    .spec;
    let policy = Variant::parse("default", &settings.config.context, &model)
        .map_err(|error| usage_error(error.to_string()))?;
    let mut causes = Vec::new();
    for one in files::read_recording_file(file, none)? {
        let beside = |step: usize| one.surroundings(step);
        let recording = Recording {
            history: &one.history,
            steps: &one.steps,
            beside: &beside,
        };
        let replayed = haft_lab::replay_recording(&recording, &policy, &model, &O200k, |_, _| {
            ControlFlow::Continue(())
        });
        causes.extend(replayed.requests.iter().filter_map(|request| request.cause));
    }
    Ok(causes)
}

/// Parses the name of a policy. Returns `None` for [`RECORDED`].
fn parse_policy(name: &str, config: &Config, model: &ModelSpec) -> anyhow::Result<Option<Variant>> {
    if name == RECORDED {
        return Ok(None);
    }
    match Variant::parse(name, &config.context, model) {
        Ok(variant) => Ok(Some(variant)),
        Err(error) => Err(usage_error(format!("{error}; or `{RECORDED}`"))),
    }
}

/// Chooses the model whose window, cache and prices are simulated: the named or configured model,
/// the model of the conversations, or an assumed model.
fn choose_model(
    args: &ReplayArgs,
    settings: &Settings,
    own: Option<BodyEncoding>,
    conversations: &[RecordedConversation],
) -> anyhow::Result<(BodyEncoding, ModelSource)> {
    let configured = settings.config.model.as_ref().filter(|_| own.is_none());
    match (args.model.as_ref().or(configured), own) {
        (Some(name), _) if name != haft_lab::ASSUMED_MODEL_NAME => Ok((
            settings.resolve_model(name)?.body_encoding(),
            ModelSource::Named,
        )),
        (None, Some(own)) => Ok((own, ModelSource::Recorded)),
        (named, _) => {
            if let Some(encoding) =
                recorded_model(settings.environment(), conversations).filter(|_| named.is_none())
            {
                return Ok((encoding, ModelSource::Recorded));
            }
            let assumed = haft_inspect::declare_unknown_model(
                settings.environment(),
                "anthropic/model",
                Api::Anthropic,
            )?;
            let mut encoding = assumed.body_encoding();
            encoding.spec = haft_lab::assumed_model(haft_lab::PRICE_TABLES[0]);
            Ok((encoding, ModelSource::Assumed))
        }
    }
}

/// Returns the model of all replies, if there is only one and the catalogue lists it.
fn recorded_model(
    environment: &HostEnvironment,
    conversations: &[RecordedConversation],
) -> Option<BodyEncoding> {
    let names: BTreeSet<&String> = conversations.iter().flat_map(|one| &one.models).collect();
    let name = names.first().filter(|_| names.len() == 1)?;
    BuiltIn::get()
        .provenance(name)
        .filter(|_| name.contains('/'))?;
    haft_agent::resolve_model(environment, &Config::default(), name)
        .ok()
        .map(|declared| declared.body_encoding())
}

/// Removes conversations without the provider's token counts, which the policy [`RECORDED`] needs.
fn remove_uncounted_conversations(
    conversations: &mut Vec<RecordedConversation>,
) -> anyhow::Result<()> {
    let all = conversations.len();
    conversations.retain(RecordedConversation::has_enough_counts);
    let left_out = all - conversations.len();
    if conversations.is_empty() {
        return Err(usage_error(text!("replay-no-counts", recorded = RECORDED)));
    }
    if left_out > 0 {
        output::print_to_stderr(&format!(
            "haft: {}",
            text!("replay-left-out-all", left_out, all, recorded = RECORDED)
        ));
    }
    Ok(())
}

/// Replaces the model's cache rule and prices with `cache` and `prices`, if they are given.
fn with_cache_and_prices(
    mut encoding: BodyEncoding,
    cache: Option<CacheRule>,
    prices: Option<(f64, f64)>,
) -> BodyEncoding {
    let spec = &mut encoding.spec;
    if let Some(cache) = cache {
        spec.cache = cache;
    }
    if let Some((read, write)) = prices {
        let input = spec.price.map_or(1.0, |price| price.input);
        let times = |factor: f64| Some(factor * input);
        let cached_input = times(read);
        let cache_write = times(write);
        spec.price = Some(Price {
            input,
            cached_input,
            cache_write,
            output: 0.0,
            long: None,
        });
    }
    encoding
}

/// Parses the name of a cache rule, and returns the rule with its provider's documented values.
fn parse_cache_rule(name: &str) -> anyhow::Result<CacheRule> {
    let unknown = |_| usage_error(text!("replay-unknown-cache", name));
    let rule: CacheKind = serde_json::from_value(json!(name)).map_err(unknown)?;
    Ok(haft_lab::documented_cache(rule))
}

/// Writes request bodies to a folder, if one is given.
struct BodyWriter {
    folder: Option<PathBuf>,
    written: usize,
    failed: Option<std::io::Error>,
}

impl BodyWriter {
    fn new(folder: Option<&Path>, policy: &str) -> anyhow::Result<Self> {
        let folder = folder.map(|folder| folder.join(policy));
        if let Some(folder) = &folder {
            std::fs::create_dir_all(folder).with_context(|| {
                usage_error(text!("replay-cannot-create", folder = folder.display()))
            })?;
        }
        Ok(Self {
            folder,
            written: 0,
            failed: None,
        })
    }

    fn write(&mut self, body: impl FnOnce() -> Vec<u8>) {
        let Some(folder) = self.folder.as_ref().filter(|_| self.failed.is_none()) else {
            return;
        };
        self.written += 1;
        self.failed =
            std::fs::write(folder.join(format!("{:04}.json", self.written)), body()).err();
    }

    fn finish(self) -> anyhow::Result<()> {
        match (self.failed, self.folder) {
            (Some(error), Some(folder)) => Err(usage_error(text!(
                "replay-unwritable-folder",
                folder = folder.display(),
                error
            ))),
            _ => Ok(()),
        }
    }
}

/// Returns the rows of the comparison table.
pub(super) fn table_rows(outcomes: &[PolicyOutcome]) -> impl Iterator<Item = Vec<String>> {
    let cell = |cell: String| match cell.split_once(" of ") {
        Some((kept, all)) => text!("replay-kept", kept, all),
        None => cell,
    };
    haft_lab::format_outcome_rows(outcomes)
        .into_iter()
        .map(move |cells| cells.into_iter().map(cell).collect())
}

fn outcomes_to_table(
    title: &str,
    outcomes: &[PolicyOutcome],
    model: &ModelSpec,
    source: ModelSource,
) -> String {
    let headings = OUTCOME_HEADINGS.map(output::localize_text);
    let mut table = TextTable::new(&headings.each_ref().map(String::as_str));
    table_rows(outcomes).for_each(|cells| table.add_row(cells));
    let [about, prices] = [
        haft_lab::format_model_line(model, source),
        haft_lab::format_pricing_line(model),
    ]
    .map(output::localize_text);
    let mut text = format!("{title}: {prices}\n{about}\n\n{table}");
    if outcomes.iter().any(|outcome| outcome.archives > 0) {
        text.extend(["\n", text!("replay-no-model"), "\n"]);
    }
    for outcome in outcomes {
        if let Some(same) = outcome.same_bytes.filter(|same| *same > 0) {
            let all = outcome.requests.len();
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "\n{}",
                text!("replay-same-bodies", name = outcome.name, same, all)
            );
        }
    }
    text
}
