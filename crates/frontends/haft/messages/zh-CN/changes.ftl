# `haft changes`, `haft undo`, `haft redo`, `haft rewind`.

changes-rewound = 已回退到 { $id }  { $name }
changes-would-keep = 将保留 { $all } 条消息中的 { $kept } 条。
changes-prompt = 你的消息是：
changes-rewind-which = 请指定你或模型的一条消息；`haft conversations show` 会列出消息编号
changes-none = 本会话没有修改过文件。
changes-all-undone = 本会话的所有修改都已撤销。
changes-note = （{ $note }）
changes-step-undo = 由 { $tool } 撤销（{ $call_id }）
changes-undone = ，已撤销
changes-unknown-message = 本会话没有消息 `{ $id }`；用 `haft conversations show` 查看
changes-wrong-message = 消息 `{ $id }` 既不是模型的也不是你的；请指定包含该调用的消息，或使用 `--call`
changes-conflicts = 被跳过的文件保持原样。请手动修改，或先撤销其他调用。
changes-did-undo = 已撤销 { $calls } 的修改：
changes-would-undo = 将撤销 { $calls } 的修改：
changes-did-redo = 已重做 { $calls } 的修改：
changes-would-redo = 将重做 { $calls } 的修改：
changes-undo = 撤销
changes-redo = 重做
changes-call = 一次调用
changes-left = 保持不变
changes-unchanged = 无变化
changes-removed = 删除
changes-recreated = 重新创建
changes-restored = 恢复
changes-mode = （权限位 { $before } → { $after }）
changes-rewound-name = （已回退）
