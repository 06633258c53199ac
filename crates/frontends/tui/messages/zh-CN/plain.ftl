# The interface in lines, for screen readers (`haft --plain`).

plain-prompt = 你：
plain-answer = 回答：
plain-number = 编号，Enter 取消：
plain-field = 回答，- 拒绝：
plain-reason = 给模型的理由：
plain-change = 新内容：
plain-call-is = 当前：{ $text }
plain-typed = 你的消息是：{ $text }
plain-withdrawn = 问题已撤回
plain-too-early = 已忽略：这是在问题显示之前输入的
plain-several-lines = 已忽略：一次输入多行不能回答问题
plain-interrupting = 正在中断
plain-retry = { $wait } 秒后重试（第 { $attempt } 次）：{ $reason }
plain-quit-again = 再按一次 Ctrl-C 退出
plain-call = 调用：{ $call }
plain-call-of = { $agent } 调用：{ $call }
plain-todo =
    { $status ->
        [pending] 待办，未开始：{ $content }
        [in_progress] 待办，进行中：{ $content }
        [completed] 待办，已完成：{ $content }
       *[other] 待办，{ $status }：{ $content }
    }
plain-approval = { $reason }；y 仅此一次，n 否，w 否并说明理由，e 先编辑；输入其他文字则以此为由拒绝
plain-approval-always = { $reason }；y 仅此一次，s { $session }，a 始终（将 { $rules } 保存到 { $file }），r 自定规则，n 否，w 否并说明理由，e 先编辑；输入其他文字则以此为由拒绝
plain-rules-and = 和
plain-session = 本次会话
plain-session-edits = 本次会话的所有编辑
plain-rule = 规则，Enter 返回：
plain-rule-is = 建议：{ $text }
plain-session-allowed = 本次会话内允许
plain-allowed = 已允许
plain-allowed-changed = 已允许修改后的调用
plain-not-allowed = 已拒绝

## What stands for a symbol at the beginning of a row
plain-done = 完成：
plain-partly-done = 部分完成：
plain-failed = 失败：
plain-asked = 请求批准：
plain-opened = 全部内容：
plain-chosen = 已选：
plain-quote = 引用：

## How everything of a folded result is shown: the key elsewhere, and the command here
plain-open-key = Ctrl-O
plain-open-command = /open
