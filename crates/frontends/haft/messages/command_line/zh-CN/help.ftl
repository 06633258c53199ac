# The help of commands and arguments in Chinese. The English texts are the doc comments in the code.
# `help-mcp-add` is `haft mcp add`, and its attributes are: `.long` its longer description, `.after`
# the text at the end of its page, `.NAME` the help of an argument, `.NAME-long` the longer help, and
# `.NAME-value-VALUE` the help of one of its values. `help-shared` has arguments that several commands
# share, and `help-groups` the texts of `haft --help`.

help-groups =
    .Run = 运行：
    .Conversations = 会话：
    .Context = 上下文：
    .Knowledge = 知识：
    .Tools = 工具：
    .Safety = 安全：
    .Models = 模型：
    .System = 系统：
    .exit_codes = 退出码：0 完成，1 失败，2 用法或配置错误，3 需要人处理，4 达到上限，130 已取消。
    .help = 显示某个命令的帮助
help-shared =
    .add_dir = 允许工具同时访问这个目录；可多次指定
    .agent = 使用这个智能体的角色、工具和模型（见 `haft agents list`）
    .allow = 仅在这次运行中允许与规则匹配的操作；可多次指定。见 `haft permissions add --help`
    .allowed_tools = 只提供这些工具：名称、分组或配置档（见 `haft tools list`）、`*` 或 `none`
    .api = 接口协议：openai-chat、openai-responses、anthropic 或 gemini
    .append_system_prompt = 把这段文字追加为系统提示词的最后一节
    .ask = 需要权限时询问而不是拒绝：在终端上问用户；使用 `--input-format stream-json` 时，由提供输入的程序回答
    .stay = 遇到问题时等待通过 `haft attach` 给出的回答，而不是结束；并且无论服务商要求等待多久都会重试
    .bg = 在后台运行：任务存好后打印作业 id 并退出。见 `haft jobs`
    .compat = 按另一个程序的格式读写 JSON
    .compat-value-claude = Claude Code SDK 读写的消息
    .conversation = id、id 的开头或名称；省略时为当前会话
    .cwd = 在这个目录中工作
    .deny = 仅在这次运行中拒绝与规则匹配的操作；可多次指定
    .dry_run = 只显示代价
    .file = 要复制的 Markdown 文件，或一个技能的目录；省略时读标准输入
    .fork_session = 与 `-c` 或 `-r` 合用：在副本中继续，原会话不变
    .from_file = 从文件读取会话（`-` 表示标准输入）：`{ "{" }"messages": […]{ "}" }` 或 `[…]`，格式为导出文件或 OpenAI 聊天消息
    .goal = 把任务当作目标：一直继续，直到模型报告达成；必须给出上限（`--max-…`）
    .id = 作业 id，或 id 的开头
    .ids = 消息 id，短 id 或完整 id，或包含两端的范围 `A..B`
    .image = 随提示词发送这张图片：PNG、JPEG、GIF 或 WebP；可多次指定
    .include_partial_messages = 与 `--compat claude` 合用：文本一到就打印，形式为 `stream_event`
    .input = 用户的下一条提示词
    .input_format = 标准输入的格式
    .input_format-value-stream-json = 每行一个 JSON 对象：消息、中断和批准，直到输入结束。格式见 `haft events`
    .input_format-value-text = 任务本身，或任务的附件
    .json = 输出 JSON
    .json_schema = 要求回答是符合此 schema 的 JSON：可以直接写 schema，也可以写文件名。回答在结果的 `structured_output` 里
    .key = 键，如 `retry.attempts`
    .max_budget_usd = 花费达到这个金额后停止
    .max_total_tokens = token 用量（输入和输出合计）达到这个数量后停止
    .max_turns = 模型回复达到这个次数后停止
    .max_wall_time = 运行达到这个秒数后停止
    .model = 接下来要请求的模型，写作 `provider/model`
    .name = 名称
    .namespace = 用命名空间代替本项目
    .next = 接下来要发送的请求
    .number = 编号，见 `list`
    .origin = 显示每个值的来源
    .output_format = 输出格式
    .output_format-value-json = 结果是一个 JSON 对象
    .output_format-value-stream-json = 每行一个 JSON 事件
    .output_format-value-text = 回答写到 stdout，进度写到 stderr
    .path = 目录或文件
    .permission_mode = 权限模式：plan、ask、accept-edits、auto 或 yolo
    .prompt = 任务；省略或为 `-` 时从标准输入读取
    .request = 请求编号，从 1 开始
    .resume = 继续指定的会话：id、id 的开头或名称。在终端上省略值时，从列表中选择
    .resume_current = 继续本项目的当前会话；没有提示词时，接着执行被中断的一轮
    .set = 设置一个配置值，如 `retry.attempts=2`；可多次指定
    .system_prompt = 用这段系统提示词代替内置角色
    .system_prompt_file = 从文件读取系统提示词
    .user = 对你的所有项目生效
    .verbose = 显示推理过程和完整的工具结果
help-haft = 终端里的编程智能体，以上下文引擎为核心
    .print = 执行一个任务后退出，等同于 `haft run PROMPT`
    .plain = 只输出纯文本行，不重绘屏幕；适合屏幕阅读器
    .model = 模型，写作 `provider/model`
    .file = 为任务添加一个关注文件；可多次指定
help-run = 让模型执行任务，并打印回答
    .long =
        让模型执行任务，并打印回答。

        没有提示词时，从标准输入读取任务；有提示词时，管道传入的内容作为附件。
    .model = 模型，写作 `provider/model`
    .file = 为任务添加一个关注文件；可多次指定
