#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Checks that the shared library exports sinter_* and nothing else, and that the runtime library needs nothing of what
# builds engines: a program that uses it links against it alone.
set -u
build=${1:-build}
status=0

exported=$(nm -D --defined-only "$build/libsinter.so" | awk '{ print $3 }')
foreign=$(grep -v '^sinter_' <<<"$exported" | grep -v '^$')
if [ -n "$foreign" ]; then
    echo "exported, but not sinter_*:"
    echo "$foreign"
    status=1
fi
echo "$(grep -c '^sinter_' <<<"$exported") symbols exported"

# All of the runtime library in one program, with nothing beside it but the C library.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
echo 'int main(void) { return 0; }' >"$scratch/main.c"
if ! ${CC:-gcc} "$scratch/main.c" -o "$scratch/main" -Wl,--whole-archive "$build/libsinter_runtime.a" \
    -Wl,--no-whole-archive -lm -lpthread -ldl; then
    echo "the runtime library needs something of the folders left of engine (above)"
    status=1
else
    echo "the runtime library links alone"
fi

# A library has no mutable state of its own: writable data would be shared between everybody in the process. The list of
# thread pools (cpu/threads.c) is to be shared: engines of a process must not keep pools that fight for the cores.
state=$(nm --format=sysv "$build/libsinter.a" 2>/dev/null | awk -F'|' '$7 ~ /^(\.data|\.bss|\.tdata|\.tbss)(\.|$)/ \
    && $7 !~ /^\.data\.rel\.ro/ && $4 ~ /OBJECT|TLS/ \
    && $1 !~ /^shared_(first|lock) *$/ { print $7, $1 }' | sort -u)
if [ -n "$state" ]; then
    echo "writable data in the library (a table must be const):"
    echo "$state"
    status=1
fi
exit $status
