# shellcheck shell=bash
# Completions of bash for gloved and the programs beside it. Works with and without the package
# bash-completion, which loads it by the name of each program.

# _gloved_options "PROGRAM [MEASUREMENT]": prints its options with the kinds of their values:
# =a,b,c one of these; =list:a,b,c several of these; =@file; =@directory; =@model ([NAME=]DIR);
# =@other, without completion.
_gloved_options() {
    case $1 in
        gloved)
            echo --model=@model --list=@other --lists=@directory --unknown=error,skip \
                --case=exact,ignore --socket=@file --config=@file --engine=auto,cuda,cpu \
                --simd=avx512,avx2,neon,baseline --device=all --spread=auto,rows,queries \
                --threads=@other --io-threads=@other --pin=auto,on,off --planes=on,off \
                --fine-plane=auto,on,off \
                --neighbors=on,off --gpu-memory=@other --batch-ms=@other --rank-cache=@other \
                --max-k=@other \
                --max-connections=@other --uid-share=@other --queue-length=@other \
                --request-timeout=@other \
                --line-timeout=@other --idle-timeout=@other \
                --write-timeout=@other --drain-timeout=@other --log-level=debug,info,warning,error \
                --access-log=on,off --check --help --version
            ;;
        gloved-client)
            echo --socket=@file --count=@other --json --lines --health --timeout=@other \
                --retry=@other --help --version
            ;;
        gloved-convert)
            echo --format=auto,glove,norms,word2vec,word2vec-bin,fasttext --dim=@other \
                --member=@other --limit=@other --duplicates=first,last,error --on-error=stop,skip \
                --threads=@other --memory=@other --planes=4,none --planes-only=@directory \
                --export=glove,word2vec,word2vec-bin,npy --help --version
            ;;
        gloved-verify)
            echo --download=@file --source=@file --audit=@file --list=@other --neighbors=20,all \
                --quick --engines \
                --answers=@other --oracle=@other --seed=@other --ways=@other --reference=@other \
                --device=all --json --threads=@other --help --version
            ;;
        gloved-eval)
            echo --socket=@file --model=@other --top=@other --method=add,mul --case=ignore,exact \
                --json --timeout=@other --retry=@other --help --version
            ;;
        gloved-matmin)
            echo --op=min,max,minmax --type=float64,float32,int32 \
                --engine=auto,cuda,cpu --times --threads=@other \
                --member=@other --help --version
            ;;
        gloved-bench)
            local kinds=near,nearvec,analogy,cosmul,rank,sim,dist,vec,odd,matrix,prefix,has,ping
            echo --model=@directory --rows=@other --dim=@other --seed=@other --keep=@directory \
                --engine=cpu,cuda,auto,all --simd=avx512,avx2,neon,baseline,all --threads=@other \
                --device=all --spread=auto,rows,queries --pin=on,off --planes=on,off \
                --fine-plane=on,off --wgmma=on,off --gpu-memory=@other --batches=@other \
                --k=@other --top=@other \
                --range=@other --within=@other --exclude=@other --min=@other --repeat=@other \
                --loads --daemon=@file --daemon-engine=auto,cuda,cpu --leak-queries=@other \
                --format=text,csv --load=@file \
                --mix=list:$kinds \
                --connections=@other --depth=@other --rate=@other --seconds=@other \
                --check=@other --lone --daemon-pid=@other --help --version
            ;;
        gloved-distmat)
            echo --metric=sqeuclidean,euclidean,cosine --engine=auto,cuda,cpu \
                --model=@directory --top=@other --threads=@other --simd=avx512,avx2,neon,baseline \
                --device=@other --member=@other --times --help --version
            ;;
        gloved-neighbors)
            echo --k=@other --engine=auto,cuda,cpu --threads=@other --device=all \
                --gpu-memory=@other --parts=@directory --part=@other --join --output=@file \
                --format=tsv,edges,npy,ivecs --queries=@file \
                --query-format=words,glove,numbers,fvecs --hubs --mutual --compare=@directory \
                --show=@other --times --help --version
            ;;
        gloved-neighbors-mpi)
            echo --k=@other --engine=auto,cuda,cpu --threads=@other --device=all \
                --gpu-memory=@other --parts=@directory --times --help --version
            ;;
        'gloved-bench distmat')
            echo --rows=@other --dim=@other --engines=list:all,cpu,cuda --repeat=@other \
                --threads=@other --device=@other --seed=@other --format=text,csv --help --version
            ;;
        'gloved-bench museum')
            local versions=all,v0,v1,v2,v3,v4,original,sequential,global,shared8,shared16
            versions+=,shared32,cpu,cuda
            echo --model=@directory --rows=@other --dim=@other --k=@other --count=@other \
                "--versions=list:$versions" --repeat=@other --seconds=@other --threads=@other \
                --device=@other --seed=@other --format=text,csv --help --version
            ;;
        'gloved-bench matmin')
            echo --count=@other --shape=@other --type=float64,float32,int32 --repeat=@other \
                --threads=@other --device=@other --seed=@other --format=text,csv --help --version
            ;;
    esac
}

