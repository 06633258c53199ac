use proptest::prelude::*;

use super::*;

/// Returns a key of the shape that uses every letter of its alphabet in turn.
fn example_key(shape: &shapes::Shape) -> String {
    let alphabet: Vec<u8> = (b'!'..=b'~')
        .filter(|byte| shape.alphabet.contains(*byte))
        .collect();
    let body: String = (0..shape.min)
        .map(|at| alphabet[(at * 7 + 3) % alphabet.len()] as char)
        .collect();
    format!("{}{body}", shape.start)
}

#[test]
fn mask_finds_every_shape_in_every_context() {
    for shape in SHAPES.iter() {
        let key = example_key(shape);
        for text in [
            key.clone(),
            format!("key: {key}\n"),
            format!("{{\"api_key\": \"{key}\", \"next\": 1}}"),
            format!("curl -H 'X-Key: {key}' https://example.com"),
            format!("KEY={key}"),
            format!("\u{fc}{key}\u{fc}"),
        ] {
            let masked = Masker::default().mask(&text).into_owned();
            assert!(
                !masked.contains(&key[shape.start.len()..]),
                "{}: {masked}",
                shape.name
            );
            assert_eq!(Masker::default().mask(&masked), masked, "{}", shape.name);
        }
    }
}

#[test]
fn mask_keeps_the_text_around_a_secret() {
    let masked = |text: &str| Masker::default().mask(text).into_owned();
    let key = format!("ghp_{}", "a1B2".repeat(9));
    assert_eq!(
        masked(&format!("before {key} after")),
        "before [masked: GitHub token] after"
    );
    assert_eq!(
        masked("postgres://me:pa55word@db.example.com/x"),
        "postgres://me:[masked: password]@db.example.com/x"
    );
    assert_eq!(
        masked("Authorization: Bearer abcDEF123456789012"),
        "Authorization: Bearer [masked: bearer token]"
    );
    assert_eq!(
        masked("export DB_PASSWORD='hunter2-and-more'\n"),
        "export DB_PASSWORD='[masked: secret]'\n"
    );
    assert_eq!(
        masked("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
        "aws_secret_access_key = [masked: secret]"
    );
    let pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabcd\n-----END RSA PRIVATE KEY-----\n";
    assert_eq!(
        masked(pem),
        "-----BEGIN RSA PRIVATE KEY-----[masked: private key]-----END RSA PRIVATE KEY-----\n"
    );
    let token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N";
    assert_eq!(masked(&format!("t={token};")), "t=[masked: web token];");
}

/// Code without keys: masking it would hide code from the model.
#[test]
fn mask_leaves_ordinary_code_alone() {
    for text in [
        "from sklearn import sk-learn-contrib-everything-and-more",
        "let token = parse_token(input)?;",
        "API_KEY=$OPENAI_API_KEY cargo test",
        "SSH_KEY_FILE=/home/me/.ssh/id_ed25519",
        "const KEY = \"short\";",
        "MAX_TOKENS=4096",
        "see https://example.com/a:b@c and http://localhost:8080/x",
        "task-1234567890123456789012345678901234567890",
        "git clone git@github.com:haft-agent/haft.git",
        "postgres://$USER:$PASSWORD@localhost/db",
        "Bearer ${token}",
        "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
        "assert_eq!(secret_of_the_game, other_value_1234567890);",
        "PUBLIC_KEY_LENGTH==SECRET_KEY_LENGTH_1234567",
        "index 83db48f..bf269f4 100644",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    ] {
        assert_eq!(Masker::default().mask(text), text);
        assert!(
            matches!(Masker::default().mask(text), Cow::Borrowed(_)),
            "{text}"
        );
    }
}

#[test]
fn mask_finds_known_secrets_even_inside_words() {
    let masker = Masker::with_values(["correct-horse", "short", "  padded-value \n"]);
    assert_eq!(
        masker.mask("xcorrect-horsex short"),
        "x[masked: key]x short"
    );
    assert_eq!(masker.mask("padded-value"), "[masked: key]");
    assert_eq!(Masker::with_values([""; 0]).mask("a"), "a");
}

proptest! {
    #[test]
    fn mask_is_idempotent(text in "(?s).{0,200}") {
        let masker = Masker::with_values(["known-value-1"]);
        let once = masker.mask(&text).into_owned();
        prop_assert_eq!(masker.mask(&once).into_owned(), once);
    }

    #[test]
    fn mask_finds_two_adjacent_secrets(one in 0..SHAPES.len(), other in 0..SHAPES.len(), between in "[ \n\"',;]{1,3}") {
        let one = example_key(&SHAPES[one]);
        let other = example_key(&SHAPES[other]);
        let text = format!("{one}{between}{other}");
        let masked = Masker::default().mask(&text).into_owned();
        prop_assert!(!masked.contains(&one) && !masked.contains(&other), "{masked}");
    }
}
