# The terminal interface: input, status line, calls, lists.

app-comma = ，
app-mode-meaning = { $mode }：{ $meaning }
app-working = 工作中
app-working-for = 工作中 { $elapsed }
app-interrupt-key = Esc 中断
app-send-key = Esc 中断并发送
app-tokens-out =
    { $count ->
       *[other] { $tokens } token
    }
app-silent = 服务器已 { $elapsed } 没有返回数据
app-shell-running = { $elapsed }，Esc 停止
app-shell-held = 已完成，输出将在回答之后显示
app-interrupting = 正在中断…
app-quit-again = 再按一次 Ctrl-C 退出
app-rewind-again = 再按一次 Esc 回到之前的消息
app-nothing-to-open = 还没有可查看的内容
app-turn-running = 当前一轮正在进行；Esc 中断。
app-search = 搜索：
app-nothing-found = 没有匹配
app-queued = 接下来：
app-more-lines = … 还有 { $more } 行
app-more-rows = … 还有 { $extra } 行；Ctrl-O 查看全部
app-pasted-characters = [已粘贴 { $count } 个字符]
app-pasted-lines = [已粘贴 { $lines } 行]
app-files-usage = 用法：`/files`、`/files add PATH…`、`/files remove PATH…` 或 `/files clear`
app-yolo-refused = 此模式没有沙箱，不能在会话中开启；`auto` 在沙箱内不询问
app-title-working = haft：工作中
app-title-question = haft：等待你的回答
app-alert-question = haft：{ $call }？
app-alert-form = haft：服务器请求你填写信息
app-alert-asks = haft：模型在等你回答
app-alert-done = haft：本轮已完成
app-changes = 改动
app-viewer-place = 结果 { $at }/{ $count }
app-viewer-match = 匹配 { $at }/{ $count }
app-viewer-keys = Esc 关闭，← → 其他结果，/ 搜索，n N 匹配，Enter 打印
app-placeholder = 描述任务；? 快捷键
app-more-keys = /help 显示全部
app-help-path = 为模型指明文件
app-help-shell = 在你的 shell 中运行命令；模型会读取输出
app-help-haft = 运行 haft 的命令：/mcp add、/rules show NAME、/config KEY:VALUE
app-edit-unchanged = 没有改动；仍在等待你的回答。
app-lost-names = 文件名所在的行被改动，因此没有采用这次编辑。

## What a permission mode means
app-mode-plan = 模型只读取和规划，不做任何修改
app-mode-ask = 修改文件或运行命令前先询问
app-mode-accept-edits = 编辑文件不询问，运行命令前询问
app-mode-auto = 在沙箱内不询问
app-mode-yolo = 不询问，也没有沙箱
app-mode-title = 权限模式
app-mode-current = { $mode }（当前）

## The end of a plan
app-plan-title = 执行这个计划吗？
app-plan-note = 输入修改意见，即可继续规划。
app-plan-accept = 是，编辑文件时不询问
app-plan-ask = 是，每次修改前询问
app-plan-more = 否，继续规划
app-plan-prompt = 执行这个计划。

## 模型的提问，以及退出
app-answers-title = 你的回答
app-leave-title = 还有 { $count } 条命令在运行。结束它们并退出？
app-leave-stay = 否，留下
app-leave-quit = 是，结束并退出

## What happens in a turn
app-retry = { $wait } 秒后{ $attempt }：{ $reason }
app-retry-now = { $attempt }，等待应答：{ $reason }
app-retry-of = 重试（第 { $attempt }/{ $limit } 次）
app-retry-unlimited = 重试（第 { $attempt } 次）
app-answer-again = （上面的回答被截断，下面重新开始）
app-see-result = 查看结果：{ $command }
app-agent-says = { $agent }：{ $message }
app-outcome =
    { $outcome ->
        [waiting] 等待处理：{ $message }
        [exhausted] 已达上限：{ $message }
       *[failed] 失败：{ $message }
    }
app-subagent-ended = { $agent } 已结束
app-subagent-outcome =
    { $outcome ->
        [completed] { $agent } 已完成，用时 { $elapsed }，{ $tokens } token
        [waiting] { $agent } 等待处理，用时 { $elapsed }，{ $tokens } token
        [aborted] { $agent } 已中断，用时 { $elapsed }，{ $tokens } token
        [exhausted] { $agent } 已达上限，用时 { $elapsed }，{ $tokens } token
       *[failed] { $agent } 失败，用时 { $elapsed }，{ $tokens } token
    }
app-thought =
    { $count ->
       *[other] 思考过程：{ $words } 词 · Ctrl-O 查看
    }
app-thoughts = 思考
app-todo-done = TODO 已完成 { $done }/{ $all }

