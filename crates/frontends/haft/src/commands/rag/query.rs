//! `haft rag query`: queries a collection as the model would.

use std::fmt::Write as _;

use haft_rag::{CollectionAnswer, ConfiguredCollections, Passage};
use serde_json::{Value, json};

use crate::commands::rag::RagQueryArgs;
use crate::exit::usage_error;
use crate::haft::Haft;
use crate::{output, wiring};

pub(super) fn run(haft: &Haft, args: &RagQueryArgs) -> anyhow::Result<()> {
    let settings = haft.load(&args.output.common)?;
    let rag = ConfiguredCollections::load(&settings.places, &settings.config);
    let collection = super::find_collection(&rag, &args.name)?;
    if args.question.trim().is_empty() {
        return Err(usage_error(text!("rag-no-question")));
    }
    let answer = wiring::build_runtime()?
        .block_on(collection.ask_question(&args.question, usize::from(args.top)))?;
    if let CollectionAnswer::Passages(found) = &answer {
        for note in &found.notes {
            output::print_to_stderr(&format!("note: {note}"));
        }
    }
    if args.output.json {
        return output::print_json(&answer_to_json(&answer));
    }
    output::print_text(&answer_to_text(&answer))
}

fn answer_to_json(answer: &CollectionAnswer) -> Value {
    let one = |passage: &Passage| {
        json!({
            "path": passage.path.display().to_string(),
            "start_line": passage.start_line,
            "end_line": passage.end_line,
            "score": passage.score,
            "text": passage.text,
        })
    };
    match answer {
        CollectionAnswer::Passages(found) => {
            json!({ "passages": found.passages.iter().map(one).collect::<Vec<_>>(), "notes": found.notes })
        }
        CollectionAnswer::Text { text, sources } => json!({ "text": text, "sources": sources }),
    }
}

fn answer_to_text(answer: &CollectionAnswer) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    match answer {
        CollectionAnswer::Passages(found) if found.passages.is_empty() => {
            text.extend([text!("rag-no-hits"), "\n"]);
        }
        CollectionAnswer::Passages(found) => {
            for passage in &found.passages {
                let _ = writeln!(text, "{}\n{}\n", passage.source(), passage.text.trim_end());
            }
        }
        CollectionAnswer::Text {
            text: told,
            sources,
        } => {
            let _ = writeln!(text, "{}", told.trim_end());
            for source in sources {
                let _ = writeln!(text, "- {source}");
            }
        }
    }
    text
}
