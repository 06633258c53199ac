# `haft models`.

models-declared = 已在 `{ $file }` 中声明 `{ $name }`。用 `haft models test { $name }` 测试。
models-bad-name = `{ $name }` 不是模型名称；格式为 `provider/model`
models-already-declared = `{ $file }` 中已声明 `{ $name }`；请在该文件中修改
models-provider-exists = 服务商 `{ $name }` 已存在；请去掉 `--{ $flag }`，或在 `{ $file }` 中设置 `providers.{ $name }.{ $key }`
models-provider-new = 服务商 `{ $name }` 是新的；请给出 `--api` 和 `--base-url`
models-not-a-table = `{ $file }` 中的 `{ $name }` 不是独立的表；请手动添加模型
models-main = （主模型）
models-show-heading = { $model }（密钥：{ $key }）
models-role-main = { $first }（同主模型）
models-price-source = { $name }：{ $source }，截至 { $as_of }{ $note }
models-which = 要用哪个模型？请按 `provider/model` 的形式给出，或设置 `model`
models-test-heading = { $model }（{ $api }，{ $url }）
models-test-listed = 列表  { $models } 个模型，包含此模型
models-test-unlisted = 列表  { $models } 个模型，不含此模型
models-test-no-list = 列表  无：{ $problem }
models-test-answer = 回答  { $reply }，用时 { $total } ms，首个 token { $first } ms
models-test-no-usage = 用量  未报告
models-test-usage = 用量  输入 { $input }，读自缓存 { $cached_input }，写入缓存 { $cache_write }，输出 { $output }{ $cost }
models-test-cache-works = 缓存  有效：第二次请求从中读取了 { $tokens } token
models-test-cache-unused = 缓存  第二次没有从中读取任何内容
models-test-cache-declared = 缓存  声明为 { $rule }，{ $tokens } token 起，保留 { $ttl }（`--cache` 实测）
models-unknown-provider = 没有服务商 `{ $name }`
models-price = 每百万 token 输入 { $input }，输出 { $output }
models-none =
    `{ $file }` 中没有声明模型，环境变量中也没有内置服务商的密钥。
    设置以下变量之一即可使用旁边的模型，或用 `haft models add` 声明模型：

    { $models }
    `haft models list --all` 显示窗口大小和价格。
models-no-key-needed = 无需密钥：本地服务器
models-use-main = 主要工作，以及所有未设置的角色
models-use-code = 编程智能体；第一个繁忙时依次使用列表中的其余模型
models-use-chat = `haft chat` 对话
models-use-summary = 归档轮次的摘要
models-use-sub-agent = 文件中没有指定模型的智能体
models-use-embedding = 文档集合的向量；未设置时只按关键词检索
models-use-vision = 为不支持图片的主模型描述图片；未设置时不描述
models-use-commit = 提交说明
models-use-index = 目录的描述；未设置时使用 `summary` 的模型
models-use-planner = 在计划模式中回答
models-use-designer = 内置子智能体 `designer`；未设置时没有该智能体
models-use-title = 终端中会话的名称；未设置时沿用第一条提示的开头
models-profile =
    配置档：`{ $profile }`，{ $reason ->
        [entry] 由它的配置项指定
        [window] 因为它的窗口不超过 16,384 token
        [name] 因为从名字看参数量很小
       *[default] 默认值
    }
models-test-failed = 失败     { $failure }
