#!/usr/bin/env bash
# Starts a PostgreSQL server for tests and prints its address: start.sh FOLDER
# It runs as nobody (a server refuses root), keeps its data in FOLDER, and listens on a socket there only. `kill` the process whose
# number is in FOLDER/pid to stop it. Installs the server where it is missing and that is possible; exit code 3 where it is not.
set -euo pipefail
folder=$1

binaries() {
    local found
    for found in /usr/lib/postgresql/*/bin /usr/local/pgsql/bin /usr/pgsql-*/bin; do
        [ -x "$found/initdb" ] && echo "$found" && return
    done
    command -v initdb >/dev/null && dirname "$(readlink -f "$(command -v initdb)")"
}

if [ -z "$(binaries)" ]; then
    (timeout 300 apt-get install -y -qq postgresql >/dev/null 2>&1) || true
fi
bin=$(binaries) || true
if [ -z "$bin" ]; then
    echo "postgres: no server here, and it cannot be installed" >&2
    exit 3
fi

as_nobody() {
    if [ "$(id -u)" -eq 0 ]; then
        setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
    else
        "$@"
    fi
}

mkdir -p "$folder"
[ "$(id -u)" -eq 0 ] && chown 65534:65534 "$folder"
chmod 700 "$folder"
cd "$folder"
[ -d data ] || as_nobody env HOME="$folder" "$bin/initdb" -D "$folder/data" -U haft -A trust --no-sync -E UTF8 --locale=C >"/dev/null"
# Tests of the store do not pull the plug of this server: its syncs would only cost time.
as_nobody env HOME="$folder" "$bin/postgres" -D "$folder/data" -k "$folder" -c listen_addresses= -c fsync=off -c max_connections=300 \
    >"/dev/null" 2>&1 </dev/null &
for _ in $(seq 100); do
    if as_nobody "$bin/pg_isready" -q -h "$folder" -U haft -d postgres; then
        head -n 1 data/postmaster.pid >pid
        echo "postgres://haft@localhost/postgres?host=$folder"
        exit 0
    fi
    sleep 0.1
done
echo "postgres: the server does not answer" >&2
exit 1
