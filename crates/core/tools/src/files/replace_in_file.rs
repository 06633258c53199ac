//! `replace_in_file`: applies SEARCH/REPLACE blocks to an existing file.
//!
//! The file need not have been read before: a matching SEARCH part proves that its content is
//! known.

mod parse;

use crate::files::edit::blocks::{self, Applied, BlockMisfit, EditBlock, MatchPolicy, Why};
use crate::files::edit::drafts::{self, Count, FileDraft};
use crate::files::edit::nearest::EditTerms;
use crate::files::edit::report;
use crate::files::edit::source::EditSource;
use crate::on_files::{OnFiles, PreviewsFiles};
use crate::prelude::*;
use crate::scope::FileScope;

const NAME: &str = "replace_in_file";

static MANUAL: Manual = Manual {
    set: Set::Text,
    ..Manual::of(Group::Files)
};

const WORDS: EditTerms = EditTerms {
    old: "SEARCH",
    new: "The REPLACE part",
    next: "",
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReplaceInFileParameters {
    /// The file to change.
    path: String,
    /// The blocks.
    diff: String,
    /// Whether a SEARCH that fits several places is refused (`unique`, the default) or taken at
    /// the first.
    r#match: Option<MatchPolicy>,
}

pub(crate) fn tool() -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("replace_in_file/prompt"),
        &MANUAL,
        Access::Write,
        |arguments| Intent::writes(arguments, "path"),
    )
    .on_files(replace)
    .previews_files(|scope, parameters| drafts::foresee(&[draft(scope, parameters)?]))
}

/// Describes a block that does not match.
fn misfit(BlockMisfit { block, why }: BlockMisfit) -> ToolFailure {
    let part = format!("the SEARCH part of block {block}");
    let missing = |hint: String| {
        (
            "no_match",
            format!("{part} is not in the file; nothing was changed.{hint}"),
        )
    };
    let (code, message) = match why {
        Why::NotFound { hint } => missing(hint),
        // Blocks of this tool have no headings.
        Why::NoHeading { heading } => missing(format!(" There is no line `{heading}`.")),
        Why::Overlap { line } => (
            "overlapping_blocks",
            format!(
                "{part} fits only at line {line}, which another block changes too; nothing was changed. Make one block of both"
            ),
        ),
        Why::Ambiguous { lines } => (
            "ambiguous_match",
            format!(
                "{part} fits {} places, at lines {}; nothing was changed. Add neighbouring lines until it fits only one, or pass `match` = `first`",
                lines.len(),
                report::list(&lines)
            ),
        ),
    };
    ToolFailure::new(code, message)
}

fn replace(scope: &FileScope, parameters: &ReplaceInFileParameters) -> CallResult {
    let mut output = drafts::carry_out(scope, &[draft(scope, parameters)?])?.into_single();
    if parse::parse(&parameters.diff)?.1 {
        output
            .envelope
            .text
            .push_str("\n[The labels of the markers were read as `SEARCH` and `REPLACE`.]");
    }
    Ok(output)
}

fn draft(
    scope: &FileScope,
    parameters: &ReplaceInFileParameters,
) -> Result<FileDraft, ToolFailure> {
    let (blocks, _) = parse::parse(&parameters.diff)?;
    let old = EditSource::load(scope, &parameters.path)?.text(scope)?;
    let applied = apply(
        old.as_str(),
        &blocks,
        parameters.r#match.unwrap_or_default(),
    )?;
    Ok(FileDraft::Edit {
        old: Box::new(old),
        text: applied.text,
        applied: Count(blocks.len(), "block"),
        remarks: report::tolerance("Block", &applied.tolerant),
    })
}

fn apply(
    text: &str,
    blocks: &[parse::SearchReplaceBlock],
    matching: MatchPolicy,
) -> Result<Applied, ToolFailure> {
    // Only an empty file allows an empty SEARCH part.
    if let Some(empty) = blocks.iter().position(|block| block.search.is_empty())
        && (!text.is_empty() || blocks.len() > 1)
    {
        let message = format!(
            "the SEARCH part of block {} is empty; give the lines to replace, or write the whole file anew",
            empty + 1
        );
        return Err(ToolFailure::new("invalid_diff", message));
    }
    let blocks: Vec<_> = blocks
        .iter()
        .map(|block| EditBlock::replacing(&block.search, &block.replace))
        .collect();
    blocks::apply(text, &blocks, matching, WORDS).map_err(misfit)
}

#[cfg(test)]
mod tests;
