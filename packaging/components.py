"""components.py SBOM LICENCES: what the binary is made of, from `cargo metadata` and the sources cargo has fetched.

SBOM is CycloneDX 1.5 (JSON); LICENCES has the licence of every third-party crate with its text. Both are sorted and hold no
times but SOURCE_DATE_EPOCH, so that they are the same for the same lock file.
"""

import datetime
import hashlib
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
NAMES = ("LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE")


def metadata():
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", "x86_64-unknown-linux-gnu"]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)


def built(data):
    """The packages that the default build of the binary links or runs while it is built."""
    nodes = {node["id"]: node for node in data["resolve"]["nodes"]}
    start = next(package["id"] for package in data["packages"] if package["name"] == "haft")
    seen, open_ends = {start}, [start]
    while open_ends:
        for dependency in nodes[open_ends.pop()]["deps"]:
            kinds = {kind["kind"] for kind in dependency["dep_kinds"]}
            if kinds != {"dev"} and dependency["pkg"] not in seen:
                seen.add(dependency["pkg"])
                open_ends.append(dependency["pkg"])
    packages = [package for package in data["packages"] if package["id"] in seen]
    edges = {
        package["id"]: sorted(d["pkg"] for d in nodes[package["id"]]["deps"] if d["pkg"] in seen) for package in packages
    }
    return sorted(packages, key=lambda package: (package["name"], package["version"])), edges


def reference(package):
    return f"pkg:cargo/{package['name']}@{package['version']}"


def sbom(packages, edges):
    by_id = {package["id"]: package for package in packages}
    stamp = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    components = []
    for package in packages:
        component = {
            "type": "library",
            "bom-ref": reference(package),
            "name": package["name"],
            "version": package["version"],
            "purl": reference(package),
        }
        if package["license"]:
            component["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
        if package["source"]:
            component["externalReferences"] = [{"type": "distribution", "url": package["source"]}]
        components.append(component)
    binary = next(package for package in packages if package["name"] == "haft")
    serial = hashlib.sha256((ROOT / "Cargo.lock").read_bytes()).hexdigest()
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{serial[:8]}-{serial[8:12]}-5{serial[13:16]}-8{serial[17:20]}-{serial[20:32]}",
        "version": 1,
        "metadata": {
            "timestamp": stamp.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {"type": "application", "bom-ref": "haft", "name": "haft", "version": binary["version"]},
        },
        "components": components,
        "dependencies": [
            {"ref": reference(package), "dependsOn": sorted({reference(by_id[edge]) for edge in edges[package["id"]]})}
            for package in packages
        ],
    }


def licence_texts(package):
    folder = pathlib.Path(package["manifest_path"]).parent
    files = [path for path in folder.iterdir() if path.is_file() and path.name.upper().startswith(NAMES)]
    return [path.read_text(errors="replace").strip() for path in sorted(files)]


def licences(packages):
    by_text, without = {}, []
    third = [package for package in packages if package["source"]]
    for package in third:
        name = f"{package['name']} {package['version']} ({package['license'] or package['license_file']})"
        texts = licence_texts(package)
        if not texts:
            without.append(name)
        for text in texts:
            by_text.setdefault(text, []).append(name)
    lines = [f"haft contains these {len(third)} crates of third parties.", ""]
    for text, names in sorted(by_text.items(), key=lambda entry: (entry[1], entry[0])):
        lines += ["=" * 100, *names, "-" * 100, text, ""]
    lines += ["=" * 100, "Crates whose package holds no text of their licence, which is named behind each:", *without, ""]
    return "\n".join(lines)


if __name__ == "__main__":
    os.environ.setdefault("SOURCE_DATE_EPOCH", "0")
    packages, edges = built(metadata())
    pathlib.Path(sys.argv[1]).write_text(json.dumps(sbom(packages, edges), indent=1) + "\n")
    pathlib.Path(sys.argv[2]).write_text(licences(packages))