help-chat = 与模型对话，不使用工具
    .long =
        与模型对话，不使用工具。

        由角色 `chat` 的模型回答（`[model_roles]`），没有设置时由主模型回答。没有提示词时，在终端上持续对话。
    .model = 模型，写作 `provider/model`
    .file = 为任务添加一个关注文件；可多次指定
help-review = 评审改动：未提交的改动、一个分支或一个提交
    .instructions = 重点看什么
    .base = 评审自从与另一个分支分叉以来的全部改动
    .commit = 评审一个提交
    .model = 模型，写作 `provider/model`
help-commit = 为已暂存的改动写提交说明，并提交
    .long =
        为已暂存的改动写提交说明，并提交。

        由角色 `commit` 的模型撰写（`[model_roles]`）。先显示提交说明和费用，确认之后才提交。不运行钩子。
    .words = 提交说明要写什么、强调什么
    .hint = 同上，作为选项给出
    .all = 提交 git 已跟踪文件的所有改动，同 `git commit -a`
    .dry_run = 只显示提交说明，不提交
    .yes = 不询问，直接提交
    .model = 模型，写作 `provider/model`，代替角色 `commit` 的模型
help-workflows = 运行由智能体步骤组成的工作流；列出、查看、添加和删除工作流
    .long =
        运行由智能体步骤组成的工作流；列出、查看、添加和删除工作流。

        工作流是 YAML 文件，放在项目的 `.haft/workflows` 和你自己的 `workflows` 目录里：<https://github.com/haft-agent/haft/blob/main/docs/workflows.md>。
help-workflows-run = 运行工作流，或接着上次继续
    .long =
        运行工作流，或接着上次继续。

        互不依赖的步骤同时运行。某个步骤失败时，只有依赖它的步骤停止。
    .inputs = 设置一个输入；可多次指定
    .resume = 继续本项目中的上一次运行：只执行尚未完成的步骤
    .model = 步骤及其智能体都没有指定模型时使用的模型，写作 `provider/model`
    .ask = 需要权限或需要回答问题时，在终端上询问而不是拒绝；一次执行一个步骤
    .max_turns = 每个步骤的模型回复达到这个次数后停止
    .max_budget_usd = 所有步骤合计花费达到这个金额后停止
    .verbose = 显示完整的工具结果
help-workflows-list = 列出所有条目及其来源
    .verbose = 同时显示被遮蔽的条目（同名条目优先）和搜索过的目录
help-workflows-show = 查看一个条目
help-workflows-add = 向本项目添加条目；加 `--user` 则对你的所有项目生效
help-workflows-remove = 从 haft 的目录中删除一个条目
help-attach = 跟踪一个正在运行的会话，回答它的问题并向它发送消息
    .long =
        跟踪一个正在运行的会话，回答它的问题并向它发送消息。

        你离开后会话继续运行。对一个问题的第一个回答有效，其他人都会看到它。
    .id = 会话：其会话或作业的 id，或 id 的开头。默认为本项目中唯一正在运行的会话
    .list = 列出正在运行的会话，不连接
    .json = 以 JSON 打印会话的行，并发送标准输入的行；与 `--list` 合用时打印 JSON
    .plain = 使用纯文本行，不重绘：供屏幕阅读器使用
help-jobs = 列出、查看、跟踪和停止后台运行
    .long =
        列出、查看、跟踪和停止后台运行。

        `haft run --bg` 在后台启动一次运行。
help-jobs-list = 列出后台运行，最新的在前
help-jobs-show = 查看一个作业：状态、任务和回答
help-jobs-logs = 打印作业到目前为止的输出
    .follow = 持续显示输出，直到作业结束
    .json = 事件，每行一个 JSON 对象
help-jobs-attach = 跟踪作业直到结束；在终端中还可回答它的问题并向它发送消息
    .long =
        跟踪作业直到结束；在终端中还可回答它的问题并向它发送消息。

        与 `haft attach` 相同。离开不会结束作业。退出码就是那次运行的退出码。
help-jobs-kill = 停止作业；其会话之后可以继续
    .ids = 作业 id，或 id 的开头
help-queue = 添加、列出、查看和取消交给工作节点的任务
    .long =
        添加、列出、查看和取消交给工作节点的任务。

        队列在团队的 PostgreSQL 中（`store.url`）：<https://github.com/haft-agent/haft/blob/main/docs/workers.md>。
help-queue-add = 添加一个任务，或为文件中的每个仓库各添加一个
    .prompt = 任务；写 `-` 时从标准输入读取
    .workflow = 改为运行这个工作流：工作节点自己的，或它所信任的仓库中的
    .inputs = 设置工作流的一个输入；可多次指定
    .repository = 要处理的仓库：URL、每个工作节点都能以同一路径访问的目录，或一个 bundle（`git bundle create`），后者会存入队列。省略时从空目录开始
    .each = 为这个文件中的每个仓库添加一个任务，每行一个；`#` 之后是注释
    .commit = 检出这个提交、标签或分支；省略时用仓库的默认分支
    .push = 把改动推送到仓库的这个分支
    .agent = 使用这个智能体的角色、工具和模型
    .model = 模型，写作 `provider/model`；省略时用工作节点的模型
    .permission_mode = 权限模式：plan、ask、accept-edits 或 auto；省略时用工作节点的模式
    .allow = 允许符合这条规则的操作；可多次指定
    .deny = 拒绝符合这条规则的操作；可多次指定
    .max_budget_usd = 所有执行过这个任务的工作节点合计花费达到这个金额时停止
    .max_total_tokens = 所有执行过这个任务的工作节点合计用掉的 token 达到这个数量时停止
    .max_wall_time = 一次运行达到这个秒数后停止
    .max_turns = 一次运行中模型回复达到这个次数后停止
    .max_attempts = 开始执行它却没有完成的工作节点达到这个数量时，放弃这个任务
    .retries = 运行失败时再执行这么多次，每次用新的会话
    .retry_wait = 第一次重试前等待的秒数；之后每次加倍
    .priority = 数字大的任务先执行
    .not_before = 不早于此时执行：一个时间，例如 `2026-11-17T02:00:00Z`，或从现在起的秒数
    .key = 只有当没有任务使用这个键时才添加；与 `--each` 合用时，键后面会加上各个仓库
    .labels = 给任务加标签；可多次指定。工作节点按标签挑选任务，限额和费用也按标签合计
