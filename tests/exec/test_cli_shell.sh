#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Completion as bash sees it, the other shells' scripts and the manual page hold every option, and the options of the log.
set -eu
sinter=${SINTER_BIN:?} source=${SINTER_SOURCE_DIR:?}
model=$source/examples/digits/digits.onnx
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAIL $*"; exit 1; }

"$sinter" completion bash >"$work/bash"
# completes WANTED WORD...: the last word is being typed.
completes() {
    local wanted=$1 got
    shift
    got=$(bash -c 'source "$0"; compopt() { :; }; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _sinter; echo "${COMPREPLY[*]}"' "$work/bash" "$@")
    [ "$got" = "$wanted" ] || fail "'$*' completes to '$got', not to '$wanted'"
}
completes "build bench" sinter b
completes "--tune" sinter build --tun
completes "fast full" sinter build --tune f
completes "--percentile" sinter bench --perc
completes "" sinter build --perc
completes "--saveEngine=" sinter exec --saveE
completes "--saveEngine=" trtexec --saveE
completes "" trtexec --useDLA
if command -v zsh >/dev/null; then "$sinter" completion zsh | zsh -n || fail "zsh"; fi
if command -v fish >/dev/null; then "$sinter" completion fish | fish -n || fail "fish"; fi
for option in $("$sinter" doctor --markdown | grep -o '^| `--[a-z-]*' | cut -c6-); do
    case $option in no-device) continue ;; esac
    "$sinter" completion fish | grep -q -- "-l $option " || fail "fish lacks --$option"
    "$sinter" completion zsh | grep -q -- "--$option\[" || fail "zsh lacks --$option"
done 2>/dev/null
"$sinter" man >"$work/man"
for flag in $("$sinter" exec --flags | grep -o '^| `--[A-Za-z0-9]*' | cut -c6-); do
    grep -q "^.fB.-.-$flag.fR" "$work/man" || fail "the manual page lacks --$flag"
done
if command -v groff >/dev/null; then
    [ -z "$(groff -man -ww -z "$work/man" 2>&1)" ] || fail "groff warns: $(groff -man -ww -z "$work/man" 2>&1 | head -3)"
fi
"$sinter" completion tcsh 2>/dev/null && fail "there is no completion for tcsh"

# The log.
"$sinter" run "$model" --log-level verbose --log-times --log-file "$work/log" --shape N=2 >/dev/null 2>"$work/err"
grep -q '^\[[0-9/]*-[0-9:]*\] \[V\] ' "$work/err" || fail "verbose: $(head -1 "$work/err")"
grep -q '\[V\] ' "$work/log" || fail "the log file"
"$sinter" run "$model" --log-file "$work/quiet" --shape x=2 --log-level error 2>"$work/err" >/dev/null && fail "there is no input x"
grep -q "^error: .*no input" "$work/err" || fail "an error: $(cat "$work/err")"
grep -q '^\[[0-9/]*-[0-9:]*\] \[E\] ' "$work/quiet" || fail "an error in the log file"
"$sinter" bench "$model" --allow int8 --tune off --duration 0.01 --log-level error >/dev/null 2>"$work/err"
[ ! -s "$work/err" ] || fail "a note at the level error: $(cat "$work/err")"
"$sinter" run "$model" --log-file "$work/no/such" 2>/dev/null >/dev/null && fail "a log file that cannot be written"

# Outputs by name.
"$sinter" run "$model" --output-dir "$work/out" --output-names >/dev/null
[ -f "$work/out/scores.npy" ] || fail "no file is named as the output: $(ls "$work/out")"

# Several contexts at the same time.
"$sinter" bench "$model" --tune off --streams 3 --iterations 5 --duration 0 --warmup 0 --percentile 50,99.9 --json >"$work/bench.json"
python3 - "$work/bench.json" <<'TEXT' || fail "bench with several contexts"
import json, sys
b = json.load(open(sys.argv[1]))
assert b["runs"] == 15 and b["streams"] == 3 and set(b["percentiles"]) == {"p50_ms", "p99.9_ms"}, b
TEXT
for wrong in "--streams 0" "--streams 9999" "--percentile 101"; do
    "$sinter" bench "$model" $wrong 2>/dev/null && fail "$wrong"
done
exit 0