# _gloved_request_options VERB: prints the options of a request in the same form.
_gloved_request_options() {
    case $1 in
        NEAR)
            echo k=@other min=@other top=@other prefix=@other within=@other without=@other \
                only=@other norm=raw,unit exclude=inputs,none unknown=error,skip \
                case=exact,ignore engine=auto,cuda,cpu model=@other fields=list:row,rank,norm \
                certify=0,1
            ;;
        NEARVEC)
            echo k=@other min=@other top=@other prefix=@other within=@other without=@other \
                base64=@other engine=auto,cuda,cpu model=@other fields=list:row,rank,norm \
                certify=0,1
            ;;
        ANALOGY)
            echo k=@other min=@other top=@other prefix=@other within=@other without=@other \
                only=@other method=add,mul case=exact,ignore engine=auto,cuda,cpu model=@other \
                fields=list:row,rank,norm certify=0,1
            ;;
        RANK)
            echo top=@other prefix=@other within=@other without=@other norm=raw,unit \
                unknown=error,skip case=exact,ignore engine=auto,cuda,cpu model=@other
            ;;
        MATRIX)
            echo metric=cosine,sqeuclidean unknown=error,skip case=exact,ignore model=@other
            ;;
        PREFIX) echo k=@other within=@other without=@other fields=list:row,rank,norm model=@other ;;
        HAS) echo fields=list:row,rank,norm case=exact,ignore model=@other ;;
        VEC) echo encoding=decimal,base64 unknown=error,skip case=exact,ignore model=@other ;;
        SIM | DIST | ODD) echo norm=raw,unit unknown=error,skip case=exact,ignore model=@other ;;
        LISTS | STATS) echo model=@other ;;
    esac
}

# _gloved_words TEXT WORD...: replies with the words that begin with TEXT.
_gloved_words() {
    local text=$1 word
    shift
    for word; do
        [[ $word != "$text"* ]] || COMPREPLY+=("$word")
    done
}

# _gloved_files TEXT [directory]: replies with files, or with directories only.
_gloved_files() {
    local cur=$1 path
    if declare -F _filedir >/dev/null; then
        # The function of bash-completion handles quotes and tildes. It completes «cur».
        _filedir ${2:+-d}
        return
    fi
    compopt -o filenames 2>/dev/null
    while IFS= read -r path; do
        COMPREPLY+=("$path")
    done < <(if [[ -n ${2-} ]]; then compgen -d -- "$cur"; else compgen -f -- "$cur"; fi)
}

