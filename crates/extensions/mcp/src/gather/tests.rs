use haft_types::Decision;

use super::*;

fn variable(name: &str) -> Option<String> {
    match name {
        "HOME" => Some("/home/me".into()),
        "TOKEN" => Some("t0ken".into()),
        _ => None,
    }
}

fn gather_servers(user: &[(&str, ServerConfig)], project: Option<&str>) -> Gathered {
    let user = user
        .iter()
        .map(|(name, config)| ((*name).to_owned(), config.clone()))
        .collect();
    let path = Path::new("/p/.mcp.json");
    let project = project.map(|text| ProjectFile { path, text });
    gather_declared(
        &user,
        Path::new("/c/config.toml"),
        project,
        Path::new("/p"),
        &variable,
    )
}

fn program(command: &str) -> ServerConfig {
    ServerConfig {
        command: Some(command.into()),
        ..ServerConfig::default()
    }
}

fn names(gathered: &Gathered) -> Vec<&str> {
    gathered
        .servers
        .iter()
        .map(|server| server.name.as_str())
        .collect()
}

#[test]
fn gather_prefers_the_users_server_even_if_disabled() {
    let off = ServerConfig {
        enabled: false,
        ..program("mine")
    };
    let project = r#"{"mcpServers": {
        "both": {"command": "theirs"}, "off": {"command": "theirs"}, "alone": {"command": "theirs"}}}"#;
    let gathered = gather_servers(&[("both", program("mine")), ("off", off)], Some(project));
    assert_eq!(names(&gathered), ["alone", "both"]);
    assert_eq!(gathered.servers[1].endpoint.to_string(), "mine");
    assert_eq!(gathered.servers[0].origin, ServerOrigin::Project);
    assert_eq!(gathered.disabled, ["off"]);
    assert_eq!(gathered.problems, []);
}

#[test]
fn gather_names_bad_entries_and_keeps_the_others() {
    let project = r#"{"mcpServers": {
        "none": {}, "sse": {"type": "sse", "url": "http://h/sse"}, "good": {"command": "run"},
        "unset": {"command": "run", "env": {"KEY": "${MISSING}"}}, "shape": {"command": 3},
        "a__b": {"command": "run"}, "ftp": {"url": "ftp://h"}}}"#;
    let token = ServerConfig {
        url: Some("http://h".into()),
        bearer_token_env: Some("MISSING".into()),
        ..ServerConfig::default()
    };
    let both = ServerConfig {
        url: Some("http://h".into()),
        ..program("run")
    };
    let gathered = gather_servers(&[("token", token), ("both", both)], Some(project));
    assert_eq!(names(&gathered), ["good"]);
    let told: Vec<_> = gathered.problems.iter().map(ToString::to_string).collect();
    for (name, place, words) in [
        (
            "token",
            "`/c/config.toml`, key `mcp_servers.token.bearer_token_env`",
            "`MISSING` is not set",
        ),
        (
            "both",
            "key `mcp_servers.both.url`",
            "both `command` and `url`",
        ),
        (
            "none",
            "`/p/.mcp.json`, key `mcpServers.none`",
            "neither `command` nor `url`",
        ),
        ("sse", "key `mcpServers.sse.type`", "`http` address"),
        (
            "unset",
            "key `mcpServers.unset.env.KEY`",
            "`${MISSING:-default}`",
        ),
        ("shape", "key `mcpServers.shape`", "expected a string"),
        ("a__b", "key `mcpServers.a__b`", "choose another"),
        ("ftp", "key `mcpServers.ftp.url`", "http://"),
    ] {
        let found = told
            .iter()
            .find(|line| line.contains(&format!("`{name}`")))
            .unwrap();
        assert!(found.contains(place) && found.contains(words), "{found}");
    }
    assert_eq!(told.len(), 8);
}

#[test]
fn gather_reports_invalid_json_and_keeps_the_users_servers() {
    for text in ["{", r#"{"mcpServers": []}"#] {
        let gathered = gather_servers(&[("mine", program("run"))], Some(text));
        assert_eq!(names(&gathered), ["mine"]);
        assert!(
            gathered.problems[0].to_string().contains("/p/.mcp.json"),
            "{:?}",
            gathered.problems
        );
    }
    assert_eq!(gather_servers(&[], Some("{}")), Gathered::default());
}

#[test]
fn gather_keeps_every_declared_setting() {
    let config = ServerConfig {
        args: vec!["-x".into()],
        env: [("A".into(), "b".into())].into(),
        cwd: Some("~/s".into()),
        timeout: 7,
        permission: Some(Decision::Allow),
        ..program("run")
    };
    let url = ServerConfig {
        url: Some("https://h/mcp".into()),
        bearer_token_env: Some("TOKEN".into()),
        headers: [("X-A".into(), "b".into())].into(),
        ..ServerConfig::default()
    };
    let gathered = gather_servers(&[("a", config), ("b", url)], None);
    let [a, b] = gathered.servers.as_slice() else {
        panic!("{gathered:?}")
    };
    assert_eq!(
        a.endpoint,
        ServerEndpoint::Command {
            program: "run".into(),
            args: vec!["-x".into()],
            env: vec![("A".into(), "b".into())],
            cwd: "/home/me/s".into(),
            starts_apart: false,
        }
    );
    assert_eq!(
        (a.timeout, a.permission),
        (Duration::from_secs(7), Some(Decision::Allow))
    );
    let headers = vec![("X-A".into(), "b".into())];
    assert_eq!(
        b.endpoint,
        ServerEndpoint::Http {
            url: "https://h/mcp".into(),
            headers,
            bearer: Some("t0ken".into())
        }
    );
}

#[test]
fn gather_expands_variables_of_the_project() {
    let project = r#"{"mcpServers": {"s": {"command": "${HOME}/bin/s", "args": ["${PORT:-80}"], "cwd": "sub"}}}"#;
    let gathered = gather_servers(&[], Some(project));
    let wanted = ServerEndpoint::Command {
        program: "/home/me/bin/s".into(),
        args: vec!["80".into()],
        env: vec![],
        cwd: "/p/sub".into(),
        starts_apart: false,
    };
    assert_eq!(gathered.servers[0].endpoint, wanted);
}
