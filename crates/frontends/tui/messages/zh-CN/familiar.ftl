# Answers to slash commands that other agents have.

familiar-instead = 在 haft 中：{ $input }
familiar-login = 密钥取自环境变量或配置：见 `haft models list`，或用 `haft models add` 添加模型
familiar-theme = haft 使用终端的颜色；NO_COLOR=1 关闭颜色
familiar-keys = /help 列出快捷键；Alt-Enter 或 Ctrl-J 换行，Ctrl-G 打开外部编辑器
familiar-editor = Ctrl-G 打开外部编辑器（VISUAL 或 EDITOR）
familiar-details = Ctrl-O 查看任意结果或思考过程，可搜索
familiar-effort = 在配置中设置该模型的 `extra_body`：[models."PROVIDER/MODEL"] extra_body = {"{"} reasoning_effort = "high" {"}"}
familiar-todos = Ctrl-T 显示或隐藏 TODO 列表
familiar-memory = 指令来自项目中的 AGENTS.md 或 CLAUDE.md，以及规则：/rules
familiar-add-dir = 请用 --add-dir DIR 启动 haft
familiar-export = 用 `haft conversations export ID` 导出会话；/conversations 列出会话
familiar-fork = 退出后用 `haft -c --fork-session` 在副本中继续；/rewind 会保留回退前的会话
familiar-review = 退出后运行 `haft review`
familiar-map = 模型会自行列出和搜索文件，无需建立索引；/files 可指定它要关注的文件
familiar-web = 在消息中写出网址，模型会自行获取
familiar-image = 粘贴图片路径，按 Ctrl-V 使用剪贴板中的图片，或用 --image shot.png 启动 haft
familiar-test = 用 !command 运行，或让模型运行
familiar-prompts = 按名称调用的提示词就是命令（/commands）；MCP 服务器的提示词以 /mcp__ 开头
familiar-bug = `haft doctor` 检查存储和环境，`haft logs` 显示日志
familiar-upgrade = haft 从不自行更新；`haft --version` 显示当前版本
