use super::*;

fn catalogue() -> Catalogue {
    let mut models = BTreeMap::new();
    let declared = ModelConfig {
        context_window: Some(64_000),
        max_output_tokens: Some(4_000),
        ..ModelConfig::default()
    };
    models.insert("mock/vendor/model-1".to_owned(), declared);
    let mut providers = BTreeMap::new();
    providers.insert(
        "mock".to_owned(),
        ProviderConfig::new(Api::OpenaiChat, "http://127.0.0.1:1/v1"),
    );
    providers.insert(
        "claude".to_owned(),
        ProviderConfig::new(Api::Anthropic, "http://127.0.0.1:1"),
    );
    Catalogue::new(providers, models).unwrap()
}

#[test]
fn resolve_accepts_slashes_in_a_models_own_name() {
    let found = catalogue().resolve("mock/vendor/model-1").unwrap().spec;
    assert_eq!(
        (found.provider.as_str(), found.name.as_str()),
        ("mock", "vendor/model-1")
    );
    assert_eq!(
        (found.context_window, found.max_output_tokens),
        (64_000, Some(4_000))
    );
    assert_eq!(found.full_name(), "mock/vendor/model-1");
}

#[test]
fn resolve_gives_defaults_to_undeclared_models_of_a_known_provider() {
    let found = catalogue().resolve("claude/new").unwrap().spec;
    assert_eq!(found.context_window, 200_000);
    assert_eq!(found.max_output_tokens, None);
    assert_eq!(found.cache.rule, CacheKind::Anthropic);
    assert_eq!(found.price, None);
}

#[test]
fn resolve_errors_suggest_names() {
    let message = |name: &str| catalogue().resolve(name).unwrap_err().to_string();
    assert_eq!(
        message("gpt-5"),
        "`gpt-5` is not a model name; write `provider/model`, such as `mock/vendor/model-1`"
    );
    assert_eq!(
        message("mock"),
        "`mock` is not a model name; write `provider/model`, such as `mock/vendor/model-1`"
    );
    assert_eq!(
        message("cluade/x"),
        "`cluade/x`: no provider `cluade` is declared; did you mean `claude`? declared are: claude, mock"
    );
    assert_eq!(
        message("other/x"),
        "`other/x`: no provider `other` is declared; declared are: claude, mock"
    );
    assert!(message("/x").contains("not a model name"));
    assert!(message("mock/").contains("not a model name"));
}

#[test]
fn nearest_name_counts_a_swap_as_one_edit() {
    let near = |name: &str| nearest_name(name, ["mode", "model", "help", "commit"].into_iter());
    for (name, nearest) in [
        ("modle", Some("mode")),
        ("hlep", Some("help")),
        ("comimt", Some("commit")),
        ("comit", Some("commit")),
        ("model", Some("model")),
        ("pehl", None),
    ] {
        assert_eq!(near(name).as_deref(), nearest, "{name}");
    }
}

#[test]
fn catalogue_rejects_a_model_of_an_unknown_provider() {
    let models = [("nobody/x".to_owned(), ModelConfig::default())].into();
    let error = Catalogue::new(BTreeMap::new(), models).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("there are none: add a `[providers.NAME]` section"),
        "{error}"
    );
}

#[test]
fn catalogue_rejects_extra_fields_that_haft_sets() {
    let mut provider = ProviderConfig::new(Api::OpenaiChat, "http://127.0.0.1:1/v1");
    provider.extra_body.insert("messages".into(), Value::Null);
    let error =
        Catalogue::new([("mock".to_owned(), provider)].into(), BTreeMap::new()).unwrap_err();
    assert_eq!(
        error,
        CatalogueError::ReservedKey {
            name: "mock".into(),
            key: "messages".into()
        }
    );
}

