#!/bin/sh
# Builds the C++ core with its tests, without Node, and runs them.
#   scripts/native-test.sh [plain] [asan] [tsan]      (no argument: plain and asan)
# Each variant has a build folder of its own, build/native-<variant>. The last line is "N passed, N failed".
set -u
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- plain asan
jobs=${MOONCAKE_KV_JOBS:-2}
passed=0
failed=0

for variant in "$@"; do
  case $variant in
    plain) sanitize= ;;
    asan) sanitize=address,undefined ;;
    tsan) sanitize=thread ;;
    *) echo "unknown variant $variant; known are plain, asan (with UBSan) and tsan" >&2; exit 2 ;;
  esac
  dir=build/native-$variant
  log=$dir/build.log
  mkdir -p "$dir"
  echo "== native core, $variant"
  if ! { cmake -S . -B "$dir" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DMOONCAKE_KV_TESTS=ON -DMOONCAKE_KV_WERROR=ON \
           "-DMOONCAKE_KV_SANITIZE=$sanitize" && cmake --build "$dir" -j "$jobs"; } >"$log" 2>&1; then
    cat "$log" >&2
    echo "the build of $variant failed" >&2
    failed=$((failed + 1))
    continue
  fi
  UBSAN_OPTIONS=print_stacktrace=1 ctest --test-dir "$dir" --output-on-failure >"$dir/ctest.log" 2>&1
  status=$?
  cat "$dir/ctest.log"
  ok=$(grep -c ' Passed ' "$dir/ctest.log")
  total=$(sed -n 's/.*tests failed out of \([0-9]*\)$/\1/p' "$dir/ctest.log")
  passed=$((passed + ok))
  failed=$((failed + ${total:-0} - ok))
  # No test at all, or an end that the counts don't show, is a failure too.
  if [ "$ok" -eq 0 ] || { [ "$status" -ne 0 ] && [ "$ok" -eq "${total:-0}" ]; }; then failed=$((failed + 1)); fi
done

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
