# `haft conversations`.

conversations-ambiguous = `{ $text }` 可能指 { $ids } 中的任何一个；请多给几位 id
conversations-no-current = 本项目没有当前会话；请指定 id
conversations-on-server = 会话存储在服务器上（`store.url`）；请用服务器自带的工具备份，例如 `pg_dump`
conversations-nothing-to-back-up = 还没有可备份的会话
conversations-no-backups = 还没有备份。`haft run` 启动时会自动备份，`haft conversations backup` 立即备份。
conversations-unknown-backup = 没有备份 `{ $name }`；用 `haft conversations backup list` 查看
conversations-restored = 已恢复 { $path }；原有内容现为最新的备份
conversations-bad-metadata = `--metadata { $pair }`：格式应为 KEY=VALUE
conversations-ambiguous-message = `{ $text }` 对应多条消息；请多给几位 id
conversations-unknown-message = 会话中没有消息 `{ $text }`；用 `haft conversations show` 查看
conversations-cost-none = 本会话还没有得到过回复的请求。
conversations-cost-unpriced = { $requests } 次请求发给了没有价格信息的模型，未计入合计。
conversations-import-existing = 已存在
conversations-import-added = 新增 { $added } 条消息
conversations-import-no-files = `{ $path }` 中没有 JSON 文件
conversations-import-not-text = 不是 UTF-8 文本
conversations-import-bad-id = `{ $namespace }` 的值 `{ $id }` 不是会话 id
conversations-import-no-current = `{ $namespace }` 的当前会话 `{ $id }` 不存在
conversations-none-in-trash = 回收站是空的。
conversations-none = 还没有会话。用 `haft run "…"` 开始。
conversations-none-here = 这里还没有会话。用 `haft run "…"` 开始。
conversations-no-namespaces = 还没有命名空间。每个项目在有了第一个会话后成为一个命名空间。
conversations-earlier = … 还有 { $earlier } 条更早的消息；`--all` 全部显示
conversations-stats-trash = 回收站中
conversations-stats-revisions = 消息修订
conversations-stats-requests = 已记录的请求
conversations-stats-size = 数据库大小
conversations-export-which = 要导出哪个会话？请给出 id，或用 `--all DIR`
conversations-export-unknown = 没有会话 `{ $id }`
conversations-exported = 已将 { $count } 个会话导出到 { $folder }
conversations-export-unwritable = 无法写入 `{ $path }`：{ $error }
conversations-unknown = 没有会话 `{ $text }`；用 `haft conversations list --all` 查看
conversations-unknown-in-trash = 回收站中没有会话 `{ $text }`；用 `haft conversations list --trash` 查看
conversations-search-none = 没有找到。
conversations-search-none-here = 本项目中没有找到；`--all` 搜索所有项目。
conversations-revise-nothing = 请给出新的内容，或使用 `--metadata`
conversations-revise-no-text = 消息 `{ $message }` 没有文本：它由工具调用或结果组成，与前后的消息相关联
conversations-revised = 已修订 { $conversation } 的消息 { $message }
conversations-purge-server = 会话存储在服务器上（`store.url`）；请在服务器上彻底删除
conversations-purge-forks = 以下会话由它分叉而来，共享它的消息：{ $forks }。加 `--forks` 一并彻底删除
conversations-purge-force = 彻底删除无法恢复，需在终端中确认；加 `--force` 可不经询问直接删除
conversations-purge-sure =
    { $count ->
        [one] 彻底删除这个会话及其附属的 { $others } 个会话（子代理的和分叉的），连同其请求、文件修改的撤销记录和备份中的副本吗？此操作无法恢复。（y/n）
       *[other] 彻底删除这 { $count } 个会话及其附属的 { $others } 个会话（子代理的和分叉的），连同其请求、文件修改的撤销记录和备份中的副本吗？此操作无法恢复。（y/n）
    }
conversations-purge-really = 输入 { $id } 以确认彻底删除：
conversations-purge-left = 没有删除任何内容
conversations-purged = 已彻底删除 { $count } 个会话，并已从 { $backups } 个备份中清除。
