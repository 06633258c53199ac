# Answers to slash commands that other agents have.

familiar-instead = in haft: { $input }
familiar-login = keys are read from the environment or the configuration: see `haft models list`, or add a model with `haft models add`
familiar-theme = haft uses the colors of your terminal; NO_COLOR=1 switches them off
familiar-keys = /help lists the keys; Alt-Enter or Ctrl-J begins a new line, Ctrl-G opens your editor
familiar-editor = Ctrl-G opens your editor (VISUAL or EDITOR)
familiar-details = Ctrl-O opens any result or reasoning, with search
familiar-effort = set it as `extra_body` of the model in the configuration: [models."PROVIDER/MODEL"] extra_body = {"{"} reasoning_effort = "high" {"}"}
familiar-todos = Ctrl-T shows or hides the TODO list
familiar-memory = instructions are read from AGENTS.md or CLAUDE.md in the project, and from rules: /rules
familiar-add-dir = start haft with --add-dir DIR
familiar-export = export a conversation with `haft conversations export ID`; /conversations lists them
familiar-fork = quit, then continue in a copy with `haft -c --fork-session`; /rewind keeps the conversation it goes back in
familiar-review = quit, then run `haft review`
familiar-map = the model lists and searches files itself, nothing has to be indexed; /files points it at some
familiar-web = name the address in your message, and the model fetches it
familiar-image = paste the path of an image, press Ctrl-V for the one in the clipboard, or start haft with --image shot.png
familiar-test = run it with !command, or ask the model to run it
familiar-prompts = prompts you call by name are commands (/commands); those of MCP servers begin with /mcp__
familiar-bug = `haft doctor` checks the store and the environment, `haft logs` shows the log
familiar-upgrade = haft never updates itself; `haft --version` shows which one this is
