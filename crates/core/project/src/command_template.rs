//! Commands of auto-coder: Jinja templates with variables, such as `{{ query }}`.
//!
//! Invariant: rendering always ends, because fuel is limited, and a template can neither read files
//! nor include others. Values are inserted as they are: text in them that resembles a template
//! stays literal.

use std::collections::{BTreeMap, BTreeSet};

use minijinja::{AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior};

/// The variable that contains the text after the command's name.
const QUERY: &str = "query";
/// The maximum number of units of fuel for rendering a template. Every instruction uses fuel, so an
/// endless loop ends with an error.
const TEMPLATE_FUEL: u64 = 100_000;
/// The maximum size of a rendered template, in bytes.
const MAX_PROMPT_BYTES: usize = 2_000_000;
/// The names of the functions that a template may call, which are not variables.
const FUNCTIONS: [&str; 3] = ["range", "dict", "namespace"];

/// The variables of a command's template.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandVariables {
    /// All variables, each with its default value. A variable without a default is undefined unless
    /// the user gives a value.
    defaults: BTreeMap<String, Option<String>>,
}

impl CommandVariables {
    /// Finds the variables of a template, and checks that the template can be rendered. The error
    /// describes the problem and gives its line, from 1.
    pub(crate) fn find(template: &str) -> Result<Self, (String, usize)> {
        let environment = create_environment();
        let used: BTreeSet<_> = environment
            .template_from_str(template)
            .map_err(|error| describe_error(&error))?
            .undeclared_variables(false)
            .into_iter()
            .filter(|name| !FUNCTIONS.contains(&name.as_str()))
            .collect();
        let mut defaults: BTreeMap<_, _> = used.into_iter().map(|name| (name, None)).collect();
        defaults.extend(find_declarations(template));
        let variables = Self { defaults };
        // A filter that does not exist is reported when the template is rendered.
        variables.render(template, "")?;
        Ok(variables)
    }

    /// Renders the template. `name=value` in `arguments` sets a variable of the template; all other
    /// text is the value of `query`, or is appended if the template does not use `query`.
    pub(crate) fn render(
        &self,
        template: &str,
        arguments: &str,
    ) -> Result<String, (String, usize)> {
        let (mut values, text) = self.split_arguments(arguments);
        let mut appended = None;
        if !text.is_empty() {
            if self.defaults.contains_key(QUERY) && !values.contains_key(QUERY) {
                values.insert(QUERY.to_owned(), text);
            } else {
                appended = Some(text);
            }
        }
        for (name, default) in &self.defaults {
            if let Some(default) = default.as_ref().filter(|_| !values.contains_key(name)) {
                values.insert(name.clone(), default.clone());
            }
        }
        let mut rendered = create_environment()
            .render_str(template, &values)
            .map_err(|error| describe_error(&error))?
            .trim()
            .to_owned();
        if rendered.len() > MAX_PROMPT_BYTES {
            let what = format!("the prompt is longer than {MAX_PROMPT_BYTES} bytes");
            return Err((what, 1));
        }
        if let Some(text) = appended {
            rendered.push_str("\n\n");
            rendered.push_str(&text);
        }
        Ok(rendered)
    }

    /// Splits arguments into the values of variables and the remaining text. Without values, the
    /// text is unchanged, including its quotes and line breaks.
    fn split_arguments(&self, arguments: &str) -> (BTreeMap<String, String>, String) {
        let mut values = BTreeMap::new();
        let mut rest = Vec::new();
        for word in crate::commands::split_words(arguments) {
            match word.split_once('=') {
                Some((name, value)) if self.defaults.contains_key(name) => {
                    values.insert(name.to_owned(), value.to_owned());
                }
                _ => rest.push(word),
            }
        }
        if values.is_empty() {
            return (values, arguments.trim().to_owned());
        }
        (values, rest.join(" "))
    }

    /// Describes the arguments of the command: each variable as `[name=…]`, and the text. Returns
    /// `None` if the template has no variables.
    pub(crate) fn describe_arguments(&self) -> Option<String> {
        let names = self.defaults.keys().filter(|name| *name != QUERY);
        let mut all: Vec<_> = names.map(|name| format!("[{name}=…]")).collect();
        all.extend(
            self.defaults
                .contains_key(QUERY)
                .then(|| format!("[{QUERY}]")),
        );
        (!all.is_empty()).then(|| all.join(" "))
    }
}