#[test]
fn model_extra_fields_override_its_providers() {
    let mut provider = ProviderConfig::new(Api::OpenaiChat, "http://127.0.0.1:1/v1");
    provider.extra_body.insert("temperature".into(), 1.into());
    provider.extra_body.insert("seed".into(), 7.into());
    let mut model = ModelConfig::default();
    model.extra_body.insert("temperature".into(), 0.into());
    let catalogue = Catalogue::new(
        [("mock".to_owned(), provider)].into(),
        [("mock/m".to_owned(), model)].into(),
    )
    .unwrap();
    let extra = catalogue.resolve("mock/m").unwrap().extra_body;
    assert_eq!(
        serde_json::to_string(&extra).unwrap(),
        r#"{"temperature":0,"seed":7}"#
    );
}

#[test]
fn built_in_models_resolve_without_declaration() {
    let catalogue = Catalogue::with_built_in(BTreeMap::new(), BTreeMap::new()).unwrap();
    let opus = catalogue.resolve("anthropic/claude-opus-5").unwrap();
    assert_eq!(
        (opus.spec.api, opus.spec.context_window),
        (Api::Anthropic, 1_000_000)
    );
    assert_eq!(
        opus.provider.api_key_env.as_deref(),
        Some("ANTHROPIC_API_KEY")
    );
    let new = catalogue.resolve("anthropic/claude-next").unwrap().spec;
    assert_eq!(
        (new.price, new.cache.rule, new.cache.look_back),
        (None, CacheKind::Anthropic, Some(20))
    );
    assert!((new.tokenizer_factor - 1.5).abs() < 1e-9);
    assert_eq!(
        catalogue.resolve("llamacpp/any").unwrap().spec.cache.rule,
        CacheKind::LlamaCpp
    );
}

#[test]
fn declared_model_replaces_the_built_in_one() {
    let mine = ProviderConfig::new(Api::OpenaiChat, "http://127.0.0.1:1/v1");
    let model = ModelConfig {
        context_window: Some(64_000),
        ..ModelConfig::default()
    };
    let models = [
        ("anthropic/claude-opus-5".to_owned(), model),
        ("mock/m".to_owned(), ModelConfig::default()),
    ]
    .into();
    let catalogue = Catalogue::with_built_in([("mock".to_owned(), mine)].into(), models).unwrap();
    assert_eq!(
        catalogue
            .resolve("anthropic/claude-opus-5")
            .unwrap()
            .spec
            .context_window,
        64_000
    );
    assert_eq!(
        catalogue.resolve("mock/other").unwrap().spec.context_window,
        ModelSpec::DEFAULT_WINDOW
    );
}

#[test]
fn resolve_prices_cache_writes_by_ttl() {
    let price = Price {
        input: 5.0,
        cached_input: Some(0.5),
        cache_write: Some(6.25),
        output: 25.0,
        long: None,
    };
    let written = |ttl: &str| {
        let cache = CacheRule {
            rule: CacheKind::Anthropic,
            ttl: ttl.into(),
            ..CacheRule::default()
        };
        let model = ModelConfig {
            price: Some(price),
            cache: Some(cache),
            cache_write_1h: Some(10.0),
            ..ModelConfig::default()
        };
        let provider = ProviderConfig::new(Api::Anthropic, "http://127.0.0.1:1");
        let catalogue = Catalogue::new(
            [("p".into(), provider)].into(),
            [("p/m".into(), model)].into(),
        )
        .unwrap();
        catalogue
            .resolve("p/m")
            .unwrap()
            .spec
            .price
            .unwrap()
            .cache_write
    };
    assert_eq!((written("5m"), written("1h")), (Some(6.25), Some(10.0)));
}

#[test]
fn catalogue_rejects_impossible_values() {
    let refused = |model: ModelConfig| {
        let provider = ProviderConfig::new(Api::Anthropic, "http://127.0.0.1:1");
        Catalogue::new(
            [("p".into(), provider)].into(),
            [("p/m".into(), model)].into(),
        )
        .unwrap_err()
        .to_string()
    };
    let cache = CacheRule {
        ttl: "2h".into(),
        ttls: vec!["5m".into(), "1h".into()],
        ..CacheRule::default()
    };
    let message = refused(ModelConfig {
        cache: Some(cache),
        ..ModelConfig::default()
    });
    assert_eq!(
        message,
        "`p/m`: `cache.ttl = \"2h\"` is not offered; use 5m or 1h"
    );
    let message = refused(ModelConfig {
        tokenizer_factor: Some(f64::NAN),
        ..ModelConfig::default()
    });
    assert!(message.contains("tokenizer_factor"), "{message}");
}

