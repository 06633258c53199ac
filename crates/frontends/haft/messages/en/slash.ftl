# Commands of the user.

slash-none = /help lists the commands
slash-untrusted = /help lists the commands; this folder is not trusted, so its own commands are not loaded
slash-there-are = /help lists the commands; yours are { $names }
slash-near = did you mean `/{ $near }`? /help lists the commands
slash-unknown = unknown command `/{ $name }`: { $there }
slash-terminal = `/{ $name }` works only in the terminal interface: start `haft` without a task
slash-command-refused = the command needs the output of `{ $line }`, which may not run: { $reason }
slash-command-interrupted = interrupted while `{ $line }` ran
slash-command-failed = the command needs the output of `{ $line }`, which failed: { $said }
