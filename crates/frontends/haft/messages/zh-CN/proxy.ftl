# `haft proxy`.

proxy-cannot-listen = 无法监听 `{ $address }`：{ $error }；`--port 0` 选择空闲端口
proxy-cannot-start = 无法启动 `{ $program }`：{ $error }
proxy-listening =
    正在记录经过 http://{ $address } 的内容。让编程智能体指向它：
      ANTHROPIC_BASE_URL=http://{ $address }
      OPENAI_BASE_URL=http://{ $address }/v1
      GOOGLE_GEMINI_BASE_URL=http://{ $address }
    `haft conversations list --namespace proxy` 列出记录的内容。按 Ctrl-C 停止。
proxy-request = { $conversation } #{ $number } { $model }：{ $tokens } token，{ $how }；缓存预测 { $predicted }，{ $billed }；{ $cost }
proxy-first = 首次请求
proxy-extends = 延续前一次
proxy-breaks = 从第 { $at }/{ $segments } 段起不同（{ $owner }）：{ $cause }
proxy-billed = 计费 { $input }，其中读自缓存 { $cached }
proxy-not-billed = 未报告
proxy-cost = { $cost }，只追加则为 { $append_only }
proxy-no-price = 价格未知
proxy-side = （旁路请求）
proxy-cut = （回复被截断）
proxy-status = （状态码 { $status }）
proxy-passed = 已转发 { $method } { $path }：{ $status }
proxy-not-recorded = 警告：已转发，但未记录：{ $reason }
proxy-total = { $requests } 次请求，{ $breaks } 次失效；未读自缓存的输入 { $uncached } token，只追加的客户端则为 { $append_only }（比值 { $ratio }）；{ $cost }
proxy-no-agents = `proxy.save.agents` 未允许任何智能体：请列出可以改写请求的智能体，例如 `haft config set proxy.save.agents '["codex"]'`
proxy-agent-not-allowed = 不允许改写 `{ $agent }` 的请求：请把 `{ $agent }` 加入配置中的 `proxy.save.agents`，或去掉 `--save`
proxy-agent-cannot-read = 无法确定 `{ $agent }` 的工具能打开 haft 状态目录中的文件：请把 `proxy.save.spill_dir` 设为它能读取的目录
proxy-spill-relative = `proxy.save.spill_dir` 是 `{ $folder }`：必须是绝对路径
proxy-cleared = { $conversation }：从现在起省略 { $agent } 的 { $results } 个较早的结果，每次请求约少 { $tokens } token；原文在 { $folder }
proxy-would-clear = { $conversation }：从现在起会省略 { $agent } 的 { $results } 个较早的结果，每次请求约少 { $tokens } token
proxy-budget-too-small = 警告：未省略任何内容：`proxy.save.budget` 为 { $budget } token，而固定前缀与保留的结果共有 { $needed }；请至少设为该值
proxy-text-moved = { $agent } 每次请求都移动一段文字；从现在起它最后发送：{ $opening }
proxy-not-allowed = `{ $agent }` 的请求原样通过：`proxy.save.agents` 未列出它
proxy-not-stored = 警告：不再省略更多内容，因为无法存储：{ $reason }
proxy-rewritten = { $requests } 次请求中改写了 { $rewritten } 次
proxy-would-rewrite = { $requests } 次请求中会改写 { $rewritten } 次
proxy-unchanged = { $count } 次请求原样通过：{ $reason }
proxy-reason-unreadable = 不是可以改写的请求
proxy-reason-stored-response = 它延续存储在服务商处的回复
proxy-reason-stored-conversation = 会话存储在服务商处
proxy-reason-compaction = 它包含服务商压缩过的条目
proxy-reason-context-management = 服务商自己清除结果（`context_management`）
proxy-reason-named-cache = 它引用一个命名缓存
proxy-reason-no-consent = `proxy.save` 未允许该智能体
proxy-saved-money = 节省的输入：{ $received } 中约 { $saved }（{ $percent } %），共 { $conversations } 个会话；按请求和标价估算，重复的文本读自缓存，每 token 4 字节
proxy-saved-units = 节省的输入：{ $received } 个全价 token 中约 { $saved }（{ $percent } %），共 { $conversations } 个会话；按请求估算，重复的文本以十分之一的价格读自缓存，每 token 4 字节
