//! Every screen of the terminal in Chinese at three widths, with no English except names.

use std::collections::HashSet;
use std::fmt::Write as _;

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::json;

use crate::chinese_lists::{CHINESE, english_words};
use crate::rig::Rig;
use crate::terminal::Terminal;

/// A walk through the terminal that records the new lines on the screen after each step.
struct Walk<'a> {
    rig: &'a Rig,
    terminal: Terminal,
    seen: HashSet<String>,
    told: String,
}

impl Walk<'_> {
    fn step(&mut self, what: &str, keys: &str, until: &str) {
        let rest = keys.strip_prefix('\u{1b}').filter(|rest| !rest.is_empty());
        if rest.is_some() {
            self.terminal.press("\u{1b}");
            // An open list would consume the next keys.
            self.terminal.until("the list is closed", |screen| {
                !["Esc 取消", "Esc 关闭"]
                    .iter()
                    .any(|open| screen.contents().contains(open))
            });
        }
        self.terminal.press(rest.unwrap_or(keys));
        self.terminal.until_text(until);
        self.terminal.until_idle();
        let text = self.terminal.text();
        writeln!(self.told, "== {what}").unwrap();
        let temporary = self.rig.project().parent().unwrap().display().to_string();
        for line in text
            .lines()
            .map(str::trim_end)
            .filter(|line| !line.is_empty())
        {
            // Text that is sent to the model and running commands are shown unchanged.
            let is_quoted = ["工具：", "Created "]
                .iter()
                .any(|begin| line.trim_start_matches([' ', '▸']).starts_with(begin));
            if line.contains(&temporary) || is_quoted || line.starts_with("… haft") {
                continue;
            }
            if self.seen.insert(line.to_owned()) {
                writeln!(self.told, "{line}").unwrap();
            }
        }
    }

    /// Sends a prompt whose call needs approval; records the question and the result of the answer.
    fn step_with_approval(&mut self, what: &str, prompt: &str, answer: &str, until: &str) {
        self.terminal.press(prompt);
        self.terminal.until_armed();
        self.step(what, "", "是，仅此一次");
        self.step(&format!("{what}: {answer}"), answer, until);
    }
}

/// Returns the lines of every screen that a user meets in a session.
fn record_screens(columns: u16) -> String {
    let replies = [
        Reply::call("execute_command", json!({"command": "exit 3"})),
        Reply::text("好一。"),
        Reply::call("write_to_file", json!({"path": "a.txt", "content": "一\n"})),
        Reply::text("好二。"),
        Reply::call("read_file", json!({"path": "b.txt"})),
        Reply::text("好三。"),
        Reply::call(
            "execute_command",
            json!({"command": "touch x", "sandbox": false}),
        ),
        Reply::text("好四。"),
        Reply::call("write_to_file", json!({"path": "a.txt", "content": "一\n"})),
        Reply::text("好五。"),
        Reply::error(400, "400"),
        Reply::error(500, "500").times(9),
    ];
    let rig = Rig::new(Api::Anthropic, Script::replies(replies).unwrap()).with([CHINESE]);
    let terminal = Terminal::start(&rig, &[], (columns, 50));
    let mut walk = Walk {
        rig: &rig,
        terminal,
        seen: HashSet::new(),
        told: String::new(),
    };
    walk.step("start", "", "描述任务");
    walk.step("keys", "?", "重绘");
    walk.step("undo before anything", "\u{7f}/undo\r", "还是空的");
    walk.step_with_approval("a command", "跑\r", "y", "好一");
    walk.step_with_approval("a new file", "写\r", "n", "好二");
    walk.step("a file that is not there", "读\r", "好三");
    walk.step_with_approval("outside the sandbox", "外\r", "n", "好四");
    walk.step("nothing to undo", "/undo\r", "没有可撤销");
    walk.step_with_approval("a file that is written", "再写\r", "y", "好五");
    walk.step("an error", "错\r", "状态码 400");
    walk.terminal.press("等\r");
    walk.terminal.until_text("秒后");
    walk.step("interrupted", "\u{1b}", "已中断");
    walk.step("context", "/context\r", "为回复预留");
    walk.step("undo", "/undo\r", "撤销：写入 a.txt");
    walk.step("mode", "\u{1b}/mode\r", "只读取和规划");
    // The list of commands has the title of this list too.
    walk.step("model", "\u{1b}/model\r", "其他模型没有");
    walk.step("resume", "\u{1b}/resume\r", "继续哪个会话");
    walk.step("rewind", "\u{1b}/rewind\r", "哪条消息之前");
    walk.step("edit the context", "\u{1b}/context edit\r", "会发送的消息");
    walk.step("files", "\u{1b}/files\r", "没有发送文档");
    walk.step("results", "\u{f}", "关闭");
    walk.step("a search", "/zz\r", "没有匹配");
    walk.step("commands", "\u{1b}/", "▸ /");
    walk.step("a file to mention", "\u{7f}看 @a", "▸ @a.txt");
    walk.step("cost", "\u{15}/cost\r", "次请求：");
    walk.step("end", "\u{3}", "再按一次");
    walk.terminal.press("\u{3}");
    let (code, text) = walk.terminal.wait_for_exit();
    assert!(code == 0 && text.contains("继续本会话"), "{text}");
    walk.told
}

fn assert_screens_are_chinese(columns: u16) {
    let told = record_screens(columns);
    let shown: Vec<_> = told
        .lines()
        .filter(|line| !line.starts_with("=="))
        .collect();
    assert_eq!(
        english_words(&shown.join("\n")),
        Vec::<String>::new(),
        "{told}"
    );
    for line in shown {
        assert!(
            haft_text::display_width(line) <= usize::from(columns),
            "{line}"
        );
    }
}

#[test]
fn screens_of_forty_columns_are_chinese() {
    assert_screens_are_chinese(40);
}

#[test]
fn screens_of_eighty_columns_are_chinese() {
    assert_screens_are_chinese(80);
}

#[test]
fn screens_of_two_hundred_columns_are_chinese() {
    assert_screens_are_chinese(200);
}
