# `haft workflows`.

workflows-bad-input = expected NAME=VALUE
workflows-untrusted = ; `{ $project }` is not trusted, so that nothing of it is used (`haft trust`)
workflows-none-to-continue = { $error }; start one with `haft workflows run { $name }`
workflows-cannot-continue = { $error }; start a new one with `haft workflows run { $name }`
workflows-unknown = there is no workflow `{ $name }`; there are: { $there }{ $untrusted }
workflows-no-model = no model is chosen; use `-m provider/model`, or set `model` in config.toml
workflows-bad-step = the step `{ $step }` cannot be run: { $error }; nothing was started
workflows-bad = the workflow `{ $name }` cannot be run; nothing was started
workflows-unknown-input = `{ $workflow }` has no input `{ $name }`; there are: { $there }
workflows-missing-input = `{ $workflow }` needs `--input { $name }=VALUE`
workflows-all-done = All { $all } steps are done.
workflows-step-blocked = `{ $name }` did not start, because it needs `{ $missing }`
workflows-step-answer = (answer with `haft run -r { $id } "…"`)
workflows-step-interrupted = `{ $name }` was interrupted
workflows-step-not-begun = `{ $name }` did not start
workflows-continue = `haft workflows run { $workflow } --continue` continues
workflows-some-done = { $completed } of { $all } steps are done. { $rest }; { $go_on }.
workflows-step-done = `{ $name }` is done: { $why }
workflows-step-failed = `{ $name }` failed: { $why }
workflows-step-limit = `{ $name }` reached a limit: { $why }
workflows-step-waits = `{ $name }` waits for a person: { $why }
workflows-step-cancelled = `{ $name }` was cancelled: { $why }
