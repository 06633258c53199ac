"""components.py SBOM LICENCES [FEATURES]: what the binary is made of, from `cargo tree`, `cargo metadata` and the sources cargo has fetched.

SBOM is CycloneDX 1.5 (JSON); LICENCES has the licence of every third-party crate with its text. Both are sorted and hold no
times but SOURCE_DATE_EPOCH, so that they are the same for the same lock file. FEATURES are those the binary was built with
beside the default ones, separated by commas.
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
PLATFORM = "x86_64-unknown-linux-gnu"
MIT = """Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation
files (the "Software"), to deal in the Software without restriction, including without limitation the rights to use, copy,
modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software
is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES
OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE
LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN
CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE."""


def cargo(*arguments):
    return subprocess.run(["cargo", *arguments], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def built(features):
    """The packages that the binary links or that run while it is built, and what each depends on."""
    # `cargo metadata` knows only what the whole workspace needs with every feature.
    options = ["-p", "haft", "-e", "normal,build", "--target", PLATFORM, "--features", features]
    lines = cargo("tree", "--locked", *options, "--prefix", "none", "--no-dedupe", "-f", "{p}").splitlines()
    chosen = {tuple(line.split()[:2]) for line in lines}
    data = json.loads(cargo("metadata", "--locked", "--format-version", "1", "--filter-platform", PLATFORM))
    packages = [package for package in data["packages"] if (package["name"], f"v{package['version']}") in chosen]
    seen = {package["id"] for package in packages}
    nodes = {node["id"]: node for node in data["resolve"]["nodes"]}
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


def own_texts(package):
    """What the package itself holds, with what is vendored in it."""
    folder = pathlib.Path(package["manifest_path"]).parent
    files = [path for path in folder.rglob("*") if path.name.upper().startswith(NAMES) and path.suffix != ".rs" and path.is_file()]
    # What is vendored may be had under another licence, too, which is not the one it is used under here.
    files = [path for path in files if path.parent == folder or path.name != "COPYING" or not (path.parent / "LICENSE").exists()]
    return list(dict.fromkeys(path.read_text(errors="replace").strip() for path in sorted(files)))


def usual_text(package, known):
    """For a package that holds none: what another one of its repository holds, or the text its licence always has."""
    same = [other for other in known.values() if other["license"] == package["license"] and other["texts"]]
    siblings = [other for other in same if other["repository"] == package["repository"]]
    if package["repository"] and siblings:
        return siblings[0]["texts"]
    if "Apache-2.0" in package["license"]:
        return [(ROOT / "LICENSE-APACHE").read_text().strip()]
    if package["license"] == "MIT":
        holders = ", ".join(package["authors"]) or f"the authors of {package['name']}"
        return [f"Copyright (c) {holders}\n\n{MIT}"]
    # The Mozilla licence names nobody.
    if package["license"] == "MPL-2.0" and same:
        return same[0]["texts"]
    sys.exit(f"components: {package['name']} holds no text of its licence, {package['license']}, and none is known")


def licences(packages):
    third = [package for package in packages if package["source"]]
    known = {(package["name"], package["version"]): package | {"texts": own_texts(package)} for package in third}
    by_text = {}
    for package in third:
        name = f"{package['name']} {package['version']} ({package['license'] or package['license_file']})"
        for text in known[package["name"], package["version"]]["texts"] or usual_text(package, known):
            by_text.setdefault(text, []).append(name)
    lines = [f"haft contains these {len(third)} crates of third parties.", ""]
    for text, names in sorted(by_text.items(), key=lambda entry: (entry[1], entry[0])):
        lines += ["=" * 100, *names, "-" * 100, text, ""]
    return "\n".join(lines)


if __name__ == "__main__":
    os.environ.setdefault("SOURCE_DATE_EPOCH", "0")
    packages, edges = built(sys.argv[3] if len(sys.argv) > 3 else "")
    pathlib.Path(sys.argv[1]).write_text(json.dumps(sbom(packages, edges), indent=1) + "\n")
    pathlib.Path(sys.argv[2]).write_text(licences(packages))
