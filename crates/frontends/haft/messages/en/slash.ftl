# Commands of the user.

slash-none = no custom commands are defined (`haft commands add` adds one)
slash-untrusted = those of a project count once it is trusted (`haft trust`)
slash-there-are = there are { $names }
slash-unknown = there is no command `/{ $name }`; { $there }
slash-terminal = `/{ $name }` is for the terminal: start `haft` without a task
slash-command-refused = the command asks for the output of `{ $line }`, which may not run: { $reason }
slash-command-interrupted = interrupted while `{ $line }` ran
slash-command-failed = the command asks for the output of `{ $line }`, which failed: { $said }
