# `haft workflows`.

workflows-bad-input = 格式应为 NAME=VALUE
workflows-untrusted = ；`{ $project }` 未受信任，因此不使用其中的任何内容（`haft trust`）
workflows-none-to-continue = { $error }；用 `haft workflows run { $name }` 开始
workflows-cannot-continue = { $error }；用 `haft workflows run { $name }` 重新开始
workflows-unknown = 没有工作流 `{ $name }`；现有：{ $there }{ $untrusted }
workflows-no-model = 未选择模型；请用 `-m provider/model`，或在 config.toml 中设置 `model`
workflows-bad-step = 无法运行步骤 `{ $step }`：{ $error }；没有启动任何内容
workflows-bad = 无法运行工作流 `{ $name }`；没有启动任何内容
workflows-unknown-input = `{ $workflow }` 没有输入 `{ $name }`；现有：{ $there }
workflows-missing-input = `{ $workflow }` 需要 `--input { $name }=VALUE`
