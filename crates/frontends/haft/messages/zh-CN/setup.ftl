# The first start: choosing a model.

setup-welcome = haft 还没有模型。Esc 取消；在模型应答之前不会写入任何内容。
setup-trying = 正在尝试 { $name }。
setup-done = 应答正常。已写入 { $file }。
setup-failed = 没有成功：{ $failure }。
setup-provider-title = 选择服务商
setup-variable-set = 已设置 { $variable }
setup-key-present = 密钥已就绪
setup-key-missing = 需要密钥：{ $listed }
setup-local = 本机上的服务器，{ $url }
setup-local-answers = 正在运行，{ $url }
setup-key-set = 密钥已配置
setup-other-choices =
    s  自己的服务器，输入其地址
    {"   "}d  都不用：观看演示，无需密钥和网络
setup-provider-question = 编号、名称、s 或 d：
setup-url-question = 地址，例如 http://127.0.0.1:8080/v1：
setup-bad-url = 地址以 http:// 或 https:// 开头。
setup-apis = 它的 API 是 { $listed } 之一；多数服务器是 { $api }。
setup-api-question = API [openai-chat]：
setup-key-kept = 密钥保存在 { $file } 中，只有你能读取。
setup-key-optional = 它的密钥（如果需要）。{ $kept }
setup-key-needed = { $name } 的密钥。{ $kept }也可以按 Esc 取消，设置 { $variable } 后重新启动 haft。
setup-key-question-optional = 密钥（可留空）：
setup-key-question = 密钥：
setup-model-title = 选择模型
setup-more = 还有 { $more } 个
setup-model-question-name = 模型名称：
setup-model-question = 编号或名称：
setup-key-unwritable = 无法将密钥写入 `{ $file }`：{ $error }
setup-not-a-table = `{ $file }` 中的 `providers` 不是表；请手动添加模型
setup-no-choice = 请输入 1 到 { $count } 的编号，{ $others }。
setup-unknown-choice = 没有选项 `{ $typed }`。请输入 1 到 { $count } 的编号，{ $others }。
setup-provider-letters = 或输入名称、s、d
setup-model-letters = 或输入模型名称
setup-unknown-api = 没有 API `{ $typed }`；可用的有 { $listed }。
setup-empty-key = 请输入或粘贴密钥，或按 Esc 取消。
