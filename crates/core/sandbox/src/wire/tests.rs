use proptest::prelude::*;

use super::*;
use crate::Network;

fn command() -> CommandSpec {
    CommandSpec::shell("true", "/")
}

fn refused(command: &CommandSpec) -> String {
    HelperRequest::new(command, PidNamespace::Never, Console::None)
        .unwrap_err()
        .to_string()
}

#[test]
fn what_cannot_be_run_is_refused_before_anything_starts() {
    assert!(
        refused(&CommandSpec {
            argv: vec![],
            ..command()
        })
        .contains("names no program")
    );
    assert!(
        refused(&CommandSpec {
            argv: vec!["a\0b".into()],
            ..command()
        })
        .contains("NUL")
    );
    assert!(
        refused(&CommandSpec {
            stdin: Stdin::Text("a\0b".into()),
            ..command()
        })
        .contains("NUL")
    );
    assert!(refused(&command().env(vec![("A=B".into(), String::new())])).contains("environment"));
}

#[test]
fn a_request_cut_short_is_an_error() {
    let frame = HelperRequest::new(&command(), PidNamespace::Privileged, Console::Terminal)
        .unwrap()
        .encode()
        .unwrap();
    for length in 0..frame.len() {
        assert!(HelperRequest::read_from(&frame[..length]).is_err());
    }
}

#[test]
fn an_endless_timeout_is_none() {
    let request = HelperRequest::new(
        &command().timeout(Duration::MAX),
        PidNamespace::Privileged,
        Console::None,
    )
    .unwrap();
    assert_eq!(request.timeout, None);
    assert_eq!(
        HelperRequest::read_from(request.encode().unwrap().as_slice()).unwrap(),
        request
    );
}

fn bytes() -> impl Strategy<Value = OsString> {
    prop::collection::vec(1u8.., 0..20).prop_map(OsString::from_vec)
}

fn confined() -> impl Strategy<Value = Option<ConfinementSpec>> {
    let paths = || prop::collection::vec(bytes().prop_map(PathBuf::from), 0..4);
    let network = prop_oneof![
        Just(Network::None),
        Just(Network::All),
        bytes().prop_map(|socket| Network::Through(socket.into()))
    ];
    let method = prop_oneof![
        Just(ConfinementMethod::Namespace),
        Just(ConfinementMethod::Landlock)
    ];
    let parts = (
        method,
        [paths(), paths(), paths(), paths(), paths(), paths()],
        [bytes(), bytes(), bytes()],
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
    fn requests_come_back(
        argv in prop::collection::vec(bytes(), 1..5),
        env in prop::collection::vec(("[A-Z_]{1,5}", "[^\0]{0,9}"), 0..4),
        cwd in bytes(),
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
        prop_assert_eq!(HelperRequest::read_from(request.encode().unwrap().as_slice()).unwrap(), request);
    }

    #[test]
    fn reports_come_back(bytes in any::<[u8; CommandOutcome::LENGTH]>(), value in any::<i32>()) {
        // Every report that decodes is equal to itself after encoding and decoding.
        if let Some(report) = CommandOutcome::decode(bytes) {
            prop_assert_eq!(CommandOutcome::decode(report.encode()), Some(report));
        }
        let report = CommandOutcome::Code(value);
        prop_assert_eq!(CommandOutcome::decode(report.encode()), Some(report));
    }

    #[test]
    fn noise_is_never_a_panic(noise in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = HelperRequest::read_from(noise.as_slice());
        let _ = HelperRequest::decode(&noise);
    }
}
