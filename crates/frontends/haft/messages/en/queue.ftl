# `haft queue`.

queue-no-server = the queue is in the team's PostgreSQL; set its address with `haft config set store.url postgres://USER@HOST/DATABASE`
queue-unknown = there is no task { $id }
queue-unknown-state = expected queued, running, ended, failed or cancelled
queue-bad-time = expected a time such as `2026-11-17T02:00:00Z`, or seconds from now
queue-push-where = `--push` needs a repository: give `--repository` or `--each`
queue-each-empty = `{ $file }` names no repository
queue-bundle-too-large = `{ $file }` is larger than 256 MB; put the repository on a server, and give its URL
queue-key-taken = { $id } (was there already: a task has this key)
queue-cancelled = cancelled
queue-retried = queued again
queue-is-over = not in the queue, or has ended already
queue-is-not-over = not in the queue, or has not ended
queue-empty = The queue is empty.
queue-show-task = Task:          { $id } ({ $state })
queue-show-prompt = Prompt:        { $prompt }
queue-show-conversation = Conversation:  { $id }
queue-show-cost = Cost:          ${ $usd }, { $tokens } tokens
queue-show-attempts = Attempts:      { $attempts } of { $most }
queue-show-repository = Repository:    { $repository } at { $commit }
queue-show-labels = Labels:        { $labels }
queue-show-worker = Worker:        { $worker }
queue-show-not-before = Not before:    { $at } UTC
queue-show-branch = Branch:        { $branch }
queue-show-patch = Patch:         { $size } (`haft queue show { $id } --patch`)
