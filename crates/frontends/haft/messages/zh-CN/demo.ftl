# `haft demo`.

demo-project = { $project } 中有一个带缺陷的小项目。它的测试结果：
demo-task = 任务：{ $task }
demo-test-after = 现在的测试结果：
demo-kept = 示例项目及其会话保留在 { $folder } 中。
demo-tokens = 最后一次请求的 token 都用在了哪里：
demo-usage = { $requests } 次请求：输入 { $input } token，其中 { $cached }% 来自缓存，输出 { $output }
demo-cost = ，按演示用的虚构价格为 ${ $cost }
demo-end = 。
demo-no-folder = 无法在 `{ $folder }` 中创建示例项目：{ $error }；请将 `TMPDIR` 设为可写的目录
demo-no-sandbox = 演示将继续：命令和示例项目都是演示自带的。
demo-keys = Enter = 是，n = 否：{" "}
demo-answered = 这里无法询问任何人，因此由演示代为回答：是。
demo-refused = 你拒绝了这次编辑，因此没有修改任何内容。
