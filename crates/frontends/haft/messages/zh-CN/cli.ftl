# The command line itself.

cli-waits-for-program = `haft { $command }` 与启动它的程序通信，正在标准输入上等待消息；按 Ctrl-D 结束
cli-not-in-build = 此构建不含 `haft { $command }`；请用 `--features { $feature }` 构建
cli-not-positive = 应为大于 0 的数
cli-word-near = `{ $word }` 不是命令；你是想用 `haft { $near }` 吗？要把它作为提示词发给模型：`haft -p { $word }`，在终端中也可用 `haft -- { $word }`
cli-word-elsewhere = `{ $word }` 不是命令：{ $advice }。要把它作为提示词发给模型：`haft -p { $word }`，在终端中也可用 `haft -- { $word }`
cli-word-unknown = `{ $word }` 不是命令（`haft --help` 列出所有命令）。要把它作为提示词发给模型：`haft -p { $word }`，在终端中也可用 `haft -- { $word }`
cli-word-ask-near = `{ $word }` 不是命令。你是想用 `haft { $near }` 吗？
    y 运行 `haft { $near }`，p 把 `{ $word }` 发给模型（同 `haft -- { $word }`），Enter 退出：
cli-word-ask-elsewhere = `{ $word }` 不是命令：{ $advice }。
    p 把 `{ $word }` 发给模型（同 `haft -- { $word }`），Enter 退出：
cli-word-ask = `{ $word }` 不是命令（`haft --help` 列出所有命令）。
    p 把它发给模型（同 `haft -- { $word }`），Enter 退出：
cli-word-login = haft 没有账号；服务商的密钥从其环境变量读取（变量名见 `haft models list`），或用 `haft models add` 添加；`haft mcp login` 用于 MCP 服务器
cli-word-init = 在会话（`haft`）中输入 `/init`，模型会写出 AGENTS.md；没有模型时会先询问，也可用 `haft models add` 添加
cli-word-update = haft 不会自行安装或更新；请用当初的安装方式安装新版本
cli-word-version = `haft --version` 显示版本
cli-word-exec = `haft run PROMPT` 或 `haft -p PROMPT` 执行一个任务后退出
cli-word-resume = `haft -c` 继续当前会话，`haft -r` 列出可继续的会话
cli-word-sessions = `haft conversations` 列出所有会话
cli-word-exit = 没有需要退出的会话
cli-word-status = `haft doctor` 检查安装，`haft models` 列出模型，`haft sandbox status` 显示沙箱状态
cli-word-cost = `haft conversations show --cost` 显示会话的费用
cli-word-plugins = 别处打包成插件的内容，在这里由 `haft mcp`、`haft skills`、`haft commands` 和 `haft hooks` 管理
cli-word-recipes = `haft commands` 管理按名称调用的提示词，`haft workflows` 运行由步骤组成的文件
cli-flag = `{ $flag }` 是其他智能体的选项，在这里写作 `{ $here }`。
