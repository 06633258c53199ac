# `haft conversations`.

conversations-ambiguous = `{ $text }` matches several: { $ids }; give more of the id
conversations-no-current = there is no current conversation in this project; give an id
conversations-on-server = conversations are stored on a server (`store.url`); back it up with its own tools, such as `pg_dump`
conversations-nothing-to-back-up = there are no conversations to back up yet
conversations-no-backups = No backups yet. `haft run` makes one at its start, `haft conversations backup` makes one now.
conversations-unknown-backup = there is no backup `{ $name }`; `haft conversations backup list` shows them
conversations-restored = restored { $path }; the previous state is now the newest backup
conversations-bad-metadata = `--metadata { $pair }`: expected KEY=VALUE
conversations-ambiguous-message = `{ $text }` matches several messages; give more of the id
conversations-unknown-message = the conversation has no message `{ $text }`; `haft conversations show` names them
conversations-cost-none = No request of this conversation has been answered yet.
conversations-cost-unpriced =
    { $requests ->
        [one] 1 request went to a model without a price and is not in the total.
       *[other] { $requests } requests went to models without a price and are not in the total.
    }
conversations-import-existing = already there
conversations-import-added =
    { $added ->
        [one] 1 message added
       *[other] { $added } messages added
    }
conversations-import-no-files = there are no JSON files in `{ $path }`
conversations-import-not-text = it is not UTF-8 text
conversations-import-bad-id = `{ $namespace }` is `{ $id }`, which is not a conversation id
conversations-import-no-current = there is no conversation `{ $id }`, which `{ $namespace }` had as its current one
conversations-none-in-trash = The trash is empty.
conversations-none = No conversations yet. Start one with `haft run "…"`.
conversations-none-here = No conversations here yet. Start one with `haft run "…"`.
conversations-no-namespaces = No namespaces yet. Each project becomes one with its first conversation.
conversations-earlier =
    … { $earlier ->
        [one] 1 earlier message; `--all` shows it
       *[other] { $earlier } earlier messages; `--all` shows them
    }
conversations-stats-trash = in the trash
conversations-stats-revisions = revisions of messages
conversations-stats-requests = logged requests
conversations-stats-size = size of the database
conversations-export-which = which conversation? Give an id, or `--all DIR`
conversations-export-unknown = there is no conversation `{ $id }`
conversations-exported =
    exported { $count ->
        [one] 1 conversation
       *[other] { $count } conversations
    } to { $folder }
conversations-export-empty = conversation `{ $id }` has no messages, and a trajectory needs at least one
conversations-export-images =
    { $count ->
        [one] 1 image is
       *[other] { $count } images are
    } not part of the output; `--all DIR` writes images to files.
conversations-export-unwritable = cannot write `{ $path }`: { $error }
conversations-unknown = there is no conversation `{ $text }`; `haft conversations list --all` shows them
conversations-unknown-in-trash = there is no conversation `{ $text }` in the trash; `haft conversations list --trash` shows them
conversations-search-none = Nothing found.
conversations-search-none-here = Nothing found in this project; `--all` searches every one.
conversations-revise-nothing = give the new text, or `--metadata`
conversations-revise-no-text = message `{ $message }` has no text: it is made of tool calls or results, which the messages around it belong to
conversations-revised = revised message { $message } of { $conversation }
conversations-purge-server = conversations are stored on a server (`store.url`); purge them there
conversations-purge-forks = these conversations share its messages, because they were forked from it: { $forks }. Purge them, too, with `--forks`
conversations-purge-force = purging cannot be undone, so it needs a confirmation at a terminal; `--force` purges without asking
conversations-purge-sure =
    { $count ->
        [one] Purge this conversation and { $others } that belong to it (of sub-agents, and forks), with its requests, the undo of its file changes, and its copies in backups? This cannot be undone. (y/n)
       *[other] Purge these { $count } conversations and { $others } that belong to them (of sub-agents, and forks), with their requests, the undo of their file changes, and their copies in backups? This cannot be undone. (y/n)
    }
conversations-purge-really = Type { $id } to purge for good:
conversations-purge-left = nothing was purged
conversations-purged =
    Purged { $count ->
        [one] 1 conversation
       *[other] { $count } conversations
    }, also from { $backups ->
        [one] 1 backup
       *[other] { $backups } backups
    }.
conversations-replay-not = the run `{ $id }` cannot be replayed: { $reason }
conversations-replay-subagent = it is the conversation of a sub-agent; replay the conversation that started it
conversations-replay-revised =
    { $count ->
        [one] 1 message was revised
       *[other] { $count } messages were revised
    } (`haft conversations revise`), so its requests no longer belong to its messages
conversations-replay-edited = its context was edited (`haft context edit`), and the record does not say before which request
conversations-replay-imported = it was imported, so there is no log of its requests
conversations-replay-no-log = there is no log of its requests
conversations-replay-pruned = request { $number } is missing in the log
conversations-replay-no-encoding = the log does not contain the settings of request { $number }: an older version or a proxy recorded it
conversations-replay-bad-file = `{ $path }` is not a recorded run: { $problem }
conversations-replay-other-format = it is not a file that `haft conversations replay --save` of this version wrote
conversations-replay-bad-request = request { $number } is broken
conversations-replay-saved = wrote { $path }
conversations-replay-too-large = the files of `{ $project }` that git does not ignore are larger than 1 GB, too large for a copy; replay without `--live-tools`
conversations-replay-comparison = COMPARISON
conversations-replay-equal = equal
conversations-replay-different = different: { $field }
conversations-replay-not-sent = not sent
conversations-replay-not-recorded = not in the record
conversations-replay-calls =
    { $calls ->
        [one] 1 decision on a call was compared
       *[other] { $calls } decisions on calls were compared
    }{ $compared ->
        [0] .
        [one] , and 1 result.
       *[other] , and { $compared } results.
    }
conversations-replay-all-equal = The run is equal to its record.
conversations-replay-first =
    { $count ->
        [one] 1 difference
       *[other] { $count } differences
    }. The first one: { $place }, `{ $field }`
conversations-replay-at-request = request { $number }
conversations-replay-at-call = call `{ $tool }` ({ $id })
conversations-replay-at-message = message { $id } ({ $role })
conversations-replay-test-equal =
    { $requests ->
        [one] 1 request
       *[other] { $requests } requests
    } and { $calls ->
        [one] 1 decision
       *[other] { $calls } decisions
    } are equal
conversations-replay-test-different = { $place } differs: `{ $field }`
