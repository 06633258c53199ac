# `haft serve`.

serve-cannot-listen = 无法监听 `{ $address }`：{ $error }；去掉 `--port` 可使用空闲端口
serve-listening =
    { $url }
    只有在本机打开此地址才能看到页面。按 Ctrl+C 停止。
serve-cannot-open = 无法启动 `{ $program }`：{ $error }；请自行打开该地址
serve-conversations = 会话
serve-search = 搜索
serve-name = 名称
serve-agent = 代理
serve-namespace = 命名空间
serve-messages = 消息
serve-requests = 请求
serve-cost = 费用
serve-cached = 读自缓存
serve-updated = 最近使用
serve-text = 文本
serve-no-hits = 没有找到。
serve-dialogue = 对话
serve-timeline = 时间线
serve-before = ← 上一个
serve-after = 下一个 →
serve-no-requests = 没有记录本会话的请求：它是导入的，或还没有发送过请求。
serve-request = 请求
serve-sent = 发送时间
serve-model = 模型
serve-tokens = Token 数
serve-break = 前缀失效
serve-request-of = 请求 { $number }，共 { $requests } 次
serve-sent-to = { $time } 发送给 { $model }（{ $api }）：估计 { $tokens } token。
serve-billed = 计费：输入 { $input } token，其中 { $cached } 读自缓存，{ $written } 写入缓存；输出 { $output } token{ $cost }。
serve-no-reply = 没有记录回复。
serve-no-break = 它延续前一次请求，或是首次请求。
serve-why = 前缀失效：{ $cause }；重新发送 { $tokens } token{ $cost }。
serve-segments = 段
serve-layer = 层
serve-owner = 归属
serve-state = 缓存
serve-kept = 与之前相同
serve-new = 新增
serve-boundary = ，边界
serve-difference = 与前一次请求的差异
serve-body = 实际发送的请求体（{ $bytes } 字节，密钥已脱敏）
