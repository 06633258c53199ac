# What `/help` lists.

commands-help = show keys and commands
commands-context = show what fills the window; /context edit
commands-inspect = show this conversation and its requests in the browser
commands-cost = show tokens and cost so far
commands-commit = commit what is staged; the model writes the message, you are asked: /commit [-a] [--dry-run] [hint]
commands-compact = archive older rounds now: /compact [what to keep]
commands-clear = start a new conversation
commands-resume = continue another conversation
commands-rewind = go back to an earlier message
commands-undo = undo the last change of files
commands-redo = redo what was undone
commands-diff = show which files this conversation changed, and how
commands-model = switch to another model
commands-mode = choose the permission mode: /mode, /mode plan
commands-files = list the documents and focus files; /files add, remove, clear
commands-conversations = list conversations
commands-agents = list roles for sub-agents
commands-commands = list your own commands
commands-rules = list rules
commands-mcp = list MCP servers
commands-models = list configured models
commands-permissions = list permission rules
commands-quit = exit

## Keys
commands-key-enter = send
commands-key-alt-enter = new line
commands-key-esc = interrupt
commands-key-esc-esc = go back to an earlier message
commands-key-shift-tab = next permission mode
commands-key-ctrl-c = interrupt, clear, or exit
commands-key-ctrl-d = exit, when nothing is typed
commands-key-up-down = previous inputs
commands-key-ctrl-r = search previous inputs
commands-key-tab = complete a command or an @file
commands-key-ctrl-o = show all of the last result; again: any result, with search
commands-key-ctrl-v = attach the image of the clipboard
commands-key-ctrl-t = show or hide the TODO list
commands-key-ctrl-g = edit in your editor
commands-key-readline = move and cut as in a shell
commands-key-ctrl-l = redraw
commands-key-ctrl-z = suspend; `fg` resumes
commands-trust = trust this folder, after showing what would be read and run
