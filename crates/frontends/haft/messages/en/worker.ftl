# `haft worker`.

worker-sandbox-off = a worker runs what others queued, so its sandbox must be on; remove `sandbox.mode = "off"`
worker-folder-not-text = `{ $folder }`: the path is not UTF-8 text
worker-starts = haft: worker { $name } with { $slots } slots
worker-cannot-listen = cannot listen on { $address }: { $error }
worker-metrics = haft: metrics at http://{ $address }/metrics
worker-drains = haft: taking no more tasks; interrupt again to hand over running tasks
worker-hands-over = haft: handing tasks over
worker-abandons = haft: tasks could not be handed over in time; other workers take them when the lease expires
worker-task-open = haft: the task { $id } has not ended; it is { $state }
worker-bad-webhook = `worker.webhook`: { $error }
worker-no-authorization = `worker.webhook_authorization_env`: the variable { $name } is not set
worker-bad-task = expected the number of a task, or `next`
