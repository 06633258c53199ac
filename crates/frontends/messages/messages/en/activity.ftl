# What a task in the background does at the moment: on its page, and in progress notifications.

activity-start = Starting
activity-of-agent = { $agent }: { $call }
activity-done = Done: { $call }
activity-failed = Failed: { $call }
activity-retry = Asking the model again: { $reason }
activity-approval = Waiting for approval: { $call }
activity-end = Ended: { $outcome }
