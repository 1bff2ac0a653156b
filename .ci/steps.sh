# shellcheck shell=bash
# Steps of a run: what each took, and one table at the end, however the run ends. Sourced by the
# scripts of this folder.

source scripts/ctest.sh

steps=()
step_begun=$SECONDS

# step NAME: what follows, until the next step, belongs to it.
step() {
    end_step
    step_name=$*
    step_begun=$SECONDS
    printf '\n==== %s\n' "$step_name"
}

end_step() {
    [[ -z ${step_name-} ]] ||
        steps+=("$(printf '%6d s  %s' $((SECONDS - step_begun)) "$step_name")")
    step_name=
}

print_steps() {
    local status=$?
    ((status == 0)) || step_name+=": FAILED"
    end_step
    printf '\n'
    printf '%s\n' "${steps[@]}"
    printf '%6d s  in all\n' "$SECONDS"
}
trap print_steps EXIT

# tidy [--checks=CHECKS] FILE...: clang-tidy on the sources of the build dev that are among FILE...,
# and for each header among them on one source that includes it; not on tests. CHECKS come after
# those of .clang-tidy. Clang 14 cannot read what includes Asio (libstdc++'s coroutines). The
# analyzer looks less deep than it could: it would think for minutes about a few large functions.
tidy() {
    local checks=() unread readable chosen
    if [[ ${1-} == --checks=* ]]; then
        checks=("$1")
        shift
    fi
    unread=$(includes_of /usr/include/boost/asio/awaitable.hpp | cut -d' ' -f1)
    readable=$(compiled_sources | grep -v '^tests/' | grep -vxF "$unread")
    chosen=$(includes_of "$@" | sort | awk -v sources="$readable" '
        BEGIN {
            count = split(sources, names)
            for (i = 1; i <= count; ++i) is_readable[names[i]] = 1
        }
        !($1 in is_readable) { next }
        $1 == $2 { chosen[$1] = 1; next }
        { includers[$2] = includers[$2] " " $1 }
        END {
            for (header in includers) {
                count = split(includers[header], names)
                for (i = 1; i <= count && !(names[i] in chosen); ++i) {}
                if (i > count) chosen[names[1]] = 1
            }
            for (source in chosen) print source
        }')
    echo "$(wc -w <<<"$chosen") of $(wc -w <<<"$readable") sources"
    # Clang reads neither g++'s precompiled headers nor the option that comes with them. A source
    # that several programs compile is read once.
    mkdir -p build/tidy
    python3 - >build/tidy/compile_commands.json <<'END'
import json, re
commands = {}
for command in json.load(open("build/dev/compile_commands.json")):
    command["command"] = re.sub(" -Winvalid-pch -include [^ ]*| -Wno-stringop-overflow", "",
                                command["command"])
    commands.setdefault(command["file"], command)
print(json.dumps(list(commands.values())))
END
    printf '%s\n' "$chosen" |
        xargs -r -P "$(nproc)" -n 1 clang-tidy -p build/tidy --quiet "${checks[@]}" \
            --extra-arg=-Xclang --extra-arg=-analyzer-config \
            --extra-arg=-Xclang --extra-arg=mode=shallow \
            2> >(grep -vE '^[0-9]+ warnings? generated\.$' >&2)
}

# compiled_sources: the sources of the build dev, each once.
compiled_sources() {
    sed -n "s|^ *\"file\": \"$PWD/\(.*\.cpp\)\",*$|\1|p" build/dev/compile_commands.json | sort -u
}

# includes_of FILE...: lines «SOURCE FILE» for each source that is among FILE... or includes one.
includes_of() {
    ninja -C build/dev -t deps | awk -v root="$PWD/" -v files="$(printf '%s\n' "$@")" '
        BEGIN {
            count = split(files, names, "\n")
            for (i = 1; i <= count; ++i) wanted[names[i]] = 1
        }
        /^[^ ]/ { source = "" }
        /^ / {
            name = $1
            sub("^(\\.\\./)+", "", name)
            if (index(name, root) == 1) name = substr(name, length(root) + 1)
            if (source == "") source = name
            if (name in wanted) print source, name
        }'
}

# sanitized PRESET [-DOPTION=VALUE...] [CTEST-ARG...]: builds a preset and tests it.
sanitized() {
    local preset=$1 options=()
    shift
    while [[ ${1-} == -D* ]]; do
        options+=("$1")
        shift
    done
    cmake --preset "$preset" "${options[@]}" > /dev/null
    cmake --build --preset "$preset"
    run_ctest "$preset" "$@"
}
