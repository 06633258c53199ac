# `haft tools`.

tools-offer = `tools.offer`: { $error }
tools-external =
    { $count ->
        [one] 1 external tool is described in a document: { $tokens } tokens more. The model runs it as a command.
       *[other] { $count } external tools are described in a document: { $tokens } tokens more. The model runs them as commands.
    }
tools-unknown = there is no tool `{ $name }`; `haft tools list` shows them
tools-aliases = Also called { $aliases }, with the parameters of those names.
tools-no-calls = No tool was called in this conversation.
tools-offered =
    { $count ->
        [one] 1 tool is offered
       *[other] { $count } tools are offered
    }: { $total } tokens of every request; { $deferred } are deferred: `tool_search` finds them, and they cost nothing before. `[tools] offer` or `--allowed-tools` chooses others, by name, group, or profile ({ $profiles }).
tools-parameters = Parameters:
