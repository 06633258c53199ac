use super::*;

fn load_with(file: &str, environment: &[(&str, &str)], set: &[&str]) -> Result<Loaded, String> {
    let folder = tempfile::tempdir().unwrap();
    let user_file = folder.path().join("config.toml");
    std::fs::write(&user_file, file).unwrap();
    let sources = Sources {
        user_file: user_file.clone(),
        environment: environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        set: set.iter().map(|set| (*set).to_owned()).collect(),
    };
    load(&sources).map_err(|error| error.to_string().replace(&user_file.display().to_string(), "config.toml"))
}

#[test]
fn later_layers_win_and_each_value_knows_its_origin() {
    let file = "model = \"a/file\"\n[retry]\nattempts = 1\nbase_delay_ms = 10\n";
    let environment = [("HAFT_MODEL", "a/env"), ("HAFT_RETRY__ATTEMPTS", "2"), ("HAFT_HOME", "/x"), ("PATH", "/bin")];
    let loaded = load_with(file, &environment, &["model=a/flag"]).unwrap();
    assert_eq!(loaded.config.model.as_deref(), Some("a/flag"));
    assert_eq!((loaded.config.retry.attempts, loaded.config.retry.base_delay_ms), (2, 10));
    assert_eq!(loaded.origin("model"), Origin::Flag);
    assert_eq!(loaded.origin("retry.attempts"), Origin::Variable("HAFT_RETRY__ATTEMPTS".into()));
    assert!(matches!(loaded.origin("retry.base_delay_ms"), Origin::File(_)));
    assert_eq!(loaded.origin("retry.max_delay_ms"), Origin::BuiltIn);
}

#[test]
fn set_takes_toml_values_and_quoted_keys() {
    let file = "[providers.mock]\napi = \"openai-chat\"\nbase_url = \"http://x/v1\"\n";
    let loaded = load_with(file, &[], &["models.\"mock/a=b\".context_window = 1000"]).unwrap();
    assert_eq!(loaded.config.models["mock/a=b"].context_window, Some(1000));
}

#[test]
fn mistakes_name_their_place() {
    let cases: &[(&str, &[(&str, &str)], &[&str], &str)] = &[
        ("model = \n", &[], &[], "config.toml:1:9: "),
        ("modle = \"a/b\"\n", &[], &[], "config.toml:1:1: unknown key `modle`; did you mean `model`?"),
        ("[retry]\nattempts = \"x\"\n", &[], &[], "config.toml:2:12: "),
        (
            "",
            &[("HAFT_RETRY__ATEMPTS", "3")],
            &[],
            "environment variable `HAFT_RETRY__ATEMPTS`: unknown key `atempts`; did you mean `attempts`?",
        ),
        ("", &[], &["retry.attempts=many"], "`--set retry.attempts=many`: invalid type"),
        ("", &[], &["retry"], "`--set retry`: expected KEY=VALUE"),
    ];
    for (file, environment, set, expected) in cases {
        let error = load_with(file, environment, set).unwrap_err();
        assert!(error.starts_with(expected), "expected {expected}\n   found {error}");
        assert!(!error.contains('\n'), "one line: {error}");
    }
}

#[test]
fn a_missing_file_is_no_mistake() {
    let loaded = load(&Sources { user_file: "/nonexistent/config.toml".into(), ..Sources::default() }).unwrap();
    assert_eq!(loaded.config, Config::default());
}
