//! A tool made of a parameter struct, a prompt and a function. Nearly every tool is made this way.
//!
//! The arguments of a call are parsed in one place, so that every tool reports invalid arguments
//! with one wording. The [`Intent`] of a call is computed from the raw arguments, before they are
//! parsed.

use async_trait::async_trait;
use futures::future::BoxFuture;
use haft_types::{Envelope, Prompt, ToolSpec};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    Access, CaseDocument, Gateway, Intent, InvalidArguments, Manual, PreviewResult, Tool,
    ToolContext, ToolOutput, ToolTexts, parameter_schema, parse_arguments,
};

type IntentFn = Box<dyn Fn(&Value) -> Intent + Send + Sync>;
type RunFn<P> = Box<dyn for<'a> Fn(&'a ToolContext, P) -> BoxFuture<'a, ToolOutput> + Send + Sync>;
type PreviewFn<P> =
    Box<dyn for<'a> Fn(&'a ToolContext, P) -> BoxFuture<'a, PreviewResult> + Send + Sync>;

/// A tool without its function: the text for the model, and the effects of its calls.
///
/// ```
/// use std::future::ready;
///
/// use haft_tool::{Access, Group, Intent, Manual, Tool, ToolDefinition};
/// use haft_types::Envelope;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// #[serde(deny_unknown_fields)]
/// struct Parameters {
///     /// The person to greet.
///     name: String,
/// }
///
/// static MANUAL: Manual = Manual::for_group(Group::Others);
///
/// fn greet(Parameters { name }: Parameters) -> Result<Envelope, Envelope> {
///     if name.is_empty() {
///         return Err(Envelope::failure("invalid_arguments", "`name` is empty; give a name"));
///     }
///     Ok(Envelope::success(format!("Hello, {name}.")))
/// }
///
/// let tool = ToolDefinition::new("greet", "Greets a person.", &MANUAL, Access::Read, |_| Intent::Nothing)
///     .with_function(|_, parameters| Box::pin(ready(greet(parameters))));
/// assert_eq!(tool.spec().parameters["required"][0], "name");
/// ```
pub struct ToolDefinition {
    name: &'static str,
    prompt: Prompt,
    manual: &'static Manual,
    access: Access,
    intent: IntentFn,
}

impl ToolDefinition {
    /// Creates a definition. The function `intent` receives the raw arguments of a call and returns
    /// the effects of the call.
    pub fn new(
        name: &'static str,
        prompt: impl Into<Prompt>,
        manual: &'static Manual,
        access: Access,
        intent: impl Fn(&Value) -> Intent + Send + Sync + 'static,
    ) -> Self {
        Self {
            name,
            prompt: prompt.into(),
            manual,
            access,
            intent: Box::new(intent),
        }
    }

    /// Completes the tool with the function that runs its calls. The function receives the
    /// arguments, parsed as `P`. The model reads the output of the function, both in the `Ok` and
    /// in the `Err` case.
    pub fn with_function<P, O, E>(
        self,
        run: impl for<'a> Fn(&'a ToolContext, P) -> BoxFuture<'a, Result<O, E>> + Send + Sync + 'static,
    ) -> FunctionTool<P>
    where
        P: DeserializeOwned + JsonSchema + Send + 'static,
        O: Into<ToolOutput> + 'static,
        E: Into<ToolOutput> + 'static,
    {
        let Self {
            name,
            prompt,
            manual,
            access,
            intent,
        } = self;
        let texts = ToolTexts::parse(prompt.english);
        let description = texts.description.to_owned();
        let spec = ToolSpec {
            name: name.to_owned(),
            description,
            parameters: parameter_schema::<P>(),
        };
        let manual = texts.fill_manual(*manual);
        let run: RunFn<P> = Box::new(move |context, parameters| {
            let result = run(context, parameters);
            Box::pin(async move { result.await.map_or_else(Into::into, Into::into) })
        });
        FunctionTool {
            name,
            spec,
            prompt,
            manual,
            access,
            intent,
            reachable: None,
            preview: None,
            run,
        }
    }
}

/// A tool whose calls are run by a function. Created with [`ToolDefinition::with_function`].
pub struct FunctionTool<P> {
    name: &'static str,
    spec: ToolSpec,
    prompt: Prompt,
    manual: Manual,
    access: Access,
    intent: IntentFn,
    reachable: Option<CaseDocument>,
    preview: Option<PreviewFn<P>>,
    run: RunFn<P>,
}

impl<P> FunctionTool<P> {
    /// Adds a list, under `heading`, of everything that can be reached through the tool. See
    /// [`Gateway::reachable`].
    #[must_use]
    pub fn with_reachable(self, heading: &str, text: String) -> Self {
        let tools = vec![self.name.to_owned()];
        Self {
            reachable: Some(CaseDocument {
                name: heading.to_owned(),
                text,
                tools,
            }),
            ..self
        }
    }

    /// Adds a function that computes the changes that a call would make in files. See
    /// [`Tool::preview`].
    #[must_use]
    pub fn with_preview(
        self,
        preview: impl for<'a> Fn(&'a ToolContext, P) -> BoxFuture<'a, PreviewResult>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self {
            preview: Some(Box::new(preview)),
            ..self
        }
    }
}

