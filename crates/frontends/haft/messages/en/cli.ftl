# The command line itself.

cli-waits-for-program = `haft { $command }` is started by another program and waits for its messages on standard input; Ctrl-D ends it
cli-not-in-build = `haft { $command }` is not in this build; build it with `--features { $feature }`
cli-not-positive = expected a number above 0

# One word after `haft` that is no command.
cli-word-near = `{ $word }` is not a command; did you mean `haft { $near }`? To send it to the model as a prompt: `haft -p { $word }` or, at a terminal, `haft -- { $word }`
cli-word-elsewhere = `{ $word }` is not a command: { $advice }. To send it to the model as a prompt: `haft -p { $word }` or, at a terminal, `haft -- { $word }`
cli-word-unknown = `{ $word }` is not a command (`haft --help` lists them). To send it to the model as a prompt: `haft -p { $word }` or, at a terminal, `haft -- { $word }`
cli-word-ask-near = `{ $word }` is not a command. Did you mean `haft { $near }`?
    y runs `haft { $near }`, p sends `{ $word }` to the model (as `haft -- { $word }` does), Enter leaves:
cli-word-ask-elsewhere = `{ $word }` is not a command: { $advice }.
    p sends `{ $word }` to the model (as `haft -- { $word }` does), Enter leaves:
cli-word-ask = `{ $word }` is not a command (`haft --help` lists them).
    p sends it to the model (as `haft -- { $word }` does), Enter leaves:
cli-word-login = there is no account; a provider's key is read from its environment variable (`haft models list` names it) or added with `haft models add`, and `haft mcp login` is for MCP servers
cli-word-init = `/init` in a session (`haft`) has the model write an AGENTS.md; a model is asked for when there is none, and `haft models add` adds one
cli-word-update = haft does not install or update itself; install the new version as you installed this one
cli-word-version = `haft --version` prints the version
cli-word-exec = `haft run PROMPT` or `haft -p PROMPT` runs a task and exits
cli-word-resume = `haft -c` continues the current conversation, `haft -r` lists those to continue
cli-word-sessions = `haft conversations` lists the conversations
cli-word-exit = no session is open, so there is nothing to exit
cli-word-status = `haft doctor` checks what is installed, `haft models` lists the models, `haft sandbox status` shows the sandbox
cli-word-cost = `haft conversations show --cost` shows what a conversation cost
cli-word-plugins = `haft mcp`, `haft skills`, `haft commands` and `haft hooks` manage what others bundle as plugins
cli-word-recipes = `haft commands` manages prompts by name, `haft workflows` runs files of steps
cli-flag = `{ $flag }` is a flag of another agent. Here it is `{ $here }`.
