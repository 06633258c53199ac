# `haft` at the terminal: lists to choose from, answers to commands.

interactive-start-branch = { $folder } on { $branch }
interactive-start-model = model { $model }, permission mode { $mode }
interactive-hint-files = Hint: @ completes file names, / completes commands.
interactive-hint-mode = Hint: Shift-Tab changes the permission mode, /mode lists all of them.
interactive-hint-shell = Hint: !command runs in your shell; the model reads the output.
interactive-hint-rewind = Hint: Esc Esc rewinds to an earlier message.
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
interactive-context-archived = At { $percent } ({ $tokens } tokens), older rounds are archived and summarized; /compact does it now.
interactive-image = [image { $name }{ $size }]
interactive-clipboard-none = The clipboard contains no image.
interactive-clipboard-no-program = Cannot read images from the clipboard: install wl-clipboard, xclip or pngpaste, or paste the path of a file.
interactive-inspect =
    { $url }
    Works only on this machine, and only while haft runs.
interactive-no-terminal = an interactive session needs a terminal; without one, use `haft run "…"` or `haft -p "…"`
interactive-cleared = New conversation: it starts with your next message.
interactive-nothing-yet = This conversation is still empty.
interactive-model-switched = Switched to { $name }.
interactive-no-conversations = No conversations in this project yet.
interactive-resume-title = Resume which conversation?
interactive-rewind-title = Rewind to before which message?
interactive-rewind-note = This conversation is kept; a copy continues from there.
interactive-model-current = current model
interactive-model-price = { $quote } to resend
interactive-model-note = Other models have no cache for this conversation; it will be resent in full.
interactive-plan-price = { $name } carries out the plan: up to { $quote } to resend.
interactive-model-title = Switch model
interactive-document = { $tokens } tokens, in every request
interactive-focus = focus: its path is in the system message
interactive-files-note = Enter shows a document. `/files add PATH` adds a file to the focus.
interactive-files-title = Documents and focus files
interactive-focus-title = Change the focus files?
interactive-focus-price = They are part of the system message, so the next request resends { $quote }.
interactive-focus-change = change them
interactive-focus-cancel = Cancel
interactive-focus-none = No focus files.
interactive-view-title = Layout of requests
interactive-view-current = { $view } (current)
interactive-view-layered = message by message
interactive-view-execute = four messages: rules, dialogue, running steps, state; most of them are resent every time
interactive-view-switch-title = Switch to the view `{ $view }`?
interactive-view-price = All messages are laid out again, so the next request resends { $quote }.
interactive-view-switch = switch
interactive-view-now = view: { $view }
interactive-view-usage = `/view`, `/view layered` or `/view execute`
interactive-agent-title = Main agent
interactive-agent-current = { $agent } (current)
interactive-agent-main = haft's own role and tools
interactive-agent-switch-title = Continue with the agent `{ $agent }`?
interactive-agent-price = Role and tools change, so the next request resends { $quote }.
interactive-agent-model = It answers with `{ $model }`.
interactive-agent-reopens = The conversation is opened again: background tasks and programs in it end.
interactive-agent-switch = switch
interactive-agent-now = agent: { $agent }
interactive-agent-unknown = no agent `{ $name }`; there are: { $there }
interactive-agent-untrusted = agents of this folder are ignored until you trust it (`/trust`)
interactive-agent-no-role = the agent `{ $name }` has no role; write one in `{ $file }`
interactive-useful-usage = `/useful`, `/useful add PATH LINES DESCRIPTION` or `/useful remove NUMBER`; LINES is `10-20` or `7`
interactive-useful-unknown = no range has the number { $number }; `/useful` lists them
interactive-notes-usage = `/notes`, `/notes add PATH TEXT` or `/notes remove ID`
interactive-file-mention = mention
interactive-file-remove = remove
interactive-rewind-to = Back to: { $text }
interactive-rewind-messages = messages
interactive-rewind-messages-note = files stay as they are
interactive-rewind-files = messages and files
interactive-rewind-files-note = as they were before it
interactive-just-now = just now
interactive-minutes-ago = { $minutes } min ago
interactive-undo-title = Undo: { $change }?
interactive-undo = Undo
interactive-redo-title = Redo: { $change }?
interactive-redo = Redo
interactive-undo-cancel = Cancel
interactive-no-diff = This conversation has changed no files yet.
interactive-no-files = No documents are sent, and no files are in focus; `/files add PATH` adds one.
interactive-shell-output =
    { $output }
    (sent to the model with your next message)
interactive-interrupted = Interrupted. Tell haft what to do instead.
interactive-occupied-title = This conversation is open in another haft
interactive-occupied-by = { $holder } has it open, { $age }.
interactive-occupied-fork = continue in a copy
interactive-occupied-fork-note = the original stays unchanged
interactive-occupied-wait = wait until it is closed
interactive-occupied-wait-note = Esc to stop waiting
interactive-occupied-new = start a new conversation
interactive-occupied-waiting = Waiting until the conversation is closed…
interactive-cut-off = The last turn was interrupted. Your next message continues it.
interactive-exit-code = exit code { $code }
interactive-stopped = stopped
interactive-signal = ended by signal { $signal }
interactive-editor-failed = Cannot open the editor `{ $editor }`: { $error }
interactive-editor-ended = { $editor }: { $status }; nothing changed.
interactive-nothing-to-archive = Nothing to archive yet.
interactive-compact-size = {" "}The next request stays at { $tokens } tokens.
interactive-compacted = The next request has { $after } tokens instead of { $before }.
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
        [one] drops 1 message
       *[other] drops { $messages } messages
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
interactive-cannot-start = Cannot run `{ $line }`: { $error }
