# The command line itself.

cli-not-in-build = `haft { $command }` is not in this build; build it with `--features { $feature }`
cli-not-positive = expected a number above 0
