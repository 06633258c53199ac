# Which command helps after a result or an error.

hints-after = { $message }。{ $hint }
hints-error = { $error }；{ $hint }
hints-cause = { $error }：{ $cause }
hints-cancelled = 用 `haft run --continue` 继续。
hints-question = 用 `haft run --continue "…"` 回答。
hints-plan = `haft run --continue --permission-mode accept-edits "go ahead"` 执行该计划；`haft run --continue --permission-mode plan "…"` 修改它。
hints-goal = 用 `haft run --continue --goal "…"` 给出你的回答并继续。
hints-untrusted = 运行 `haft trust` 可信任它。
hints-start = 用 `haft run "…"` 开始一个
hints-conversations = 用 `haft conversations list --all` 查看
hints-agents = 用 `haft agents list` 查看
hints-changes = `haft changes` 列出修改过文件的调用
hints-edits = 用 `haft context edit list` 查看
hints-libraries = `haft lib refresh` 获取最新列表
hints-fork = 用 `--fork-session` 在副本中继续
