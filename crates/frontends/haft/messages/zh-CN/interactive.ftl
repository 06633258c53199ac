# `haft` at the terminal: lists to choose from, answers to commands.

interactive-start-branch = { $folder }，分支 { $branch }
interactive-start-model = 模型 { $model }，权限模式 { $mode }
interactive-hint-files = 提示：@ 补全文件名，/ 补全命令名。
interactive-hint-mode = 提示：Shift-Tab 切换权限模式。
interactive-hint-shell = 提示：!command 在你的 shell 中运行，模型会读取输出。
interactive-hint-rewind = 提示：Esc Esc 回到之前的消息。
interactive-hint-context = 提示：/context 显示窗口中的内容。
interactive-context-prompt = 系统提示词
interactive-context-tools = 工具
interactive-context-mcp = MCP 工具
interactive-context-rules = 规则和 AGENTS.md
interactive-context-messages = 消息
interactive-context-reminders = 提醒
interactive-context-tool-count =
    { $count ->
        [one] 1 个工具
       *[other] { $count } 个工具
    }
interactive-context-message-count =
    { $count ->
        [one] 1 条消息
       *[other] { $count } 条消息
    }
interactive-context-pruned = 达到 { $percent }（{ $tokens } 个 token）时，旧的工具结果会被修剪。
interactive-context-archived = 达到 { $percent }（{ $tokens } 个 token）时，较早的轮次会被归档并总结；/compact 立即执行。
interactive-image = [图片 { $name }{ $size }]
interactive-clipboard-none = 剪贴板里没有图片。
interactive-clipboard-no-program = 无法从剪贴板读取图片：请安装 wl-clipboard、xclip 或 pngpaste，或粘贴文件路径。
interactive-inspect =
    { $url }
    只有在这台机器上打开这个地址才能看到页面。haft 退出时页面随之关闭。
interactive-no-terminal = 此功能需要终端；没有终端时请用 `haft run "…"` 或 `haft -p "…"`
interactive-cleared = 你的下一条消息将开始新会话
interactive-nothing-yet = 本会话还是空的
interactive-model-switched = 从下一次请求起使用 `{ $name }`
interactive-no-conversations = 本项目还没有会话。
interactive-resume-title = 继续哪个会话？
interactive-rewind-title = 回到你的哪条消息之前？
interactive-rewind-note = 原会话保持不变；从该处起在副本中继续。
interactive-model-current = 当前模型
interactive-model-price = 要写入 { $quote }
interactive-model-note = 其他模型没有缓存：整个会话都要重新写入。
interactive-model-title = 使用哪个模型？
interactive-document = { $tokens } token，每次请求都发送
interactive-focus = 关注：其路径在系统消息中
interactive-files-note = Enter 显示文档。`/files add PATH` 添加关注文件。
interactive-files-title = 文档和关注文件
interactive-focus-title = 修改关注文件？
interactive-focus-price = 它们在系统消息中：下一次请求要重新写入 { $quote }。
interactive-focus-change = 修改
interactive-focus-cancel = 不改动
interactive-focus-none = 没有关注文件
interactive-file-mention = 提及它
interactive-file-remove = 移除它
interactive-rewind-to = 回到：{ $text }
interactive-rewind-messages = 消息
interactive-rewind-messages-note = 文件保持原样
interactive-rewind-files = 消息和文件
interactive-rewind-files-note = 恢复到该消息之前的状态
interactive-just-now = 刚刚
interactive-minutes-ago = { $minutes } 分钟前
interactive-undo-title = 撤销最近一次修改？
interactive-undo = 撤销
interactive-redo-title = 重做已撤销的修改？
interactive-redo = 重做
interactive-undo-cancel = 不改动
interactive-no-diff = 本会话还没有修改过文件
interactive-shell-output =
    { $output }
    （会随你的下一条消息发给模型）
interactive-interrupted = 已中断。告诉 haft 接下来该做什么。
interactive-exit-code = 退出码 { $code }
interactive-stopped = 已停止
interactive-signal = 被信号 { $signal } 终止
interactive-editor-failed = 无法打开编辑器 `{ $editor }`：{ $error }
interactive-editor-ended = 编辑器 `{ $editor }` 以 { $status } 退出；你输入的内容没有变化
interactive-nothing-to-archive = 还没有可归档的内容
interactive-compacted = 下一次请求为 { $after } token，原为 { $before }
interactive-conversation = { $age }，{ $messages } 条消息
interactive-conversation-open = 当前打开，{ $age }，{ $messages } 条消息
interactive-rewind-removes = { $age }，将去掉 { $messages } 条消息
interactive-focus-files = 关注文件：{ $files }
interactive-hours-ago = { $hours } 小时前
interactive-days-ago = { $days } 天前
interactive-resumed = { $name } · { $count } 条消息
interactive-occupied-title = 本会话已在另一个 haft 中打开
interactive-occupied-by = 它在 { $holder } 中打开，{ $age }。
interactive-occupied-fork = 在副本中继续
interactive-occupied-fork-note = 原会话保持不变
interactive-occupied-wait = 等待它关闭
interactive-occupied-wait-note = Esc 停止等待
interactive-occupied-new = 开始新会话
interactive-occupied-waiting = 正在等待该会话关闭
interactive-compact-size = 下一次请求仍为 { $tokens } token。
interactive-cut-off = 上一轮没有结束。你的下一条消息会继续它。
