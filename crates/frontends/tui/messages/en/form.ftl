# A form of an MCP server.

form-subject = { $from } asks for input. It sees what you type; give no password.
form-confirm = only a confirmation is wanted: press Enter
form-confirm-keys = Enter accepts, Esc declines, Ctrl-C cancels the call
form-field-keys = { $at } of { $count }: Enter answers, Esc declines, Ctrl-C cancels the call
