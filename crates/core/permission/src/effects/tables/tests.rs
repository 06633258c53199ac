use std::collections::BTreeSet;
use std::fmt::Write as _;

use haft_tool::Workspace;
use haft_types::Decision;

use super::{
    CommandForm, InputUse, NameList, ProgramEntry, ProgramTables, TABLE_FILES, program_tables,
};
use crate::{PermissionRequest, PermissionRule, PermissionRules, Permissions};

/// Asserts that no name of the list is in `seen`, and adds them.
fn assert_new_names<'a>(seen: &mut BTreeSet<&'a str>, names: &'a NameList) {
    assert!(
        names.iter().next().is_some(),
        "a list without names, after {:?}",
        seen.last()
    );
    for name in names.iter() {
        let plain = |c: char| c.is_ascii_alphanumeric() || "[.+-_".contains(c);
        assert!(
            !name.is_empty() && name.chars().all(plain),
            "`{name}` is not a program's name"
        );
        assert!(seen.insert(name), "`{name}` stands twice");
    }
}

/// True if the text consists of distinct option letters.
fn are_distinct_letters(letters: &str) -> bool {
    letters.chars().all(|c| c.is_ascii_alphanumeric())
        && letters.chars().collect::<BTreeSet<_>>().len() == letters.len()
}

/// True if the list consists of distinct long options without dashes.
fn are_long_options(options: &NameList) -> bool {
    options
        .iter()
        .all(|option| !option.starts_with('-') && !option.contains(['=', ' ']) && option.len() > 1)
        && options.iter().collect::<BTreeSet<_>>().len() == options.iter().count()
}

#[test]
fn program_tables_parse() {
    if let Err(error) = toml::from_str::<ProgramTables>(TABLE_FILES) {
        panic!("{error}");
    }
}

#[test]
fn program_tables_list_each_program_in_one_table() {
    let tables = program_tables().unwrap();
    let mut seen = BTreeSet::from(["eval"]);
    for names in [&tables.shells, &tables.foreign_shells, &tables.find] {
        assert_new_names(&mut seen, names);
    }
    // A launcher may also be listed in one other table.
    assert_new_names(&mut seen.clone(), &tables.launchers);
    for wrapper in &tables.wrappers {
        assert_new_names(&mut seen, &wrapper.names);
        let letters = format!("{}{}", wrapper.flags, wrapper.valued);
        assert!(
            are_distinct_letters(&letters)
                && are_long_options(&wrapper.long)
                && are_long_options(&wrapper.long_valued),
            "{wrapper:?}"
        );
        assert!(
            wrapper.command == CommandForm::Words || wrapper.operands == 0,
            "{wrapper:?}"
        );
    }
}

#[test]
fn program_tables_have_one_entry_per_subcommand() {
    let tables = program_tables().unwrap();
    let of = |program: &'static ProgramEntry| {
        if program.after.is_empty() {
            vec![""]
        } else {
            program.after.iter().collect()
        }
    };
    let subcommands: BTreeSet<_> = tables.programs.iter().flat_map(of).collect();
    for after in subcommands {
        let mut seen = BTreeSet::new();
        if after.is_empty() {
            for names in [&tables.sed, &tables.awk, &tables.shell_state] {
                assert_new_names(&mut seen, names);
            }
        }
        for program in tables
            .programs
            .iter()
            .filter(|program| of(program).contains(&after))
        {
            assert_new_names(&mut seen, &program.names);
        }
    }
    assert_new_names(&mut BTreeSet::new(), &tables.readers);
}

#[test]
fn program_entries_are_well_formed() {
    for program in &program_tables().unwrap().programs {
        assert!(
            are_distinct_letters(&program.short) && are_long_options(&program.long),
            "{program:?}"
        );
        assert!(
            program.after.iter().all(|after| !after.is_empty()),
            "{program:?}"
        );
        let before = format!("{}{}", program.before.flags, program.before.valued);
        assert!(
            are_distinct_letters(&before) && are_long_options(&program.before.long_valued),
            "{program:?}"
        );
        let mut texts = program.words.iter().chain(program.prefixes.iter());
        assert!(
            texts.all(|text| !text.is_empty() && !text.contains(' ')),
            "{program:?}"
        );
        let verb = |verb: &str| !verb.is_empty() && !verb.contains(' ') && !verb.starts_with('-');
        assert!(
            program
                .verbs
                .iter()
                .chain(program.harmless.iter())
                .all(verb),
            "{program:?}"
        );
        assert!(program.input != InputUse::CommandsBelow(0), "{program:?}");
        assert!(has_any_effect(program), "{program:?}");
    }
}

fn has_any_effect(program: &ProgramEntry) -> bool {
    !program.names_no_words()
        || !program.verbs.is_empty()
        || !program.harmless.is_empty()
        || program.writes_from.is_some()
        || program.input != InputUse::Data
        || program.assignments
}

/// One word for each listed program and one letter for each form of its arguments: `a` if a rule
/// for the program allows the form, `?` if it needs approval. A change of the tables that changes a
/// decision shows here.
#[test]
fn program_tables_keep_every_decision() {
    const SHAPES: [&str; 40] = [
        "",
        "-",
        "f",
        "a b",
        "a b c",
        "$x",
        "\"$x\" b",
        "-$x",
        "a*",
        "~/x",
        ".git/config",
        "-- a",
        "x=y",
        "of=x",
        "-c f",
        "-e f",
        "-f f",
        "-i f",
        "-o f",
        "-O f",
        "-x f",
        "--exec f",
        "--eval=f",
        "--output=f",
        "--config f",
        "--file f",
        "+x",
        "@f",
        "-exec ls ;",
        "run x",
        "exec x",
        "config x",
        "ls",
        "5 ls",
        "-n 5 ls",
        "A=1 ls",
        "-- ls",
        "-c ls",
        "p f",
        "'{print}' f",
    ];
    let tables = program_tables().unwrap();
    let lists = [
        &tables.shell_state,
        &tables.readers,
        &tables.shells,
        &tables.foreign_shells,
        &tables.launchers,
    ];
    let lists = lists
        .into_iter()
        .chain([&tables.sed, &tables.awk, &tables.find]);
    let entries = tables.wrappers.iter().map(|wrapper| &wrapper.names);
    let lists = lists
        .chain(entries)
        .chain(tables.programs.iter().map(|program| &program.names));
    let names: BTreeSet<&str> = lists.flat_map(NameList::iter).collect();
    let nowhere = Workspace {
        root: "/nowhere".into(),
        extra: Vec::new(),
        cwd: "/nowhere".into(),
        spill: "/none".into(),
        journal: "/none".into(),
    };
    let mut text = String::new();
    for name in names {
        let mut rules = PermissionRules::default();
        for rule in [
            format!("execute_command({name}:*)"),
            "execute_command(ls:*)".to_owned(),
        ] {
            // `time` and `coproc` are keywords of the shell, which no rule can name.
            if let Ok(rule) = PermissionRule::parse(&rule, None) {
                rules = rules.with_rule(Decision::Allow, rule);
            }
        }
        let permissions = Permissions {
            rules,
            ..Permissions::default()
        };
        let decided = SHAPES.map(|shape| {
            let verdict = permissions.decide(
                &PermissionRequest::for_command(&format!("{name} {shape}")),
                &nowhere,
            );
            if verdict.decision == Decision::Allow {
                'a'
            } else {
                '?'
            }
        });
        let _ = writeln!(text, "{} {name}", decided.iter().collect::<String>());
    }
    insta::assert_snapshot!("decisions", text);
}
