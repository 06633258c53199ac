//! Decides command lines: `cargo run -p judge-commands -- 'ls -l' 'cargo test && rm -r target'`.

use haft_permission::{
    PermissionRequest, PermissionRules, Permissions, PermissionsConfig, RulesError, Workspace,
};

fn main() -> Result<(), RulesError> {
    let rules = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    let config = PermissionsConfig {
        allow: rules(&["execute_command(ls:*)", "execute_command(cargo test:*)"]),
        deny: rules(&["execute_command(rm:*)"]),
        ..PermissionsConfig::default()
    };
    let permissions = Permissions {
        rules: PermissionRules::load(&config, None)?,
        ..Permissions::default()
    };
    let here = std::env::current_dir().unwrap_or_default();
    let workspace = Workspace {
        root: here.clone(),
        cwd: here,
        extra: Vec::new(),
        spill: "/private/spill".into(),
        journal: "/private/journal".into(),
    };
    for line in std::env::args().skip(1) {
        let verdict = permissions.decide(&PermissionRequest::for_command(&line), &workspace);
        println!("{line}\n  {}: {}", verdict.decision, verdict.reason);
        for rule in &verdict.remember {
            println!("  to allow it: {rule}");
        }
    }
    Ok(())
}
