use proptest::prelude::*;

use super::*;
use crate::Network;

fn command() -> CommandSpec {
    CommandSpec::shell("true", "/")
}

fn request_error(command: &CommandSpec) -> String {
    HelperRequest::new(command, PidNamespace::Never, Console::None)
        .unwrap_err()
        .to_string()
}

#[test]
fn request_rejects_commands_that_cannot_run() {
    assert!(
        request_error(&CommandSpec {
            argv: vec![],
            ..command()
        })
        .contains("names no program")
    );
    assert!(
        request_error(&CommandSpec {
            argv: vec!["a\0b".into()],
            ..command()
        })
        .contains("NUL")
    );
    assert!(
        request_error(&CommandSpec {
            stdin: Stdin::Text("a\0b".into()),
            ..command()
        })
        .contains("NUL")
    );
    assert!(
        request_error(&command().with_env(vec![("A=B".into(), String::new())]))
            .contains("environment")
    );
}

#[test]
fn request_read_rejects_truncated_frames() {
    let frame = HelperRequest::new(&command(), PidNamespace::Privileged, Console::Terminal)
        .unwrap()
        .encode()
        .unwrap();
    for length in 0..frame.len() {
        assert!(HelperRequest::read(&frame[..length]).is_err());
    }
}

#[test]
fn request_stores_an_endless_timeout_as_none() {
    let request = HelperRequest::new(
        &command().with_timeout(Duration::MAX),
        PidNamespace::Privileged,
        Console::None,
    )
    .unwrap();
    assert_eq!(request.timeout, None);
    assert_eq!(
        HelperRequest::read(request.encode().unwrap().as_slice()).unwrap(),
        request
    );
}

fn os_text() -> impl Strategy<Value = OsString> {
    prop::collection::vec(1u8.., 0..20).prop_map(OsString::from_vec)
}

fn confined() -> impl Strategy<Value = Option<ConfinementSpec>> {
    let paths = || prop::collection::vec(os_text().prop_map(PathBuf::from), 0..4);
    let network = prop_oneof![
        Just(Network::None),
        Just(Network::All),
        os_text().prop_map(|socket| Network::Through(socket.into()))
    ];
    let method = prop_oneof![
        Just(ConfinementMethod::Namespace),
        Just(ConfinementMethod::Landlock)
    ];
    let parts = (
        method,
        [paths(), paths(), paths(), paths(), paths(), paths()],
        [os_text(), os_text(), os_text()],
        network,
    );
    prop::option::of(parts.prop_map(|(method, lists, single, network)| {
        let [
            projects,
            writable,
            protected,
            repositories,
            hidden,
            readable,
        ] = lists;
        let [tmp, notes, home] = single.map(PathBuf::from);
        let home = Some(home).filter(|home| !home.as_os_str().is_empty());
        ConfinementSpec {
            method,
            policy: SandboxPolicy {
                projects,
                writable,
                protected,
                repositories,
                hidden,
                readable,
                tmp,
                notes,
                home,
                network,
            },
        }
    }))
}

proptest! {
    #[test]
    fn request_round_trips(
        argv in prop::collection::vec(os_text(), 1..5),
        env in prop::collection::vec(("[A-Z_]{1,5}", "[^\0]{0,9}"), 0..4),
        cwd in os_text(),
        millis in any::<u64>(),
        console in prop_oneof![Just(Console::None), Just(Console::Terminal), Just(Console::Socket)],
        input in prop::option::of("[^\0]{0,9}"),
        confined in confined(),
    ) {
        let request = HelperRequest {
            timeout: Some(Duration::from_millis(millis)),
            namespace: PidNamespace::Never,
            console,
            input,
            confined,
            cwd: cwd.into(),
            argv,
            env: env.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
        };
        prop_assert_eq!(HelperRequest::read(request.encode().unwrap().as_slice()).unwrap(), request);
    }

    #[test]
    fn outcome_round_trips(bytes in any::<[u8; CommandOutcome::ENCODED_LEN]>(), value in any::<i32>()) {
        // Every report that decodes is equal to itself after encoding and decoding.
        if let Some(report) = CommandOutcome::decode(bytes) {
            prop_assert_eq!(CommandOutcome::decode(report.encode()), Some(report));
        }
        let report = CommandOutcome::Code(value);
        prop_assert_eq!(CommandOutcome::decode(report.encode()), Some(report));
    }

    #[test]
    fn request_decode_never_panics(noise in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = HelperRequest::read(noise.as_slice());
        let _ = HelperRequest::decode(&noise);
    }
}