#[async_trait]
impl<P: DeserializeOwned + Send + 'static> Tool for FunctionTool<P> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn prompt(&self) -> Option<Prompt> {
        Some(self.prompt)
    }

    fn manual(&self) -> &Manual {
        &self.manual
    }

    fn gateway(&self) -> Option<&dyn Gateway> {
        self.reachable.as_ref()?;
        Some(self)
    }

    fn access(&self) -> Access {
        self.access
    }

    fn intent(&self, arguments: &Value) -> Intent {
        (self.intent)(arguments)
    }

    async fn preview(&self, context: &ToolContext, arguments: &Value) -> PreviewResult {
        let Some(preview) = &self.preview else {
            return Ok(None);
        };
        match parse_arguments(self.name, arguments.clone()) {
            Ok(parameters) => preview(context, parameters).await,
            Err(error) => Err(ToolOutput::from(error).envelope),
        }
    }

    async fn call(&self, context: &ToolContext, arguments: Value) -> ToolOutput {
        match parse_arguments(self.name, arguments) {
            Ok(parameters) => (self.run)(context, parameters).await,
            Err(error) => error.into(),
        }
    }
}

impl<P: Send + 'static> Gateway for FunctionTool<P> {
    fn reachable(&self) -> Option<&CaseDocument> {
        self.reachable.as_ref()
    }
}

impl From<InvalidArguments> for ToolOutput {
    fn from(error: InvalidArguments) -> Self {
        Envelope::failure("invalid_arguments", error.to_string()).into()
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use futures::FutureExt as _;
    use serde::Deserialize;
    use serde_json::json;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::{FileUse, Group};

    static MANUAL: Manual = Manual {
        example_of: "Trying it",
        ..Manual::for_group(Group::Files)
    };

    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct TouchParameters {
        /// Where.
        path: String,
    }

    fn tool() -> impl Tool {
        let definition = ToolDefinition::new(
            "touch",
            "Touches a file.\n",
            &MANUAL,
            Access::Write,
            |arguments| {
                Intent::from_parameters(arguments, |TouchParameters { path }| {
                    Intent::Files(vec![FileUse::Write(path)])
                })
            },
        );
        definition
            .with_function(|context, TouchParameters { path }| {
                let call = context.call_id.as_str();
                Box::pin(async move {
                    match path.as_str() {
                        "" => Err(Envelope::failure("invalid_path", "`path` is empty")),
                        path => Ok(Envelope::success(format!("{call}: {path}"))),
                    }
                })
            })
            .with_preview(|_, TouchParameters { path }| {
                Box::pin(ready(Ok(Some(format!("+++ {path}")))))
            })
    }

    fn context() -> ToolContext {
        ToolContext::bare("/nowhere", "call-1", CancellationToken::new())
    }

    #[test]
    fn definition_is_what_the_model_reads() {
        let tool = tool();
        let ToolSpec {
            name,
            description,
            parameters,
        } = tool.spec();
        assert_eq!(
            (name.as_str(), description.as_str()),
            ("touch", "Touches a file.")
        );
        assert_eq!(
            parameters["properties"]["path"],
            json!({"description": "Where.", "type": "string"})
        );
        assert_eq!(
            (tool.access(), tool.manual().example_of),
            (Access::Write, "Trying it")
        );
    }

    #[test]
    fn function_result_and_error_both_become_the_envelope() {
        let tool = tool();
        let context = context();
        let call = |path: &str| {
            tool.call(&context, json!({ "path": path }))
                .now_or_never()
                .unwrap()
                .envelope
        };
        assert_eq!(call("a").text, "call-1: a");
        let error = call("").error.unwrap();
        assert_eq!(
            (error.code.as_str(), error.message.as_str()),
            ("invalid_path", "`path` is empty")
        );
        assert_eq!(
            tool.preview(&context, &json!({"path": "a"}))
                .now_or_never()
                .unwrap(),
            Ok(Some("+++ a".into()))
        );
    }

    #[test]
    fn function_is_not_called_with_arguments_that_do_not_fit() {
        let tool = tool();
        let context = context();
        for arguments in [
            json!({}),
            json!({"path": 1}),
            json!({"path": "a", "more": true}),
        ] {
            let output = tool
                .call(&context, arguments.clone())
                .now_or_never()
                .unwrap();
            let error = output.envelope.error.unwrap();
            assert_eq!(error.code, "invalid_arguments");
            assert!(
                error.message.starts_with("invalid arguments for `touch`: "),
                "{}",
                error.message
            );
            assert_eq!(
                tool.preview(&context, &arguments)
                    .now_or_never()
                    .unwrap()
                    .unwrap_err()
                    .error,
                Some(error)
            );
            assert_eq!(tool.intent(&arguments), Intent::Nothing);
        }
        assert_eq!(
            tool.intent(&json!({"path": "a"})),
            Intent::Files(vec![FileUse::Write("a".to_owned())])
        );
    }
}
