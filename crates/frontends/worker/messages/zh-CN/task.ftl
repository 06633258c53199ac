# Tasks of the queue, as a worker runs them.

task-no-model = 未选择模型；请用 `-m provider/model`，或在 config.toml 中设置 `model`（`haft demo` 不需要模型）
task-yolo = 工作节点始终开启沙箱，因此任务不能以 `yolo` 模式运行；请使用 `auto` 并配合 `--allow` 规则
task-used-up = 之前的运行已用完任务的限额
task-workflow-copies = 工作流 `{ $name }` 有步骤在项目副本中工作，其他工作节点无法找到它在那里做的更改；请设置 `worktree: false`：任务本来就有自己的克隆
task-no-workflows = 此构建不含 `haft workflows`；请用 `--features workflows` 构建
