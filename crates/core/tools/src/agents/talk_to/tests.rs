use std::sync::Mutex;

use async_trait::async_trait;
use haft_tool::GroupDelivery;
use serde_json::json;

use super::*;
use crate::agents::talk_to_group;
use crate::testing::Bench;

#[derive(Default)]
struct Carried(Mutex<Vec<String>>);

fn not_delivered_to(name: &str) -> DeliveryError {
    DeliveryError::NotRunning {
        name: name.to_owned(),
        running: vec!["main".into()],
    }
}

#[async_trait]
impl AgentMessenger for Carried {
    async fn send(&self, to: &str, text: &str) -> Result<(), DeliveryError> {
        if to != "tester" {
            return Err(not_delivered_to(to));
        }
        self.0.lock().unwrap().push(format!("{to}: {text}"));
        Ok(())
    }

    async fn send_to_group(
        &self,
        group: &str,
        _text: &str,
    ) -> Result<GroupDelivery, DeliveryError> {
        if group != "all" {
            return Err(DeliveryError::NoGroup {
                name: group.into(),
                groups: vec!["all".into()],
            });
        }
        Ok(GroupDelivery {
            reached: vec!["tester".into()],
            failed: vec![("ghost".into(), not_delivered_to("ghost"))],
        })
    }
}

#[tokio::test]
async fn talk_to_delivers_only_to_running_agents() {
    let post = Arc::new(Carried::default());
    let tool = define_tool(Arc::<Carried>::clone(&post) as _);
    let bench = Bench::new();
    let told = bench
        .run(&tool, json!({"agent": "tester", "message": " go on \n"}))
        .await;
    assert_eq!(told.envelope.text, "Delivered to `tester`.");
    assert_eq!(*post.0.lock().unwrap(), ["tester: go on"]);
    let lost = bench
        .run(&tool, json!({"agent": "x", "message": "hi"}))
        .await
        .envelope;
    assert_eq!(lost.error.unwrap().code, "unknown_agent");
    assert!(lost.text.contains("running are: main"), "{}", lost.text);
    let empty = bench
        .run(&tool, json!({"agent": "tester", "message": " "}))
        .await
        .envelope;
    assert_eq!(
        (
            empty.error.unwrap().code.as_str(),
            post.0.lock().unwrap().len()
        ),
        ("invalid_arguments", 1)
    );
}

#[tokio::test]
async fn talk_to_group_names_members_that_were_not_reached() {
    let tool = talk_to_group::define_tool(Arc::new(Carried::default()));
    let bench = Bench::new();
    let told = bench
        .run(&tool, json!({"group": "all", "message": "hi"}))
        .await
        .envelope;
    assert_eq!(
        told.text,
        "Delivered to `tester`. Not reached: no agent `ghost` is running; running are: main."
    );
    assert_eq!(told.status, haft_types::ToolStatus::Partial);
    let lost = bench
        .run(&tool, json!({"group": "none", "message": "hi"}))
        .await
        .envelope;
    assert_eq!(lost.text, "there is no group `none`; there are: all");
}
