# `haft queue`.

queue-no-server = 队列位于团队的 PostgreSQL 中；请用 `haft config set store.url postgres://USER@HOST/DATABASE` 设置其地址
queue-unknown = 没有任务 { $id }
queue-unknown-state = 应为 queued、running、ended、failed 或 cancelled
queue-bad-time = 应为 `2026-11-17T02:00:00Z` 这样的时间，或从现在起的秒数
queue-push-where = `--push` 需要仓库：请提供 `--repository` 或 `--each`
queue-each-empty = `{ $file }` 中没有指定仓库
queue-bundle-too-large = `{ $file }` 超过 256 MB；请把仓库放到服务器上，并提供其 URL
queue-key-taken = { $id }（已存在：已有任务使用此键）
queue-cancelled = 已取消
queue-retried = 已重新排队
queue-is-over = 不在队列中，或已经结束
queue-is-not-over = 不在队列中，或尚未结束
queue-empty = 队列为空。
queue-show-task = 任务：     { $id }（{ $state }）
queue-show-prompt = 提示词：   { $prompt }
queue-show-conversation = 会话：     { $id }
queue-show-cost = 费用：     ${ $usd }，{ $tokens } token
queue-show-attempts = 尝试：     { $attempts } / { $most }
queue-show-repository = 仓库：     { $repository }，提交 { $commit }
queue-show-labels = 标签：     { $labels }
queue-show-worker = 工作节点： { $worker }
queue-show-not-before = 不早于：   { $at } UTC
queue-show-branch = 分支：     { $branch }
queue-show-patch = 补丁：     { $size }（`haft queue show { $id } --patch`）
