# `haft config`.

config-set = 已在 { $file } 中设置 `{ $key }`
config-overridden = 环境变量 `{ $name }` 也设置了 `{ $key }`，它优先于文件
config-unset = 已从 { $file } 中移除 `{ $key }`
config-not-set = 未设置 `{ $key }`
config-not-set-in = { $file } 中未设置 `{ $key }`
config-unknown-key = `{ $key }` 不是配置项{ $near }
config-no-key = `{ $key }` 不是有效的键；格式为 `section.key`，不是普通名称的部分要加引号：`models."openai/gpt-5".context_window`
config-not-a-table = `{ $key }` 的上级是一个值，不是表
config-edited = 已修改 { $file }
config-edit-same = { $file } 没有变化
config-edit-again = e 重新编辑，Enter 保持文件原样：
config-edit-refused = 文件保持原样
config-edit-meanwhile = { $file } 在编辑期间被其他程序修改，已保留其现有内容
config-near = ；你是想用 `{ $near }` 吗？
