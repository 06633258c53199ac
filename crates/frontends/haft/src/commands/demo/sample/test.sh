#!/bin/sh
# Checks greet.sh. Prints what went wrong and exits with 1 if anything did.

failed=0

check() {
    expected=$1
    shift
    found=$(./greet.sh "$@")
    if [ "$found" = "$expected" ]; then
        echo "ok   greet.sh $*"
    else
        echo "FAIL greet.sh $*"
        echo "  expected: $expected"
        echo "  found:    $found"
        failed=1
    fi
}

check "Hello, Ada!" Ada
check "Hello, Ada Lovelace!" "Ada Lovelace"
exit $failed
