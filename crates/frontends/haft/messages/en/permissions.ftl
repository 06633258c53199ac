# `haft permissions`.

permissions-none = The mode is `{ $mode }` and there are no rules. `haft permissions add 'execute_command(git status:*)'` adds one.
permissions-already-there = Nothing to add: `{ $file }` already has it.
permissions-not-a-list = `permissions.{ $decision }` in `{ $file }` is not a list of its own; add the rule by hand
permissions-unknown-server = there is no MCP server `{ $server }`; `haft mcp list` shows them
permissions-needs-args = `--tool` needs `--args`, a JSON object
permissions-unknown-tool = there is no tool `{ $name }`; `haft tools list` shows them
permissions-args-not-json = `--args` is not JSON: { $error }
permissions-args-not-object = `--args` is not a JSON object
permissions-bad-args = `{ $name }` would reject these arguments: { $why }
permissions-verdict = { $decision }: { $reason }
permissions-to-allow = To allow exactly this: haft permissions add
permissions-added =
    { $count ->
        [one] Added 1 { $decision } rule to `{ $file }`.
       *[other] Added { $count } { $decision } rules to `{ $file }`.
    }
permissions-mode = The mode is `{ $mode }`.
permissions-built-in = Built-in rules cover commands that only read, in the project, inside the namespace sandbox; `reading_commands = false` in `[permissions]` switches them off.
permissions-removed =
    { $count ->
        [one] Removed 1 rule from `{ $file }`.
       *[other] Removed { $count } rules from `{ $file }`.
    }
permissions-no-such-rule = there is no rule `{ $rule }` in `{ $file }`; `haft permissions list` shows the rules in force and where they come from
permissions-rule-elsewhere = the rule `{ $rule }` is in { $lists } only
permissions-which-rule = the rule `{ $rule }` is in { $lists }; say which with `--allow`, `--ask` or `--deny`
