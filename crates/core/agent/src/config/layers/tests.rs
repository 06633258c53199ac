use super::*;
use crate::config::ModelRole;

fn load_with(
    file: &str,
    environment: &[(&str, &str)],
    set: &[&str],
) -> Result<LoadedConfig, String> {
    let folder = tempfile::tempdir().unwrap();
    let user_file = folder.path().join("config.toml");
    std::fs::write(&user_file, file).unwrap();
    let sources = ConfigSources {
        user_file: user_file.clone(),
        environment: environment
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        set: set.iter().map(|set| (*set).to_owned()).collect(),
        sections: Vec::new(),
    };
    load_config(&sources).map_err(|error| {
        error
            .to_string()
            .replace(&user_file.display().to_string(), "config.toml")
    })
}

#[test]
fn load_prefers_later_layers_and_records_origins() {
    let file = "model = \"a/file\"\n[retry]\nattempts = 1\nbase_delay_ms = 10\n";
    let environment = [
        ("HAFT_MODEL", "a/env"),
        ("HAFT_RETRY__ATTEMPTS", "2"),
        ("HAFT_HOME", "/x"),
        ("PATH", "/bin"),
    ];
    let loaded = load_with(file, &environment, &["model=a/flag"]).unwrap();
    assert_eq!(loaded.config.model.as_deref(), Some("a/flag"));
    assert_eq!(
        (
            loaded.config.retry.attempts,
            loaded.config.retry.base_delay_ms
        ),
        (2, 10)
    );
    assert_eq!(loaded.value_origin("model"), ValueOrigin::Flag);
    assert_eq!(
        loaded.value_origin("retry.attempts"),
        ValueOrigin::Variable("HAFT_RETRY__ATTEMPTS".into())
    );
    assert!(matches!(
        loaded.value_origin("retry.base_delay_ms"),
        ValueOrigin::File(_)
    ));
    assert_eq!(
        loaded.value_origin("retry.max_delay_ms"),
        ValueOrigin::BuiltIn
    );
}

#[test]
fn load_parses_set_values_as_toml_with_quoted_keys() {
    let file = "[providers.mock]\napi = \"openai-chat\"\nbase_url = \"http://x/v1\"\n";
    let loaded = load_with(file, &[], &["models.\"mock/a=b\".context_window = 1000"]).unwrap();
    assert_eq!(loaded.config.models["mock/a=b"].context_window, Some(1000));
}

#[test]
fn load_accepts_a_provider_whose_keys_are_set_one_by_one() {
    let api = "providers.s.api=openai-chat";
    let url = "providers.s.base_url=http://x/v1";
    for set in [[api, url], [url, api]] {
        let loaded = load_with("", &[], &set).unwrap();
        assert_eq!(loaded.config.providers["s"].base_url, "http://x/v1");
    }
}

#[test]
fn load_errors_name_their_place() {
    type Case = (
        &'static str,
        &'static [(&'static str, &'static str)],
        &'static [&'static str],
        &'static str,
    );
    let cases: &[Case] = &[
        ("model = \n", &[], &[], "config.toml:1:9: "),
        (
            "modle = \"a/b\"\n",
            &[],
            &[],
            "config.toml:1:1: unknown key `modle`; did you mean `model`?",
        ),
        (
            "[retry]\nattempts = \"x\"\n",
            &[],
            &[],
            "config.toml:2:12: ",
        ),
        (
            "[limits]\nequal_results = 1\n",
            &[],
            &[],
            "config.toml:2:17: invalid value: integer `1`, expected a number from 2 to 100",
        ),
        (
            "",
            &[("HAFT_RETRY__ATEMPTS", "3")],
            &[],
            "environment variable `HAFT_RETRY__ATEMPTS`: unknown key `atempts`; did you mean `attempts`?",
        ),
        (
            "",
            &[],
            &["retry.attempts=many"],
            "`--set retry.attempts=many`: invalid type",
        ),
        (
            "",
            &[],
            &["model=a/b", "retry.attempts=many", "store.backups=3"],
            "`--set retry.attempts=many`: invalid type",
        ),
        (
            "",
            &[],
            &["providers.s.api=openai-chat", "model=s/x"],
            "`--set providers.s.api=openai-chat`: missing field `base_url`",
        ),
        ("", &[], &["retry"], "`--set retry`: expected KEY=VALUE"),
    ];
    for (file, environment, set, expected) in cases {
        let error = load_with(file, environment, set).unwrap_err();
        assert!(
            error.starts_with(expected),
            "expected {expected}\n   found {error}"
        );
        assert!(!error.contains('\n'), "one line: {error}");
    }
}

