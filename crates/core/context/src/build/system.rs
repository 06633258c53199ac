//! The system layer: sections rendered from template files in a fixed order.
//!
//! The text depends only on the input, and not on a clock, machine state or map order. A section
//! that renders to an empty text is left out together with its heading and separator.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use haft_types::{
    Entry, Prompt, PromptLanguage, Role, TokenCounter, ToolProtocol, ToolSpec, prompt,
};
use minijinja::UndefinedBehavior;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use serde::{Deserialize, Serialize};

use crate::error::ContextError;
use crate::memo::{EntryMaker, RecallTool};

/// The text of the role section: built-in, from a role definition, or a custom system prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RoleText<'a> {
    /// The role is the built-in one, a software engineering expert.
    #[default]
    BuiltIn,
    /// The role is this role definition.
    Role(&'a str),
    /// This custom system prompt replaces the role.
    Custom(&'a str),
}

/// The description of the machine and the working folder, as given to the model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// The operating system and its distribution.
    pub os: String,
    /// The shell in which commands run.
    pub shell: String,
    /// The character encoding that the shell uses.
    pub encoding: String,
    /// The user's name.
    pub user: String,
    /// The user's home folder.
    pub home: String,
    /// The working folder.
    pub cwd: String,
    /// The number of tokens to which requests are pruned; `None` if pruning is off.
    pub safe_zone_tokens: Option<u64>,
}

/// The input for rendering the system layer.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemInput<'a> {
    /// The text of the role section.
    pub role: RoleText<'a>,
    /// The tools that the model can call, in the order in which they are sent.
    pub tools: &'a [ToolSpec],
    /// The tools that the model can call although their schemas are not sent.
    pub deferred: &'a [ToolSpec],
    /// The protocol with which the model calls tools.
    pub protocol: ToolProtocol,
    /// The call syntax, with the parameters of each tool. Present if the calls of the model are
    /// part of its text.
    pub call_format: Option<&'a str>,
    /// True if reminders and words of the user that follow a tool result are sent inside that
    /// result, because the model rejects a user message there.
    pub reminders_in_results: bool,
    /// Lists of the servers, collections and agents that tools can use, each as a finished text
    /// with a heading.
    pub lists: &'a [String],
    /// Examples of good calls, each as a finished text.
    pub examples: &'a [String],
    /// Guidelines for particular tools, numbered after the general guidelines.
    pub guidelines: &'a [String],
    /// Advice on the use of particular tools, each as a finished text with a heading.
    pub cases: &'a [String],
    /// The descriptions that the project's packages provide.
    pub package_context: Option<&'a str>,
    /// The machine and the working folder.
    pub environment: &'a Environment,
    /// The paths of the files on which the user has set the focus.
    pub focus_files: &'a [String],
    /// Text from the user, appended as the last section.
    pub append: Option<&'a str>,
    /// Replacements for built-in sections, and their order.
    pub sections: &'a PromptSections,
    /// The language of the built-in sections.
    pub language: PromptLanguage,
}

impl Default for &Environment {
    fn default() -> Self {
        static NOWHERE: LazyLock<Environment> = LazyLock::new(Environment::default);
        &NOWHERE
    }
}

/// A section of the system layer; the variants are in their default order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SystemSection {
    /// The model's role.
    Role,
    /// The call syntax, and the servers, collections and agents that tools can use.
    ToolUse,
    /// Descriptions that the project's packages provide.
    PackageContext,
    /// The capabilities that the tools provide.
    Capabilities,
    /// Rules for commands, file changes and tools.
    Rules,
    /// An explanation of the texts that haft adds to messages.
    HaftAdds,
    /// A description of the machine and the working folder.
    SystemInformation,
    /// The general approach to a task.
    Objective,
    /// The documents that the model should read first.
    DefaultWorkflow,
    /// The files on which the user has set the focus.
    FocusFiles,
    /// Text from the user, appended as the last section.
    Append,
}

/// Replacements for built-in sections, and the order of sections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PromptSections {
    /// The templates that replace built-in ones. Each receives all variables of the built-in
    /// templates.
    pub replaced: BTreeMap<SystemSection, String>,
    /// The sections that come first, in this order; the other sections follow in their default
    /// order.
    pub order: Vec<SystemSection>,
}

impl Default for &PromptSections {
    fn default() -> Self {
        static BUILT_IN: PromptSections = PromptSections {
            replaced: BTreeMap::new(),
            order: Vec::new(),
        };
        &BUILT_IN
    }
}

impl PromptSections {
    fn ordered_sections(&self) -> impl Iterator<Item = SystemSection> {
        let rest = SystemSection::ALL
            .into_iter()
            .filter(|section| !self.order.contains(section));
        self.order.iter().copied().chain(rest)
    }

