# The first start: choosing a model.

setup-welcome = 尚未配置模型。在模型成功应答之前不会保存任何内容。Esc 返回；在第一个问题处则取消。
setup-trying = 正在连接 { $name }…
setup-done = 连接成功，已保存到 { $file }。
setup-failed = 连接失败：{ $failure }。
setup-provider-title = 选择服务商
setup-variable-set = 已设置 { $variable }（{ $host }）
setup-variable-set-in = 已设置 { $variable }（{ $host }，以 { $currency } 计价）
setup-key-present = API Key 已就绪
setup-key-missing = 需要 API Key：{ $listed }
setup-local-silent = 本机服务器（未运行）：{ $listed }
setup-local-answers = 正在运行，{ $url }
setup-key-set = API Key 已配置
setup-other-choices =
    s  自定义服务器（输入 URL）
    {"   "}d  跳过：运行离线演示
setup-provider-question = 编号、名称、s 或 d：
setup-url-question = URL，例如 http://127.0.0.1:8080/v1：
setup-bad-url = 不是有效的 URL。请输入例如 http://127.0.0.1:8080/v1 的地址。
setup-apis = API 类型（{ $listed }）；多数服务器使用 { $api }。
setup-api-question = API 类型 [openai-chat]：
setup-key-kept = 将保存到 { $file }，只有你能读取。
setup-key-optional = API Key（可选）。{ $kept }
setup-key-needed = { $name } 的 API Key。{ $kept }也可以按 Ctrl-C 退出，设置 { $variable } 后重新启动 haft。
setup-key-question-optional = API Key（可留空）：
setup-key-question = API Key：
setup-model-title = 选择模型
setup-more = 还有 { $more } 个
setup-model-question-name = 模型名称：
setup-model-question = 编号或名称：
setup-key-unwritable = 无法将密钥写入 `{ $file }`：{ $error }
setup-not-a-table = `{ $file }` 中的 `providers` 不是表；请手动添加模型
setup-no-choice = 请输入 1 到 { $count } 的编号，{ $others }。
setup-unknown-choice = 没有选项 { $typed }。请输入 1 到 { $count } 的编号，{ $others }。
setup-provider-letters = 或输入名称、s、d
setup-model-letters = 或输入模型名称
setup-unknown-api = 不支持的 API 类型：{ $typed }。可用的有 { $listed }。
setup-empty-key = 请输入或粘贴 API Key，或按 Esc 返回。
