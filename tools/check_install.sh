#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs into a scratch folder and uses the result as a stranger would: through the CMake package, through pkg-config
# where that is there, and from C++.
set -eu
build=$(cd "${1:-build}" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cmake --install "$build" --prefix "$scratch/prefix" >/dev/null

# Every public function; those that build engines are not in the runtime library.
every=$(grep -ho '\bsinter_[a-z_]*(' "$scratch"/prefix/include/sinter/*.h | tr -d '(' | sort -u)
build_only="sinter_build_file sinter_build_memory sinter_build_save sinter_model_inputs sinter_print_operators $(
    cd "$scratch/prefix/include/sinter" && grep -ho '\bsinter_[a-z_]*(' network.h simplify.h calibrate.h quantize.h | tr -d '(' | tr '\n' ' ')"
for list in every run; do
    {
        echo '#include <sinter/sinter.h>'
        echo '#include <stdio.h>'
        echo 'typedef void (*function)(void);'
        echo 'int main(void) {'
        echo 'static const function all[] = {'
        for name in $every; do
            [[ $list == run && " $build_only " == *" $name "* ]] || echo "(function)$name,"
        done
        echo '}; return printf("%zu functions\n", sizeof all / sizeof all[0]) < 0; }'
    } >"$scratch/$list.c"
done
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
    set(source every.c)
    if(kind STREQUAL runtime)
        set(source run.c)
    endif()
    add_executable(with_${kind} ${source})
    target_link_libraries(with_${kind} PRIVATE sinter::${kind})
endforeach()
TEXT
cmake -S "$scratch" -B "$scratch/out" -DCMAKE_PREFIX_PATH="$scratch/prefix" >/dev/null
cmake --build "$scratch/out" >/dev/null
for kind in sinter static runtime; do "$scratch/out/with_$kind"; done
"$scratch/prefix/bin/trtexec" --version | grep -q 'flags of trtexec'

# A project for TensorRT, which links by the names of TensorRT's libraries.
if command -v g++ >/dev/null; then
    mkdir "$scratch/tensorrt"
    printf '#include <%s>\n' NvInfer.h NvInferPlugin.h NvOnnxParser.h cuda_runtime_api.h >"$scratch/tensorrt/main.cpp"
    echo 'int main() { return getInferLibVersion() < 100000 || cudaFree(nullptr) != cudaSuccess; }' >>"$scratch/tensorrt/main.cpp"
    cat >"$scratch/tensorrt/CMakeLists.txt" <<'TEXT'
cmake_minimum_required(VERSION 3.18)
project(stranger LANGUAGES CXX)
find_package(sinter REQUIRED COMPONENTS tensorrt_host)
add_executable(app main.cpp)
target_link_libraries(app nvinfer nvonnxparser nvinfer_plugin cudart)
TEXT
    cmake -S "$scratch/tensorrt" -B "$scratch/tensorrt/out" -DCMAKE_PREFIX_PATH="$scratch/prefix" >/dev/null
    cmake --build "$scratch/tensorrt/out" >/dev/null
    "$scratch/tensorrt/out/app"
fi

# sinter.pc says where it was put, also after the tree moved. Without pkg-config, two variables are resolved by hand.
mv "$scratch/prefix" "$scratch/moved"
package=$(dirname "$(find "$scratch/moved" -name sinter.pc)")
libraries=$(dirname "$package")
if command -v pkg-config >/dev/null; then
    flags=$(PKG_CONFIG_PATH=$package pkg-config --cflags --libs sinter)
else
    flags=$(pcfiledir=$package; prefix=$(eval "echo $(sed -n 's/^prefix=//p' "$package/sinter.pc")")
        echo "-I$prefix/include -L$libraries -lsinter")
fi
# shellcheck disable=SC2086
${CC:-gcc} "$scratch/main.c" -o "$scratch/main" $flags
LD_LIBRARY_PATH=$libraries "$scratch/main"
if grep -q "$scratch\|@" "$package/sinter.pc"; then echo "sinter.pc holds a fixed path"; exit 1; fi
if command -v g++ >/dev/null; then
    for header in "$scratch"/moved/include/sinter/*.h; do echo "#include <sinter/$(basename "$header")>"; done |
        g++ -x c++ -std=c++11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I"$scratch/moved/include" -
    printf '#include <%s>\n' sinter/sinter.hpp NvOnnxParser.h NvInferPlugin.h cuda_runtime_api.h |
        g++ -x c++ -std=c++17 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I"$scratch/moved/include" \
            -I"$scratch/moved/include/sinter/compat" -I"$scratch/moved/include/sinter/compat/host" -
fi
