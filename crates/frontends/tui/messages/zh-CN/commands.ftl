# What `/help` lists.

commands-help = 显示快捷键和命令
commands-context = 显示上下文窗口的占用；/context edit
commands-inspect = 在浏览器中查看这个会话及其请求
commands-cost = 显示目前的 token 和费用
commands-commit = 提交已暂存的修改，提交说明由模型撰写：/commit [-a] [--dry-run] [提示]
commands-compact = 立即归档较早的轮次：/compact [要保留的内容]
commands-clear = 开始新会话
commands-resume = 继续另一个会话
commands-rewind = 回到之前的消息
commands-undo = 撤销最近一次文件修改
commands-redo = 重做已撤销的修改
commands-diff = 显示本会话对文件的修改
commands-model = 切换模型
commands-mode = 选择权限模式：/mode、/mode plan [提示]
commands-files = 列出文档和关注文件；/files add、remove、clear
commands-view = 选择请求的布局：/view、/view execute、/view layered
commands-conversations = 列出会话
commands-agents = 列出子智能体的角色
commands-commands = 列出你自己的命令
commands-rules = 列出规则
commands-mcp = 列出 MCP 服务器
commands-models = 列出已配置的模型
commands-permissions = 列出权限规则
commands-quit = 退出

## Keys
commands-key-enter = 发送
commands-key-alt-enter = 换行，也可用 Ctrl-J
commands-key-esc = 中断；发送排队的消息
commands-key-esc-esc = 回到之前的消息
commands-key-shift-tab = 下一个权限模式
commands-key-ctrl-c = 中断、清空或退出
commands-key-ctrl-d = 没有输入时退出
commands-key-up-down = 浏览历史输入
commands-key-ctrl-r = 搜索历史输入
commands-key-tab = 补全
commands-key-ctrl-o = 查看结果和思考过程
commands-key-ctrl-v = 附上剪贴板中的图片
commands-key-ctrl-t = 显示或隐藏 TODO 列表
commands-key-ctrl-g = 在外部编辑器中编辑
commands-key-readline = 编辑，与 shell 相同
commands-key-ctrl-l = 重绘
commands-key-ctrl-z = 挂起；`fg` 恢复
commands-trust = 显示会读取和运行的内容，然后信任此目录
