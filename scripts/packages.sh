# shellcheck shell=bash
# The packages that gloved needs, by purpose. Sourced by the other scripts.

# distribution: this system's name and version, as "debian 12".
distribution() {
    (
        ID=linux VERSION_ID=
        [[ ! -r /etc/os-release ]] || . /etc/os-release
        echo "$ID $VERSION_ID"
    )
}

# packages_of LIST [DISTRIBUTION]: names on this system, or on another one. The names of Ubuntu come
# from its package lists; nothing was built there.
packages_of() {
    local on=${2-$(distribution)}
    case $1 in
        build)
            echo g++ cmake ninja-build libarchive-dev libboost-dev \
                libboost-program-options-dev libfmt-dev libspdlog-dev libssl-dev libsystemd-dev \
                libutf8proc-dev libxxhash-dev nlohmann-json3-dev zlib1g-dev
            ;;
        mpi) echo libopenmpi-dev openmpi-bin ;;
        slurm) echo munge slurm-client slurmctld slurmd ;;
        try) echo socat ;;
        test)
            echo jq libgtest-dev man-db mandoc netcat-openbsd nodejs parallel python3 \
                python3-matplotlib python3-numpy python3-prometheus-client python3-pytest \
                python3-yaml socat strace zsh
            ;;
        # For tests of the page, and of pictures by t-SNE and UMAP. Ubuntu's chromium is a snap.
        pictures)
            echo python3-selenium python3-sklearn umap-learn
            [[ $on == ubuntu* ]] || echo chromium chromium-driver
            ;;
        # For the programs of docs/programs.md that scripts/test --all runs besides.
        languages) echo golang-go rustc ;;
        boot) echo systemd ;;
        root) echo git mmdebstrap util-linux ;;
        service) echo haproxy mmdebstrap procps systemd systemd-container util-linux ;;
        fuzz)
            echo clang
            # In Ubuntu 22.04 clang depends on a package that contains it.
            [[ $on == "ubuntu 22.04" ]] || echo libclang-rt-dev
            ;;
        package)
            echo cmake dpkg-dev file git lintian python3 python3-pip python3-setuptools \
                python3-wheel
            ;;
        # For the test of docs/other-hosts.md.
        hosts) echo adduser iproute2 openssh-server openssl stunnel4 util-linux ;;
        container) echo buildah mmdebstrap ;;
        # Other compilers than g++ of `build`, for scripts/toolchains.
        g++-1? | clang-1?) echo "$1" ;;
        includes) echo clang-tools-19 libclang-common-19-dev ;;
        aarch64) echo crossbuild-essential-arm64 mmdebstrap qemu-user ;;
        ci)
            # The test of the package of the Python client makes it. Tests of the pages in docs/ run
            # what needs pandas, scipy and R; others share a client by
            # joblib and dask, and run a notebook.
            echo clang-format clang-tidy dpkg-dev git mypy pyflakes3 python3-flake8 \
                python3-dask python3-ipykernel python3-joblib python3-nbclient python3-pandas \
                python3-pip python3-scipy python3-setuptools python3-wheel r-base-core shellcheck
            ;;
        *)
            echo "no list of packages is called '$1'" >&2
            return 2
            ;;
    esac
}

is_installed() {
    [[ $(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

# install_packages LIST...: installs missing packages of these lists, if any.
install_packages() {
    local list on names package as_root=() missing=()
    on=$(distribution)
    case $on in
        "debian 12" | "debian 13" | "ubuntu 22.04" | "ubuntu 24.04") ;;
        *)
            echo "This is $on: install what these packages of Debian 12 contain:" >&2
            for list; do packages_of "$list" "debian 12" >&2 || return; done
            return 0
            ;;
    esac
    for list; do
        names=$(packages_of "$list" "$on") || return
        for package in $names; do
            is_installed "$package" || missing+=("$package")
        done
    done
    ((${#missing[@]})) || return 0

    if ((EUID != 0)); then
        if ! command -v sudo >/dev/null; then
            echo "Installing these packages needs root or sudo: ${missing[*]}" >&2
            return 1
        fi
        as_root=(sudo)
    fi
    echo "Installing ${missing[*]}" >&2
    # env, because sudo may drop variables.
    "${as_root[@]}" apt-get update -qq >&2 &&
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
            apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
}
