//! `haft count`: counts the tokens of files.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use haft_model::O200k;
use haft_types::TokenCounter;
use serde_json::json;

use crate::cli::options::JsonArgs;
use crate::exit::{ProcessExit, usage_error};
use crate::haft::Haft;
use crate::output::{self, TextTable};

#[derive(Debug, Args)]
pub(crate) struct CountArgs {
    /// The files; `-` is standard input.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Count for this model, as `provider/model`.
    #[arg(short, long)]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) output: JsonArgs,
}

struct FileCount {
    name: String,
    bytes: usize,
    tokens: u64,
}

pub(crate) fn run(haft: &Haft, args: &CountArgs) -> anyhow::Result<ProcessExit> {
    let factor = load_tokenizer_factor(haft, args)?;
    let mut counted = Vec::new();
    for file in &args.files {
        let text = read_text(file)?;
        let tokens = (f64::from(O200k.count_text(&text)) * factor).round() as u64;
        counted.push(FileCount {
            name: file.display().to_string(),
            bytes: text.len(),
            tokens,
        });
    }
    let total: u64 = counted.iter().map(|one| one.tokens).sum();
    if args.output.json {
        let files: Vec<_> = counted
            .iter()
            .map(|one| json!({"file": one.name, "bytes": one.bytes, "tokens": one.tokens}))
            .collect();
        output::print_json(
            &json!({"files": files, "total": total, "model": args.model, "factor": factor}),
        )?;
    } else {
        let mut table = TextTable::new(&[
            text!("table-tokens"),
            text!("table-bytes"),
            text!("table-file"),
        ]);
        for one in &counted {
            table.add_row(vec![
                one.tokens.to_string(),
                one.bytes.to_string(),
                one.name.clone(),
            ]);
        }
        if counted.len() > 1 {
            let bytes: usize = counted.iter().map(|one| one.bytes).sum();
            table.add_row(vec![
                total.to_string(),
                bytes.to_string(),
                output::localize_text("total"),
            ]);
        }
        output::print_text(&table.to_string())?;
    }
    Ok(ProcessExit::Completed)
}

/// Returns the ratio of the model's own token count to the `o200k` count, or 1 if no model is
/// given.
fn load_tokenizer_factor(haft: &Haft, args: &CountArgs) -> anyhow::Result<f64> {
    let Some(model) = &args.model else {
        return Ok(1.0);
    };
    let settings = haft.load(&args.output.common)?;
    Ok(settings.resolve_model(model)?.spec.tokenizer_factor)
}

/// Reads a file, or standard input for `-`. Invalid UTF-8 is counted as replacement characters.
fn read_text(file: &Path) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    let read = if file == Path::new("-") {
        std::io::stdin().lock().read_to_end(&mut bytes).map(|_| ())
    } else {
        std::fs::read(file).map(|read| bytes = read)
    };
    read.map_err(|error| usage_error(text!("count-unreadable", file = file.display(), error)))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
