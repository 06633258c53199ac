use super::*;

fn catalogue() -> Catalogue {
    let mut models = BTreeMap::new();
    let declared =
        ModelConfig { context_window: Some(64_000), max_output_tokens: Some(4_000), ..ModelConfig::default() };
    models.insert("mock/vendor/model-1".to_owned(), declared);
    let mut providers = BTreeMap::new();
    providers.insert("mock".to_owned(), ProviderConfig::new(Api::OpenaiChat, "http://127.0.0.1:1/v1"));
    providers.insert("claude".to_owned(), ProviderConfig::new(Api::Anthropic, "http://127.0.0.1:1"));
    Catalogue::new(providers, models).unwrap()
}

#[test]
fn a_models_own_name_may_hold_slashes() {
    let found = catalogue().resolve("mock/vendor/model-1").unwrap().spec;
    assert_eq!((found.provider.as_str(), found.name.as_str()), ("mock", "vendor/model-1"));
    assert_eq!((found.context_window, found.max_output_tokens), (64_000, Some(4_000)));
    assert_eq!(found.full_name(), "mock/vendor/model-1");
}

#[test]
fn an_undeclared_model_of_a_declared_provider_gets_defaults() {
    let found = catalogue().resolve("claude/new").unwrap().spec;
    assert_eq!(found.context_window, 200_000);
    assert_eq!(found.max_output_tokens, None);
    assert_eq!(found.cache.rule, CacheKind::Anthropic);
    assert_eq!(found.price, None);
}

#[test]
fn errors_say_what_to_write() {
    let message = |name: &str| catalogue().resolve(name).unwrap_err().to_string();
    assert_eq!(message("gpt-5"), "`gpt-5` is not a model name; write `provider/model`, such as `mock/vendor/model-1`");
    assert_eq!(
        message("cluade/x"),
        "`cluade/x`: no provider `cluade` is declared; did you mean `claude`? declared are: claude, mock"
    );
    assert_eq!(message("other/x"), "`other/x`: no provider `other` is declared; declared are: claude, mock");
    assert!(message("/x").contains("not a model name"));
    assert!(message("mock/").contains("not a model name"));
}

#[test]
fn a_model_of_an_unknown_provider_is_an_error_at_once() {
    let models = [("nobody/x".to_owned(), ModelConfig::default())].into();
    let error = Catalogue::new(BTreeMap::new(), models).unwrap_err();
    assert!(error.to_string().contains("there are none: add a `[providers.NAME]` section"), "{error}");
}

#[test]
fn extra_fields_may_not_replace_what_haft_sets() {
    let mut provider = ProviderConfig::new(Api::OpenaiChat, "http://127.0.0.1:1/v1");
    provider.extra_body.insert("messages".into(), Value::Null);
    let error = Catalogue::new([("mock".to_owned(), provider)].into(), BTreeMap::new()).unwrap_err();
    assert_eq!(error, CatalogueError::ReservedKey { name: "mock".into(), key: "messages".into() });
}

#[test]
fn a_models_extra_fields_win_over_its_providers() {
    let mut provider = ProviderConfig::new(Api::OpenaiChat, "http://127.0.0.1:1/v1");
    provider.extra_body.insert("temperature".into(), 1.into());
    provider.extra_body.insert("seed".into(), 7.into());
    let mut model = ModelConfig::default();
    model.extra_body.insert("temperature".into(), 0.into());
    let catalogue =
        Catalogue::new([("mock".to_owned(), provider)].into(), [("mock/m".to_owned(), model)].into()).unwrap();
    let extra = catalogue.resolve("mock/m").unwrap().extra_body;
    assert_eq!(serde_json::to_string(&extra).unwrap(), r#"{"temperature":0,"seed":7}"#);
}
