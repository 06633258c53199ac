//! The first start, without a configured model.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use haft_testkit::{Reply, Script};
use haft_types::Api;

use crate::rig::Rig;
use crate::terminal::Terminal;

const SIZE: (u16, u16) = (100, 40);

/// A rig without a configuration, whose server gives these replies.
fn rig_without_config(replies: impl IntoIterator<Item = Reply>) -> Rig {
    let rig = Rig::new(
        Api::OpenaiChat,
        Script::replies(replies)
            .unwrap()
            .with_models(["big", "small"]),
    );
    rig.configure("");
    rig
}

/// Starts the setup, and answers up to the question for the key of a custom server.
fn start_setup_up_to_key(rig: &Rig, address: &str) -> Terminal {
    let mut terminal = Terminal::start(rig, &[], SIZE);
    for (question, answer) in [
        ("s or d:", "s"),
        ("URL, such", address),
        ("API type, Enter", ""),
    ] {
        terminal.until_text(question);
        terminal.press(&format!("{answer}\r"));
    }
    terminal
}

fn config_text(rig: &Rig) -> String {
    std::fs::read_to_string(rig.home().join("config.toml")).unwrap()
}

fn file_mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn setup_with_server_key_and_model_starts_a_session() {
    let rig = rig_without_config([Reply::text("OK"), Reply::text("Hello.")]);
    let address = rig.server.base_url(Api::OpenaiChat);
    let mut terminal = start_setup_up_to_key(&rig, &address);
    terminal.until_text("Key, Enter for none: ");
    terminal.press("sk-the-right-one\r");
    terminal.until_text("Number or name: ");
    assert!(terminal.text().contains("2  small"), "{}", terminal.text());
    terminal.press("2\r");
    terminal.until_text("Connected.");
    terminal.until_text("/help");
    terminal.press("hi\r");
    terminal.until_text("Hello.");
    terminal.until_idle();
    assert!(
        !terminal.written().contains("sk-the-right-one") && terminal.written().contains("****")
    );
    terminal.press("\u{4}");
    assert_eq!(terminal.wait_for_exit().0, 0);
    let key = rig.home().join("keys/own");
    assert_eq!(
        config_text(&rig),
        format!(
            "model = \"own/small\"\n\n[providers.own]\napi = \"openai-chat\"\nbase_url = \"{address}\"\napi_key_file = \"{}\"\n",
            key.display()
        )
    );
    assert_eq!(std::fs::read_to_string(&key).unwrap(), "sk-the-right-one\n");
    assert_eq!(
        (file_mode(&key), file_mode(key.parent().unwrap())),
        (0o600, 0o700)
    );
    let asked = rig.server.generation_requests();
    assert_eq!(asked.len(), 2);
    for request in asked {
        assert_eq!(
            request.header("authorization"),
            Some("Bearer sk-the-right-one")
        );
    }
    assert_eq!(
        rig.run(&["models", "list"]).code(),
        0,
        "the next start needs no questions"
    );
}

#[test]
fn setup_asks_again_after_a_wrong_key() {
    let rig = rig_without_config([Reply::error(401, "no such key"), Reply::text("OK")]);
    let mut terminal = start_setup_up_to_key(&rig, &rig.server.base_url(Api::OpenaiChat));
    terminal.until_text("Key, Enter for none: ");
    terminal.press("sk-wrong\r");
    terminal.until_text("Number or name: ");
    terminal.press("big\r");
    terminal.until_text("Connection failed: invalid API key (status 401): no such key");
    terminal.until("the question again", |screen| {
        screen.contents().matches("Key, Enter for none: ").count() == 2
    });
    assert_eq!(config_text(&rig), "");
    terminal.press("sk-right\r");
    terminal.until("the models again", |screen| {
        screen.contents().matches("Number or name: ").count() == 2
    });
    terminal.press("1\r");
    terminal.until_text("/help");
    terminal.press("\u{4}");
    assert_eq!(terminal.wait_for_exit().0, 0);
    assert_eq!(
        std::fs::read_to_string(rig.home().join("keys/own")).unwrap(),
        "sk-right\n"
    );
}

#[test]
fn setup_reports_an_unreachable_server_and_starts_over() {
    let rig = rig_without_config([]);
    let mut terminal = start_setup_up_to_key(&rig, "http://127.0.0.1:1/v1");
    terminal.until_text("Key, Enter for none: ");
    terminal.press("\r");
    terminal.until_text("cannot connect to http://127.0.0.1:1/v1");
    terminal.until("the first question again", |screen| {
        screen.contents().matches("s or d:").count() == 2
    });
    terminal.press("\u{1b}");
    assert_eq!(terminal.wait_for_exit().0, 0);
    assert!(config_text(&rig).is_empty() && !rig.home().join("keys").exists());
}

#[test]
fn setup_writes_no_file_after_esc() {
    for steps in 0..5 {
        let rig = rig_without_config([]);
        let address = rig.server.base_url(Api::OpenaiChat);
        let questions = [
            "s or d:",
            "URL, such",
            "API type, Enter",
            "Key, Enter",
            "Number or name",
        ];
        let answers = ["s", &address, "", "sk-some-key"];
        let mut terminal = Terminal::start(&rig, &[], SIZE);
        for (question, answer) in questions.iter().zip(answers).take(steps) {
            terminal.until_text(question);
            terminal.press(&format!("{answer}\r"));
        }
        terminal.until_text(questions[steps]);
        terminal.press("\u{1b}");
        if steps > 0 {
            terminal.until("the first question again", |_| {
                terminal.written().matches("s or d:").count() == 2
            });
            terminal.press("\u{1b}");
        }
        assert_eq!(terminal.wait_for_exit().0, 0);
        assert!(config_text(&rig).is_empty() && !rig.home().join("keys").exists());
        assert!(rig.server.generation_requests().is_empty());
    }
}

