# What a task in the background does at the moment: on its page, and in progress notifications.

activity-start = 正在启动
activity-of-agent = { $agent }：{ $call }
activity-done = 已完成：{ $call }
activity-failed = 失败：{ $call }
activity-retry = 再次请求模型：{ $reason }
activity-approval = 等待批准：{ $call }
activity-end = 已结束：{ $outcome }
