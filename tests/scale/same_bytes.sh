#!/usr/bin/env bash
# Sends the same requests to gloved in many ways, and compares the bytes of the answers without us=
# and engine=: instruction sets, 1 and 2 threads, one by one and 64 at a time, models converted by
# different numbers of threads. Prints a hash for each way; exit status 1 if they differ.
#
#   same_bytes.sh BIN_DIR GLOVE_TEXT [REQUESTS]
set -euo pipefail
bin=$1
text=$2
requests=${3:-640}

work=$(mktemp -d)
daemon=
# shellcheck disable=SC2317  # called by the trap
finish() {
    if [ -n "$daemon" ]; then kill "$daemon"; fi
    rm -rf "$work"
}
trap finish EXIT

# Words of the download without quotes and backslashes.
awk -v n="$requests" 'BEGIN { srand(3) } { if (NF > 10 && $1 ~ /^[a-z]+$/) words[count++] = $1 }
    function word() { return words[int(rand() * count)] }
    END {
        for (i = 0; i < n; ++i) {
            options = "k=" (1 + int(rand() * 40)) (i % 5 == 1 ? " norm=unit" : "") \
                (i % 7 == 2 ? " top=20000" : "") (i % 11 == 3 ? " prefix=s" : "") \
                (i % 13 == 4 ? " min=0.4" : "") (i % 3 ? "" : " exclude=none")
            print "NEAR " options " fields=row,rank,norm " word() \
                (i % 2 ? " - " word() " + 0.5 * " word() : "")
        }
    }' "$text" > "$work/requests"

ask() { # model, batch, gloved options …
    local model=$1 batch=$2
    shift 2
    "$bin/gloved" --model "glove=$model" --socket "$work/s" "$@" 2> "$work/log" &
    daemon=$!
    until [ -S "$work/s" ] &&
        echo PING | socat -t60 - "UNIX-CONNECT:$work/s" > "$work/ping" 2>&1 &&
        grep -q '^OK' "$work/ping"; do
        kill -0 "$daemon" || { cat "$work/log" >&2; exit 1; }
        sleep 0.05
    done
    if [ "$batch" = 1 ]; then
        # Sends a request after the answer to the one before.
        coproc peer { socat -t60 - "UNIX-CONNECT:$work/s"; }
        while read -r request; do
            printf '%s\n' "$request" >&"${peer[1]}"
            read -r status n rest <&"${peer[0]}"
            printf '%s %s %s\n' "$status" "$n" "$rest"
            [ "$status" = OK ] && for ((i = 0; i < n; ++i)); do
                IFS= read -r line <&"${peer[0]}"
                printf '%s\n' "$line"
            done
        done < "$work/requests" > "$work/raw"
        eval "exec ${peer[1]}>&-"
        # shellcheck disable=SC2154  # coproc sets it
        wait "$peer_PID"
    else
        split -l "$batch" "$work/requests" "$work/part."
        for part in "$work"/part.*; do
            socat -t60 - "UNIX-CONNECT:$work/s" < "$part"
        done > "$work/raw"
        rm "$work"/part.*
    fi
    kill "$daemon"
    wait "$daemon"
    daemon=
    sed -E 's/ (us|engine)=[^ ]*//g' "$work/raw" | sha256sum | cut -c1-16
}

for threads in 1 2 5; do
    "$bin/gloved-convert" --threads "$threads" "$text" "$work/model$threads"
done
names=$(echo 1 | "$bin/gloved-distmat" --engine cpu --simd none - - 2>&1 |
    sed -nE 's/.*there are (.*)/\1/p' | tr -d ',' || true)
[ -n "$names" ] || { echo "$0: gloved-distmat names no instruction sets" >&2; exit 1; }
wanted=
status=0
report() {
    local sum=$1
    shift
    wanted=${wanted:-$sum}
    [ "$sum" = "$wanted" ] || status=1
    printf '%s  %s\n' "$sum" "$*"
}
for simd in $names; do
    for threads in 1 2; do
        for batch in 1 64; do
            report "$(ask "$work/model1" $batch --simd "$simd" --threads $threads)" \
                "simd $simd, threads $threads, batch $batch"
        done
    done
done
for converted in 2 5; do
    report "$(ask "$work/model$converted" 64)" "model converted by $converted threads"
    for file in keys values; do
        cmp "$work/model1/$file" "$work/model$converted/$file" || status=1
    done
done
grep -c '^ERR' "$work/raw" | sed 's/^/requests refused: /' || true
[ $status = 0 ] && echo "$requests requests: the same bytes in every way"
exit $status
