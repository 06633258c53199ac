# `haft worktrees`.

worktrees-none = 没有保留的副本。
worktrees-unknown = 没有名为 `{ $id }` 的副本；用 `haft worktrees list` 查看
worktrees-several = `{ $id }` 匹配 { $count } 个副本；请多给几位 id
worktrees-no-repository = `{ $path }` 的仓库已不存在：请自行删除该目录和旁边的 `.base` 文件
worktrees-removed = 已删除 { $path }。
worktrees-removed-patch = 已删除 { $path }。未合并的修改在 { $patch } 中，可用 `git apply` 应用。
