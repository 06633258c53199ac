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
proxy-breaks = 从第 { $at }/{ $segments } 段起不同（{ $owner }）：{ $cause }，再次发送 { $tokens } token
proxy-billed = 计费 { $input }，其中读自缓存 { $cached }
proxy-not-billed = 未报告
proxy-cost = { $cost }，只追加则为 { $append_only }
proxy-units = { $sent } 单位，只追加则为 { $append_only }（价格未知；1 单位为 1 个全价输入 token）
proxy-no-cost = 费用未知
proxy-side = （旁路请求）
proxy-cut = （回复被截断）
proxy-status = （状态码 { $status }）
proxy-passed = 已转发 { $method } { $path }：{ $status }
proxy-not-recorded = 警告：已转发，但未记录：{ $reason }
proxy-total = { $requests } 次请求，{ $breaks } 次失效；未读自缓存的输入 { $uncached } token，只追加的客户端则为 { $append_only }（比值 { $ratio }）；{ $cost }
proxy-conversation-total = { $conversation }：{ $total }
proxy-side-total = { $requests } 次旁路请求：未读自缓存的输入 { $uncached } token；{ $cost }
proxy-run-total = 合计：{ $requests } 次请求，{ $breaks } 次失效；{ $cost }
proxy-priced = （{ $requests } 次请求中有 { $priced } 次有价格）
