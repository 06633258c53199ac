# `haft useful`.

useful-bad-lines = 应为从 1 开始的行号，例如 `10-20` 或 `7`
useful-removed = 不再保留：{ $item }
useful-none = 没有保留在视野中的内容。用 `haft useful add PATH LINES DESCRIPTION` 添加。
useful-unknown = 没有编号为 { $number } 的保留内容；用 `haft useful list` 查看全部
useful-unreadable = （现在无法读取：{ $error }）
useful-no-description = 描述为空；请说明这段内容为何重要
useful-refused = 无法保留 `{ $given }` 的行：{ $error }
useful-added = 已保留：{ $item }
useful-merged = 与已有范围重叠，已合并。
useful-evicted = 范围过多；已移除最旧的一个。
