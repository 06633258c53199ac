# `haft attach`：正在运行的会话，以及连接的结束。

attach-greeting =
    已连接到 { $id }（{ $name }），位于 { $folder }，进程 { $process }
    { $model } · 消息会加入该会话 · Ctrl-D 离开，会话继续运行
attach-follows = 这个会话只在轮次运行期间接受消息。
attach-unavailable = 在连接的终端中不可用；请在启动该会话的终端中操作，或使用 haft 的命令。
attach-skipped = 本轮较早的 { $count } 行已省略。
attach-form-answered = 表单已在另一个终端中回答。
attach-refused = 未被接受：{ $why }。
attach-left = 已离开；会话继续运行，用 `haft attach { $id }` 返回
attach-lost = 会话的进程没有告别就结束了（被终止了？）；`haft run -r { $id }` 可继续该会话
attach-stored = 你的最后一条消息已在会话中：{ $message }
attach-not-stored = 这条消息不在会话中：{ $message }；用 `haft run -r { $id }` 发送
attach-removed = 会话 { $id } 被终止；其套接字已删除，`haft run -r { $id }` 可继续该会话
attach-unusable = 套接字 `{ $socket }` 无法使用：{ $error }
attach-none = 没有正在运行的会话；`haft`、`haft run` 和 `haft run --bg --stay` 可启动一个
attach-list-none = 没有正在运行的会话。
attach-which = 有多个会话在运行，或本项目中没有；请指定一个：`haft attach ID`
attach-ambiguous = `{ $id }` 匹配多个会话；请给出更长的 id
attach-unknown = 没有正在运行的会话与 `{ $id }` 匹配；`haft attach --list` 列出它们，`haft run -r ID` 继续一个会话
attach-no-terminal = 连接需要终端；`--json` 则读取和打印 JSON 行
