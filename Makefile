# `make install` installs a binary that is already built, with man pages and completions; `make uninstall` removes exactly that.
# docs/installation.md explains the variables. haft itself is built by cargo; `make build` calls it for the profile that ships, with packaging/build.

PREFIX = /usr/local
DESTDIR =
BINARY = target/dist/haft

.PHONY: build install uninstall stage

build:
	packaging/build

install:
	packaging/install "$(BINARY)" "$(DESTDIR)" "$(PREFIX)" make

uninstall:
	packaging/uninstall "$(DESTDIR)" "$(PREFIX)"

# What `cargo deb` packs.
stage:
	rm -rf target/stage
	packaging/install "$(BINARY)" target/stage /usr deb
	python3 packaging/components.py /dev/null target/stage/usr/share/doc/haft/THIRD-PARTY-LICENCES.txt
