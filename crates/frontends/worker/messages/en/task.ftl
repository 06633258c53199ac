# Tasks of the queue, as a worker runs them.

task-no-model = no model is chosen; use `-m provider/model`, or set `model` in config.toml (`haft demo` needs none)
task-yolo = a worker keeps its sandbox on, so tasks cannot run in mode `yolo`; use `auto` with `--allow` rules
task-used-up = earlier runs used up the limits of the task
task-workflow-copies = a step of the workflow `{ $name }` works in a copy of the project, and what it does there another worker would not find; set `worktree: false`: a task has a clone of its own
task-no-workflows = `haft workflows` is not in this build; build it with `--features workflows`
