# Which command helps after a result or an error.

hints-after = { $message }. { $hint }
hints-error = { $error }; { $hint }
hints-cause = { $error }: { $cause }
hints-cancelled = `haft run --continue` resumes it.
hints-question = Answer it with `haft run --continue "…"`.
hints-plan = `haft run --continue --permission-mode accept-edits "go ahead"` carries it out; `haft run --continue --permission-mode plan "…"` changes it.
hints-goal = `haft run --continue --goal "…"` continues with your answer.
hints-untrusted = `haft trust` trusts it.
hints-start = start one with `haft run "…"`
hints-fork = `--fork-session` continues in a copy
hints-conversations = `haft conversations list --all` shows them
hints-agents = `haft agents list` shows them
hints-changes = `haft changes` lists those that did
hints-edits = `haft context edit list` shows them
hints-libraries = `haft lib refresh` fetches the newest list
