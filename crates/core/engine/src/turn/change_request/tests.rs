use super::{asks_for_change, section_lines, section_words};

/// Returns the prompts for which the result differs from `expected`.
fn wrong<'a>(expected: bool, prompts: &[&'a str]) -> Vec<&'a str> {
    let is_file = |path: &str| ["notes", "src/lib"].contains(&path);
    prompts
        .iter()
        .copied()
        .filter(|prompt| asks_for_change(prompt, &is_file) != expected)
        .collect()
}

#[test]
fn asks_for_change_accepts_requests_that_name_a_file() {
    let prompts = [
        "Create config.json with name demo, port 8080 and debug false.",
        "Add a function square(x) to maths.py that returns x times x. Keep what is there.",
        "In shop.py, make the tax rate 0.2 by default instead of 0.1.",
        "is_adult in person.rs must be true from the age of 18 on, 18 included. Fix it.",
        "backup.sh copies to /tmp/old. Make it copy to /tmp/new instead.",
        "Change the version from 0.1.0 to 0.2.0 in all files.",
        "What is wrong with calc.py? Fix it.",
        "Explain the bug in calc.py and fix it.",
        "Could you please rename calc to total in tools.py?",
        "Please write a Dockerfile for this project",
        "Correct the spelling in notes",
        "Replace foo by bar in src/lib.",
        "add `README.md`",
        "main.py crashes.\nRead it, then correct the mistake",
        "把 jieshao.txt 里的“北京”改成“上海”。",
        "把所有文件里的“苹果”改成“香蕉”。",
        "请创建 area.py，里面有一个函数 area(width, height)，返回长方形的面积。",
        "请修改简介.txt，说明为什么需要它。",
        "能不能在main.py里添加注释？",
        "在Makefile里添加 clean 目标",
    ];
    assert_eq!(wrong(true, &prompts), Vec::<&str>::new());
}

#[test]
fn asks_for_change_rejects_questions_and_requests_without_a_file() {
    let prompts = [
        "Hello",
        "Fix the bug.",
        "Fix the version 0.1.0 of https://example.com/a.py",
        "What is a monad?",
        "How do I add a function to maths.py",
        "Explain how to rename a function in lib.py.",
        "Did you change main.py?",
        "Does the fix in main.py work?",
        "Review the last change in main.py.",
        "Read main.py and do not change it.",
        "Read main.py. Change nothing.",
        "Don't edit a.txt",
        "Run the script make.sh. Then tell me what is in the file it creates.",
        "Run update.py with add(1, 2) and \"set\".",
        "Running app.py fails. Say which module is missing.",
        "How many files are in the folder data? Use a command and answer with the number.",
        "会议几点开始？请在文件里查找并回答。",
        "main.py 为什么要修改",
        "解释 main.py 如何写入数据。",
        "阅读 main.py，不要修改它。",
        "你好",
        "",
    ];
    assert_eq!(wrong(false, &prompts), Vec::<&str>::new());
}

#[test]
fn change_words_have_all_sections() {
    for name in [
        "verbs",
        "verbs zh",
        "questions",
        "questions zh",
        "not verbs after",
        "not verbs after zh",
        "joins",
        "runs",
        "runs zh",
        "extensions",
        "file names",
    ] {
        assert!(section_words(name).next().is_some(), "{name}");
    }
    for name in ["requests", "requests zh", "all files"] {
        assert!(section_lines(name).next().is_some(), "{name}");
    }
}
