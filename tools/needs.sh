#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by ./demo and ./check: `need THING=PACKAGE...` installs the packages whose THING is missing. A THING is a command,
# a file (an absolute path), python3-venv or python3-numpy. Where need() may not install, it prints the line to type and ends the script.
need() {
    local missing=() pair thing
    for pair in "$@"; do
        thing=${pair%%=*}
        case $thing in
        python3-venv) python3 -c 'import venv, ensurepip' 2>/dev/null && continue ;;
        python3-numpy) python3 -c 'import numpy' 2>/dev/null && continue ;;
        /*) [ -e "$thing" ] && continue ;;
        *) command -v "$thing" >/dev/null && continue ;;
        esac
        missing+=("${pair#*=}")
    done
    [ ${#missing[@]} -eq 0 ] && return 0

    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        as_root=(sudo -n)
    fi
    if command -v apt-get >/dev/null && { [ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null; }; then
        echo "installing with apt-get: ${missing[*]}"
        if "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive bash -c \
            'apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@"' _ "${missing[@]}" >/dev/null; then
            return 0
        fi
        echo "the installation failed" >&2
    fi
    echo "needed, but not there: ${missing[*]}. Type this, then start again:" >&2
    echo "    sudo apt-get update && sudo apt-get install -y ${missing[*]}" >&2
    exit 1
}