fn create_environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Lenient);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_fuel(Some(TEMPLATE_FUEL));
    environment
}

/// Finds the declarations of variables in comments: `{# @var: name, default: value #}`. A
/// description may follow.
fn find_declarations(template: &str) -> Vec<(String, Option<String>)> {
    let comments = template
        .split("{#")
        .skip(1)
        .filter_map(|rest| rest.split_once("#}"));
    comments
        .filter_map(|(comment, _)| {
            let mut parts = comment.trim().strip_prefix("@var:")?.split(',');
            let name = parts.next()?.trim();
            let default = parts.find_map(|part| part.trim().strip_prefix("default:"));
            (!name.is_empty())
                .then(|| (name.to_owned(), default.map(|text| text.trim().to_owned())))
        })
        .collect()
}

fn describe_error(error: &Error) -> (String, usize) {
    let what = match error.kind() {
        ErrorKind::OutOfFuel => "the template takes too long; loop over less".to_owned(),
        kind => match error.detail() {
            Some(detail) => format!("the template cannot be used: {kind}: {detail}"),
            None => format!("the template cannot be used: {kind}"),
        },
    };
    (what, error.line().unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(template: &str, arguments: &str) -> String {
        CommandVariables::find(template)
            .and_then(|variables| variables.render(template, arguments))
            .unwrap_or_else(|(what, line)| format!("line {line}: {what}"))
    }

    const RUN: &str = "{% if path %}\nRun {{ path }}.\n{% else %}\nRun it.\n{% endif %}\n{% if query %}\n<query>{{ query }}</query>\n{% endif %}\n";

    #[test]
    fn render_fills_variables_from_the_arguments() {
        for (template, arguments, expected) in [
            (RUN, "", "Run it."),
            (RUN, "path=a.sh", "Run a.sh."),
            (
                RUN,
                "path='a b.sh' fast please",
                "Run a b.sh.\n\n\n<query>fast please</query>",
            ),
            (
                RUN,
                "query=\"say it's\" more",
                "Run it.\n\n\n<query>say it's</query>\n\nmore",
            ),
            (
                "{{ query }}!",
                "keep  'these' \"quotes\"",
                "keep  'these' \"quotes\"!",
            ),
            ("No place.", "a=b", "No place.\n\na=b"),
            (
                "{# @var: who, default: me, description: x #}Hi {{ who }}.",
                "",
                "Hi me.",
            ),
            (
                "{# @var: who, default: me #}Hi {{ who }}.",
                "who=you",
                "Hi you.",
            ),
            (
                "{{ query }}",
                "{{ 1 + 1 }} {% include 'x' %}",
                "{{ 1 + 1 }} {% include 'x' %}",
            ),
            ("{{ query }}", "!`rm x`", "!`rm x`"),
        ] {
            assert_eq!(
                render(template, arguments),
                expected,
                "{template} {arguments}"
            );
        }
    }

    #[test]
    fn find_names_what_a_template_cannot_do() {
        for (template, problem) in [
            ("a\n{% if %}", "line 2: the template cannot be used"),
            (
                "{% include '/etc/passwd' %}",
                "line 1: the template cannot be used: template not found",
            ),
            (
                "\n{{ query|shell }}",
                "line 2: the template cannot be used: unknown filter",
            ),
            (
                "{{ lookup('x') }}",
                "line 1: the template cannot be used: unknown function",
            ),
            (
                "{% for a in range(100000000) %}{% endfor %}",
                "line 1: the template",
            ),
        ] {
            let told = render(template, "");
            assert!(told.starts_with(problem), "{template}: {told}");
        }
    }

    #[test]
    fn arguments_are_described_with_the_query_last() {
        let hint = |template: &str| {
            CommandVariables::find(template)
                .unwrap()
                .describe_arguments()
        };
        assert_eq!(hint(RUN).as_deref(), Some("[path=…] [query]"));
        assert_eq!(hint("Nothing."), None);
    }
}
