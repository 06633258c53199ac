# Commands of the user.

slash-none = 还没有自定义命令（用 `haft commands add` 添加）
slash-untrusted = 项目受信任后，其中的命令才可用（`haft trust`）
slash-there-are = 现有 { $names }
slash-unknown = 没有命令 `/{ $name }`；{ $there }
slash-terminal = `/{ $name }` 只用于终端：请不带任务启动 `haft`
slash-command-refused = 该命令需要 `{ $line }` 的输出，但不允许运行它：{ $reason }
slash-command-interrupted = 在运行 `{ $line }` 时被中断
slash-command-failed = 该命令需要 `{ $line }` 的输出，但它失败了：{ $said }
