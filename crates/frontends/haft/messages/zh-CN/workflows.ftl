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
workflows-all-done = { $all } 个步骤全部完成。
workflows-some-done = { $all } 个步骤中已完成 { $completed } 个。{ $rest }。
workflows-go-on = { $message }；`haft workflows run { $name } --continue` 可继续。
workflows-needs = `{ $name }` 没有开始，因为它需要 `{ $missing }`
workflows-not-begun = `{ $name }` 没有开始
workflows-interrupted = `{ $name }` 被中断
workflows-answer = （用 `haft run -r { $id } "…"` 回答）
workflows-step =
    { $outcome ->
        [completed] `{ $name }` 已完成：{ $told }{ $answer }
        [exhausted] `{ $name }` 已达上限：{ $told }{ $answer }
        [waiting] `{ $name }` 等待处理：{ $told }{ $answer }
        [aborted] `{ $name }` 已取消：{ $told }{ $answer }
       *[failed] `{ $name }` 失败：{ $told }{ $answer }
    }
workflows-between = ；