help-queue-list = 列出任务，最新的在前
    .state = 只列出处于这个状态的任务：queued、running、completed、failed、exhausted、waiting、aborted、cancelled，用 `ended` 表示所有自行结束的运行，或用 `ready` 表示现在启动的工作节点会领取的任务
    .label = 只列出带这个标签的任务
    .limit = 数量上限
help-queue-show = 显示一个任务：状态、费用和结果
    .id = 任务编号
    .patch = 只打印改动，格式是 `git apply` 能用的补丁
    .log = 只打印日志：每行一个 JSON 事件
help-queue-watch = 持续显示队列和工作节点，直到被中断；或跟踪一个任务直到结束
    .id = 任务编号；省略时显示整个队列
    .json = 打印 JSON：每行一个对象
help-queue-cancel = 把任务移出队列；正在执行它的工作节点会结束它
    .ids = 任务编号
    .state = 处于这个状态的所有任务，名称同 `haft queue list --state`
    .label = 带这个标签的所有任务
help-queue-retry = 把已结束的任务重新排入队列：用新的会话，限额重新计算
    .ids = 任务编号
    .state = 处于这个状态的所有任务，名称同 `haft queue list --state`
    .label = 带这个标签的所有任务
help-queue-stats = 显示各状态的任务数、按标签统计的费用，以及工作节点
help-queue-pause = 不让工作节点领取任务，或不领取带某个标签的任务；正在执行的继续
    .label = 只限带这个标签的任务；省略时为所有任务
help-queue-resume = 结束暂停
    .label = 只限带这个标签的任务；省略时为所有任务
help-queue-prune = 删除早已结束的任务，连同其日志和补丁；会话保留
    .days = 删除结束超过这么多天的任务
help-queue-migrate = 以有权限的角色创建或升级数据表；之后工作节点不需要这个权限
    .grants = 同时允许这个角色读取和更改表中的行；可多次指定
    .sql = 只打印创建数据表的 SQL 语句
help-worker = 从团队的队列中取任务并执行
    .long =
        从团队的队列中取任务并执行。

        每个任务在自己的克隆中、在沙箱里执行，使用本配置的密钥和规则。工作节点失联时，由另一个节点继续它的任务。
    .slots = 同时执行的任务数
    .labels = 只取带这个标签的任务；可多次指定。省略时取任何任务
    .except = 把带这个标签的任务留给别的节点；可多次指定
    .model = 任务没有指定模型时使用的模型，写作 `provider/model`
    .lease = 工作节点静默超过这个秒数，它的任务就归别的节点。所有节点应取相同的值
    .task = 只取这个任务，或用 `next` 取下一个，等待它结束，并以其结果退出：用于为每个任务启动一个工作节点的调度系统
    .drain = 收到结束信号（SIGTERM）后，让任务最多再执行这个秒数，然后交给别的节点
    .until_empty = 没有任务时结束
    .folder = 把镜像和工作区放在这个目录。所有节点用同一路径，会话中的路径才保持正确
    .metrics = 在这个地址提供 Prometheus 指标；省略地址时用 127.0.0.1 的空闲端口
help-demo = 运行一个修复 bug 的演示，不需要密钥和网络
    .long =
        运行一个修复 bug 的演示，不需要密钥和网络。

        由脚本模型驱动真实的智能体。
    .keep = 保留示例项目并打印其路径
help-conversations = 列出、查看、搜索、修订、分叉、彻底删除、导出和导入会话
help-conversations-new = 新建一个空会话，并设为当前会话
    .name = 名称；省略时为 `Conversation` 加 id 的开头
    .id = id；省略时自动生成
    .description = 内容说明
    .metadata = 元数据；值是 JSON，否则当作字符串。可多次指定
help-conversations-list = 列出本项目的会话，最近使用的在前
    .all = 列出所有项目的会话
    .trash = 列出所有项目回收站中的会话
help-conversations-show = 查看会话，从最新的消息往回
    .id = id、id 的开头或名称；省略时为当前会话
    .last = 显示最新的若干条消息，数量为此值
    .all = 显示每条消息
    .cost = 显示每个请求的费用和合计
    .json = 输出完整的 JSON
help-conversations-use = 把一个会话设为本项目的当前会话
    .id = id、id 的开头或名称
help-conversations-current = 显示本项目的当前会话
help-conversations-search = 搜索消息
    .long =
        搜索消息。

        所有词都必须出现，顺序不限；"引号中的词" 必须相连；以 * 结尾的词表示词的开头。
    .words = 要搜索的词
    .all = 搜索所有项目
    .trash = 搜索回收站
    .limit = 结果数量上限
help-conversations-rename = 重命名会话
    .id = id、id 的开头或名称
    .name = 新名称
help-conversations-delete = 把会话移到回收站
    .ids = id、id 的开头或名称，可以是多个
help-conversations-restore = 从回收站恢复会话
    .ids = id、id 的开头或名称，见 `list --trash`
