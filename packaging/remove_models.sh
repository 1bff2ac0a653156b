# Removes the models in a directory, and the remains of interrupted conversions. CMake inserts it
# into postrm. Recognises gloved's files by their content, as common/format/own_files.hpp does;
# prints the names of all other files, and keeps them. Uses only POSIX sh and Debian's essential
# packages, because gloved's programs are already removed.

# begins_with FILE HEX: whether FILE is a regular file, not a link, that begins with these bytes.
begins_with() {
    if [ ! -f "$1" ] || [ -L "$1" ]; then return 1; fi
    [ "$(head -c $((${#2} / 2)) "$1" | od -A n -t x1 | tr -d ' \n')" = "$2" ]
}

# is_empty FILE: whether FILE is a regular file without content.
is_empty() {
    [ -f "$1" ] && [ ! -L "$1" ] && [ ! -s "$1" ]
}

values_magic=8e474c560d0a1a0a
planes_magic=8e474c500d0a1a0a
neighbors_magic=8e474c4e0d0a1a0a
report_beginning=7b0a202022746f6f6c223a2022676c6f7665642d # {, a line feed,   "tool": "gloved-

# remove_own_files: removes gloved's files from the working directory. It removes `values` last,
# which proves that `keys`, plain text, belongs to a model. Fails if there are none.
remove_own_files() {
    if begins_with ./values "$values_magic"; then
        [ ! -f ./keys ] || [ -L ./keys ] || rm -f ./keys
    else
        # A conversion's directory: .NAME.gloved-PID-N.
        case ${PWD##*/} in
            .*.gloved-[0-9]*) ;;
            *) return 1 ;;
        esac
        case ${PWD##*.gloved-} in
            *[!0-9-]*) return 1 ;;
        esac
        for file in ./keys ./values; do
            ! is_empty "$file" || rm -f "$file"
        done
    fi
    for file in ./planes ./planes.new; do
        if begins_with "$file" "$planes_magic" || is_empty "$file"; then rm -f "$file"; fi
    done
    for file in ./neighbors ./neighbors.new; do
        if begins_with "$file" "$neighbors_magic" || is_empty "$file"; then rm -f "$file"; fi
    done
    if begins_with ./report.json "$report_beginning" || is_empty ./report.json; then
        rm -f ./report.json
    fi
    ! is_empty ./spool || rm -f ./spool
    ! begins_with ./values "$values_magic" || rm -f ./values
}

# remove_models_below: removes models in the directories below the working directory. Does not
# follow links or enter other disks. Somebody could replace a directory by a link meanwhile, so it
# compares the path after cd.
remove_models_below() (
    here=${PWD%/}
    for directory in ./* ./.[!.]* ./..?*; do
        if [ ! -d "$directory" ] || [ -L "$directory" ] || mountpoint -q "$directory"; then
            continue
        fi
        (
            cd -P "$directory" && [ "$PWD" = "$here/${directory#./}" ] || exit 1
            remove_models_below
            remove_own_files
        ) || continue
        rmdir "$directory" 2> /dev/null || true
    done
)

# remove_models DIRECTORY: removes its models, and prints the names of what stays.
remove_models() {
    (cd -P "$1" && remove_models_below) || true
    # DIRECTORY may be a mount point.
    rmdir "$1" 2> /dev/null && return
    echo "gloved: $1 stays; it is a mount point, or holds files that gloved did not make:" >&2
    find -H "$1" -xdev -mindepth 1 \
        \( ! -type d -o -empty -o -exec mountpoint -q {} \; \) -exec ls -1bd {} + |
        awk 'NR <= 50 { print "  " $0 } END { if (NR > 50) print "  and " NR - 50 " more" }' >&2
}
