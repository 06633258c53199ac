# `haft lib`.

lib-removed = 已移除 { $name }
lib-not-used = 本项目没有使用 `{ $name }`；用 `haft lib list` 查看正在使用的库
lib-of-auto-coder = `{ $name }` 在 auto-coder 对本项目的记忆（`.auto-coder`）中；请在那里移除
lib-refreshed = 文档已是最新。
lib-bad-source = `{ $source }` 不是 git 仓库的 URL 或路径
lib-added = 已添加 { $library }；从下一次请求起发送
lib-already-added = { $library } 此前已添加
lib-none = 本项目还没有使用库。用 `haft lib add NAME` 添加。
lib-no-documents = `{ $library }` 没有 Markdown 文件
lib-fetching = 正在获取 { $source }
lib-no-git = 获取库需要 git：{ $error }
lib-fetch-failed = git 无法获取库：{ $error }；`haft lib proxy` 显示获取来源