help-conversations-purge = 彻底删除会话，包括其请求、撤销步骤和备份中的副本
    .long =
        彻底删除会话，包括其请求、撤销步骤和备份中的副本。

        子智能体的会话一并彻底删除。之后 haft 的任何文件中都不再有其中的内容；日志中它们运行期间的行也会删除。会询问两次。
    .ids = id、id 的开头或名称；也包括回收站中的
    .forks = 同时彻底删除从它们分叉出来、共用其消息的会话
    .force = 不询问
help-conversations-revise = 修订一条消息：从现在起更改其文本或元数据
    .long =
        修订一条消息：从现在起更改其文本或元数据。

        原消息仍保留在存储中；从现在起发给模型的是修订后的消息。
    .message = 消息，写法与 `show` 显示的一致
    .text = 新文本；`-` 表示从标准输入读取。省略时不变
    .id = 会话：id、id 的开头或名称；省略时为当前会话
    .metadata = 要添加到消息的元数据；值是 JSON，否则当作字符串。可多次指定
help-conversations-fork = 分叉会话：复制到某条消息为止
    .id = id、id 的开头或名称；省略时为当前会话
    .at = 要保留的最后一条消息，写法与 `show` 显示的一致；省略时为最新一条
    .name = 副本的名称
    .new_id = 副本的 id；省略时自动生成
help-conversations-export = 把会话导出为 JSON，或把全部会话导出到目录
    .id = id、id 的开头或名称
    .all = 把每个会话写成此目录下的一个文件，另写 `current_conversations.json`
    .format = 格式：document（haft 自己的格式，可无损导入）或 atif（Harbor 的轨迹）
help-conversations-import = 从 haft 的导出文件或其他智能体的文件导入会话
    .long =
        从 haft 的导出文件或其他智能体的文件导入会话。

        重复导入只添加新增的部分。目录会逐个文件读取；其中的 `current_conversations.json` 说明每个命名空间的当前会话。
    .paths = 文件或目录；`-` 表示标准输入；智能体的名称表示它的常用目录
    .format = 格式：document（haft 的导出）、openai-chat、claude-code、codex、codex-exec、gemini-cli、opencode、goose、kimi-cli、auto-coder、pi、openhands、swe-agent、cline、atif 或 trajectory；省略时按内容判断
help-conversations-replay = 用现在的工具、规则和提示词重放一次记录的运行，并指出第一处不同
    .long =
        用现在的工具、规则和提示词重放一次记录的运行，并指出第一处不同。

        模型的回复取自记录，因此不发送任何请求。逐字节比较每个请求的正文，以及对每个调用的决定。全部相同时退出码为 0，不同时为 1，无法重放时为 2。
    .run = 会话：id、id 的开头或名称；或 `--save` 写入的文件；省略时为当前会话
    .live_tools = 在项目的副本中再次执行调用，并比较结果
    .save = 把这次运行写入一个文件，此命令可以在任何地方检查它
    .cwd = 在此目录中重放；默认为会话所属的项目，对于文件则为当前目录
    .permission_mode = 那次运行的权限模式：plan、ask、accept-edits、auto 或 yolo
    .allow = 允许与此规则匹配的内容；可多次指定
    .deny = 禁止与此规则匹配的内容；可多次指定
    .agent = 使用此智能体的角色和工具
    .allowed_tools = 只提供这些工具
    .goal = 把任务当作目标；需要那次运行的限制
    .json_schema = 要求回答是符合此模式的 JSON
    .max_turns = 那次运行的回复次数限制
    .max_total_tokens = 那次运行的 token 限制
    .max_budget_usd = 那次运行的金额限制
    .system_prompt = 那次运行的系统提示词
    .system_prompt_file = 包含那次运行的系统提示词的文件
    .append_system_prompt = 系统提示词末尾的文本
    .add_dir = 允许工具访问此目录；可多次指定
    .file = 任务的一个关注文件；可多次指定
help-conversations-stats = 显示存储的统计信息
help-conversations-namespaces = 列出命名空间（项目）及其当前会话
help-conversations-backup = 创建、列出和恢复数据库备份
help-conversations-backup-list = 列出备份，最早的在前
help-conversations-backup-restore = 恢复备份；会先备份现有数据库
    .name = 备份的名称（见 `list`）、路径，或 `newest`
help-context = 查看、重放和编辑发给模型的内容
help-context-show = 逐段查看一个请求：层、归属、消息、token、缓存边界
    .full = 显示全文而不只是开头
    .raw = 逐字节打印请求体；机密会脱敏
help-context-report = 逐层显示一个请求的 token 用在哪里
    .svg = 把会话所有请求的图表写到这个文件
help-context-diff = 显示一个请求到另一个请求有什么变化
    .what = 两个请求的编号；如果不是当前会话，先写会话。只给一个编号时，与它的前一个请求比较；都省略时，比较最后两个
    .request = 把这个请求与前一个比较
    .full = 逐行显示文本的变化
help-context-why = 显示缓存前缀的每次失效：原因、位置和代价
    .request = 只显示这个请求处的失效
help-context-render = 逐字节打印一个请求体
    .long =
        逐字节打印一个请求体。

        没有 `--request` 时，是按当前配置接下来要发送的请求体。
    .json = 每个命令都接受；请求体本来就是 JSON
help-context-recall = 按摘要或通知中给出的 id，打印存储的原始消息
    .message = id 的前 8 位，或完整的 UUID
    .conversation = 会话：id、id 的开头或名称；省略时为当前会话
help-context-compact = 现在就把最新一步之外的内容归档为摘要
    .long =
        现在就把最新一步之外的内容归档为摘要。

        用户在当前轮次中说的话会保留。不会删除任何内容：用 `recall` 可以取回每条消息。
    .focus = 摘要必须保留什么
    .model = 使用的模型，除非已为摘要配置模型
