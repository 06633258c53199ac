# What a run prints on stderr.

output-between = 、
output-comma = ，
output-sandbox-namespace = 命令在独立的命名空间中运行
output-sandbox-landlock = 命令仅受 Landlock 限制
output-sandbox-none = 命令不在沙箱中运行
output-retry = { $seconds } 秒后重试（第 { $attempt }{ $limit } 次）：{ $reason }
output-background-task = 后台任务 { $message }
output-prefix-break = 前缀失效：{ $message }，重新发送 ≈{ $tokens } token
output-plan = ? 计划如下{ $options }
output-denied = 已停止：有操作被拒绝
output-more-lines = … 还有 { $most } 行
output-subagent-started = 已启动（{ $model }）
output-subagent-ended = 已结束：{ $message }
output-subagent-retry = 重试（第 { $attempt } 次）：{ $reason }
output-sandbox = 沙箱：{ $what }
output-sandbox-because = { $what }，原因：{ $reasons }
output-retry-limit = /{ $limit }
output-waiting-for-model = … 等待模型，{ $elapsed }
output-run-header = haft：{ $model }，会话 { $id }
output-run-summary = haft：{ $count } 次请求，{ $elapsed }{ $money }；`haft -r { $id }` 可继续
