# `haft attach`: running sessions, and the end of an attachment.

attach-greeting =
    attached to { $id } ({ $name }) in { $folder }, process { $process }
    { $model } · messages join the session · Ctrl-D leaves, and the session goes on
attach-follows = This session takes messages only while a turn is running.
attach-unavailable = Not available in an attached terminal; use the one in which the session was started, or a command of haft.
attach-skipped =
    { $count ->
        [one] { $count } earlier line of this turn is left out.
       *[other] { $count } earlier lines of this turn are left out.
    }
attach-form-answered = The form was answered in another terminal.
attach-refused = Not accepted: { $why }.
attach-left = left; the session goes on, `haft attach { $id }` returns to it
attach-lost = the session's process ended without a farewell (was it killed?); `haft run -r { $id }` resumes the conversation
attach-stored = your last message is in the conversation: { $message }
attach-not-stored = this message is not in the conversation: { $message }; send it with `haft run -r { $id }`
attach-removed = session { $id } was killed; its socket was removed, and `haft run -r { $id }` resumes the conversation
attach-unusable = the socket `{ $socket }` cannot be used: { $error }
attach-none = no session is running; `haft`, `haft run` and `haft run --bg --stay` start one
attach-list-none = No session is running.
attach-which = several sessions are running, or none in this project; name one: `haft attach ID`
attach-ambiguous = `{ $id }` matches several sessions; give more of the id
attach-unknown = no running session matches `{ $id }`; `haft attach --list` shows them, `haft run -r ID` resumes a conversation
attach-no-terminal = attaching needs a terminal; `--json` reads and prints JSON lines instead
