//! `haft context replay`: a recorded conversation under other policies (SPEC 8.11). Nothing is sent and nothing is written but
//! the plot that is asked for.
//!
//! ```text
//! a conversation of haft's, a file, a folder ─► Recorded ─► replay under each policy ─► Outcome ─► table, JSON, plot
//! ```

mod files;
mod own;
mod plot;
mod tables;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use haft_agent::config::Config;
use haft_context::{Beside, Coverage, Documents, Recording, Reminders, Step, Variant, coverage, replay};
use haft_model::{Encoding, O200k};
use haft_types::{Api, CacheKind, CacheRule, Entry, ModelSpec, Price, ToolSet, Usage};
use serde_json::json;

use super::next;
use crate::cli::ReplayArgs;
use crate::commands::configuration;
use crate::exit::mistake;
use crate::{output, wiring};

/// What was really sent, as a policy.
const RECORDED: &str = "recorded";
/// What is compared when nothing is said.
const USUAL: [&str; 5] = ["none", "front", "tail", "default", "cache-aware"];

/// A recorded conversation.
struct Recorded {
    name: String,
    history: Vec<Arc<Entry>>,
    steps: Vec<Step>,
    /// What was sent besides: one for each step, or one for all.
    asides: Vec<Aside>,
    /// What the provider counted, request by request.
    counted: Vec<Usage>,
    /// The bodies that were sent, where they are known.
    bodies: Vec<Vec<u8>>,
}

/// What was sent besides the conversation.
struct Aside {
    system: Arc<Entry>,
    tools: Arc<ToolSet>,
    documents: Option<Documents>,
    reminders: Option<Reminders>,
    cache_key: Option<String>,
}

/// What a policy came to.
struct Outcome {
    name: String,
    requests: Vec<One>,
    too_large: usize,
    breaks: usize,
    regret: usize,
    kept: Coverage,
    /// Requests that are, byte for byte, what was sent; absent where that is not known.
    same_bytes: Option<usize>,
}

/// One request of an outcome.
struct One {
    usage: Usage,
    cost: Option<f64>,
}

impl Outcome {
    fn new(name: &str) -> Self {
        let (requests, kept) = (Vec::new(), Coverage::default());
        Self { name: name.to_owned(), requests, too_large: 0, breaks: 0, regret: 0, kept, same_bytes: None }
    }

    fn usage(&self) -> Usage {
        let mut sum = Usage::default();
        self.requests.iter().for_each(|one| sum += one.usage);
        sum
    }

    fn cost(&self) -> Option<f64> {
        self.requests.iter().map(|one| one.cost).sum::<Option<f64>>().filter(|_| !self.requests.is_empty())
    }

    fn peak(&self) -> u64 {
        self.requests.iter().map(|one| one.usage.all_input()).max().unwrap_or(0)
    }
}

pub(super) async fn run(args: &ReplayArgs) -> anyhow::Result<()> {
    let (_, loaded) = configuration(&args.common)?;
    let names: Vec<&str> =
        if args.policy.is_empty() { USUAL.to_vec() } else { args.policy.iter().map(String::as_str).collect() };
    let variants = names.iter().map(|name| variant(name, &loaded.config)).collect::<anyhow::Result<Vec<_>>>()?;
    let cache = args.rule.as_deref().map(rule).transpose()?;
    let (conversations, encoding) = if args.from_file.is_some() || args.import.is_some() {
        (files::read(args)?, model(args, &loaded.config)?)
    } else {
        let (own, encoding) = own::read(args).await?;
        let encoding = if args.model.is_some() { model(args, &loaded.config)? } else { encoding };
        (vec![own], encoding)
    };
    let encoding = imagined(encoding, cache, args.prices);
    let mut outcomes = Vec::with_capacity(variants.len());
    for (name, variant) in names.iter().zip(&variants) {
        outcomes.push(match variant {
            Some(variant) => {
                let mut bodies = Bodies::new(args.bodies.as_deref(), name)?;
                let outcome = replayed(variant, &conversations, &encoding, &mut bodies);
                bodies.finish()?;
                outcome
            }
            None => counted(name, &conversations, &encoding.spec),
        });
    }
    let title = match conversations.as_slice() {
        [one] => haft_text::sanitise(&one.name).into_owned(),
        several => format!("{} conversations", several.len()),
    };
    if let Some(path) = &args.plot {
        let picture = plot::draw(&title, &outcomes);
        let html = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("html"));
        let text = if html { tables::page(&title, &outcomes, &encoding.spec, &picture) } else { picture };
        let wrong = || mistake(format!("cannot write `{}`", path.display()));
        std::fs::write(path, text).with_context(wrong)?;
        output::tell(&format!("haft: wrote {}", path.display()));
    }
    if args.json {
        return output::print_json(&tables::json(&title, conversations.len(), &outcomes, &encoding.spec));
    }
    output::print(&tables::text(&title, &outcomes, &encoding.spec))
}

/// The policy of this name; none for what was really sent.
fn variant(name: &str, config: &Config) -> anyhow::Result<Option<Variant>> {
    if name == RECORDED {
        return Ok(None);
    }
    match Variant::parse(name, &config.context) {
        Ok(variant) => Ok(Some(variant)),
        Err(error) => Err(mistake(format!("{error}; or `{RECORDED}`"))),
    }
}