#[test]
fn short_name_is_an_alias_or_a_last_part_unique_to_one_model() {
    let provider = || ProviderConfig::new(Api::OpenaiChat, "http://127.0.0.1:1/v1");
    let providers = [("a".to_owned(), provider()), ("b".to_owned(), provider())].into();
    let declared = |name: &str| (name.to_owned(), ModelConfig::default());
    let models = [
        "a/m",
        "a/vendor/deep",
        "a/both",
        "b/both",
        "b/claude-opus-5-5",
    ]
    .map(declared)
    .into();
    let aliases = [("fast", "m"), ("haiku", "b/any"), ("lost", "nowhere")];
    let aliases = aliases
        .map(|(name, meant)| (name.to_owned(), meant.to_owned()))
        .into();
    let catalogue = Catalogue::with_built_in(providers, models)
        .unwrap()
        .with_aliases_and_rates(aliases, BTreeMap::new());
    for (name, expected) in [
        ("a/m", "a/m"),
        ("a/unlisted", "a/unlisted"),
        ("m", "a/m"),
        (" m ", "a/m"),
        ("deep", "a/vendor/deep"),
        ("vendor/deep", "a/vendor/deep"),
        ("fast", "a/m"),
        ("haiku", "b/any"),
        ("sonnet", "anthropic/claude-sonnet-5-5"),
        ("opus", "anthropic/claude-opus-5-5"),
        // Declared models take precedence over built-in ones.
        ("claude-opus-5-5", "b/claude-opus-5-5"),
        ("claude-haiku-5-5", "anthropic/claude-haiku-5-5"),
    ] {
        assert_eq!(
            catalogue.resolve(name).unwrap().spec.full_name(),
            expected,
            "{name}"
        );
    }
    for (name, part) in [
        (
            "both",
            "`both` is several models: a/both, b/both; write one of these",
        ),
        ("eep", "is not a model name"),
        ("lost", "is not a model name"),
        ("", "is not a model name"),
        ("vendor/other", "no provider `vendor`"),
    ] {
        let error = catalogue.resolve(name).unwrap_err().to_string();
        assert!(error.contains(part), "{name}: {error}");
    }
}

#[test]
fn built_in_aliases_name_built_in_models() {
    let built_in = BuiltIn::get();
    let models: Vec<_> = built_in.model_names().collect();
    for name in ["fable", "opus", "sonnet", "haiku"] {
        let meant = built_in.resolve_alias(name).unwrap();
        assert!(models.contains(&meant), "{name} is {meant}");
    }
}

#[test]
fn short_name_prefers_the_international_provider() {
    let built_in = || Catalogue::with_built_in(BTreeMap::new(), BTreeMap::new()).unwrap();
    for (name, expected) in [
        ("kimi-k3", "kimi/kimi-k3"),
        ("MiniMax-M3", "minimax/MiniMax-M3"),
        ("glm-5.3", "glm/glm-5.3"),
        ("glm-cn/glm-5.3", "glm-cn/glm-5.3"),
        // Only the provider for mainland China lists this model.
        ("glm-5.3-flash", "glm-cn/glm-5.3-flash"),
        ("hy3-preview", "hunyuan/hy3-preview"),
    ] {
        assert_eq!(
            built_in().resolve(name).unwrap().spec.full_name(),
            expected,
            "{name}"
        );
    }
    // A declared model takes precedence over both.
    let own = [("kimi-cn/kimi-k3".to_owned(), ModelConfig::default())].into();
    let own = Catalogue::with_built_in(BTreeMap::new(), own).unwrap();
    assert_eq!(
        own.resolve("kimi-k3").unwrap().spec.full_name(),
        "kimi-cn/kimi-k3"
    );
}

