//! `haft events`: describes the JSON lines that programs read and write, from the Rust types.

mod page;

use clap::Args;
use haft_claude::{ControlLine, InputLine};
use haft_types::Event;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use crate::exit::ProcessExit;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// Print JSON schemas.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn describe_events(args: &EventsArgs) -> anyhow::Result<ProcessExit> {
    if args.json {
        let schemas = json!({
            "event": build_schema::<Event>(LineDirection::Out),
            "input": build_schema::<InputLine>(LineDirection::In),
            "control": build_schema::<ControlLine>(LineDirection::Out),
        });
        output::print_json(&schemas)?;
    } else {
        output::print_text(&page::render_page())?;
    }
    Ok(ProcessExit::Completed)
}

/// The direction of a JSON line: printed by haft, or read from its input. The direction determines
/// which fields may be absent.
#[derive(Clone, Copy)]
enum LineDirection {
    Out,
    In,
}

/// Returns the JSON schema of a type, with all subschemas inlined.
fn build_schema<T: JsonSchema>(way: LineDirection) -> Value {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let settings = match way {
        LineDirection::Out => settings.for_serialize(),
        LineDirection::In => settings.for_deserialize(),
    };
    settings
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value()
}
