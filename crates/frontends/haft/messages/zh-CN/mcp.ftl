# `haft mcp`, and prompts of MCP servers.

mcp-bad-permission = 应为 allow、ask 或 deny
mcp-no-servers = 目前一个也没有
mcp-there-are = 现有 { $names }
mcp-unknown = 没有 MCP 服务器 `{ $name }`；{ $known }
mcp-declared = 已在 `{ $file }` 中声明 `{ $name }`。
mcp-removed = 已从 `{ $file }` 中移除 `{ $name }`。
mcp-bad-name = `{ $name }` 不能作为服务器名称；只能使用字母、数字、`-`、`.` 和单个 `_`
mcp-already-declared = `{ $file }` 中已声明 `{ $name }`；用 `haft mcp remove { $name }` 移除
mcp-not-declared = `{ $file }` 中没有声明 MCP 服务器 `{ $name }`；用 `haft mcp list` 查看
mcp-not-a-table = `{ $file }` 中的 `{ $section }` 不是独立的表；请手动添加服务器
mcp-bad-url = `{ $url }` 不是地址；地址以 `http://` 或 `https://` 开头
mcp-for-url = 使用 `--url` 的服务
mcp-program-or-url = 请给出程序（`haft mcp add NAME -- COMMAND ARGS`）或 `--url URL`，二者选一
mcp-flag-is-for = `{ $flag }` 只用于{ $of }
mcp-bad-pair = `{ $pair }` 不是以 `{ $between }` 分隔的名称和值
mcp-list-empty = 没有 MCP 服务器。用 `haft mcp add NAME -- COMMAND` 添加。
mcp-state-known-logged-in = 已知，已登录
mcp-state-logged-in = 已登录，尚未连接
mcp-state-unknown = 尚未连接
mcp-login-failed = 无法登录 `{ $server }`：{ $reason }
mcp-no-login = `{ $server }` 应答正常，无需登录。
mcp-login-page =
    打开此页面登录 `{ $server }`：

    { $url }
mcp-login-timeout = 10 分钟内没有完成登录
mcp-logged-in = 已登录 `{ $server }`。用 `haft mcp test { $server }` 测试。
mcp-unnamed = 未命名的服务器
mcp-prompt-optional = 可选
mcp-prompt-no-arguments = 它不需要参数。
mcp-prompt-about =
    使用时从服务器 `{ $server }` 获取其内容。
    { $takes }
mcp-resources = 另有 { $count } 个资源
mcp-prompts = 另有 { $count } 个提示词
mcp-state-known = 已知
mcp-state-off = 已关闭
mcp-state-broken = 无法使用
mcp-test-heading = { $server }：{ $program }，协议 { $protocol }
mcp-prompt-needed = 必需
mcp-serve-yolo = 其他智能体的任务不允许无限制运行；请使用 plan、ask、accept-edits 或 auto
mcp-serve-unspecified = `{ $address }` 表示本机的所有地址；请指定一个，例如 127.0.0.1:8080
mcp-serve-cannot-listen = 无法监听 `{ $address }`：{ $error }；去掉地址可使用空闲端口
mcp-serve-token = Bearer 令牌，只在此处显示：{ $token }
mcp-serve-open = 其他机器可以访问 `{ $address }`，且令牌未经加密传输；请在它前面放置支持 TLS 的反向代理
