# `haft run`: its arguments, and questions at its terminal.

run-stream-formats = `--input-format stream-json` needs `--output-format stream-json`: answers go to who asks
run-stream-no-message = standard input ended without a message of type `user`
run-in-background = runs in the background; `haft jobs attach { $id }` watches it, `haft jobs kill { $id }` ends it
run-which-conversation = which conversation? Give `-r ID` (`haft conversations list` shows them), or `-c`
run-fork-which = `--fork-session` copies a conversation; say which one with `-c` or `-r ID`
run-no-prompt = what should the model do? Give a prompt, or pipe one in
run-goal-plan = a goal cannot be reached in plan mode, where nothing may change; leave out one of the two
run-no-model = no model is chosen; use `-m provider/model`, or set `model` in config.toml (`haft demo` needs none)
run-empty-prompt = the prompt is empty
run-stdin-unreadable = cannot read standard input: { $error }
run-stdin-not-text = standard input is not UTF-8 text
run-stdin-silent = nothing came from standard input within 3 s; continuing without it
run-ask-no-terminal = `--ask` needs a terminal to ask on, and there is none ({ $error }); leave it out, or allow what is needed with `haft permissions add`
run-of-subagent = {" "}(sub-agent { $agent })
run-permission = { $call }{ $whose }? { $reason }.
run-not-allowed-yet = Needs approval:
run-form-confirm = y = yes, n = no:{" "}
run-form = { $from } asks for input. It sees what you type; give no password.
run-form-note = An empty line takes the default or leaves the field out, `-` declines the form.
run-several-lines = Several lines at once answer no question.
run-permission-keys = y = yes, n = no, or a reason for the model:
run-permission-keys-always = y = yes, a = always (saves { $rules } in { $file }), n = no, or a reason for the model:
run-goal-limit = `--goal` needs a limit: `--max-budget-usd`, `--max-total-tokens`, `--max-turns` or `--max-wall-time`
run-image-unreadable = `--image { $path }`: the file cannot be read: { $error }
run-image-none = `--image { $path }`: models do not take this kind of file as an image; use PNG, JPEG, GIF or WebP below 3.7 MB
run-allowed-elsewhere = Allowed in another terminal.
run-denied-elsewhere = Denied in another terminal.
run-stream-stay = `--stay` waits for `haft attach`; with `--input-format stream-json`, the program that writes the input answers: leave `--stay` out
run-stay-waits = waits for { $what }; `haft attach { $id }` answers
run-stay-approval = the approval of { $call }
run-stay-form = the form of { $from }
run-stay-message = a message
