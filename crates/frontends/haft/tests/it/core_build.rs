//! A build without extensions: `cargo test -p haft --no-default-features --test it core_build`.

use haft_testkit::{Reply, Script};
use haft_types::Api;

use crate::rig::Rig;

#[test]
fn sections_of_extensions_load_with_a_notice() {
    let rig = Rig::new(
        Api::OpenaiChat,
        Script::replies([Reply::text("Done.")]).unwrap(),
    );
    let file = rig.home().join("config.toml");
    let before = std::fs::read_to_string(&file).unwrap();
    let sections = "[web]\ncrawl = true\n[rag.docs]\nfolders = [\"/srv/docs\"]\n[mcp_servers.git]\ncommand = \"git-server\"\n";
    std::fs::write(file, format!("{before}{sections}")).unwrap();
    let ran = rig.task(&["hello"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    let events = ran.events();
    let told: Vec<_> = events
        .iter()
        .filter(|event| event["type"] == "error")
        .collect();
    for (code, feature) in [("web", "web"), ("rag", "rag"), ("mcp_server", "mcp")] {
        let one = told
            .iter()
            .find(|event| event["code"] == code)
            .expect("a notice");
        assert!(
            one["message"]
                .as_str()
                .unwrap()
                .contains(&format!("--features {feature}")),
            "{one}"
        );
    }
}

#[test]
fn commands_of_extensions_are_absent() {
    let rig = Rig::new(Api::OpenaiChat, Script::replies([]).unwrap());
    let help = rig.run(&["--help"]).stdout();
    let absent = ["mcp", "rag", "workflows"]
        .iter()
        .all(|name| !help.contains(&format!("\n  {name} ")));
    assert!(help.contains("\n  tools ") && absent, "{help}");
}

#[test]
fn a_command_of_an_extension_is_no_prompt() {
    let rig = Rig::new(Api::OpenaiChat, Script::replies([]).unwrap());
    for (args, feature) in [
        (&["rag", "list"][..], "rag"),
        (&["mcp"], "mcp"),
        (&["workflow", "run", "mend"], "workflows"),
        (&["conversations", "import", "x.json"], "imports"),
        (&["context", "replay"], "lab"),
        (&["context", "render", "--from-file", "x.json"], "imports"),
    ] {
        let ran = rig.run(args);
        assert_eq!(ran.code(), 2, "{args:?}: {}", ran.stderr());
        assert!(
            ran.stderr().contains(&format!("--features {feature}")),
            "{args:?}: {}",
            ran.stderr()
        );
    }
}