help-context-replay = 按其他策略重放已记录的会话：token、缓存、费用、后悔次数
    .long =
        按其他策略重放已记录的会话：token、缓存、费用、后悔次数

        不发送任何内容：每个请求都按策略重新构建，并用模拟的缓存计价。

        策略由提醒的位置和其他改动组成：

        { "  " }default               按现有配置
        { "  " }none                  没有提醒
        { "  " }front, tail, after-tool-result:N, before-assistant:N, from-end:N, cache-aware
        { "  " }recorded              实际发送的内容，按服务商的计数

        { "  " }+prune:off            不清除
        { "  " }+prune:ZONE           超过这个安全区时清除（64k、0.5）
        { "  " }+prune:ZONE:TO        ……一次清除到安全区的这个比例
        { "  " }+prune:ZONE:TO:KEEP   ……但不动最新的 KEEP 个结果
        { "  " }+compress:round-end, +compress:when-free, +compress:never
        { "  " }+archive:off          不归档
        { "  " }+archive:SHARE        从可用窗口的这个比例起归档
        { "  " }+view:layered, +view:execute

        后悔次数统计被省略后又被要回来的内容：重读同样的行、重跑同样的命令、取回消息。必留项
        统计最后一个请求中还保留多少用户的规则、改动的文件和失败的命令。归档会逐字
        保留必留项：不请求模型写摘要，但会计入写摘要的费用。
    .from_file = 从文件读取会话（`-` 表示标准输入）：导出文件、每行一个的聊天记录、其他智能体的会话；可以是 gzip 压缩的
    .import = 从一个文件或目录下的所有文件读取会话，例如其他智能体的会话
    .policy = 要比较的策略，用逗号分隔
    .model = 采用这个模型的窗口、缓存和价格，写作 `provider/model`；`assumed` 是文档表格中的模型。省略时依次为：配置的、记录的、假定的模型
    .rule = 假定的缓存：anthropic、openai、openai-breakpoints、gemini、deepseek、vllm、llama-cpp、automatic 或 none
    .prices = 读写缓存的价格，以输入价格的倍数表示，如 `0.1/1.25`
    .reminders = 为没有 TODO 列表的记录假定提醒：提醒的 token 数，以及改变提醒的请求所占比例，第一个这样的请求创建提醒
    .bodies = 把每个请求体写到这个目录，名为 `POLICY/0001.json`
    .plot = 把图表（.svg）或含表格和图表的网页（.html）写到这个文件
help-context-test = 检查 `.haft/context-tests/*.toml` 对本项目上下文的断言，不使用模型
    .long =
        检查 `.haft/context-tests/*.toml` 对本项目上下文的断言，不使用模型

        针对某个文件会发送的规则、固定前缀的大小、已记录会话中的失效。全部成立时退出码为 0，有不成立的为 1，文件有误为 2。不运行项目中的任何东西，因此项目不必受信任。
help-context-edit = 编辑发送的内容：移除、固定、隐去或概括消息，以及撤销编辑
    .long =
        编辑发送的内容：移除、固定、隐去或概括消息，以及撤销编辑。

        存储的消息永远不变。每次编辑都会先显示代价：其后的前缀要重新写入服务商的缓存。
help-context-edit-list = 列出每条消息的 token 数、时间、缓存状态，以及移除它的代价
help-context-edit-drop = 移除这些消息；调用与其结果一起移除
help-context-edit-pin = 固定这些消息：不修剪、不压缩、不归档
help-context-edit-mask = 隐去这些消息：只发送一行提及它们的文字
help-context-edit-restore = 恢复这些消息：按原样发送
help-context-edit-summarise = 概括这些消息：用摘要代替它们发送
    .long =
        概括这些消息：用摘要代替它们发送。

        由摘要模型撰写。如果摘要缺少必留内容，就用必留内容的原文代替。
    .ids = 范围，包含两端；调用与结果不会分开
    .text = 摘要文本
    .no_model = 不请求模型：只保留必留内容的原文
help-context-edit-undo = 撤销最近的编辑
    .number = 撤销多少次编辑
help-proxy = 记录并解释另一个智能体发给模型的内容
    .long =
        记录并解释另一个智能体发给模型的内容。

        请求和回复原样通过。每个请求都会记录（不含密钥），并用一行说明：与前一个请求相比有什么变化、缓存应当读到多少、计费多少。如何让智能体经过它：<https://github.com/haft-agent/haft/blob/main/docs/proxy.md>。
    .upstream = 请求发往哪里；省略时为各 API 自己的服务商
    .port = 在 127.0.0.1 上监听的端口；0 表示选一个空闲端口。给出命令时默认为 0
    .command = 要经过代理服务器运行的智能体程序，其 base URL 变量会自动设好
help-serve = 用本地网页查看会话和发送的内容
    .long =
        用本地网页查看会话和发送的内容。

        会话、对话内容、按时间线排列的请求，以及每个请求的分段、请求体、与前一个的差异和原因；包括 haft 自己的、导入的和记录的会话。页面也可以启动运行、编辑发送的内容；已存储的消息从不改变：<https://github.com/haft-agent/haft/blob/main/docs/inspector.md>。
    .port = 在 127.0.0.1 上监听的端口；省略时选一个空闲端口
    .open = 在浏览器中打开页面
help-acp = 通过 Agent Client Protocol 为编辑器服务，使用标准输入和输出
    .long =
        通过 Agent Client Protocol 为编辑器服务，使用标准输入和输出。

        由编辑器启动；各编辑器的设置见 <https://github.com/haft-agent/haft/blob/main/docs/editors.md>。
    .model = 模型，写作 `provider/model`
    .permission_mode = 会话开始时的权限模式，也是编辑器能选择的最宽松的模式：plan、ask、accept-edits 或 auto
    .setup = 在终端上选择服务商和模型，然后结束
