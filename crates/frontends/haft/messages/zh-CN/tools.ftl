# `haft tools`.

tools-offer = `tools.offer`：{ $error }
tools-external = { $count } 个外部工具写在一份文档中：另加 { $tokens } token。模型以命令方式运行它们。
tools-unknown = 没有工具 `{ $name }`；用 `haft tools list` 查看
tools-aliases = 别名 { $aliases }，参数按这些名称的写法。
tools-no-calls = 本会话没有调用过工具。
tools-offered = 提供 { $count } 个工具：每次请求占 { $total } token；{ $deferred } 个延迟加载：由 `tool_search` 查找，在此之前不占用。用 `[tools] offer` 或 `--allowed-tools` 按名称、分组或配置档（{ $profiles }）选择其他工具。
tools-parameters = 参数：
