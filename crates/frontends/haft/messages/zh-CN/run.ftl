# `haft run`: its arguments, and questions at its terminal.

run-stream-formats = `--input-format stream-json` 需要 `--output-format stream-json`：回答会发给提问方
run-stream-no-message = 标准输入结束，但没有 `user` 类型的消息
run-in-background = 在后台运行；`haft jobs attach { $id }` 查看进度，`haft jobs kill { $id }` 结束作业
run-which-conversation = 哪个会话？请用 `-r ID`（`haft conversations list` 列出会话）或 `-c`
run-fork-which = `--fork-session` 会复制会话；请用 `-c` 或 `-r ID` 指明是哪一个
run-no-prompt = 要让模型做什么？请给出提示词，或通过管道输入
run-goal-plan = 计划模式不允许任何修改，无法达成目标；请去掉二者之一
run-no-model = 未选择模型；请用 `-m provider/model`，或在 config.toml 中设置 `model`（`haft demo` 不需要模型）
run-empty-prompt = 提示词为空
run-stdin-unreadable = 无法读取标准输入：{ $error }
run-stdin-not-text = 标准输入不是 UTF-8 文本
run-stdin-silent = 3 秒内标准输入没有内容；不再等待，继续执行
run-ask-no-terminal = `--ask` 需要可以提问的终端，而这里没有（{ $error }）；请去掉它，或用 `haft permissions add` 允许所需的操作
run-of-subagent = （子智能体 { $agent }）
run-permission = { $call }{ $whose }？{ $reason }。
run-not-allowed-yet = 需要批准：
run-form-confirm = y = 是，n = 否：
run-form = { $from } 请求你填写信息。你输入的内容会发给它；请勿输入密码。
run-form-note = 空行采用默认值或跳过该项，`-` 拒绝填写。
run-several-lines = 一次输入多行不能回答问题。
run-permission-keys = y = 是，n = 否，或写下给模型的理由：
run-permission-keys-always = y = 是，a = 始终（将 { $rules } 保存到 { $file }），n = 否，或写下给模型的理由：
run-goal-limit = `--goal` 需要一个上限：`--max-budget-usd`、`--max-total-tokens`、`--max-turns` 或 `--max-wall-time`
run-image-unreadable = `--image { $path }`：无法读取该文件：{ $error }
run-image-none = `--image { $path }`：模型不接受这种文件作为图片；请使用小于 3.7 MB 的 PNG、JPEG、GIF 或 WebP
run-allowed-elsewhere = 已在另一个终端中允许。
run-denied-elsewhere = 已在另一个终端中拒绝。
run-stream-stay = `--stay` 等待 `haft attach`；使用 `--input-format stream-json` 时由写入输入的程序回答：请去掉 `--stay`
run-stay-waits = 正在等待{ $what }；用 `haft attach { $id }` 回答
run-stay-approval = 对 { $call } 的批准
run-stay-form = { $from } 的表单
run-stay-message = 一条消息
