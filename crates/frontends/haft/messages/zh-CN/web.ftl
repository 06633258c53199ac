# The web tools.

web-no-key = 搜索服务没有密钥：未设置环境变量 `{ $variable }`；请导出该变量，或修改 `web.api_key_env`
