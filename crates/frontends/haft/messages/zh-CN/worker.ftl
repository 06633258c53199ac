# `haft worker`.

worker-sandbox-off = 工作节点运行他人排队的任务，因此必须开启沙箱；请删除 `sandbox.mode = "off"`
worker-folder-not-text = `{ $folder }`：路径不是 UTF-8 文本
worker-starts = haft：工作节点 { $name }，{ $slots } 个槽位
worker-cannot-listen = 无法监听 { $address }：{ $error }
worker-metrics = haft：指标见 http://{ $address }/metrics
worker-drains = haft：不再接受新任务；再次中断则移交正在运行的任务
worker-hands-over = haft：正在移交任务
worker-abandons = haft：任务未能及时移交；租约到期后由其他工作节点接手
worker-task-open = haft：任务 { $id } 尚未结束，状态为 { $state }
worker-bad-webhook = `worker.webhook`：{ $error }
worker-no-authorization = `worker.webhook_authorization_env`：变量 { $name } 未设置
worker-bad-task = 应为任务编号，或 `next`
