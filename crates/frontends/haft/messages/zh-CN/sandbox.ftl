# `haft sandbox`.

sandbox-writable = 可写：{ $folders }，以及私有的 /tmp
sandbox-hidden = 隐藏：{ $paths }
sandbox-readable = 仍可读取：{ $paths }
sandbox-network-none = 网络：无
sandbox-network-hosts = 网络：`[sandbox] network` 中的主机，经由代理服务器
sandbox-network-all = 网络：不受限制
sandbox-only-linux = 没有可测试的沙箱：haft 只在 Linux 上有沙箱
sandbox-test-ended = 测试以 { $exit } 结束：{ $said }
sandbox-test-unavailable = { $layer }：不可用：{ $why }
sandbox-test-result = { $layer }：{ $refused } 次逃逸尝试被拒绝，{ $worked } 项正常操作可用
sandbox-test-wrongly-refused = 正常操作被误拒
sandbox-test-noticed = 在外部察觉到：{ $noticed }
sandbox-test-impossible = 此处无法测试（{ $group }，{ $count }）：{ $names }
sandbox-test-not-held = 此层无法阻止（{ $group }，{ $count }）：{ $names }
sandbox-test-open = 未被阻止
