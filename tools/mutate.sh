#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: tools/mutate.sh BUILD SECONDS [ENGINES [MODELS [OUT]]]
#        tools/mutate.sh pack BUILD OUT
# Tries damaged engines, half of them of random graphs, damaged models, and a fifth as many damaged engines for CUDA, at
# the same time on all CPUs, from a build folder with sanitizers, and ends after SECONDS at the latest. The counts so far
# are in OUT/engines.log, OUT/graphs.log, OUT/models.log and OUT/cuda.log all the time. Exits with 1 where anything was
# found. The numbers of rounds begin at CAMPAIGN_FIRST. `pack` puts what another machine needs into OUT, a small folder that can be carried there and given
# as BUILD.
set -u
if [ "$1" = pack ]; then
    build=$2 out=$3 room=$(mktemp -d)
    trap 'rm -rf "$room"' EXIT
    mkdir -p "$out" "$room/tests" "$room/lib"
    for file in fuzz_test_corrupt_engine fuzz_test_corrupt_graph fuzz_test_corrupt_model libsinter_fake_cuda.so; do
        strip --strip-debug -o "$room/tests/$file" "$build/tests/$file" || exit 2
        ldd "$build/tests/$file" | awk '$3 ~ /lib(asan|ubsan|stdc\+\+|gcc_s)/ { print $3 }' |
            while read -r library; do cp -L "$library" "$room/lib"; done
    done
    tar -czf "$out/mutate.tar.gz" -C "$room" tests lib
    exit
fi

build=$(realpath "$1") seconds=$2 engines=${3:-1000000} models=${4:-300000} out=${5:-$1}
cd "$(dirname "$0")/.." || exit 2
mkdir -p "$out"
out=$(realpath "$out")
if [ -f "$build/mutate.tar.gz" ]; then
    room=$(mktemp -d)
    trap 'rm -rf "$room"' EXIT
    tar -xzf "$build/mutate.tar.gz" -C "$room" || exit 2
    build=$room
    export LD_LIBRARY_PATH=$room/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
fi
# The sanitizers' memory has fixed addresses, which a random layout may take; some machines do not let it be fixed.
fixed=(setarch -R)
"${fixed[@]}" true 2>/dev/null || fixed=(env)
cpus=$(nproc)
first=${CAMPAIGN_FIRST:-0}
export SINTER_SOURCE_DIR=$PWD SINTER_FAKE_CUDA=$build/tests/libsinter_fake_cuda.so CAMPAIGN_SECONDS=$seconds

jobs=()
mutate() { # LOG ROUNDS SHARE PROGRAM TEST: a share of the CPUs, in fifths
    local workers=$((cpus * $3 / 5))
    CAMPAIGN_WORKERS=$((workers > 0 ? workers : 1)) CAMPAIGN_ROUNDS=$((first + $2)) \
        "${fixed[@]}" "$build/tests/$4" "$5" >"$out/$1.log" 2>&1 &
    jobs+=($!)
}
mutate engines "$((engines / 2))" 1 fuzz_test_corrupt_engine damaged_engines
mutate graphs "$((engines / 2))" 1 fuzz_test_corrupt_graph damaged_graphs
mutate models "$models" 2 fuzz_test_corrupt_model damaged_models
mutate cuda "$((engines / 5))" 1 fuzz_test_corrupt_engine damaged_engines_cuda
failed=0
for job in "${jobs[@]}"; do wait "$job" || failed=1; done
logs=("$out/engines.log" "$out/graphs.log" "$out/models.log" "$out/cuda.log")
grep -hE 'SUMMARY|runtime error|^CORRUPT_[A-Z]*=' "${logs[@]}" | sort | uniq -c | sort -rn | head -40
tail -n 3 "${logs[@]}"
exit "$failed"
