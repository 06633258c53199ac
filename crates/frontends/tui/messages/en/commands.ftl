# What `/help` lists.

commands-help = show keys and commands
commands-context = show what fills the window; /context edit
commands-inspect = open this conversation and its requests in the browser
commands-cost = show tokens and cost so far
commands-commit = commit staged changes with a generated message, after asking you: /commit [-a] [--dry-run] [hint]
commands-compact = archive older rounds now: /compact [what to keep]
commands-clear = start a new conversation
commands-resume = continue another conversation
commands-rewind = go back to an earlier message
commands-undo = undo the last file changes
commands-redo = redo what was undone
commands-diff = show the file changes of this conversation
commands-model = switch to another model
commands-mode = choose the permission mode: /mode, /mode plan [prompt]
commands-files = list documents and focus files; /files add, remove, clear
commands-view = choose how requests are laid out: /view, /view execute, /view layered
commands-conversations = list conversations
commands-agents = list sub-agent roles
commands-commands = list your own commands
commands-rules = list rules
commands-mcp = list MCP servers
commands-models = list configured models
commands-permissions = list permission rules
commands-quit = exit

## Keys
commands-key-enter = send
commands-key-alt-enter = new line; also Ctrl-J
commands-key-esc = interrupt; send queued
commands-key-esc-esc = rewind to a message
commands-key-shift-tab = next permission mode
commands-key-ctrl-c = interrupt, clear, or exit
commands-key-ctrl-d = exit, if input is empty
commands-key-up-down = previous inputs
commands-key-ctrl-r = search previous inputs
commands-key-tab = complete
commands-key-ctrl-o = view results and thoughts
commands-key-ctrl-v = attach clipboard image
commands-key-ctrl-t = toggle the TODO list
commands-key-ctrl-g = edit in your editor
commands-key-readline = edit as in a shell
commands-key-ctrl-l = redraw
commands-key-ctrl-z = suspend; `fg` resumes
commands-trust = trust this folder, after showing what would be read and run
