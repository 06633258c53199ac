# `haft logs`.

logs-none = { $folder } 中没有日志
logs-unknown-run = 日志中没有运行 `{ $run }`；`haft logs --runs` 列出已有的运行
logs-several-runs = `{ $run }` 可能是 { $ids } 中的任意一个；请给出更长的标识
logs-column-run = 运行
logs-column-started = 开始时间
logs-column-outcome = 结果
logs-column-problems = 问题
logs-column-model = 模型
logs-column-folder = 文件夹
