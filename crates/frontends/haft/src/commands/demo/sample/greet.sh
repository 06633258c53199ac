#!/bin/sh
# Greets everyone named on the command line, one line each.

greeting="Hello"

greet_all() {
    for name in $@; do
        echo "$greeting, $name!"
    done
}

greet_all "$@"
