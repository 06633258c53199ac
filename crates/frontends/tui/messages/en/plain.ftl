# The interface in lines, for screen readers (`haft --plain`).

plain-prompt = you:
plain-answer = answer:
plain-number = number, or Enter to cancel:
plain-field = answer, or - to decline:
plain-reason = reason for the model:
plain-change = new text:
plain-call-is = now: { $text }
plain-typed = your message was: { $text }
plain-withdrawn = the question is withdrawn
plain-too-early = ignored: this was typed before the question was shown
plain-several-lines = ignored: several lines at once answer no question
plain-interrupting = interrupting
plain-retry = retry { $attempt } in { $wait } s: { $reason }
plain-quit-again = Press Ctrl-C again to quit
plain-call = call: { $call }
plain-call-of = { $agent } calls: { $call }
plain-todo =
    { $status ->
        [in_progress] todo, in progress: { $content }
       *[other] todo, { $status }: { $content }
    }
plain-approval = { $reason }; answer y for this once, n for no, w for no with a reason, or e to edit it first; any other text refuses with this reason
plain-approval-always = { $reason }; answer y for this once, s for { $session }, a for always, which saves { $rules } in { $file }, r for a rule of your own, n for no, w for no with a reason, or e to edit it first; any other text refuses with this reason
plain-rules-and = and
plain-session = this session
plain-session-edits = all edits of this session
plain-rule = the rule, or Enter to go back:
plain-rule-is = proposed: { $text }
plain-session-allowed = allowed for this session
plain-allowed = allowed
plain-allowed-changed = allowed as changed
plain-not-allowed = not allowed

## What stands for a symbol at the beginning of a row
plain-done = done:
plain-partly-done = partly done:
plain-failed = failed:
plain-asked = approval:
plain-opened = all of:
plain-chosen = chosen:
plain-quote = quote:

## How everything of a folded result is shown: the key elsewhere, and the command here
plain-open-key = Ctrl-O
plain-open-command = /open
