# `/init`.

init-help = write an AGENTS.md from what is found in the project
init-quote = `/init` reads the project and writes AGENTS.md: about { $tokens } tokens, ${ $money }
init-quote-unknown = `/init` reads the project and writes AGENTS.md: about { $tokens } tokens; the model has no price
