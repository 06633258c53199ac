//! `haft proxy`: records and explains what another agent sends to its model.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::AddAssign;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};

use clap::Args;
use haft_agent::{HostEnvironment, RandomIds, WallClock, find_own_program};
use haft_proxy::{
    CostInUnits, ProxyEvent, RecorderSetup, RequestExplanation, TrafficRecorder, UpstreamProxies,
    Upstreams, serve,
};
use haft_sandbox::ProgramPath;
use haft_text::format_thousands;
use haft_types::{Api, ConversationId, Usage};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::cli::options::Common;
use crate::exit::{ProcessExit, usage_error};
use crate::haft::Haft;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct ProxyArgs {
    /// Where requests go; each API's own provider when absent.
    #[arg(long, value_name = "URL")]
    pub(crate) upstream: Option<String>,

    /// The port on 127.0.0.1 to listen on; 0 chooses a free one. With a command the default is 0.
    #[arg(long, value_name = "N")]
    pub(crate) port: Option<u16>,

    /// An agent to run through the proxy, with its base URL variables set.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,

    #[command(flatten)]
    pub(crate) common: Common,
}

/// The default port, which users write into configuration files.
const DEFAULT_PORT: u16 = 8108;

pub(crate) fn run(haft: &Haft, args: &ProxyArgs) -> anyhow::Result<ProcessExit> {
    let upstreams = choose_upstreams(haft.environment(), args)?;
    let settings = haft.load(&args.common)?;
    let setup = RecorderSetup {
        store: settings.open_store()?,
        catalogue: haft_agent::build_catalogue(&settings.config)?,
        secrets: haft.environment().secret_values(),
        clock: Arc::new(WallClock),
        ids: Arc::new(RandomIds),
    };
    let lines = ExplanationLines::new(!args.command.is_empty());
    // The runtime has several threads, because traffic must not wait for the recorder, which counts
    // tokens and masks secrets.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(3)
        .enable_all()
        .build()?;
    let ended = runtime.block_on(async {
        let port = args.port.unwrap_or(if args.command.is_empty() {
            DEFAULT_PORT
        } else {
            0
        });
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let listener = TcpListener::bind(address).await;
        let listener =
            listener.map_err(|error| usage_error(text!("proxy-cannot-listen", address, error)))?;
        let address = listener.local_addr()?;
        if args.command.is_empty() {
            output::print_text(&format!("{}\n", text!("proxy-listening", address)))?;
        }
        let (traffic, received) = mpsc::unbounded_channel();
        let said = lines.clone();
        let recorder = tokio::spawn(
            TrafficRecorder::new(setup).run(received, move |event| said.handle_event(&event)),
        );
        let mut ended = Ok(ProcessExit::Completed);
        serve(listener, upstreams, traffic, async {
            ended = run_until_end(&settings.places.environment, args, address).await;
        })
        .await?;
        recorder.await?;
        ended
    });
    runtime.shutdown_background();
    lines.finish();
    ended
}

/// Returns the targets of requests: the given URL, else the servers that the agent would use
/// without the proxy.
fn choose_upstreams(environment: &HostEnvironment, args: &ProxyArgs) -> anyhow::Result<Upstreams> {
    let set = |api| {
        let variable = match api {
            Api::OpenaiChat | Api::OpenaiResponses => "OPENAI_BASE_URL",
            Api::Anthropic => "ANTHROPIC_BASE_URL",
            Api::Gemini => "GOOGLE_GEMINI_BASE_URL",
        };
        environment.trimmed_variable(variable)
    };
    let proxies = UpstreamProxies::new(haft_agent::environment_proxies(environment));
    let upstreams = proxies.and_then(|proxies| {
        Ok(Upstreams::new(args.upstream.as_deref(), set)?.with_proxies(proxies))
    });
    upstreams.map_err(|error| usage_error(error.to_string()))
}

/// Finds the agent's program: a path as typed, or a name in `PATH` outside the project.
fn find_agent_program(
    environment: &HostEnvironment,
    program: &OsStr,
) -> anyhow::Result<ProgramPath> {
    let name = program.to_string_lossy();
    if name.contains('/') {
        return Ok(ProgramPath::from_user(program));
    }
    find_own_program(environment, &name).ok_or_else(|| {
        let error = io::Error::from(io::ErrorKind::NotFound);
        usage_error(text!(
            "proxy-cannot-start",
            program = program.display(),
            error
        ))
    })
}

