# `haft useful`.

useful-bad-lines = 应为从 1 开始的行号，例如 `10-20` 或 `7`
useful-removed = 不再保留：{ $item }
useful-none = 还没有常驻上下文的文件片段。用 `haft useful add PATH LINES DESCRIPTION` 添加。
useful-unknown = 没有编号为 { $number } 的片段；用 `haft useful list` 查看全部
useful-unreadable = （现在无法读取：{ $error }）
useful-no-description = 描述为空；请说明这段内容为何重要
useful-refused = 无法保留 `{ $given }` 的行：{ $error }
useful-added = 已保留：{ $item }
useful-merged = 与已有片段重叠，已合并。
useful-evicted = 片段过多；已移除最早的一个。
useful-line = { $number }. `{ $path }` 第 { $start_line }-{ $end_line } 行：{ $description }
