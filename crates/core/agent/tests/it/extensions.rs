//! What a session has of an extension: tools, rules, notices; and a section whose owner is not in
//! the build.

use std::sync::Arc;

use async_trait::async_trait;
use haft_agent::config::{ConfigSources, Section, load_config};
use haft_agent::{
    AbsentExtension, Agent, Contribution, Extension, ExtensionContext, HostEnvironment, Places,
};
use haft_engine::Notice;
use haft_model::ProviderConfig;
use haft_testkit::Reply;
use haft_tool::{Access, Intent, Tool, ToolContext, ToolOutput};
use haft_types::{Api, Envelope, Event, EventBody, ToolSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ClockConfig {
    zone: String,
}

struct TimeTool {
    spec: ToolSpec,
    zone: String,
}

#[async_trait]
impl Tool for TimeTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn access(&self) -> Access {
        Access::Read
    }

    fn intent(&self, _: &Value) -> Intent {
        Intent::Nothing
    }

    async fn call(&self, _: &ToolContext, _: Value) -> ToolOutput {
        Envelope::success(format!(
            "noon in {}, as sk-secret-0123456789 knows",
            self.zone
        ))
        .into()
    }
}

struct ClockExtension;

impl Extension for ClockExtension {
    fn sections(&self) -> Vec<Section> {
        vec![Section::for_type::<ClockConfig>("clock")]
    }

    fn contribute(&self, context: &ExtensionContext<'_>) -> Contribution {
        let config: ClockConfig = context.config.read_section("clock").unwrap();
        let spec = ToolSpec {
            name: "time".into(),
            description: "The time.".into(),
            parameters: json!({"type": "object"}),
        };
        Contribution {
            tools: vec![Arc::new(TimeTool {
                spec,
                zone: config.zone,
            })],
            secrets: vec!["sk-secret-0123456789".into()],
            notices: vec![Notice {
                code: "clock",
                message: "the clock is slow".into(),
                failed: false,
            }],
            ..Contribution::default()
        }
    }
}

#[tokio::test]
async fn session_includes_contributions_of_extensions() {
    let server = super::start_server([Reply::call("time", json!({})), Reply::text("Noon.")]).await;
    let folder = tempfile::tempdir().unwrap();
    let extensions: [Arc<dyn Extension>; 2] = [
        Arc::new(ClockExtension),
        Arc::new(AbsentExtension::new("moon", "moon", "moon")),
    ];
    let loaded = load_config(&ConfigSources {
        set: vec!["clock.zone=Zürich".into(), "moon.phase=3".into()],
        sections: extensions
            .iter()
            .flat_map(|extension| extension.sections())
            .collect(),
        ..ConfigSources::default()
    });
    let environment = HostEnvironment::default()
        .with_helper_program(haft_sandbox::OwnProgram::open_running().unwrap());
    let places = Places::under_home(&folder.path().join("home"), environment);
    let agent = Agent::new(places, loaded.unwrap().config)
        .project(folder.path())
        .with_provider(
            "mock",
            ProviderConfig::new(Api::Anthropic, server.base_url(Api::Anthropic)),
        )
        .model("mock/any")
        .with_extensions(extensions);
    let mut session = agent.start("What time is it?").await.unwrap();
    let mut notices = Vec::new();
    let mut hear = |event: &Event| {
        if let EventBody::Notice { code, message } | EventBody::Error { code, message } =
            &event.body
        {
            notices.push((code.clone(), message.clone()));
        }
    };
    let report = session
        .run(
            Some("What time is it?".into()),
            &mut hear,
            &CancellationToken::new(),
        )
        .await;
    session.close().await;
    assert_eq!(report.result.text, "Noon.");
    let request = server.generation_requests()[1].decode().unwrap();
    assert!(
        request.last_message_contains("noon in Zürich"),
        "the section is read"
    );
    assert!(
        !request.last_message_contains("sk-secret"),
        "its secrets are masked"
    );
    let codes: Vec<_> = notices.iter().map(|(code, _)| code.as_str()).collect();
    assert_eq!(codes, ["untrusted", "clock", "moon"]);
    assert!(
        notices[2]
            .1
            .contains("built without it; build it with `--features moon`"),
        "{}",
        notices[2].1
    );
}

#[test]
fn absent_extension_without_its_section_has_no_effect() {
    let sections = AbsentExtension::new("moon", "moon", "moon").sections();
    let loaded = load_config(&ConfigSources {
        sections,
        ..ConfigSources::default()
    })
    .unwrap();
    assert!(!loaded.values.contains_key("moon") && loaded.config.sections.is_empty());
}
