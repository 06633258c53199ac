# `haft logs`.

logs-none = nothing is logged in { $folder }
logs-unknown-run = the log has no run `{ $run }`; `haft logs --runs` lists the runs
logs-several-runs = `{ $run }` matches several: { $ids }; give more of the id
logs-column-run = RUN
logs-column-started = STARTED
logs-column-outcome = OUTCOME
logs-column-problems = PROBLEMS
logs-column-model = MODEL
logs-column-folder = FOLDER
