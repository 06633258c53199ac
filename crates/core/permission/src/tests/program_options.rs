//! Options with which a program runs another, or sends credentials to another host, are covered by
//! no rule that does not name them.

use haft_types::{Decision, PermissionMode};

use super::{Project, permissions};
use crate::PermissionRequest;
use crate::builtin::{commit_rules, reading_rules};

fn decide(line: &str) -> (Decision, String) {
    let project = Project::new();
    let program = line.split(' ').next().unwrap_or_default();
    let rule = match program {
        // Launchers need a rule that names their first operand.
        "ssh" => "execute_command(ssh host uptime:*)".to_owned(),
        name => format!("execute_command({name}:*)"),
    };
    let verdict = permissions(PermissionMode::Ask, &[rule.as_str()], &[], &[])
        .decide(&PermissionRequest::for_command(line), &project.workspace);
    (verdict.decision, verdict.reason)
}

fn assert_decisions(expected: Decision, lines: &[&str]) {
    let wrong: Vec<_> = lines
        .iter()
        .map(|line| (line, decide(line)))
        .filter(|(_, (decision, _))| *decision != expected)
        .map(|(line, (_, reason))| format!("{line}: {reason}"))
        .collect();
    assert_eq!(wrong, Vec::<String>::new(), "not {expected}");
}

#[test]
fn options_that_run_other_programs_ask() {
    assert_decisions(
        Decision::Ask,
        &[
            "git cherry-pick --strategy=x/evil abc",
            "git rebase --strategy=x/evil main",
            "git rebase --strat x/evil main",
            "git rebase -s x/evil main",
            "git rebase -qs x/evil main",
            "git pull --rebase -s x/evil",
            "git pull --rebase -sx/evil",
            "git merge -s x/evil main",
            "git revert --strategy x/evil abc",
            "gh repo clone x -- -u ./e",
            "gh repo clone x d -- --upload-pack=./e",
            "gh pr checkout 1 -- --config=x",
            "cargo nextest run --config-file x",
            "cargo nextest run --tool-config-file tool:x",
            "go fix -fixtool ./e ./...",
            "go fix --fixtool=./e ./...",
            "ssh host uptime '; id'",
            "ssh host uptime '$(id)'",
            "ssh host uptime '`id`'",
            "ssh host uptime '| sh'",
            "ssh host uptime 'x\nid'",
            "ssh host uptime $x",
            "scp 'host:$(id)' a",
            "rsync 'host:a; id' out",
        ],
    );
}

#[test]
fn options_that_send_credentials_ask() {
    assert_decisions(
        Decision::Ask,
        &[
            "docker -H tcp://h pull x",
            "docker -Htcp://h pull x",
            "docker --host tcp://h pull x",
            "docker --host=tcp://h pull x",
            "podman pull --creds=a:b x",
            "podman --url tcp://h pull x",
            "kubectl --server=https://h --insecure-skip-tls-verify get pods",
            "kubectl --server https://h get pods",
            "kubectl -s https://h get pods",
            "kubectl get pods --server=https://h",
            "kubectl get pods --insecure-skip-tls-verify",
            "kubectl --user=a --cluster=b get pods",
            "helm list --kube-apiserver https://h",
            "helm pull --pass-credentials x",
            "aws s3 ls --endpoint-url https://h",
            "aws s3 ls --endpoint https://h",
            "aws s3 ls --endp=https://h",
            "aws --no-verify-ssl s3 ls",
            "gh issue list --hostname h",
            "curl --netrc https://h",
            "curl -n https://h",
            "curl --location-trusted https://h",
            "cargo publish --index https://h",
            "ssh -A host uptime",
        ],
    );
}

#[test]
fn unknown_options_of_listed_programs_ask() {
    assert_decisions(
        Decision::Ask,
        &[
            "git log --unheard-of",
            "git status --unheard-of=x",
            "git commit -m x --zzz",
            "cargo build --unheard-of",
            "gh pr list --unheard-of",
            "docker ps --unheard-of",
            "kubectl get pods --unheard-of",
            "helm list --unheard-of",
        ],
    );
}

#[test]
fn ordinary_options_of_listed_programs_stay_allowed() {
    assert_decisions(
        Decision::Allow,
        &[
            "git merge --no-ff main",
            "git merge --strategy-option=ours main",
            "git rebase --autostash main",
            "git commit -s -m x",
            "git cherry-pick -x abc",
            "git pull --ff-only",
            "git log --oneline --decorate --graph",
            "git log --one",
            "git commit -m x -- --unheard-of",
            "cargo test --workspace --lib -- --nocapture --unheard-of",
            "cargo build --release --locked",
            "cargo nextest run --no-fail-fast",
            "gh pr create --title x --body y",
            "docker ps --all --no-trunc",
            "docker logs --tail 5 --follow web",
            "kubectl get pods --all-namespaces --output wide",
            "kubectl -n prod logs --tail=5 web",
            "helm list --all-namespaces",
            "aws s3 ls --human-readable",
            "ssh host uptime -p",
            "ssh host uptime",
            "rsync -av src/ host:out",
            "scp a host:b",
        ],
    );
}

/// A built-in rule must not list an option that the tables count as unknown.
#[test]
fn options_of_built_in_rules_are_known() {
    for rule in reading_rules().iter().chain(commit_rules()) {
        for line in rule.example_lines() {
            let (_, reason) = decide(&line);
            assert!(!reason.contains("among the options"), "{line}: {reason}");
        }
    }
}