# _gloved_value KIND TEXT: replies with values of a kind, see _gloved_options.
_gloved_value() {
    local kind=$1 text=$2 begun='' i
    local -a words
    case $kind in
        @file) _gloved_files "$text" ;;
        @directory) _gloved_files "$text" directory ;;
        @model)
            # «a/b=c» is a path: a name has no slash.
            [[ ${text%%=*} == */* ]] || text=${text#*=}
            _gloved_files "$text" directory
            ;;
        @*) ;;
        list:*)
            IFS=, read -ra words <<<"${kind#list:}"
            [[ $text != *,* ]] || begun=${text%,*},
            _gloved_words "${text##*,}" "${words[@]}"
            for i in "${!COMPREPLY[@]}"; do COMPREPLY[i]=$begun${COMPREPLY[i]}; done
            ;;
        *)
            IFS=, read -ra words <<<"$kind"
            _gloved_words "$text" "${words[@]}"
            ;;
    esac
}

# _gloved_kind NAME OPTION...: sets «kind» to the kind of the option NAME, empty if it has no value.
# Fails if there is no such option.
_gloved_kind() {
    local name=$1 option
    shift
    for option; do
        [[ ${option%%=*} == "$name" ]] || continue
        kind=
        [[ $option != *=* ]] || kind=${option#*=}
        return 0
    done
    return 1
}

# _gloved_names TEXT OPTION...: replies with names of options, with «=» for options of requests.
_gloved_names() {
    local text=$1 option
    local -a names=()
    shift
    for option; do
        if [[ $option == --* ]]; then names+=("${option%%=*}"); else names+=("${option%%=*}="); fi
    done
    _gloved_words "$text" "${names[@]}"
}

# _gloved_request TEXT WORD...: completes TEXT, the last word of a request of gloved-client.
_gloved_request() {
    local text=$1 word kind
    local -a options
    shift
    if (($# == 0)); then
        _gloved_words "$text" NEAR NEARVEC ANALOGY RANK SIM DIST VEC ODD MATRIX PREFIX HAS MODELS \
            USE LISTS FORMAT STATS RELOAD PING HELP QUIT
        return
    fi
    read -ra options <<<"$(_gloved_request_options "$1")"
    shift
    # The first other word ends the options. Words of the model are not completed.
    for word; do
        [[ $word == *=* ]] && _gloved_kind "${word%%=*}" "${options[@]}" || return
    done
    if [[ $text != *=* ]]; then
        _gloved_names "$text" "${options[@]}"
        compopt -o nospace 2>/dev/null
    elif _gloved_kind "${text%%=*}" "${options[@]}"; then
        _gloved_value "$kind" "${text#*=}"
    fi
}

# _gloved PROGRAM: completes a command line; `complete -F` calls it.
_gloved() {
    local program=${1##*/} word kind value_of='' glued='' ended='' exporting='' text i
    local -a options words=() operands=()
    COMPREPLY=()
    if [[ $program == gloved-bench && ${COMP_WORDS[1]-} == @(distmat|matmin|museum) ]] &&
        ((COMP_CWORD > 1)); then
        program+=" ${COMP_WORDS[1]}"
    fi
    read -ra options <<<"$(_gloved_options "$program")"

    # Bash splits «--name=value» into three words; this joins them.
    for ((i = 1; i <= COMP_CWORD; ++i)); do
        word=${COMP_WORDS[i]}
        if ((${#words[@]})) && [[ $glued || $word == =* ]]; then
            words[-1]+=$word
            glued=
            [[ $word != *= ]] || glued=1
        else
            words+=("$word")
        fi
    done
    text=${words[-1]-}
    unset 'words[-1]'

    for word in "${words[@]}"; do
        if [[ $value_of ]]; then
            value_of=
        elif [[ $ended || $word != -?* ]]; then
            operands+=("$word")
            # A query may contain words that look like options.
            [[ $program != gloved-client ]] || ended=1
        elif [[ $word == -- ]]; then
            ended=1
        else
            [[ ${word%%=*} != --export ]] || exporting=1
            if [[ $word != *=* ]] && _gloved_kind "$word" "${options[@]}" && [[ $kind ]]; then
                value_of=$word
            fi
        fi
    done

    if [[ $value_of ]]; then
        _gloved_kind "$value_of" "${options[@]}"
        _gloved_value "$kind" "$text"
    elif [[ ! $ended && $text == --*=* ]]; then
        ! _gloved_kind "${text%%=*}" "${options[@]}" || _gloved_value "$kind" "${text#*=}"
    elif [[ ! $ended && $text == -* ]]; then
        _gloved_names "$text" "${options[@]}"
    else
        case $program in
            gloved-client) _gloved_request "$text" "${operands[@]}" ;;
            gloved-distmat) ((${#operands[@]} > 1)) || _gloved_files "$text" ;;
            gloved-bench) ((COMP_CWORD > 1)) || _gloved_words "$text" distmat matmin museum ;;
            'gloved-bench museum')
                ((${#operands[@]} > 0)) || _gloved_words "$text" search minimum distances
                ;;
            gloved-neighbors | gloved-neighbors-mpi | gloved-verify)
                ((${#operands[@]} > 0)) || _gloved_files "$text" directory
                ;;
            gloved-eval)
                case ${#operands[@]} in
                    0) _gloved_words "$text" analogies pairs ;;
                    1) _gloved_files "$text" ;;
                esac
                ;;
            gloved-matmin) ((${#operands[@]} > 0)) || _gloved_files "$text" ;;
            gloved-convert)
                case ${#operands[@]}$exporting in
                    0 | 11) _gloved_files "$text" ;;
                    1 | 01) _gloved_files "$text" directory ;;
                esac
                ;;
        esac
    fi

    # If bash does not split words at «=», a reply is the whole word.
    word=${COMP_WORDS[COMP_CWORD]-}
    if [[ $COMP_WORDBREAKS != *=* && $word == *=* ]]; then
        for i in "${!COMPREPLY[@]}"; do COMPREPLY[i]=${word%"${word##*=}"}${COMPREPLY[i]}; done
    fi
}

complete -F _gloved gloved gloved-client gloved-convert gloved-verify gloved-eval gloved-bench \
    gloved-matmin gloved-distmat gloved-neighbors gloved-neighbors-mpi
