# `haft jobs`, and runs in the background.

jobs-why-killed = it was killed, or the machine stopped
jobs-lost = job { $id } ended without a result ({ $why }); `haft run -r { $conversation }` resumes it
jobs-lost-unstarted = job { $id } ended without a result ({ $why })
jobs-not-running = was not running
jobs-does-not-end = job { $id } does not end; its process is { $process }
jobs-none = No runs in the background yet. Start one with `haft run --bg "…"`.
jobs-resumes = (resumes)
jobs-resumes-turn = (resumes a turn)
jobs-keep-watching = `haft jobs attach { $id }` watches it, `haft jobs kill { $id }` ends it.
jobs-unreadable-folder = cannot list `{ $folder }`
jobs-ambiguous = `{ $text }` could be several jobs; give more of the id
jobs-unknown = there is no job `{ $text }`; `haft jobs list` shows them
jobs-unreadable = cannot read `{ $path }`
jobs-cannot-start = the job cannot be started
jobs-cannot-prepare = cannot prepare `{ $folder }`
jobs-cannot-leave-terminal = cannot leave the terminal
jobs-cannot-open = cannot open `{ $path }`