## Answers that were given
app-form-sent = 已发送
app-form-declined = 已拒绝
app-form-cancelled = 已取消
app-allowed = 已允许
app-allowed-as = 已允许，改为 { $call }
app-session-allowed = 本次会话内允许
app-edits-allowed = 已允许，并允许本次会话的所有编辑
app-not-allowed = 已拒绝
app-not-allowed-because = 已拒绝：{ $reason }

## Tokens and cost
app-nothing-sent = 还没有发送请求
app-tokens = { $used } / { $window } token
app-prefix-break = { $message }（重新发送 ≈{ $tokens } token）
app-last-prefix-break = 最近一次缓存失效：{ $last }
app-no-prefix-break = 没有缓存失效。
app-no-price = 价格未知
app-cost = { $requests } 次请求：新输入 { $input } token，读自缓存 { $cached }，写入缓存 { $written }，输出 { $output }；{ $money }
app-context-next = 下一次请求：占窗口的 { $percent }，{ $used } / { $window } token
app-context-free = 空闲
app-context-reserve = 为回复预留
app-no-sandbox = 无沙箱
app-sandbox =
    沙箱：{ $layer ->
        [namespace] 命名空间
       *[other] { $layer }
    }
app-cache = 缓存 { $percent }%
app-layer-system = 系统
app-layer-documents = 文档
app-layer-history = 历史
app-layer-reminders = 提醒
app-layer-current = 当前

## Lists to choose from
app-picker-empty = 没有匹配
app-picker-place = { $at }/{ $count } · { $keys }
app-picker-question-keys = Enter 选择，Esc 取消，或输入消息
app-picker-keys = Enter 选择，Esc 取消
app-call-waits = 等待中
app-call-cancelled = 已取消
app-lines =
    { $count ->
       *[other] { $shown } 行
    }
app-hits =
    { $count ->
        [0] 没有匹配
       *[other] { $shown } 处匹配
    }
app-entries =
    { $count ->
       *[other] { $shown } 项
    }
app-menu-place = { $at }/{ $count }
app-resume = haft -r { $id } 继续本会话；{ $requests } 次请求
app-interrupted = 已中断。请告诉 haft 接下来做什么。

# An error or a notice, as whoever made it worded it, by its code.
app-coded =
    { $code ->
        [unauthorized] API Key 无效或没有权限：{ $message }
        [unreachable] 无法连接模型服务器：{ $message }
        [not_an_api] 该地址不是模型的 API：{ $message }
        [provider_config] 服务商的配置有误：{ $message }
        [spend_limit] 账户余额不足或已达消费上限：{ $message }
        [request_refused] 服务器拒绝了请求：{ $message }
        [provider_error] 服务器出错：{ $message }
        [bad_reply] 服务器的回复无法读取：{ $message }
        [connection_lost] 连接中断：{ $message }
        [timeout] 超时：{ $message }
        [no_price] 没有美元价格，无法保证费用上限：{ $message }
        [max_budget] 已达费用上限：{ $message }
        [max_tokens] 已达 token 上限：{ $message }
        [max_turns] 已达回复次数上限：{ $message }
        [max_wall_time] 已达时间上限：{ $message }
        [loop] 模型在重复同样的调用：{ $message }
        [denied] 有操作被拒绝：{ $message }
        [cancelled] 已取消：{ $message }
        [interrupted] 已中断：{ $message }
        [goal_not_reached] 目标没有达成：{ $message }
        [nothing_changed] 没有任何改动成功：{ $message }
        [untrusted] 目录未受信任：{ $message }
        [model_switched] 已换用其他模型：{ $message }
        [model_role] 设置了没有用到的模型角色：{ $message }
        [agent_model] 智能体指定的模型不可用：{ $message }
        [agent_tools] 智能体指定的部分工具不可用：{ $message }
        [image_left_out] 图片没有发送：{ $message }
        [context_warning] 上下文即将用满：{ $message }
        [hook_blocked] 钩子阻止了操作：{ $message }
        [hook_stopped] 钩子停止了运行：{ $message }
        [hook_message] 钩子的消息：{ $message }
        [hook] 钩子：{ $message }
        [hooks] 钩子：{ $message }
        [recovery_failed] 恢复失败：{ $message }
        [worktree_removed] 工作树已移除：{ $message }
        [store] 存储出错：{ $message }
        [internal] 内部错误：{ $message }
        [permissions] 权限：{ $message }
        [stored_state] 已存储的状态无法读取：{ $message }
        [schema] 回答不符合要求的 schema：{ $message }
       *[other] { $message }
    }
app-trust-hint = /trust 会显示将读取和运行的内容，并可信任此目录
app-allowed-elsewhere = 已在另一个终端中允许。
app-denied-elsewhere = 已在另一个终端中拒绝。
