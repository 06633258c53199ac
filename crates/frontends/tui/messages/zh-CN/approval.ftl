# The question before a tool call runs.

approval-outside = 在沙箱之外
approval-of-subagent = （子代理 { $agent }）
approval-question = 允许吗？{ $reason }
approval-not-allowed-yet = 尚未允许：
approval-always-allows = “始终”将允许：
approval-yes = 是，仅此一次
approval-always = 始终：{ $rules }
approval-no = 否
approval-no-reason = 否，并告诉模型原因
approval-edit = 先编辑
approval-reason-keys = Enter 以此理由拒绝，Esc 返回
approval-edit-keys = Enter 按编辑后的内容运行，Esc 返回
approval-not-json = 参数不是 JSON：{ $error }
approval-always-many = 始终，按上面的 { $count } 条规则
approval-short-yes = 是
approval-short-always = 始终
approval-short-no = 否
approval-short-reason = 原因
approval-short-edit = 编辑