help-rules = 管理模型遵循的规则
    .long =
        管理模型遵循的规则。

        规则是 Markdown 文件，放在项目的 `.haft/rules` 和你自己的 `rules` 目录里。front matter 说明何时发送：`alwaysApply: true` 表示每个请求都发送，`globs` 表示碰到匹配的文件后发送，两者都没有则由模型自己读取。
help-rules-list = 列出所有条目及其来源
    .verbose = 同时显示被遮蔽的条目（同名条目优先）和搜索过的目录
help-rules-show = 查看一个条目
help-rules-add = 向本项目添加条目；加 `--user` 则对你的所有项目生效
help-rules-remove = 从 haft 的目录中删除一个条目
help-skills = 管理技能：针对某类任务的说明
help-skills-list = 列出所有条目及其来源
    .verbose = 同时显示被遮蔽的条目（同名条目优先）和搜索过的目录
help-skills-show = 查看一个条目
help-skills-add = 向本项目添加条目；加 `--user` 则对你的所有项目生效
help-skills-remove = 从 haft 的目录中删除一个条目
help-commands = 管理斜杠命令：按名称调用的提示词
    .long =
        管理斜杠命令：按名称调用的提示词。

        `haft run "/review src/main.rs"` 调用命令 `review`。
help-commands-list = 列出所有条目及其来源
    .verbose = 同时显示被遮蔽的条目（同名条目优先）和搜索过的目录
help-commands-show = 查看一个条目
help-commands-add = 向本项目添加条目；加 `--user` 则对你的所有项目生效
help-commands-remove = 从 haft 的目录中删除一个条目
help-agents = 管理子智能体：模型可以委派任务的角色
help-agents-list = 列出所有条目及其来源
    .verbose = 同时显示被遮蔽的条目（同名条目优先）和搜索过的目录
help-agents-show = 查看一个条目
help-agents-add = 向本项目添加条目；加 `--user` 则对你的所有项目生效
help-agents-remove = 从 haft 的目录中删除一个条目
help-worktrees = 列出和删除子智能体工作过的项目副本
    .long =
        列出和删除子智能体工作过的项目副本。

        带 `worktree: true` 的子智能体在 git 工作树中工作；无法合并时，该工作树会保留。
help-worktrees-list = 列出保留的副本，最近使用的在前
help-worktrees-remove = 删除副本；未合并的修改会保存为补丁
    .ids = 它们的 id，或 id 的开头
help-lib = 管理随每个请求发送的库文档
    .long =
        管理随每个请求发送的库文档。

        文档来自按 `domain/user/library` 组织的 git 仓库；除非用 `haft lib proxy` 另行指定，否则使用公共仓库。
help-lib-add = 在本项目中随每个请求发送某个库的文档
    .name = `library` 或 `user/library`
help-lib-remove = 不再发送某个库的文档
    .name = `library` 或 `user/library`
help-lib-list = 列出本项目使用的库及其 token 开销
help-lib-docs = 打印某个库的文档，与发送的内容相同
    .name = `library` 或 `user/library`
help-lib-refresh = 获取最新的文档
help-lib-proxy = 查看或设置文档来源
    .source = 按 `domain/user/library` 组织的 git 仓库的 URL 或路径
help-rag = 管理、查询和提供文档集合（RAG）
help-rag-list = 列出集合
help-rag-add = 添加由目录组成的集合，或由服务器应答的集合
    .name = 名称：ASCII 字母、数字、`-` 和 `_`
    .folders = 目录
    .url = 聊天服务器的 URL，写到 `/v1` 为止
    .model = 与 `--url` 合用：发给服务器的模型名称，省略时用集合的名称。用于目录：撰写 `haft rag serve` 答案的模型，写作 `provider/model`
    .api_key_env = 保存服务器密钥的环境变量
    .description = 用一句话告诉模型集合的内容
help-rag-remove = 删除集合及其索引，不删除目录
help-rag-query = 像模型那样查询集合
    .name = 集合
    .question = 问题
    .top = 段落数量上限
help-rag-serve = 把集合作为聊天服务器的模型，提供给本机的其他程序
    .names = 集合；省略时为所有由目录组成的集合
    .model = 根据段落撰写答案的模型，写作 `provider/model`，代替各集合自己的模型。没有模型时，答案就是段落
    .listen = 监听的本地地址；端口 0 表示选一个空闲端口
    .token_env = 保存客户端必须发送的令牌的环境变量；省略时自动生成并打印
help-useful = 管理留在会话上下文中的文件片段
help-useful-list = 列出上下文中的文件片段
help-useful-show = 显示文件片段的当前内容，与模型看到的相同
help-useful-add = 添加文件片段：其当前内容随每个请求发送
    .path = 文件
    .lines = 行号，如 `10-20` 或 `7`
    .description = 简述为何重要
help-useful-remove = 从上下文中移除文件片段，不删除文件
help-notes = 管理对本项目目录和文件的笔记
help-notes-list = 列出本项目的所有笔记
help-notes-show = 显示某个路径、其上级目录以及其下所有内容的笔记
help-notes-add = 为目录或文件添加笔记；模型在那里工作时会看到
    .text = 笔记
help-notes-remove = 删除笔记
    .id = id，见 `list`
help-tools = 列出和查看工具，添加你自己的程序
help-tools-list = 列出工具、其来源，以及每个工具在每个请求中占多少 token
    .verbose = 同时显示被遮蔽的条目（同名条目优先）和搜索过的目录