/// The model whose window, cache and prices are imagined.
fn model(args: &ReplayArgs, config: &Config) -> anyhow::Result<Encoding> {
    Ok(match args.model.as_ref().or(config.model.as_ref()) {
        Some(name) => wiring::declared(config, name)?.encoding(),
        None => next::undeclared("anthropic/model", Api::Anthropic)?.encoding(),
    })
}

/// The model with the cache and the prices that were asked for.
fn imagined(mut encoding: Encoding, cache: Option<CacheRule>, prices: Option<(f64, f64)>) -> Encoding {
    let spec = &mut encoding.spec;
    if let Some(cache) = cache {
        spec.cache = cache;
    }
    if let Some((read, write)) = prices {
        let input = spec.price.map_or(1.0, |price| price.input);
        let times = |factor: f64| Some(factor * input);
        let (cached_input, cache_write) = (times(read), times(write));
        spec.price = Some(Price { input, cached_input, cache_write, output: 0.0, long: None });
    }
    encoding
}

/// A cache by the name of its rule, with what its provider documents.
fn rule(name: &str) -> anyhow::Result<CacheRule> {
    let unknown = |_| {
        mistake(format!(
            "`{name}` is no rule of a cache; use anthropic, openai, openai-breakpoints, gemini, deepseek, vllm, llama-cpp, \
             automatic or none"
        ))
    };
    let rule: CacheKind = serde_json::from_value(json!(name)).map_err(unknown)?;
    let usual = CacheRule { rule, ..CacheRule::default() };
    Ok(match rule {
        CacheKind::Anthropic => CacheRule { look_back: Some(20), ..usual },
        CacheKind::OpenaiBreakpoints => CacheRule { ttl: "30m".into(), ..usual },
        CacheKind::Deepseek => CacheRule { min: 64, ttl: "1h".into(), ..usual },
        CacheKind::Automatic
        | CacheKind::Openai
        | CacheKind::Gemini
        | CacheKind::Vllm
        | CacheKind::LlamaCpp
        | CacheKind::None => usual,
    })
}

/// Where bodies are written, if they are.
struct Bodies {
    folder: Option<PathBuf>,
    written: usize,
    failed: Option<std::io::Error>,
}

impl Bodies {
    fn new(folder: Option<&Path>, policy: &str) -> anyhow::Result<Self> {
        let folder = folder.map(|folder| folder.join(policy));
        if let Some(folder) = &folder {
            std::fs::create_dir_all(folder).with_context(|| mistake(format!("cannot make `{}`", folder.display())))?;
        }
        Ok(Self { folder, written: 0, failed: None })
    }

    fn write(&mut self, body: impl FnOnce() -> Vec<u8>) {
        let Some(folder) = self.folder.as_ref().filter(|_| self.failed.is_none()) else { return };
        self.written += 1;
        self.failed = std::fs::write(folder.join(format!("{:04}.json", self.written)), body()).err();
    }

    fn finish(self) -> anyhow::Result<()> {
        match (self.failed, self.folder) {
            (Some(error), Some(folder)) => Err(mistake(format!("cannot write into `{}`: {error}", folder.display()))),
            _ => Ok(()),
        }
    }
}

/// The conversations under a policy, one after another, each with a cache of its own.
fn replayed(variant: &Variant, conversations: &[Recorded], encoding: &Encoding, bodies: &mut Bodies) -> Outcome {
    let mut outcome = Outcome::new(&variant.name);
    for one in conversations {
        let beside = |step: usize| {
            // Asides are never empty: there is one for each step, or one for all.
            let aside = &one.asides[step.min(one.asides.len() - 1)];
            Beside {
                system: &aside.system,
                system_input: None,
                tools: &aside.tools,
                documents: aside.documents.as_ref(),
                reminders: aside.reminders.clone().filter(|_| variant.reminders),
                cache_key: aside.cache_key.as_deref(),
            }
        };
        let recording = Recording { history: &one.history, steps: &one.steps, beside: &beside };
        let mut same = 0;
        let replay = replay(&recording, &variant.policy, &encoding.spec, &O200k, |step, request| {
            bodies.write(|| encoding.encode(request).to_vec());
            if let Some(body) = one.bodies.get(step) {
                same += usize::from(*body == encoding.encode(request));
            }
        });
        if !one.bodies.is_empty() {
            outcome.same_bytes = Some(outcome.same_bytes.unwrap_or(0) + same);
        }
        outcome.too_large += replay.too_large;
        outcome.breaks += replay.breaks();
        outcome.regret += replay.regret;
        if let Some(last) = &replay.last {
            let kept = coverage(&one.history, last);
            outcome.kept.kept += kept.kept;
            outcome.kept.all += kept.all;
        }
        outcome.requests.extend(replay.requests.iter().map(|one| One { usage: one.usage, cost: one.cost }));
    }
    outcome
}

/// What the provider counted of the requests that were really sent.
fn counted(name: &str, conversations: &[Recorded], model: &ModelSpec) -> Outcome {
    let mut outcome = Outcome::new(name);
    let usages = conversations.iter().flat_map(|one| &one.counted);
    outcome.requests.extend(usages.map(|usage| One {
        usage: *usage,
        // What was answered is the same under every policy.
        cost: model.price.map(|price| price.cost(Usage { output: 0, reasoning: 0, ..*usage }).total),
    }));
    outcome
}