    /// Returns the template of a section. The template begins with the section's heading, which the
    /// integrity check looks for.
    fn section_template(
        &self,
        section: SystemSection,
        detail: SystemDetail,
        input: &SystemInput<'_>,
    ) -> Cow<'_, str> {
        // A system prompt given for this run takes precedence over the configured one.
        let is_given = section == SystemSection::Role && matches!(input.role, RoleText::Custom(_));
        match self.replaced.get(&section).filter(|_| !is_given) {
            None => section
                .prompt_for_detail(detail)
                .text(input.language)
                .into(),
            Some(text)
                if text.trim_start().lines().next().unwrap_or_default() == section.heading() =>
            {
                text.into()
            }
            Some(text) => format!("{}\n\n{text}", section.heading()).into(),
        }
    }
}

/// The sections that every request to a full-size model must have.
pub(crate) const REQUIRED_SECTIONS: &[SystemSection] = &[
    SystemSection::Capabilities,
    SystemSection::Rules,
    SystemSection::SystemInformation,
    SystemSection::Objective,
];

/// The sections that every request to a small model must have.
pub(crate) const REQUIRED_SMALL_SECTIONS: &[SystemSection] =
    &[SystemSection::Rules, SystemSection::SystemInformation];

/// The sections that even the most reduced system layer must have.
pub(crate) const REQUIRED_BARE_SECTIONS: &[SystemSection] = &[SystemSection::Rules];

/// The amount of text in the system layer. Less text is used for small models, and if room is
/// short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SystemDetail {
    Full,
    /// The layer contains all sections except examples, case documents and package context.
    Short,
    /// The layer contains only the sections that a small model needs: role, tools, rules, system
    /// information, focus files and the user's own section.
    Small,
    /// The layer contains only role, tools and rules.
    Bare,
}

impl SystemDetail {
    fn is_brief(self) -> bool {
        matches!(self, Self::Small | Self::Bare)
    }

    fn guidelines_prompt(self) -> Prompt {
        if self.is_brief() {
            prompt!("../../templates/small/guidelines")
        } else {
            prompt!("../../templates/guidelines")
        }
    }
}

const SEPARATOR: &str = "\n\n====\n\n";

macro_rules! sections {
    ($($section:ident $name:literal $heading:literal,)*) => {
        impl SystemSection {
            const ALL: [Self; 11] = [$(Self::$section),*];

            /// Returns the untranslated heading with which the section begins. The heading is empty
            /// for a section without one.
            pub(crate) fn heading(self) -> &'static str {
                match self { $(Self::$section => $heading),* }
            }

            fn name(self) -> &'static str {
                match self { $(Self::$section => $name),* }
            }

            fn prompt(self) -> Prompt {
                match self { $(Self::$section => prompt!(concat!("../../templates/", $name))),* }
            }
        }
    };
}

sections! {
    Role "role" "",
    ToolUse "tool_use" "TOOL USE",
    PackageContext "package_context" "PROJECT PACKAGE CONTEXT",
    Capabilities "capabilities" "CAPABILITIES",
    Rules "rules" "RULES",
    HaftAdds "haft_adds" "WHAT HAFT ADDS",
    SystemInformation "system_information" "SYSTEM INFORMATION",
    Objective "objective" "OBJECTIVE",
    DefaultWorkflow "default_workflow" "DEFAULT WORKFLOW",
    FocusFiles "focus_files" "",
    Append "append" "",
}

impl SystemSection {
    /// True if a rendered system layer contains this section.
    pub(crate) fn is_part_of(self, text: &str) -> bool {
        text.split(SEPARATOR)
            .any(|section| section.lines().next() == Some(self.heading()))
    }

    /// Returns the section's built-in template for this level of detail; small models get shorter
    /// texts.
    fn prompt_for_detail(self, detail: SystemDetail) -> Prompt {
        match self {
            Self::Role if detail.is_brief() => prompt!("../../templates/small/role"),
            Self::ToolUse if detail.is_brief() => prompt!("../../templates/small/tool_use"),
            Self::Rules if detail.is_brief() => prompt!("../../templates/small/rules"),
            Self::SystemInformation if detail.is_brief() => {
                prompt!("../../templates/small/system_information")
            }
            _ => self.prompt(),
        }
    }

    fn is_rendered_at(self, detail: SystemDetail) -> bool {
        match detail {
            SystemDetail::Full | SystemDetail::Short => true,
            SystemDetail::Small => matches!(
                self,
                Self::Role
                    | Self::ToolUse
                    | Self::Rules
                    | Self::SystemInformation
                    | Self::FocusFiles
                    | Self::Append
            ),
            SystemDetail::Bare => matches!(self, Self::Role | Self::ToolUse | Self::Rules),
        }
    }
}

/// The variables of the templates. A tool is represented only by its name, because its schema is
/// sent in the API's own field or in the call format.
#[derive(Serialize)]
struct SystemView<'a> {
    role: Option<&'a str>,
    tools: Vec<&'a str>,
    deferred: Vec<&'a str>,
    protocol: ToolProtocol,
    call_format: Option<&'a str>,
    reminders_in_results: bool,
    lists: &'a [String],
    examples: &'a [String],
    guidelines: Vec<String>,
    cases: &'a [String],
    package_context: Option<&'a str>,
    environment: &'a Environment,
    focus_files: &'a [String],
    append: Option<&'a str>,
}

/// Renders the system layer for a full-size model.
pub fn render_system(input: &SystemInput<'_>) -> Result<String, ContextError> {
    render_system_detail(input, SystemDetail::Full)
}

/// Renders the system layer for a small model.
pub fn render_small_system(input: &SystemInput<'_>) -> Result<String, ContextError> {
    render_system_detail(input, SystemDetail::Small)
}

pub(crate) fn render_system_detail(
    input: &SystemInput<'_>,
    detail: SystemDetail,
) -> Result<String, ContextError> {
    let input = match detail {
        SystemDetail::Full => input,
        SystemDetail::Short | SystemDetail::Small | SystemDetail::Bare => &SystemInput {
            examples: &[],
            cases: &[],
            package_context: None,
            ..*input
        },
    };
    let role = match input.role {
        RoleText::BuiltIn => None,
        RoleText::Role(text) | RoleText::Custom(text) => {
            Some(text.trim()).filter(|text| !text.is_empty())
        }
    };
    let mut view = SystemView {
        role,
        tools: list_names(input.tools),
        deferred: list_names(input.deferred),
        call_format: match input.protocol {
            ToolProtocol::Native => None,
            ToolProtocol::Xml | ToolProtocol::React => input.call_format,
        },
        protocol: input.protocol,
        reminders_in_results: input.reminders_in_results,
        lists: input.lists,
        examples: input.examples,
        guidelines: Vec::new(),
        cases: input.cases,
        package_context: input.package_context,
        environment: input.environment,
        focus_files: input.focus_files,
        append: input.append,
    };
    let engine = new_template_engine()?;
    // One guideline per line, numbered after rendering, because the tools decide which guidelines
    // apply.
    let general = render_section(
        &engine,
        "guidelines",
        detail.guidelines_prompt().text(input.language),
        &view,
    )?;
    let general = general
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(str::to_owned);
    view.guidelines = general.chain(input.guidelines.iter().cloned()).collect();

    let mut text = String::new();
    for section in input
        .sections
        .ordered_sections()
        .filter(|section| section.is_rendered_at(detail))
    {
        let rendered = render_section(
            &engine,
            section.name(),
            &input.sections.section_template(section, detail, input),
            &view,
        )?;
        let rendered = rendered.trim();
        if rendered.is_empty() {
            continue;
        }
        if !text.is_empty() {
            text.push_str(SEPARATOR);
        }
        text.push_str(rendered);
    }
    text.push('\n');
    Ok(text)
}

fn list_names(tools: &[ToolSpec]) -> Vec<&str> {
    tools.iter().map(|tool| tool.name.as_str()).collect()
}

fn new_template_engine() -> Result<minijinja::Environment<'static>, ContextError> {
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build();
    let syntax = syntax.map_err(|source| ContextError::Template {
        section: "syntax",
        source,
    })?;
    let mut engine = minijinja::Environment::new();
    engine.set_undefined_behavior(UndefinedBehavior::Strict);
    engine.set_syntax(syntax);
    Ok(engine)
}

/// Renders a template with the given variables.
pub(crate) fn render_template(
    section: &'static str,
    template: &str,
    values: &minijinja::Value,
) -> Result<String, ContextError> {
    let rendered = new_template_engine()?.render_named_str(section, template, values.clone());
    rendered.map_err(|source| ContextError::Template { section, source })
}

fn render_section(
    engine: &minijinja::Environment<'_>,
    section: &'static str,
    template: &str,
    view: &SystemView<'_>,
) -> Result<String, ContextError> {
    engine
        .render_named_str(section, template, Serde(view))
        .map_err(|source| ContextError::Template { section, source })
}

/// Returns the system message with this text. Its id is derived from the text, so an unchanged text
/// gives an equal message.
pub fn system_entry(text: impl AsRef<str>, counter: &dyn TokenCounter) -> Arc<Entry> {
    EntryMaker {
        counter,
        memo: None,
        recall: RecallTool::Missing,
    }
    .engine_entry("system", Role::System, text.as_ref())
}

#[cfg(test)]
mod tests;
