#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: tools/mutate.sh BUILD SECONDS [ENGINES [MODELS [OUT]]]
#        tools/mutate.sh pack BUILD OUT
# Tries damaged engines and damaged models at the same time on all CPUs, from a build folder with sanitizers, and ends
# after SECONDS at the latest. The counts so far are in OUT/engines.log and OUT/models.log all the time. Exits with 1
# where anything was found. The numbers of rounds begin at CAMPAIGN_FIRST. `pack` puts what another machine needs into
# OUT, a small folder that can be carried there and given as BUILD.
set -u
programs=(fuzz_test_corrupt_engine fuzz_test_corrupt_model)
if [ "$1" = pack ]; then
    build=$2 out=$3 room=$(mktemp -d)
    trap 'rm -rf "$room"' EXIT
    mkdir -p "$out" "$room/tests" "$room/lib"
    for program in "${programs[@]}"; do
        strip --strip-debug -o "$room/tests/$program" "$build/tests/$program" || exit 2
        ldd "$build/tests/$program" | awk '$3 ~ /lib(asan|ubsan|stdc\+\+|gcc_s)/ { print $3 }' |
            while read -r library; do cp -L "$library" "$room/lib"; done
    done
    exec tar -czf "$out/mutate.tar.gz" -C "$room" tests lib
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
half=$((cpus / 2 > 0 ? cpus / 2 : 1))
first=${CAMPAIGN_FIRST:-0}
export SINTER_SOURCE_DIR=$PWD CAMPAIGN_SECONDS=$seconds
CAMPAIGN_WORKERS=$half CAMPAIGN_ROUNDS=$((first + engines)) \
    "${fixed[@]}" "$build/tests/${programs[0]}" >"$out/engines.log" 2>&1 &
one=$!
CAMPAIGN_WORKERS=$half CAMPAIGN_ROUNDS=$((first + models)) \
    "${fixed[@]}" "$build/tests/${programs[1]}" >"$out/models.log" 2>&1 &
two=$!
failed=0
wait "$one" || failed=1
wait "$two" || failed=1
grep -hE 'SUMMARY|runtime error|^CORRUPT_[A-Z]*=' "$out/engines.log" "$out/models.log" | sort | uniq -c | sort -rn | head -40
tail -n 3 "$out/engines.log" "$out/models.log"
exit "$failed"