#[test]
fn resolve_keeps_the_listed_price_and_converts_at_the_rate() {
    let resolved = |name: &str, rates: &[(&str, f64)]| {
        let rates = rates
            .iter()
            .map(|(code, rate)| ((*code).to_owned(), *rate))
            .collect();
        let catalogue = Catalogue::with_built_in(BTreeMap::new(), BTreeMap::new()).unwrap();
        catalogue
            .with_aliases_and_rates(BTreeMap::new(), rates)
            .resolve(name)
            .unwrap()
    };
    let listed = |declared: &Declared| {
        declared
            .listed
            .as_ref()
            .map(|(code, price)| (code.clone(), price.input))
    };
    let yuan = Some(("CNY".to_owned(), 8.0));
    let plain = resolved("glm-cn/glm-5.3", &[]);
    assert_eq!(
        (listed(&plain), plain.spec.price),
        (yuan.clone(), None),
        "no rate, no dollars"
    );
    let rated = resolved("glm-cn/glm-5.3", &[("EUR", 0.9), ("CNY", 8.0)]);
    let price = rated.spec.price.unwrap();
    assert_eq!(listed(&rated), yuan);
    assert_eq!(
        (price.input, price.cached_input, price.output),
        (1.0, Some(0.25), 3.5)
    );
    for wrong in [0.0, -7.0, f64::NAN, f64::INFINITY, 1e300] {
        assert_eq!(
            resolved("glm-cn/glm-5.3", &[("CNY", wrong)]).spec.price,
            None,
            "{wrong}"
        );
    }
    let dollars = resolved("glm/glm-5.3", &[("USD", 3.0), ("CNY", 8.0)]);
    assert_eq!(
        listed(&dollars),
        Some(("USD".to_owned(), 1.4)),
        "a dollar is a dollar"
    );
    assert_eq!(dollars.spec.price.map(|price| price.input), Some(1.4));
    let long = resolved("minimax/MiniMax-M3", &[])
        .spec
        .price
        .unwrap()
        .in_usd(2.0)
        .long
        .unwrap();
    assert_eq!(
        (long.above, long.input, long.cached_input, long.output),
        (524_288, 0.3, Some(0.06), 1.2)
    );
}

/// The values are from each provider's documentation of its own fields.
#[test]
fn built_in_providers_of_china_have_their_own_rules() {
    let catalogue = Catalogue::with_built_in(BTreeMap::new(), BTreeMap::new()).unwrap();
    for (name, currency, back, old_limit) in [
        ("deepseek/deepseek-flash", Some("USD"), true, true),
        ("deepseek-cn/deepseek-v4-pro", Some("CNY"), true, true),
        ("glm/glm-5.3", Some("USD"), true, true),
        ("glm-cn/glm-5.3-flash", Some("CNY"), true, true),
        ("kimi/kimi-k3", Some("USD"), true, false),
        ("kimi-cn/kimi-k3", Some("CNY"), true, false),
        ("qwen/qwen3.8-max", Some("USD"), false, true),
        ("qwen-cn/qwen3.7-plus", None, false, true),
        (
            "doubao/doubao-seed-2-0-code-preview-260215",
            None,
            false,
            false,
        ),
        ("hunyuan/hy3-preview", None, true, true),
        ("minimax-cn/MiniMax-M2.7", Some("CNY"), false, false),
        ("siliconflow-cn/any/model", None, false, true),
    ] {
        let Declared { spec, listed, .. } = catalogue.resolve(name).unwrap();
        let code = listed.map(|(code, _)| code);
        let found = (
            code.as_deref(),
            spec.capabilities.reasoning_back,
            spec.capabilities.max_tokens,
        );
        assert_eq!(found, (currency, back, old_limit), "{name}");
        let api = if name.starts_with("minimax") {
            Api::Anthropic
        } else {
            Api::OpenaiChat
        };
        assert_eq!(spec.api, api, "{name}");
    }
}
