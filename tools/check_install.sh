#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs into a scratch folder and uses the result as a stranger would: through the CMake package, through pkg-config
# where that is there, and from C++.
set -eu
build=$(cd "${1:-build}" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cmake --install "$build" --prefix "$scratch/prefix" >/dev/null

cat >"$scratch/main.c" <<'TEXT'
#include <sinter/status.h>
#include <stdio.h>
int main(void) { return puts(sinter_status_text(SINTER_OK)) < 0; }
TEXT
cat >"$scratch/CMakeLists.txt" <<'TEXT'
cmake_minimum_required(VERSION 3.18)
project(stranger LANGUAGES C)
find_package(sinter 0.1 REQUIRED)
foreach(kind IN ITEMS sinter static runtime)
    add_executable(with_${kind} main.c)
    target_link_libraries(with_${kind} PRIVATE sinter::${kind})
endforeach()
TEXT
cmake -S "$scratch" -B "$scratch/out" -DCMAKE_PREFIX_PATH="$scratch/prefix" >/dev/null
cmake --build "$scratch/out" >/dev/null
for kind in sinter static runtime; do "$scratch/out/with_$kind"; done

if command -v pkg-config >/dev/null; then
    package=$(dirname "$(find "$scratch/prefix" -name sinter.pc)")
    libraries=$(dirname "$package")
    # shellcheck disable=SC2046
    ${CC:-gcc} "$scratch/main.c" -o "$scratch/main" $(PKG_CONFIG_PATH=$package pkg-config \
        --define-variable=prefix="$scratch/prefix" --cflags --libs sinter)
    LD_LIBRARY_PATH=$libraries "$scratch/main"
else
    echo "no pkg-config here: sinter.pc was not tried"
fi
if command -v g++ >/dev/null; then
    for header in "$scratch"/prefix/include/sinter/*.h; do echo "#include <sinter/$(basename "$header")>"; done |
        g++ -x c++ -std=c++11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I"$scratch/prefix/include" -
fi