help-tools-show = 按模型看到的样子显示工具：描述、schema、示例、别名；外部工具则显示其帮助
    .name = 工具名称或其别名
help-tools-add = 添加你自己的程序，供模型作为命令运行；加 `--user` 则对你的所有项目生效
    .name = 文件名，可以不带扩展名，也可以带所用语言的扩展名，如 `lint.py`
    .file = 要复制的程序；省略时读标准输入
help-tools-remove = 从 haft 的目录中删除程序
    .name = 文件名
help-tools-stats = 显示会话中每个工具的调用次数、错误数和结果 token 数
help-mcp = 管理 MCP 服务器：列出、添加、删除、测试和登录
help-mcp-list = 列出本项目和你自己的 MCP 服务器，不启动它们
    .cwd = 项目目录
help-mcp-add = 把 MCP 服务器添加到 config.toml，并测试
    .long =
        把 MCP 服务器添加到 config.toml，并测试。

        程序：`haft mcp add NAME -- COMMAND ARGS…`。服务：`haft mcp add NAME --url URL`。
    .name = 服务器名称
    .command = 程序及其参数，写在 `--` 之后
    .url = 服务的 URL
    .transport = 传输方式；省略时由其他参数推断。使用 `http` 时，URL 可以写在命令的位置
    .transport-value-stdio = 程序，通过标准输入和输出
    .transport-value-http = 服务，通过 HTTP
    .env = 程序的环境变量，写作 `KEY=VALUE`
    .header = 每个请求的请求头，写作 `Name: value`
    .bearer_token_env = 保存 bearer 令牌的环境变量
    .folder = 程序运行的目录；省略时为项目目录
    .timeout = 调用没有输出时的超时，以秒计
    .permission = 没有规则匹配时如何处理其调用：allow、ask 或 deny
    .no_test = 只添加，不测试
help-mcp-remove = 从 config.toml 中删除 MCP 服务器
    .name = 服务器名称
help-mcp-test = 启动 MCP 服务器，显示其工具、提示词和资源，并缓存列表
    .name = 服务器名称；省略时为所有服务器
    .cwd = 项目目录
help-mcp-login = 在浏览器中登录 MCP 服务器
    .name = 服务器名称
help-mcp-serve = 让 haft 充当 MCP 服务器，以便其他智能体向它派发任务
    .long =
        让 haft 充当 MCP 服务器，以便其他智能体向它派发任务。

        通过标准输入和输出，或用 `--http` 通过 HTTP。
    .http = 在这个地址上通过 HTTP 提供服务；省略地址时为 127.0.0.1 的空闲端口。bearer 令牌取自 `HAFT_MCP_TOKEN`，否则自动生成并打印
    .model = 任务没有指定模型时使用的模型，写作 `provider/model`
    .permission_mode = 任务没有指定时的权限模式，也是任务能使用的最宽松的模式：plan、ask、accept-edits 或 auto
    .cwd = 任务没有指定时的项目目录
help-changes = 显示会话改动了哪些文件
    .diff = 按顺序显示每次调用改动了什么
    .net = 显示每个文件与会话开始前的差异，不含已撤销的部分
    .content = 在 JSON 中加入每个文件的最新内容
help-undo = 撤销文件改动
    .long =
        撤销文件改动。

        默认撤销最近一次改动文件的调用；也可以用选项指定另一次调用、一条消息或全部。只会撤销 haft 改动的内容。之后被别的程序改过的文件保持原样并给出报告，此时退出码为 3。
    .call = 撤销这次调用的改动，写法与 `haft changes` 显示的一致
    .message = 撤销这条消息的改动：模型的一次回复，或从你的一条提示词起，到下一条提示词之前
    .session = 撤销会话的全部改动
    .dry_run = 只显示将会做什么
help-redo = 重做已撤销的文件改动
    .dry_run = 只显示将会做什么
help-rewind = 把会话回退到某条消息，可以连同文件一起
    .long =
        把会话回退到某条消息，可以连同文件一起。

        原会话保留；截止到该消息的分叉成为当前会话。之后被别的程序改过的文件保持原样并给出报告，此时退出码为 3。
    .message = 消息，写法与 `haft conversations show` 显示的一致。如果是你的提示词，则会移除，以便重新输入；如果是模型的回复，则连同其调用结果一起保留
    .files = 同时撤销此后的文件改动
    .dry_run = 只显示将会做什么
help-permissions = 列出、添加、删除和解释权限规则
help-permissions-list = 列出权限模式和生效的规则，最严格的在前
help-permissions-add = 把权限规则添加到你的 config.toml
    .long =
        把权限规则添加到你的 config.toml。

        规则写作 `tool` 或 `tool(pattern)`：`execute_command(git status:*)` 写出命令开头的词，`:*` 表示后面可以是任意词；`write_to_file(src/**)` 用 glob 指定文件。
    .rules = 规则
    .ask = 匹配的操作一律询问，即使本来允许
    .deny = 拒绝匹配的操作
help-permissions-remove = 从你的 config.toml 中删除权限规则
    .rules = 规则，写法与 `list` 显示的一致
    .allow = 从允许规则中删除
    .ask = 从询问规则中删除
    .deny = 从拒绝规则中删除
help-permissions-explain = 解释某个命令行或调用是否会被允许以及原因，不实际运行
    .command = 命令行
    .tool = 改为解释对这个工具的调用；`mcp__SERVER__TOOL` 是 MCP 服务器的工具
    .args = 调用的参数，写作 JSON 对象；除 MCP 服务器的工具外必须给出
    .permission_mode = 按这个模式解释：plan、ask、accept-edits、auto 或 yolo
    .cwd = 针对这个目录解释