#[test]
fn load_without_a_file_gives_the_defaults() {
    let loaded = load_config(&ConfigSources {
        user_file: "/nonexistent/config.toml".into(),
        ..ConfigSources::default()
    })
    .unwrap();
    assert_eq!(loaded.config, Config::default());
}

#[test]
fn load_puts_declared_keys_over_built_in_ones() {
    let file = "[providers.openai]\nbase_url = \"http://127.0.0.1:9/v1\"\n\
                [models.\"anthropic/claude-opus-5\"]\nprice = { input = 1.5 }\ncache = { ttl = \"1h\" }\n";
    let loaded = load_with(
        file,
        &[],
        &["models.\"anthropic/claude-opus-5\".max_output_tokens=1000"],
    )
    .unwrap();
    let openai = &loaded.config.providers["openai"];
    assert_eq!(
        (openai.base_url.as_str(), openai.api_key_env.as_deref()),
        ("http://127.0.0.1:9/v1", Some("OPENAI_API_KEY"))
    );
    let opus = &loaded.config.models["anthropic/claude-opus-5"];
    let price = opus.price.unwrap();
    assert!((price.input - 1.5).abs() < 1e-9 && (price.output - 25.0).abs() < 1e-9);
    assert_eq!(
        (opus.context_window, opus.max_output_tokens),
        (Some(1_000_000), Some(1_000))
    );
    let cache = opus.cache.as_ref().unwrap();
    assert_eq!(
        (cache.ttl.as_str(), cache.min, cache.look_back),
        ("1h", 512, Some(20))
    );
    assert!(matches!(
        loaded.value_origin("models.\"anthropic/claude-opus-5\".price.input"),
        ValueOrigin::File(_)
    ));
    assert_eq!(
        loaded.value_origin("models.\"anthropic/claude-opus-5\".price.output"),
        ValueOrigin::BuiltIn
    );
    assert!(
        !loaded
            .config
            .models
            .contains_key("anthropic/claude-sonnet-5"),
        "the rest of the catalogue is not listed"
    );
}

#[test]
fn load_requires_all_fields_of_a_provider_that_is_not_built_in() {
    let error = load_with(
        "[providers.mine]\nbase_url = \"http://127.0.0.1:9/v1\"\n",
        &[],
        &[],
    )
    .unwrap_err();
    assert!(
        error.starts_with("config.toml:1:1: missing field `api`"),
        "{error}"
    );
    let error = load_with(
        "[providers.openai]\nbase = \"http://127.0.0.1:9/v1\"\n",
        &[],
        &[],
    )
    .unwrap_err();
    assert!(error.contains("unknown key `base`"), "{error}");
}

#[test]
fn model_role_is_one_model_or_several() {
    let roles = load_with(
        "[model_roles]\nmain = [\"a/b\", \"c/d\"]\nsummary = \"e/f\"\n",
        &[],
        &[],
    )
    .unwrap();
    assert_eq!(
        roles.config.models_for_role(ModelRole::Main),
        ["a/b", "c/d"]
    );
    assert_eq!(roles.config.models_for_role(ModelRole::Summary), ["e/f"]);
    assert_eq!(
        roles.config.models_for_role(ModelRole::Vision),
        ["a/b", "c/d"],
        "the main models play it"
    );
    let unknown = load_with("[model_roles]\nvisoin = \"a/b\"\n", &[], &[]).unwrap_err();
    assert!(
        unknown.contains("unknown key `visoin`; did you mean `vision`?"),
        "{unknown}"
    );
}

#[test]
fn models_of_lists_the_main_model_first_and_once() {
    let file = "model = \"c/d\"\n[model_roles]\nmain = [\"a/b\", \"c/d\"]\n";
    assert_eq!(
        load_with(file, &[], &[])
            .unwrap()
            .config
            .models_for_role(ModelRole::Title),
        ["c/d", "a/b"]
    );
}

#[test]
fn model_chosen_for_this_run_overrides_the_code_role() {
    let file = "model = \"a/b\"\n[model_roles]\ncode = [\"c/d\", \"e/f\"]\n";
    let code = |variables: &[(&str, &str)], set: &[&str]| {
        load_with(file, variables, set)
            .unwrap()
            .config
            .models_for_role(ModelRole::Code)
    };
    assert_eq!(code(&[], &[]), ["c/d", "e/f"]);
    assert_eq!(code(&[("HAFT_MODEL", "x/y")], &[]), ["x/y"]);
    assert_eq!(code(&[], &["model=\"x/y\""]), ["x/y"]);
}
