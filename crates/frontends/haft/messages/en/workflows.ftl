# `haft workflows`.

workflows-bad-input = expected NAME=VALUE
workflows-none-to-continue = { $error }; start one with `haft workflows run { $name }`
workflows-cannot-continue = { $error }; start a new one with `haft workflows run { $name }`
workflows-all-done = All { $all } steps are done.
workflows-some-done = { $completed } of { $all } steps are done. { $rest }.
workflows-go-on = { $message }; `haft workflows run { $name } --continue` goes on.
workflows-needs = `{ $name }` did not begin, because it needs `{ $missing }`
workflows-not-begun = `{ $name }` did not begin
workflows-interrupted = `{ $name }` was interrupted
workflows-answer = {" "}(answer with `haft run -r { $id } "…"`)
workflows-step =
    { $outcome ->
        [completed] `{ $name }` is done: { $told }{ $answer }
        [exhausted] `{ $name }` reached a limit: { $told }{ $answer }
        [waiting] `{ $name }` waits for a person: { $told }{ $answer }
        [aborted] `{ $name }` was cancelled: { $told }{ $answer }
       *[failed] `{ $name }` failed: { $told }{ $answer }
    }
workflows-between = ;{" "}