/// Runs the agent's command until it ends. Without a command, waits until the user stops the proxy.
async fn run_until_end(
    environment: &HostEnvironment,
    args: &ProxyArgs,
    address: SocketAddr,
) -> anyhow::Result<ProcessExit> {
    let Some((program, rest)) = args.command.split_first() else {
        // If signals cannot be awaited, the process runs until the system ends it.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        return Ok(ProcessExit::Completed);
    };
    let mut command = find_agent_program(environment, program)?.command();
    command
        .args(codex_arguments(program, address))
        .args(rest)
        .envs(base_url_variables(address));
    let mut child = command.spawn().map_err(|error| {
        usage_error(text!(
            "proxy-cannot-start",
            program = program.display(),
            error
        ))
    })?;
    // The interrupt key reaches both processes but is meant for the agent, so the proxy stays until
    // the agent has ended.
    let ignored = tokio::spawn(async { while tokio::signal::ctrl_c().await.is_ok() {} });
    let status: ExitStatus = tokio::task::spawn_blocking(move || child.wait()).await??;
    ignored.abort();
    Ok(if status.success() {
        ProcessExit::Completed
    } else {
        ProcessExit::Failed
    })
}

/// Returns the environment variables that point agents at a server.
fn base_url_variables(address: SocketAddr) -> [(&'static str, String); 9] {
    let root = format!("http://{address}");
    let v1 = format!("http://{address}/v1");
    [
        ("ANTHROPIC_BASE_URL", root.clone()),
        ("ANTHROPIC_API_BASE", root.clone()),
        ("ANTHROPIC_HOST", root.clone()),
        ("OPENAI_BASE_URL", v1.clone()),
        ("OPENAI_API_BASE", v1),
        ("OPENAI_HOST", root.clone()),
        ("GOOGLE_GEMINI_BASE_URL", root.clone()),
        ("GEMINI_API_BASE", root.clone()),
        ("HAFT_PROXY", root),
    ]
}

/// Returns the arguments that point codex at the proxy, because codex reads its base URL only from
/// its configuration. Returns no arguments for other programs.
fn codex_arguments(program: &OsStr, address: SocketAddr) -> Vec<String> {
    let is_codex = std::path::Path::new(program)
        .file_stem()
        .is_some_and(|name| name == "codex");
    if is_codex {
        vec![
            "-c".to_owned(),
            format!("openai_base_url=\"http://{address}/v1\""),
        ]
    } else {
        Vec::new()
    }
}

/// Prints one line per recorded request. While an agent uses the terminal, the lines are held until
/// the agent ends.
#[derive(Clone)]
struct ExplanationLines {
    held: Option<Arc<Mutex<String>>>,
    total: Arc<Mutex<RunTotal>>,
}

/// The totals of a run of the proxy: one for each conversation, in the order of their first
/// requests, and one for all side requests together.
#[derive(Default)]
struct RunTotal {
    conversations: Vec<(ConversationId, RequestTotal)>,
    side: RequestTotal,
}

/// The totals of several requests.
#[derive(Clone, Copy, Default)]
struct RequestTotal {
    requests: u64,
    breaks: u64,
    uncached: u64,
    append_only_uncached: u64,
    /// The number of requests whose price is known.
    priced: u64,
    /// The cost of the priced requests in USD.
    cost: f64,
    /// The cost of the priced requests in USD for a client that only appends messages.
    append_only_cost: f64,
    /// The cost of the other requests, in units of an input token at full price.
    units: CostInUnits,
}

impl ExplanationLines {
    fn new(has_command: bool) -> Self {
        let held = (has_command && io::stderr().is_terminal()).then(Arc::default);
        Self {
            held,
            total: Arc::default(),
        }
    }

    fn handle_event(&self, event: &ProxyEvent) {
        let line = match event {
            ProxyEvent::Explained(one) => {
                self.total
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .add(one);
                format_request(one)
            }
            ProxyEvent::NotRecorded { reason } => text!("proxy-not-recorded", reason),
            ProxyEvent::Passed {
                method,
                path,
                status,
            } => text!("proxy-passed", method, path, status),
        };
        let line = haft_text::sanitize(&line).into_owned();
        match &self.held {
            // Writing to a String cannot fail.
            Some(held) => drop(writeln!(
                held.lock().unwrap_or_else(PoisonError::into_inner),
                "{line}"
            )),
            None => output::print_to_stderr(&line),
        }
    }

    /// Prints the held lines and the totals.
    fn finish(&self) {
        if let Some(held) = &self.held {
            held.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .lines()
                .for_each(output::print_to_stderr);
        }
        let total = self.total.lock().unwrap_or_else(PoisonError::into_inner);
        for line in total.to_lines() {
            output::print_to_stderr(&line);
        }
    }
}

impl RunTotal {
    fn add(&mut self, one: &RequestExplanation) {
        if one.is_side {
            self.side.add(one);
            return;
        }
        let known = self
            .conversations
            .iter()
            .position(|(id, _)| *id == one.conversation);
        let index = known.unwrap_or_else(|| {
            let total = RequestTotal::default();
            self.conversations.push((one.conversation.clone(), total));
            self.conversations.len() - 1
        });
        self.conversations[index].1.add(one);
    }

    /// Returns one line for each conversation, one for the side requests, and, if there are several
    /// of these lines, one for everything. The ratio to an append-only client is a property of a
    /// conversation, so the last line has none.
    fn to_lines(&self) -> Vec<String> {
        let mut all = self.side;
        for (_, total) in &self.conversations {
            all += *total;
        }
        let mut lines: Vec<_> = match self.conversations.as_slice() {
            [(_, only)] => vec![only.to_text()],
            several => several
                .iter()
                .map(|(id, total)| {
                    text!(
                        "proxy-conversation-total",
                        conversation = id.short_prefix(),
                        total = total.to_text()
                    )
                })
                .collect(),
        };
        if self.side.requests > 0 {
            lines.push(text!(
                "proxy-side-total",
                requests = self.side.requests,
                uncached = format_thousands(self.side.uncached),
                cost = self.side.format_cost()
            ));
        }
        if lines.len() > 1 {
            lines.push(text!(
                "proxy-run-total",
                requests = all.requests,
                breaks = all.breaks,
                cost = all.format_cost()
            ));
        }
        lines
    }
}

impl RequestTotal {
    fn add(&mut self, one: &RequestExplanation) {
        self.requests += 1;
        // Side requests do not continue each other.
        self.breaks += u64::from(one.broken.is_some() && !one.is_side);
        if let Some(usage) = one.billed {
            self.uncached += usage.input + usage.cache_write;
            self.append_only_uncached += one.append_only_uncached;
        }
        if let Some((cost, append_only)) = one.cost.zip(one.append_only_cost) {
            self.priced += 1;
            self.cost += cost;
            self.append_only_cost += append_only;
        }
        if let Some(units) = one.units {
            self.units.sent += units.sent;
            self.units.append_only += units.append_only;
        }
    }

    fn to_text(self) -> String {
        let ratio = self.uncached as f64 / self.append_only_uncached.max(1) as f64;
        text!(
            "proxy-total",
            requests = self.requests,
            breaks = self.breaks,
            uncached = format_thousands(self.uncached),
            append_only = format_thousands(self.append_only_uncached),
            ratio = format_args!("{ratio:.2}"),
            cost = self.format_cost()
        )
    }

    /// Formats the cost: in dollars with the number of priced requests if it is not all of them, or
    /// in units if no request has a price.
    fn format_cost(self) -> String {
        if self.priced == 0 {
            return format_units(self.units);
        }
        let mut text = format_dollar_cost(self.cost, self.append_only_cost);
        if self.priced < self.requests {
            text.push_str(&text!(
                "proxy-priced",
                priced = self.priced,
                requests = self.requests
            ));
        }
        text
    }
}

impl AddAssign for RequestTotal {
    fn add_assign(&mut self, other: Self) {
        self.requests += other.requests;
        self.breaks += other.breaks;
        self.uncached += other.uncached;
        self.append_only_uncached += other.append_only_uncached;
        self.priced += other.priced;
        self.cost += other.cost;
        self.append_only_cost += other.append_only_cost;
        self.units.sent += other.units.sent;
        self.units.append_only += other.units.append_only;
    }
}

/// Formats the actual cost, and the cost for a client that only appends messages.
fn format_dollar_cost(cost: f64, append_only: f64) -> String {
    text!(
        "proxy-cost",
        cost = format_args!("${cost:.4}"),
        append_only = format_args!("${append_only:.4}")
    )
}

fn format_units(units: CostInUnits) -> String {
    text!(
        "proxy-units",
        sent = format_thousands(units.sent.round() as u64),
        append_only = format_thousands(units.append_only.round() as u64)
    )
}

fn format_request(one: &RequestExplanation) -> String {
    let how = match &one.broken {
        None if one.number == 1 => text!("proxy-first").to_owned(),
        None => text!("proxy-extends").to_owned(),
        Some(broken) => text!(
            "proxy-breaks",
            at = broken.kept + 1,
            segments = broken.segments,
            owner = broken.owner,
            cause = output::localize_text(broken.cause),
            tokens = format_thousands(broken.price.map_or(0, |price| price.tokens))
        ),
    };
    let read = |usage: Usage| format_thousands(usage.cached_input);
    let billed = match one.billed {
        Some(usage) => text!(
            "proxy-billed",
            cached = read(usage),
            input = format_thousands(usage.all_input())
        ),
        None => text!("proxy-not-billed").to_owned(),
    };
    let cost = match (one.cost.zip(one.append_only_cost), one.units) {
        (Some((cost, append_only)), _) => format_dollar_cost(cost, append_only),
        (None, Some(units)) => format_units(units),
        (None, None) => text!("proxy-no-cost").to_owned(),
    };
    let mut line = text!(
        "proxy-request",
        conversation = one.conversation.short_prefix(),
        number = one.number,
        model = one.model,
        tokens = format_thousands(one.tokens),
        how,
        predicted = read(one.predicted),
        billed,
        cost
    );
    if one.is_side {
        line.push_str(text!("proxy-side"));
    }
    if one.status != 200 {
        line.push_str(&text!("proxy-status", status = one.status));
    } else if !one.complete {
        line.push_str(text!("proxy-cut"));
    }
    line
}

#[cfg(test)]
mod tests {
    use haft_context::{BreakPrice, Cause, PriceBasis};
    use haft_proxy::RecordedBreak;

    use super::*;

    /// A request with 1,000 tokens that were not read from the cache, half of them new.
    fn explanation(conversation: &str, number: u64) -> RequestExplanation {
        RequestExplanation {
            conversation: ConversationId::new(conversation),
            number,
            is_side: false,
            model: "p/m".into(),
            status: 200,
            complete: true,
            tokens: 9_000,
            broken: None,
            predicted: Usage::default(),
            billed: Some(Usage {
                input: 1_000,
                cached_input: 8_000,
                ..Usage::default()
            }),
            cost: None,
            append_only_cost: None,
            units: Some(CostInUnits {
                sent: 1_800.0,
                append_only: 1_350.0,
            }),
            append_only_uncached: 500,
        }
    }

    fn lines(requests: &[RequestExplanation]) -> String {
        let mut total = RunTotal::default();
        for request in requests {
            total.add(request);
        }
        total.to_lines().join("\n")
    }

    #[test]
    fn total_of_one_conversation_is_one_line() {
        let broken = RequestExplanation {
            broken: Some(RecordedBreak {
                kept: 1,
                segments: 4,
                owner: "user",
                cause: Cause::RemindersMoved,
                price: Some(BreakPrice {
                    tokens: 500,
                    cost: None,
                    basis: PriceBasis::Billed,
                }),
            }),
            ..explanation("a", 2)
        };
        insta::assert_snapshot!(
            lines(&[explanation("a", 1), broken.clone()]),
            @"2 requests, 1 break; 2,000 input tokens not read from the cache, an append-only client 1,000 (ratio 2.00); 3,600 units, append-only 2,700 (no price known; 1 unit is 1 input token at full price)"
        );
        insta::assert_snapshot!(
            format_request(&broken),
            @"a #2 p/m: 9,000 tokens, differs from segment 2 of 4 (user): the reminders moved, 500 tokens again; cached 0 predicted, 8,000 of 9,000 billed; 1,800 units, append-only 1,350 (no price known; 1 unit is 1 input token at full price)"
        );
    }

    #[test]
    fn total_has_a_line_for_each_conversation_and_the_side_requests() {
        let side = RequestExplanation {
            is_side: true,
            cost: Some(0.0003),
            append_only_cost: Some(0.0003),
            units: None,
            ..explanation("title", 1)
        };
        insta::assert_snapshot!(
            lines(&[explanation("a", 1), side, explanation("b", 1), explanation("b", 2)]),
            @"
        a: 1 request, 0 breaks; 1,000 input tokens not read from the cache, an append-only client 500 (ratio 2.00); 1,800 units, append-only 1,350 (no price known; 1 unit is 1 input token at full price)
        b: 2 requests, 0 breaks; 2,000 input tokens not read from the cache, an append-only client 1,000 (ratio 2.00); 3,600 units, append-only 2,700 (no price known; 1 unit is 1 input token at full price)
        1 side request: 1,000 input tokens not read from the cache; $0.0003, append-only $0.0003
        in all: 4 requests, 0 breaks; $0.0003, append-only $0.0003 (1 of 4 requests priced)
        "
        );
    }
}