#[test]
fn setup_of_a_known_provider_needs_only_its_variable() {
    let rig = rig_without_config([Reply::text("OK"), Reply::text("Hello.")]);
    // The address is the test server, so that no other server is asked.
    let address = rig.server.base_url(Api::OpenaiChat);
    rig.configure(&format!("[providers.mistral]\nbase_url = \"{address}\"\n"));
    let mut terminal = Terminal::start_with(
        &rig,
        &["--", "hi"],
        SIZE,
        &[("MISTRAL_API_KEY", "sk-of-the-variable")],
    );
    terminal.until_text("MISTRAL_API_KEY is set");
    terminal.press("mistral\r");
    terminal.until_text("Number or name: ");
    terminal.press("1\r");
    terminal.until_text("Hello.");
    terminal.until_idle();
    terminal.press("\u{4}");
    assert_eq!(terminal.wait_for_exit().0, 0);
    let written = config_text(&rig);
    assert!(
        written.starts_with("model = \"mistral/mistral-medium-3.5\"\n") && !written.contains("key"),
        "{written}"
    );
}

#[test]
fn setup_names_the_currency_of_providers_with_one_key() {
    let rig = rig_without_config([]);
    let mut terminal =
        Terminal::start_with(&rig, &[], SIZE, &[("DEEPSEEK_API_KEY", "sk-some-key")]);
    terminal.until_text("s or d:");
    let text = terminal.text();
    let rows: Vec<_> = text
        .lines()
        .filter(|row| row.contains("DEEPSEEK_API_KEY"))
        .map(|row| row.split_whitespace().skip(1).collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        rows,
        [
            "deepseek DEEPSEEK_API_KEY is set (api.deepseek.com)",
            "deepseek-cn DEEPSEEK_API_KEY is set (api.deepseek.com, prices in CNY)",
        ],
        "{text}"
    );
    terminal.press("\u{1b}");
    assert_eq!(terminal.wait_for_exit().0, 0);
}

#[test]
fn setup_completes_an_address_typed_without_http() {
    let rig = rig_without_config([Reply::text("OK")]);
    let address = rig.server.base_url(Api::OpenaiChat);
    let typed = address.strip_prefix("http://").unwrap();
    let mut terminal = start_setup_up_to_key(&rig, typed);
    terminal.until_text("Key, Enter for none: ");
    terminal.press("\r");
    terminal.until_text("Number or name: ");
    terminal.press("1\r");
    terminal.until_text("/help");
    terminal.press("\u{4}");
    assert_eq!(terminal.wait_for_exit().0, 0);
    assert_eq!(
        config_text(&rig),
        format!(
            "model = \"own/big\"\n\n[providers.own]\napi = \"openai-chat\"\nbase_url = \"{address}\"\n"
        )
    );
}

#[test]
fn setup_runs_the_demo_without_configuration() {
    let rig = rig_without_config([]);
    let mut terminal = Terminal::start(&rig, &[], SIZE);
    terminal.until_text("s or d:");
    terminal.press("d\r");
    terminal.until_text("Enter = yes");
    terminal.press("\r");
    terminal.until("the cost", |screen| {
        screen
            .contents()
            .replace('\n', " ")
            .contains("at the demo's made-up prices")
    });
    assert_eq!(terminal.wait_for_exit().0, 0);
    assert!(config_text(&rig).is_empty());
}

#[test]
fn setup_keeps_keys_typed_between_two_questions() {
    let rig = rig_without_config([]);
    let mut terminal = Terminal::start(&rig, &[], (100, 150));
    terminal.until_text("s or d:");
    for round in 0..20 {
        terminal.press("98\r");
        std::thread::sleep(std::time::Duration::from_micros(round * 200));
        terminal.press("99\r");
        terminal.until("both answers", |screen| {
            screen.contents().matches("Not an option: 99").count() as u64 == round + 1
        });
    }
    terminal.until("the last question", |screen| {
        screen.contents().trim_end().ends_with("s or d:")
    });
    terminal.press("\u{1b}");
    assert_eq!(terminal.wait_for_exit().0, 0);
}

#[test]
fn setup_reports_unknown_choices() {
    let rig = rig_without_config([Reply::text("OK")]);
    let address = rig.server.base_url(Api::OpenaiChat);
    let mut terminal = Terminal::start(&rig, &[], SIZE);
    let wrong = [
        ("s or d:", "99", "Not an option: 99"),
        ("s or d:", "", "Enter a number from 1 to"),
        ("s or d:", "nobody", "Not an option: nobody"),
    ];
    let asked = |terminal: &Terminal, question: &str| {
        terminal.until(question, |screen| {
            screen.contents().trim_end().ends_with(question.trim_end())
        });
    };
    for (question, answer, said) in wrong {
        asked(&terminal, question);
        terminal.press(&format!("{answer}\r"));
        terminal.until_text(said);
    }
    asked(&terminal, "s or d:");
    terminal.press("s\r");
    terminal.until_text("URL, such");
    terminal.press(&format!("{address}\r"));
    terminal.until_text("API type, Enter");
    terminal.press("soap\r");
    terminal.until_text("Not an API type: soap");
    asked(&terminal, ":");
    terminal.press("\r");
    terminal.until_text("Key, Enter for none: ");
    terminal.press("\r");
    terminal.until_text("Number or name: ");
    terminal.press("7\r");
    terminal.until_text("Not an option: 7. Enter a number from 1 to 2");
    asked(&terminal, "Number or name: ");
    terminal.press("\u{3}");
    assert_eq!(terminal.wait_for_exit().0, 0);
}
