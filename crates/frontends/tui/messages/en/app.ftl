# The terminal interface: input, status line, calls, lists.

app-comma = ,{" "}
app-mode-meaning = { $mode }: { $meaning }
app-working = Working
app-working-for = Working { $elapsed }
app-interrupt-key = Esc to interrupt
app-send-key = Esc to interrupt and send
app-tokens-out =
    { $count ->
        [one] { $tokens } token
       *[other] { $tokens } tokens
    }
app-silent = no data from the server for { $elapsed }
app-shell-running = { $elapsed }, Esc to stop
app-shell-held = done; its output follows the answer
app-interrupting = interrupting…
app-quit-again = Press Ctrl-C again to quit
app-rewind-again = Press Esc again to go back to an earlier message
app-nothing-to-open = Nothing to show yet
app-turn-running = A turn is running; Esc to interrupt it.
app-search = search:
app-nothing-found = No match
app-queued = next:
app-more-lines =
    { $more ->
        [one] … 1 more line
       *[other] … { $more } more lines
    }
app-more-rows =
    { $extra ->
        [one] … 1 more row; Ctrl-O for all
       *[other] … { $extra } more rows; Ctrl-O for all
    }
app-pasted-characters =
    { $count ->
        [one] [pasted 1 character]
       *[other] [pasted { $count } characters]
    }
app-pasted-lines =
    { $lines ->
        [one] [pasted 1 line]
       *[other] [pasted { $lines } lines]
    }
app-files-usage = `/files`, `/files add PATH…`, `/files remove PATH…` or `/files clear`
app-yolo-refused = This mode has no sandbox and cannot be switched on in a session; auto asks nothing inside the sandbox.
app-title-working = haft: working
app-title-question = haft: waiting for you
app-alert-question = haft: { $call }?
app-alert-form = haft: a server asks for input
app-alert-asks = haft: the model asks for an answer
app-alert-done = haft: done
app-changes = changes
app-viewer-place = result { $at } of { $count }
app-viewer-match = match { $at } of { $count }
app-viewer-keys = Esc to close, ← → other results, / to search, n N next and previous match, Enter to print
app-placeholder = Describe a task; ? for keys
app-more-keys = /help shows all
app-help-path = name a file for the model
app-help-shell = run a command in your shell; the model reads the output
app-help-haft = run a command of haft: /mcp add, /rules show NAME, /config KEY:VALUE
app-edit-unchanged = No changes made; still waiting for your answer.
app-lost-names = The lines with the file names were changed, so the edit was discarded.

## What a permission mode means
app-mode-plan = reads and plans, changes nothing
app-mode-ask = asks before it changes files or runs commands
app-mode-accept-edits = edits files without asking, asks before it runs commands
app-mode-auto = asks nothing inside the sandbox
app-mode-yolo = asks nothing, without a sandbox
app-mode-title = Permission mode
app-mode-current = { $mode } (current)

## The end of a plan
app-plan-title = Carry out this plan?
app-plan-note = To keep planning, type what to change.
app-plan-accept = yes, and edit files without asking
app-plan-ask = yes, and ask before each change
app-plan-more = no, keep planning
app-plan-prompt = Carry out the plan.

## A question of the model, and leaving
app-answers-title = Your answer
app-leave-title =
    { $count ->
        [one] A command is still running. End it and quit?
       *[other] { $count } commands are still running. End them and quit?
    }
app-leave-stay = no, stay
app-leave-quit = yes, end and quit

## What happens in a turn
app-retry = { $attempt } in { $wait } s: { $reason }
app-retry-now = { $attempt }, waiting for a response: { $reason }
app-retry-of = retry { $attempt } of { $limit }
app-retry-unlimited = retry { $attempt }
app-answer-again = (the answer above was cut off; it starts over)
app-call-waits = waiting
app-call-cancelled = cancelled
app-lines =
    { $count ->
        [one] 1 line
       *[other] { $shown } lines
    }
app-hits =
    { $count ->
        [0] no hits
        [one] 1 hit
       *[other] { $shown } hits
    }
app-entries =
    { $count ->
        [one] 1 entry
       *[other] { $shown } entries
    }
app-resume =
    haft -r { $id } resumes this conversation; { $requests ->
        [one] 1 request
       *[other] { $requests } requests
    }
app-interrupted = Interrupted. Tell haft what to do instead.
app-see-result = See it with: { $command }
app-agent-says = { $agent }: { $message }
app-outcome = { $outcome }: { $message }
app-subagent-ended = { $agent } ended
app-subagent-outcome = { $agent } { $outcome } ({ $elapsed }, { $tokens } tokens)
app-thought =
    { $count ->
        [one] Thoughts: 1 word · Ctrl-O to view
       *[other] Thoughts: { $words } words · Ctrl-O to view
    }
app-thoughts = thoughts
app-todo-done = TODO { $done } of { $all } done

## Answers that were given
app-form-sent = sent
app-form-declined = declined
app-form-cancelled = cancelled
app-allowed = allowed
app-allowed-as = allowed as { $call }
app-session-allowed = allowed for this session
app-edits-allowed = allowed, and all edits of this session
app-not-allowed = not allowed
app-not-allowed-because = not allowed: { $reason }

## Tokens and cost
app-nothing-sent = No request sent yet.
app-tokens = { $used } of { $window } tokens
app-prefix-break = { $message } (≈{ $tokens } tokens resent)
app-last-prefix-break = Last cache break: { $last }
app-no-prefix-break = No cache breaks.
app-no-price = no price known
app-cost =
    { $requests ->
        [one] 1 request
       *[other] { $requests } requests
    }: { $input } new input tokens, { $cached } read from the cache, { $written } written to it, { $output } output tokens; { $money }
app-context-next = Next request: { $percent } of the window, { $used } of { $window } tokens
app-context-free = free
app-context-reserve = reserved for the reply
app-no-sandbox = no sandbox
app-sandbox = sandbox { $layer }
app-cache = cache { $percent }%
app-layer-system = system
app-layer-documents = documents
app-layer-history = history
app-layer-reminders = reminders
app-layer-current = current

## Lists to choose from
app-picker-empty = No match
app-menu-place = { $at } of { $count }
app-picker-place = { $at } of { $count } · { $keys }
app-picker-question-keys = Enter to select, Esc to cancel, or type a message
app-picker-keys = Enter to select, Esc to cancel

# An error or a notice, as whoever made it worded it, by its code.
app-coded =
    { $code ->
       *[other] { $message }
    }
app-trust-hint = /trust shows what would be read and run, and trusts the folder
app-allowed-elsewhere = Allowed in another terminal.
app-denied-elsewhere = Denied in another terminal.
