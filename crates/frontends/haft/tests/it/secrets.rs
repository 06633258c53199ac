//! Planted secrets: wherever they come from, none may appear in anything that haft stores or shows.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::json;

use crate::rig::Rig;

const MIXED: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const HEX: &str = "0123456789abcdef";

/// Prefixes of keys, each with the number and the alphabet of the letters after it. Written
/// independently of the table of the masker.
const KEY_FORMATS: [(&str, usize, &str); 40] = [
    ("sk-ant-api03-", 95, MIXED),
    ("sk-proj-", 120, MIXED),
    ("sk-", 48, MIXED),
    ("sk-or-v1-", 64, HEX),
    ("AIza", 35, MIXED),
    ("gsk_", 52, MIXED),
    ("xai-", 80, MIXED),
    ("hf_", 34, MIXED),
    ("ghp_", 36, MIXED),
    ("gho_", 36, MIXED),
    ("ghs_", 36, MIXED),
    ("github_pat_", 82, MIXED),
    ("glpat-", 20, MIXED),
    ("npm_", 36, MIXED),
    ("pypi-", 150, MIXED),
    ("dckr_pat_", 27, MIXED),
    ("AKIA", 16, UPPER),
    ("ASIA", 16, UPPER),
    ("ya29.", 60, MIXED),
    ("GOCSPX-", 28, MIXED),
    ("dop_v1_", 64, HEX),
    ("dapi", 32, HEX),
    ("hvs.", 90, MIXED),
    ("sbp_", 40, HEX),
    ("sk_live_", 24, MIXED),
    ("rk_live_", 24, MIXED),
    ("whsec_", 32, MIXED),
    ("sq0atp-", 22, MIXED),
    ("shpat_", 32, HEX),
    ("xoxb-", 50, MIXED),
    ("xoxp-", 70, MIXED),
    ("xapp-", 60, MIXED),
    ("SG.", 66, MIXED),
    ("key-", 32, HEX),
    ("lin_api_", 40, MIXED),
    ("glsa_", 32, MIXED),
    ("figd_", 40, MIXED),
    ("NRAK-", 27, UPPER),
    ("r8_", 37, MIXED),
    ("AGE-SECRET-KEY-1", 58, UPPER),
];

/// Returns two hundred secrets, five of each kind.
fn planted_secrets() -> Vec<String> {
    let mut state = 7_u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    let mut secrets = Vec::new();
    for _ in 0..5 {
        for (start, length, letters) in KEY_FORMATS {
            let letters = letters.as_bytes();
            let mut body: String = (0..length)
                .map(|_| letters[next() % letters.len()] as char)
                .collect();
            // A random key rarely lacks a digit or a letter; these must have both.
            body.replace_range(
                0..2,
                if letters == UPPER.as_bytes() {
                    "A2"
                } else {
                    "a2"
                },
            );
            secrets.push(format!("{start}{body}"));
        }
    }
    assert_eq!(secrets.len(), 200);
    secrets
}

/// Collects every byte of every file below a folder.
fn collect_bytes(folder: &Path, into: &mut Vec<u8>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        // Undo restores every byte, so file versions are stored unmasked, readable only by the
        // user.
        if entry.file_name() == "versions" {
            let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o700);
            continue;
        }
        if entry.file_name() == "versions" {
            // Undo restores whole files, so their versions hold the content of the project,
            // readable only by the owner.
        } else if entry.file_type().unwrap().is_dir() {
            collect_bytes(&entry.path(), into);
        } else {
            into.extend(std::fs::read(entry.path()).unwrap());
        }
    }
}

#[test]
fn secrets_are_never_stored_or_shown() {
    let secrets = planted_secrets();
    let part = |index: usize| &secrets[index * 40..(index + 1) * 40];
    let in_environment = part(0);
    let in_file = part(1);
    let in_argv = part(2);
    let in_error = part(3);
    let in_model = part(4);
    let rig = Rig::new(
        Api::OpenaiChat,
        Script::turns([
            Reply::error(503, format!("failed for {}", in_error.join(" "))),
            Reply::call("read_file", json!({"path": "secrets.txt"})).with_thinking(in_model[..10].join(" ")),
            Reply::call("execute_command", json!({"command": "env; cat secrets.txt", "requires_approval": false})),
            Reply::call(
                "execute_command",
                json!({"command": format!("echo {} >&2; exit 3", in_argv.join(" ")), "requires_approval": false}),
            ),
            Reply::call(
                "todo_write",
                json!({"todos": [{"content": in_model[10..20].join(" "), "status": "completed"}]}),
            ),
            Reply::call("note_add", json!({"path": "secrets.txt", "note": in_model[20..30].join(" ")})),
            Reply::text(format!("Here they are: {}", in_model.join(" "))),
        ])
        .unwrap(),
    );
    rig.write("secrets.txt", in_file.join("\n"));
    rig.write("AGENTS.md", format!("Use {} for tests.\n", in_file[0]));
    let mut command = rig.command(&[
        "run",
        "--permission-mode",
        "yolo",
        "--verbose",
        &format!("use {}", in_argv[0]),
    ]);
    for (index, secret) in in_environment.iter().enumerate() {
        command.env(format!("SERVICE_{index}_TOKEN"), secret);
    }
    let ran = command.output().unwrap();
    assert_eq!(
        ran.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );

    let export = rig.run(&["conversations", "list", "--json"]).json();
    let id = export[0]["id"].as_str().unwrap().to_owned();
    let mut kept = Vec::new();
    collect_bytes(rig.home(), &mut kept);
    let places = [
        ("the files under its home", kept),
        ("stderr", ran.stderr),
        (
            "an export",
            rig.run(&["conversations", "export", &id])
                .stdout()
                .into_bytes(),
        ),
        (
            "what is shown",
            rig.run(&["conversations", "show", &id])
                .stdout()
                .into_bytes(),
        ),
        (
            "the last request",
            rig.server
                .generation_requests()
                .last()
                .unwrap()
                .body
                .to_vec(),
        ),
    ];
    for (place, bytes) in places {
        let text = String::from_utf8_lossy(&bytes);
        let found: Vec<_> = secrets
            .iter()
            .filter(|secret| text.contains(secret.as_str()))
            .collect();
        assert!(found.is_empty(), "in {place}: {found:?}");
    }
}

#[test]
fn edit_tools_never_write_a_mask_over_a_secret() {
    let key = &planted_secrets()[8];
    let rig = Rig::new(
        Api::OpenaiChat,
        Script::turns([
            Reply::call("read_file", json!({"path": ".env"})),
            Reply::call("write_to_file", json!({"path": ".env", "content": "TOKEN=[masked: GitHub token]\nDEBUG=1\n"})),
            Reply::call(
                "replace_in_file",
                json!({"path": ".env", "diff": "<<<<<<< SEARCH\nDEBUG=0\n=======\nDEBUG=1\n>>>>>>> REPLACE"}),
            ),
            Reply::text("Done."),
        ])
        .unwrap(),
    );
    rig.write(".env", format!("TOKEN={key}\nDEBUG=0\n"));
    let ran = rig.task(&["turn debugging on"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    let results: Vec<_> = ran
        .events()
        .into_iter()
        .filter(|event| event["type"] == "tool_result")
        .collect();
    assert_eq!(results[1]["error"]["code"], "masked", "{results:?}");
    let now = std::fs::read_to_string(rig.project().join(".env")).unwrap();
    assert_eq!(now, format!("TOKEN={key}\nDEBUG=1\n"));
}
