# `haft` at the terminal: lists to choose from, answers to commands.

interactive-start-branch = { $folder } on { $branch }
interactive-start-model = model { $model }, permission mode { $mode }
interactive-hint-files = Hint: @ completes file names, / completes commands.
interactive-hint-mode = Hint: Shift-Tab changes the permission mode.
interactive-hint-shell = Hint: !command runs in your shell, and the model reads the output.
interactive-hint-rewind = Hint: Esc Esc goes back to an earlier message.
interactive-hint-context = Hint: /context shows what fills the window.
interactive-context-prompt = system prompt
interactive-context-tools = tools
interactive-context-mcp = MCP
interactive-context-rules = rules and AGENTS.md
interactive-context-messages = messages
interactive-context-reminders = reminders
interactive-context-tool-count =
    { $count ->
        [one] 1 tool
       *[other] { $count } tools
    }
interactive-context-message-count =
    { $count ->
        [one] 1 message
       *[other] { $count } messages
    }
interactive-context-pruned = At { $percent } ({ $tokens } tokens), old tool results are pruned.
interactive-context-archived = At { $percent } ({ $tokens } tokens), older rounds are archived and summarised; /compact does it now.
interactive-image = [image { $name }{ $size }]
interactive-clipboard-none = The clipboard holds no image.
interactive-clipboard-no-program = Images cannot be read from the clipboard: install wl-clipboard, xclip or pngpaste, or paste the path of a file.
interactive-inspect =
    { $url }
    Only this address, opened on this machine, shows the page. It ends with haft.
interactive-no-terminal = this needs a terminal; use `haft run "…"` or `haft -p "…"` without one
interactive-cleared = your next message starts a new conversation
interactive-nothing-yet = this conversation is still empty
interactive-model-switched = `{ $name }` is used from the next request on
interactive-no-conversations = There are no conversations in this project yet.
interactive-resume-title = Resume which conversation?
interactive-rewind-title = Go back to before which of your messages?
interactive-rewind-note = The conversation is kept as it is; a copy continues from there.
interactive-model-current = current model
interactive-model-price = { $quote } to write
interactive-model-note = Another model has nothing in its cache: the whole conversation is written to it.
interactive-model-title = Use which model?
interactive-document = { $tokens } tokens, in every request
interactive-focus = focus: its path is in the system message
interactive-files-note = Enter shows a document. `/files add PATH` adds a file to the focus.
interactive-files-title = Documents and focus files
interactive-focus-title = Change the focus files?
interactive-focus-price = They are in the system message: the next request has { $quote } to write again.
interactive-focus-change = change them
interactive-focus-cancel = change nothing
interactive-focus-none = there are no focus files
interactive-file-mention = mention it
interactive-file-remove = remove it
interactive-rewind-to = Back to: { $text }
interactive-rewind-messages = messages
interactive-rewind-messages-note = files stay as they are
interactive-rewind-files = messages and files
interactive-rewind-files-note = as they were before it
interactive-just-now = just now
interactive-minutes-ago = { $minutes } min ago
interactive-undo-title = Undo the last change?
interactive-undo = undo it
interactive-redo-title = Redo what was undone?
interactive-redo = redo it
interactive-undo-cancel = change nothing
interactive-no-diff = this conversation has changed no files yet
interactive-no-files = no documents are sent, and no files are in focus; `/files add PATH` adds one
interactive-shell-output =
    { $output }
    (sent to the model with your next message)
interactive-interrupted = Interrupted. Tell haft what to do instead.
interactive-occupied-title = This conversation is open in another haft
interactive-occupied-by = It is open in { $holder }, { $age }.
interactive-occupied-fork = continue in a copy
interactive-occupied-fork-note = the conversation stays as it is
interactive-occupied-wait = wait until it is closed
interactive-occupied-wait-note = Esc stops waiting
interactive-occupied-new = start a new conversation
interactive-occupied-waiting = waiting until the conversation is closed
interactive-cut-off = The last turn did not end. Your next message continues it.
interactive-exit-code = exit code { $code }
interactive-stopped = stopped
interactive-signal = ended by signal { $signal }
interactive-editor-failed = cannot open the editor `{ $editor }`: { $error }
interactive-editor-ended = the editor `{ $editor }` ended with { $status }; what you typed is unchanged
interactive-nothing-to-archive = there is nothing to archive yet
interactive-compact-size = {" "}The next request stays at { $tokens } tokens.
interactive-compacted = the next request has { $after } tokens instead of { $before }
interactive-conversation =
    { $age }, { $messages ->
        [one] 1 message
       *[other] { $messages } messages
    }
interactive-conversation-open =
    open now, { $age }, { $messages ->
        [one] 1 message
       *[other] { $messages } messages
    }
interactive-rewind-removes =
    { $age }, { $messages ->
        [one] 1 message goes
       *[other] { $messages } messages go
    }
interactive-focus-files = focus: { $files }
interactive-hours-ago = { $hours } h ago
interactive-days-ago = { $days } d ago
interactive-resumed =
    { $name } · { $count ->
        [one] 1 message
       *[other] { $count } messages
    }
interactive-commit-title = Commit with this message?
interactive-commit-yes = yes, commit
interactive-commit-no = no, commit nothing
