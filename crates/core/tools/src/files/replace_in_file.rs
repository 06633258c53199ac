//! `replace_in_file`: applies SEARCH/REPLACE blocks to an existing file.
//!
//! The file need not have been read before: a matching SEARCH part proves that its content is
//! known.

mod parse;

use crate::files::edit::blocks::{
    self, AppliedBlocks, BlockMisfit, EditBlock, MatchPolicy, MisfitReason,
};
use crate::files::edit::drafts::{self, FileDraft, UnitCount};
use crate::files::edit::edit_report;
use crate::files::edit::nearest::EditTerms;
use crate::files::edit::source::EditSource;
use crate::on_files::{OnFiles, PreviewsFiles};
use crate::prelude::*;
use crate::scope::FileScope;
pub(crate) use parse::{SearchReplaceBlock, parse_diff};

const NAME: &str = "replace_in_file";

static MANUAL: Manual = Manual {
    availability: Availability::Text,
    ..Manual::for_group(Group::Files)
};

const EDIT_TERMS: EditTerms = EditTerms {
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

pub(crate) fn define_tool() -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("replace_in_file/prompt"),
        &MANUAL,
        Access::Write,
        |arguments| Intent::for_write(arguments, "path"),
    )
    .on_files(replace_in_file)
    .with_file_preview(|scope, parameters| {
        drafts::preview_drafts(&[build_draft(scope, parameters)?])
    })
}

/// Returns the error for a block that does not match.
fn describe_misfit(BlockMisfit { block, why }: BlockMisfit) -> ToolFailure {
    let part = format!("the SEARCH part of block {block}");
    let missing = |hint: String| {
        (
            "no_match",
            format!("{part} is not in the file; nothing was changed.{hint}"),
        )
    };
    let (code, message) = match why {
        MisfitReason::NotFound { hint } => missing(hint),
        // Blocks of this tool have no headings.
        MisfitReason::NoHeading { heading } => missing(format!(" There is no line `{heading}`.")),
        MisfitReason::Overlap { line } => (
            "overlapping_blocks",
            format!(
                "{part} fits only at line {line}, which another block changes too; nothing was changed. Make one block of both"
            ),
        ),
        MisfitReason::Ambiguous { lines } => (
            "ambiguous_match",
            format!(
                "{part} fits {} places, at lines {}; nothing was changed. Add neighbouring lines until it fits only one, or pass `match` = `first`",
                lines.len(),
                edit_report::format_line_numbers(&lines)
            ),
        ),
    };
    ToolFailure::new(code, message)
}

fn replace_in_file(scope: &FileScope, parameters: &ReplaceInFileParameters) -> CallResult {
    let mut output =
        drafts::write_drafts(scope, &[build_draft(scope, parameters)?])?.into_single_output();
    if parse_diff(&parameters.diff)?.1 {
        output
            .envelope
            .text
            .push_str("\n[The labels of the markers were read as `SEARCH` and `REPLACE`.]");
    }
    Ok(output)
}

fn build_draft(
    scope: &FileScope,
    parameters: &ReplaceInFileParameters,
) -> Result<FileDraft, ToolFailure> {
    let (blocks, _) = parse_diff(&parameters.diff)?;
    let old = EditSource::load(scope, &parameters.path)?.into_text(scope)?;
    let applied = apply_search_blocks(
        old.as_str(),
        &blocks,
        parameters.r#match.unwrap_or_default(),
    )?;
    Ok(FileDraft::Edit {
        old: Box::new(old),
        text: applied.text,
        applied: UnitCount(blocks.len(), "block"),
        remarks: edit_report::warn_tolerant_matches("Block", &applied.tolerant),
    })
}

fn apply_search_blocks(
    text: &str,
    blocks: &[SearchReplaceBlock],
    matching: MatchPolicy,
) -> Result<AppliedBlocks, ToolFailure> {
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
        .map(|block| EditBlock::from_replacement(&block.search, &block.replace))
        .collect();
    blocks::apply_blocks(text, &blocks, matching, EDIT_TERMS).map_err(describe_misfit)
}

#[cfg(test)]
mod tests;
