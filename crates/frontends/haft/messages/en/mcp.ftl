# `haft mcp`, and prompts of MCP servers.

mcp-bad-permission = expected allow, ask or deny
mcp-no-servers = there are none yet
mcp-there-are = there are { $names }
mcp-unknown = there is no MCP server `{ $name }`; { $known }
mcp-declared = Declared `{ $name }` in `{ $file }`.
mcp-removed = Removed `{ $name }` from `{ $file }`.
mcp-bad-name = `{ $name }` cannot be the name of a server; use letters, digits, `-`, `.` and single `_`
mcp-already-declared = `{ $name }` is already declared in `{ $file }`; `haft mcp remove { $name }` removes it
mcp-not-declared = `{ $file }` declares no MCP server `{ $name }`; `haft mcp list` shows them
mcp-not-a-table = `{ $section }` in `{ $file }` is not a table of its own; add the server by hand
mcp-bad-url = `{ $url }` is not an address; it begins with `http://` or `https://`
mcp-for-url = a service with `--url`
mcp-program-or-url = give either a program, as `haft mcp add NAME -- COMMAND ARGS`, or `--url URL`
mcp-flag-is-for = `{ $flag }` is for { $of }
mcp-bad-pair = `{ $pair }` is not a name and a value with `{ $between }` between them
mcp-list-empty = There are no MCP servers. `haft mcp add NAME -- COMMAND` adds one.
mcp-state-known-logged-in = known, logged in
mcp-state-logged-in = logged in, not connected yet
mcp-state-unknown = not connected yet
mcp-login-failed = cannot log in to `{ $server }`: { $reason }
mcp-no-login = `{ $server }` answers; no login is needed.
mcp-login-page =
    Visit this page to log in to `{ $server }`:

    { $url }
mcp-login-timeout = the login was not finished within 10 minutes
mcp-logged-in = Logged in to `{ $server }`. `haft mcp test { $server }` tries it.
mcp-unnamed = a server without a name
mcp-prompt-optional = optional
mcp-prompt-no-arguments = It takes no arguments.
mcp-prompt-about =
    Its text is fetched from the server `{ $server }` when it is used.
    { $takes }
mcp-resources = { $count ->
    [one] and 1 resource
   *[other] and { $count } resources
 }
mcp-prompts = { $count ->
    [one] and 1 prompt
   *[other] and { $count } prompts
 }
mcp-state-known = known
mcp-state-off = switched off
mcp-state-broken = cannot be used
mcp-test-heading = { $server }: { $program }, protocol { $protocol }
mcp-prompt-needed = needed
mcp-serve-yolo = a task of another agent is never run without limits; use plan, ask, accept-edits or auto
mcp-serve-unspecified = `{ $address }` means every address of this machine; name one, such as 127.0.0.1:8080
mcp-serve-cannot-listen = cannot listen on `{ $address }`: { $error }; leave the address out to use a free port
mcp-serve-token = Bearer token, shown only here: { $token }
mcp-serve-open = `{ $address }` can be reached from other machines, and the token is sent without encryption; put a proxy with TLS before it
