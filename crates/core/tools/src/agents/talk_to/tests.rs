use std::sync::Mutex;

use async_trait::async_trait;
use haft_tool::GroupDelivery;
use serde_json::json;

use super::*;
use crate::agents::talk_to_group;
use crate::testing::Bench;

#[derive(Default)]
struct Carried(Mutex<Vec<String>>);

fn nobody(name: &str) -> NotDelivered {
    NotDelivered::NobodyThere {
        name: name.to_owned(),
        running: vec!["main".into()],
    }
}

#[async_trait]
impl Post for Carried {
    async fn send(&self, to: &str, text: &str) -> Result<(), NotDelivered> {
        if to != "tester" {
            return Err(nobody(to));
        }
        self.0.lock().unwrap().push(format!("{to}: {text}"));
        Ok(())
    }

    async fn send_to_group(&self, group: &str, _text: &str) -> Result<GroupDelivery, NotDelivered> {
        if group != "all" {
            return Err(NotDelivered::NoGroup {
                name: group.into(),
                groups: vec!["all".into()],
            });
        }
        Ok(GroupDelivery {
            reached: vec!["tester".into()],
            failed: vec![("ghost".into(), nobody("ghost"))],
        })
    }
}

#[tokio::test]
async fn a_message_reaches_who_runs_and_nobody_else() {
    let post = Arc::new(Carried::default());
    let tool = tool(Arc::<Carried>::clone(&post) as _);
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
async fn who_of_a_group_was_not_reached_is_named() {
    let tool = talk_to_group::tool(Arc::new(Carried::default()));
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
