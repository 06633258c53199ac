# `haft serve`.

serve-cannot-listen = 无法监听 `{ $address }`：{ $error }；去掉 `--port` 可使用空闲端口
serve-listening =
    { $url }
    只有在本机打开此地址才能看到页面。按 Ctrl-C 停止。
serve-cannot-open = 无法启动 `{ $program }`：{ $error }；请自行打开该地址
