# `haft context replay`.

replay-bad-tail = 请给出不超过 { $most } 的 token 数和 0 到 1 之间的比例，例如 `1000:0.05`
replay-bad-prices = 请给出两个数，即输入价格的倍数，例如 `0.1/1.25`
replay-bad-plot = 文件名须以 .svg 或 .html 结尾
replay-unwritable = 无法写入 `{ $path }`
replay-written = 已写入 { $path }
replay-no-counts = `{ $recorded }` 需要服务商的计数，而其中没有会话含有计数
replay-left-out-all = { $all } 个会话中有 { $left_out } 个不计入任何一行：`{ $recorded }` 需要服务商的计数，而它们没有
replay-unknown-cache = `{ $name }` 不是缓存规则；请用 anthropic、openai、openai-breakpoints、gemini、deepseek、vllm、llama-cpp、automatic 或 none
replay-cannot-create = 无法创建 `{ $folder }`
replay-unwritable-folder = 无法写入 `{ $folder }`：{ $error }
replay-no-model = 不调用模型：归档只含必须保留的原文，没有模型生成的摘要。
replay-same-bodies = { $name }：{ $all } 个请求体中有 { $same } 个与实际发送的完全相同
replay-bad-file = `{ $file }` 不是会话：{ $problem }
replay-no-requests = 其中没有会话含有请求，即得到助手回复的用户消息
replay-unreadable-folder = 无法读取目录 `{ $folder }`：{ $error }
replay-skipped = 已跳过 `{ $file }`：{ $problem }
replay-none-in-folder = `{ $folder }` 中没有会话：读取了 { $files } 个以 .json、.jsonl、.traj 或 .gz 结尾的文件
replay-own-no-requests = 会话还没有请求
replay-kept = { $kept }/{ $all }
replay-stopped = 比较已停止
