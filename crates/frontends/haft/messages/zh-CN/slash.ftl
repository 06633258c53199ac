# Commands of the user.

slash-none = /help 列出全部命令
slash-untrusted = /help 列出全部命令；此目录未受信任，其中的命令没有加载
slash-there-are = /help 列出全部命令；自定义的有 { $names }
slash-near = 是否要输入 `/{ $near }`？/help 列出全部命令
slash-unknown = 未知命令 `/{ $name }`：{ $there }
slash-terminal = `/{ $name }` 只用于终端：请不带任务启动 `haft`
slash-command-refused = 该命令需要 `{ $line }` 的输出，但不允许运行它：{ $reason }
slash-command-interrupted = 在运行 `{ $line }` 时被中断
slash-command-failed = 该命令需要 `{ $line }` 的输出，但它失败了：{ $said }
