# `haft permissions`.

permissions-none = 模式为 `{ $mode }`，没有规则。用 `haft permissions add 'execute_command(git status:*)'` 添加。
permissions-already-there = 无需添加：`{ $file }` 中已有该规则。
permissions-not-a-list = `{ $file }` 中的 `permissions.{ $decision }` 不是独立的列表；请手动添加规则
permissions-unknown-server = 没有 MCP 服务器 `{ $server }`；用 `haft mcp list` 查看
permissions-needs-args = `--tool` 需要 `--args`，即一个 JSON 对象
permissions-unknown-tool = 没有工具 `{ $name }`；用 `haft tools list` 查看
permissions-args-not-json = `--args` 不是 JSON：{ $error }
permissions-args-not-object = `--args` 不是 JSON 对象
permissions-bad-args = `{ $name }` 会拒绝这些参数：{ $why }
permissions-verdict = { $decision }：{ $reason }
permissions-to-allow = 如需仅允许这一项：haft permissions add
permissions-added = 已在 `{ $file }` 中添加 { $count } 条 { $decision } 规则。
permissions-mode = 模式为 `{ $mode }`。
permissions-built-in = 内置规则涵盖在命名空间沙箱内、只读取项目内容的命令；在 `[permissions]` 中设置 `reading_commands = false` 可关闭。
permissions-removed = 已从 `{ $file }` 中移除 { $count } 条规则。
permissions-no-such-rule = `{ $file }` 中没有规则 `{ $rule }`；`haft permissions list` 显示生效的规则及其来源
permissions-rule-elsewhere = 规则 `{ $rule }` 只在 { $lists } 中
permissions-which-rule = 规则 `{ $rule }` 在 { $lists } 中；请用 `--allow`、`--ask` 或 `--deny` 指明是哪一条
