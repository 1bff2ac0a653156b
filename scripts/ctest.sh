# shellcheck shell=bash
# How scripts run tests: on all processors, with a summary at the end. Sourced from the root of
# the project.

# run_ctest PRESET [CTEST-ARG...]
run_ctest() {
    local preset=$1 report=$PWD/build/$1/tests.xml status=0
    shift
    # Programs say in their output what they skip; ctest would cut that off.
    ctest --preset "$preset" --parallel "$(nproc)" --progress --output-junit "$report" \
        --test-output-size-passed 1000000 "$@" || status=$?
    tests/summary "$report"
    return "$status"
}