help-sandbox = 查看沙箱状态，测试沙箱
help-sandbox-status = 查看沙箱状态：使用的是哪一层，以及为何没有更强的
help-sandbox-test = 用所有已知的逃逸方法测试沙箱，并显示哪些被拦截
    .long =
        用所有已知的逃逸方法测试沙箱，并显示哪些被拦截。

        每次尝试都使用自己的文件，不会造成损害。命名空间可用且没有一次尝试成功时退出码为 0，否则为 1；Landlock 没有封住的会列出。
help-hooks = 列出钩子：haft 在运行的特定时刻执行的命令
    .long =
        列出钩子：haft 在运行的特定时刻执行的命令。

        钩子来自你的配置和项目。
help-hooks-list = 列出你的钩子和项目的钩子、各自的来源，以及是否会运行
help-models = 列出、查看、添加和测试模型
help-models-list = 列出你添加的模型，以及你有密钥的内置模型
    .all = 包括没有密钥的内置模型
help-models-show = 查看模型的设置，以及每一项的来源
    .name = 模型，写作 `provider/model`
help-models-roles = 列出模型角色和各角色的模型
help-models-add = 把模型添加到 config.toml；服务商如果是新的，也一并添加
    .name = 模型，写作 `provider/model`
    .api = 服务商的接口协议：openai-chat、openai-responses、anthropic 或 gemini
    .base_url = 服务商的 base URL
    .api_key_env = 保存服务商密钥的环境变量
    .api_key_file = 保存服务商密钥的文件
    .api_key_command = 打印服务商密钥的命令
    .context_window = 上下文窗口：输入和输出 token 合计
    .max_output_tokens = 单次回复的最大 token 数
    .price_input = 输入价格，美元 / 百万 token
    .price_cached_input = 从缓存读取的输入的价格
    .price_cache_write = 写入缓存的输入的价格
    .price_output = 输出价格
    .tokenizer_factor = `o200k` 的一个 token 相当于该模型的多少 token
    .main = 设为主模型
help-models-test = 用一个很小的请求测试模型
    .name = 模型，写作 `provider/model`；省略时为主模型
    .cache = 发送两个长到能用上前缀缓存的请求，并报告第二个从缓存读了多少
help-count = 统计文件的 token 数
    .files = 文件；`-` 表示标准输入
    .model = 按这个模型统计，写作 `provider/model`
help-trust = 信任一个目录，或显示它会运行什么
    .long =
        信任一个目录，或显示它会运行什么。

        受信任目录中的指令文件会发给模型，其中配置的内容（钩子、MCP 服务器、工具）可以运行。
    .folder = 目录；省略时为当前目录所在的项目
    .show = 只显示是否受信任，以及会运行什么
    .revoke = 撤销信任
    .json = 与 `--show` 合用：输出 JSON
help-config = 查看和修改配置
help-config-show = 显示所有生效的设置；配置没有设置的，说明原因
help-config-get = 打印某个键的生效值，或其下的所有值
help-config-set = 在你的 config.toml 中设置一个值，保留注释和排版
    .long =
        在你的 config.toml 中设置一个值，保留注释和排版。

        值是 TOML；不是 TOML 的当作字符串。只有修改后整个文件仍然有效才会写入。
    .value = 值
help-config-unset = 从你的 config.toml 中删除一个值或一个表
help-config-edit = 用 `$VISUAL` 或 `$EDITOR` 打开你的 config.toml；有效之后才会写入
help-config-path = 打印你的 config.toml 的路径
help-config-schema = 打印 config.toml 的 JSON Schema，供编辑器和检查工具使用
help-doctor = 检查存储和环境，并修复能修复的
    .long =
        检查存储和环境，并修复能修复的。

        存储完好时退出码为 0，与网络无关；发现损坏时为 1。
    .salvage = 导出所有还能读取的会话，即使数据库已经打不开：每个会话一个文件，写到这个目录，或数据库旁的新目录
    .newer = 向仓库查询有没有新版本；也可以给出别的地址，它返回含 `tag_name` 的 JSON。没有这个选项时不会查询
help-logs = 查看或跟踪日志
    .long =
        查看或跟踪日志。

        显示最近一次运行：加载和跳过的内容、请求、工具调用、批准，以及失败的内容。日志在 `state/log` 中，每天一个文件，保留两周；`log_level` 决定记录多少。日志不含提示词、参数、文件内容和密钥。
    .run = 要显示的运行，用标识或其开头指定；默认为最近一次
    .runs = 列出日志中的运行
    .all = 显示所有运行和命令的日志行
    .follow = 持续显示所有运行的日志，直到按 Ctrl-C
    .level = 只显示这个级别及更严重的行：error、warn、info、debug 或 trace
    .lines = 只显示最新的若干行，行数为此值
    .json = 输出 JSON，每行一个对象
help-events = 说明供程序读写的 JSON 事件
    .long =
        说明供程序读写的 JSON 事件。

        `--output-format stream-json` 打印事件，`--input-format stream-json` 读取事件。
    .json = 输出 JSON schema
help-man = 显示 man 手册，或写到目录
    .command = 命令，如 `conversations fork`；省略时为 haft 本身
    .dir = 把所有命令的手册写到这个目录，如 `~/.local/share/man/man1`
help-completions = 打印 shell 补全脚本
    .long =
        打印 shell 补全脚本。

        可以补全会话、模型、智能体、规则和配置的键。bash：在 `~/.bashrc` 中写 `source <(haft completions bash)`；zsh：在 `~/.zshrc` 中写同样的内容；fish：在其 `config.fish` 中写 `haft completions fish | source`。
    .shell = shell 的名称
