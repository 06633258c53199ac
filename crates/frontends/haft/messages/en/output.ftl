# What a run prints on stderr.

output-between = ,{" "}
output-comma = ,{" "}
output-sandbox-namespace = commands run in their own namespaces
output-sandbox-landlock = commands are confined by Landlock only
output-sandbox-none = commands run without a sandbox
output-retry = retry { $attempt }{ $limit } in { $seconds } s: { $reason }
output-background-task = background task { $message }
output-prefix-break = cache break: { $message }, ≈{ $tokens } tokens resent
output-plan = ? The plan is below{ $options }
output-denied = stopped, because an action was denied
output-more-lines =
    … { $most ->
        [one] 1 more line
       *[other] { $most } more lines
    }
output-subagent-started = started ({ $model })
output-subagent-ended = ended: { $message }
output-subagent-retry = retry { $attempt }: { $reason }
output-sandbox = sandbox: { $what }
output-sandbox-because = { $what }: { $reasons }
output-retry-limit = {" "}of { $limit }
output-waiting-for-model = … waiting for the model, { $elapsed }
output-run-header = haft: { $model }, conversation { $id }
output-run-summary =
    { $count ->
        [one] haft: 1 request, { $elapsed }{ $money }; `haft -r { $id }` continues
       *[other] haft: { $count } requests, { $elapsed }{ $money }; `haft -r { $id }` continues
    }
