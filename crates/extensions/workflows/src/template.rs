//! Renders prompt templates of steps, and finds the variables that a template uses.
//!
//! Invariant: rendering always ends, because fuel is limited, and a template can neither read files
//! nor include others.

use std::collections::{BTreeMap, BTreeSet};

use minijinja::{AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior, context};

/// The maximum number of units of fuel for rendering one template. Every instruction uses fuel, so
/// an endless loop ends with an error. Prompts need far less.
const TEMPLATE_FUEL: u64 = 100_000;
/// The maximum size of a rendered prompt, in bytes.
const MAX_PROMPT_BYTES: usize = 2_000_000;
/// The names of the functions that a template may call, in addition to filters.
const FUNCTIONS: [&str; 3] = ["range", "dict", "namespace"];

/// An error in a template: the message and the line number, from 1.
pub(crate) type TemplateProblem = (String, usize);

fn create_environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_fuel(Some(TEMPLATE_FUEL));
    environment
}

/// A variable in a template: the output of a step, an input, or an unknown variable.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TemplateVariable {
    /// The output of the step with this name, as in `steps.NAME`.
    Step(String),
    /// The input with this name, as in `inputs.NAME`.
    Input(String),
    /// Any other variable, which is an error. The value is the variable's name.
    Other(String),
}

/// Returns the variables that a template uses, or an error if the template cannot be parsed.
pub(crate) fn find_variables(text: &str) -> Result<BTreeSet<TemplateVariable>, TemplateProblem> {
    let environment = create_environment();
    let template = environment
        .template_from_str(text)
        .map_err(|error| to_template_problem(&error))?;
    let classify = |path: String| {
        let mut parts = path.split('.');
        match (parts.next(), parts.next(), parts.next()) {
            (Some("inputs"), Some(name), None) => Some(TemplateVariable::Input(name.to_owned())),
            (Some("steps"), Some(name), Some("output")) => {
                Some(TemplateVariable::Step(name.to_owned()))
            }
            // A template may use the whole map, for example in a loop.
            (Some("steps" | "inputs"), None, None) => None,
            (Some(name), None, None) if FUNCTIONS.contains(&name) => None,
            _ => Some(TemplateVariable::Other(path)),
        }
    };
    Ok(template
        .undeclared_variables(true)
        .into_iter()
        .filter_map(classify)
        .collect())
}

/// Renders a template with the given inputs and step outputs.
pub(crate) fn render_template(
    text: &str,
    inputs: &BTreeMap<String, String>,
    outputs: &BTreeMap<String, String>,
) -> Result<String, TemplateProblem> {
    let steps: BTreeMap<_, _> = outputs
        .iter()
        .map(|(name, output)| (name.as_str(), context! { output }))
        .collect();
    let rendered = create_environment()
        .render_str(text, context! { inputs, steps })
        .map_err(|error| to_template_problem(&error))?;
    if rendered.len() > MAX_PROMPT_BYTES {
        return Err((
            format!("the prompt is longer than {MAX_PROMPT_BYTES} bytes"),
            1,
        ));
    }
    Ok(rendered)
}

fn to_template_problem(error: &Error) -> TemplateProblem {
    let what = match error.kind() {
        ErrorKind::OutOfFuel => "the template takes too long; loop over less".to_owned(),
        kind => match error.detail() {
            Some(detail) => format!("the template cannot be used: {kind}: {detail}"),
            None => format!("the template cannot be used: {kind}"),
        },
    };
    (what, error.line().unwrap_or(1))
}
