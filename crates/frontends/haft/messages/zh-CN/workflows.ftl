# `haft workflows`.

workflows-bad-input = 格式应为 NAME=VALUE
workflows-none-to-continue = { $error }；用 `haft workflows run { $name }` 开始
workflows-cannot-continue = { $error }；用 `haft workflows run { $name }` 重新开始
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
