# A form of an MCP server.

form-subject = { $from } 请求你填写信息。你输入的内容会发给它；请勿输入密码。
form-confirm = 只需确认：请按 Enter
form-confirm-keys = Enter 接受，Esc 拒绝，Ctrl-C 取消调用
form-field-keys = { $at }/{ $count }：Enter 回答，Esc 拒绝，Ctrl-C 取消调用
