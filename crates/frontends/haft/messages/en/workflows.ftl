# `haft workflows`.

workflows-bad-input = expected NAME=VALUE
workflows-untrusted = ; `{ $project }` is not trusted, so nothing in it is used (`haft trust`)
workflows-none-to-continue = { $error }; start one with `haft workflows run { $name }`
workflows-cannot-continue = { $error }; start a new one with `haft workflows run { $name }`
workflows-unknown = there is no workflow `{ $name }`; there are: { $there }{ $untrusted }
workflows-no-model = no model is chosen; use `-m provider/model`, or set `model` in config.toml
workflows-bad-step = the step `{ $step }` cannot be run: { $error }; nothing was started
workflows-bad = the workflow `{ $name }` cannot be run; nothing was started
workflows-unknown-input = `{ $workflow }` has no input `{ $name }`; there are: { $there }
workflows-missing-input = `{ $workflow }` needs `--input { $name }=VALUE`
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
